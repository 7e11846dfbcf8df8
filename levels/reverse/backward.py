"""The backward pass: lazy and pruned. A look-up runs only the part of it that leads to one node.

Nodes are older than what is made of them, so age is the order of the pass. The children of all nodes are found once. A cotangent is
dropped when it has gone to all parents of its node, unless somebody has looked it up; asked for again, it is computed again.
"""

from collections.abc import Collection, Iterable
from functools import partial
from operator import attrgetter
from typing import Any

from nestgrad.errors import GraphFreedError, MissingOp
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.checkpointing import cool
from nestgrad.levels.recipe import Remade
from nestgrad.levels.reverse.node import Node
from nestgrad.levels.reverse.visits import Visits, early, settled, surveyed
from nestgrad.levels.watching import steps, watched
from nestgrad.ops.shapes import sum_to

_age = attrgetter("age")


class Pass:
    """Cotangents of the graph under ``root``, seeded with ``seed``, on demand.

    Attributes:
        cotangents: What has arrived at a node so far: all of it when the node is complete.
        sent: Which of a node's edges have been followed, as a bit set. A node that is in it is complete: its children have all passed on
            what leads to it.
        asked: Nodes that have been looked up; their cotangents stay.
        dropped: Complete nodes whose cotangents are gone.
        keep: Whether somebody has asked for a cotangent that had been dropped, so that none is any more.
        regions: The nodes' regions, where there are any.
    """

    __slots__ = ("asked", "b", "children", "cotangents", "dropped", "keep", "regions", "root", "seed", "sent", "tape")

    def __init__(self, b: Any, root: Node, seed: Any, tape: Tape) -> None:
        self.b, self.root, self.seed, self.tape = b, root, seed, tape
        self.children: dict[Node, list[Node]] | None = None
        self.regions: Visits | None = None
        self._restart()

    def _restart(self) -> None:
        self.cotangents: dict[Node, Any] = {self.root: self.seed}
        self.sent: dict[Node, int] = {self.root: 0}
        self.asked: set[Node] = set()
        self.dropped: set[Node] = set()
        self.keep = False

    def find(self) -> dict[Node, list[Node]]:
        """The children of each node under the root that pass something to it; walked once.

        A node that the root reaches through edges with zero derivative alone has none, so no cotangent is computed for its sake.

        Raises:
            GraphFreedError: If a part of the graph was freed.
        """
        children = self.children
        if children is None:
            children = {self.root: []}
            stack = [self.root]
            raw = not isinstance(self.seed, Coat)
            while stack:
                node = stack.pop()
                edges = node.edges
                if edges is None:
                    raise freed(node)
                raw = raw and node.raw
                for parent, rule, _ in edges:
                    if parent not in children:
                        children[parent] = []
                        stack.append(parent)
                    if rule is not None:
                        children[parent].append(node)
            self.children = children
            if raw:
                self.b = self.b.bare
            elif Remade.ever:
                self.regions, self.b = surveyed(children, self.seed, self.b)
        return children

    def reaches(self, node: Node) -> bool:
        """Whether the root depends on the node, if only with zero derivative."""
        return node in (self.children or self.find())

    def cotangent(self, target: Node) -> Any:
        """The cotangent of a node that the root reaches; ``None`` if nothing arrives, which means exactly zero.

        Cost: the ops on paths from the root to the node that no earlier look-up has run.
        """
        if target in self.dropped:
            self._recall(target)
        else:
            self.asked.add(target)
            if target not in self.sent:
                needed = self._needed((target,))
                self._run(*(needed, ()) if self.regions is None or self.regions.levels else self._whole(needed))
        g = self.cotangents.get(target)
        if Remade.ever and isinstance(g, Coat):  # what goes to the user keeps nothing of how it was made
            g = self.cotangents[target] = settled(g)
            cool()
        return g

    def run(self, targets: Iterable[Node], free: bool = False) -> None:
        """Look up several nodes in one go. With ``free``, every node under the root forgets what it saved, once the pass is beyond it."""
        targets = [t for t in targets if t not in self.sent]
        self.asked.update(targets)
        self._run(self._needed(targets), (), free)
        if free:
            for node in self.find():
                if node.edges:
                    node.edges, node.params = None, ()

    def forget(self, node: Node) -> None:
        """Drop the cotangent of a node that has been looked up: at once, or when it has gone to all parents of the node."""
        if node in self.asked and node is not self.root:
            self.asked.discard(node)
            if self.sent[node] == (1 << len(node.edges or ())) - 1:
                self.cotangents.pop(node, None)
                self.dropped.add(node)

    def leaves(self) -> list[Node]:
        """The variables under the root."""
        return [node for node in self.find() if node.edges == ()]

    def _recall(self, target: Node) -> None:
        """Compute again what was dropped, from the nearest cotangents that are there.

        From now on everything stays, so no node is computed more than twice, whatever else is looked up.
        """
        children, dropped = self.find(), self.dropped
        lost, nodes, stack = {target}, {target}, [target]
        while stack:
            for child in children[stack.pop()]:
                if child not in nodes:
                    nodes.add(child)
                    if child in dropped:
                        lost.add(child)
                        stack.append(child)
        sent = {}
        for node in nodes:
            if node.edges is None:
                raise freed(node)
            again = sum(1 << k for k, edge in enumerate(node.edges) if edge[0] in lost)
            sent[node] = self.sent[node] & ~again
        self.sent.update(sent)
        self.asked |= lost
        dropped -= lost
        self.keep = True
        if self.root in lost:
            self.cotangents[self.root] = self.seed
        self._run(nodes)

    def _needed(self, targets: Iterable[Node]) -> set[Node]:
        """All nodes between the targets and what is complete already."""
        children, complete = self.find(), self.sent
        needed = set(targets)
        stack = list(needed)
        while stack:
            for child in children[stack.pop()]:
                if child not in needed:
                    needed.add(child)
                    if child not in complete:
                        stack.append(child)
        return needed

    def _whole(self, needed: set[Node]) -> tuple[set[Node], set[Node]]:
        """Look-ups come one by one, but a region is made again once: all that is in it goes on to all its inputs.

        Not where older levels record: there, what is recorded first counts, since sums of their passes are formed by age.
        """
        regions, children = self.regions, self.find()
        assert regions is not None
        spans: set[int] = set()
        while new := regions.whole(needed, self.sent) - spans:
            spans |= new
            needed |= self._needed([node for k in new for node in regions.nodes[k]])
        return needed, early(children, [regions.nodes[k] for k in spans], needed, self.sent)

    def _run(self, needed: set[Node], more: Collection[Node] = (), free: bool = False) -> None:
        """Follow the edges between needed nodes, and those from them to ``more``."""
        try:
            nodes = sorted(needed, key=_age, reverse=True)
            into = dict.fromkeys(needed, self.b)
            follow = partial(steps, self) if watched(self.b.base) else self.follow
            if self.regions is None:
                follow(nodes, into, free)
            else:
                into.update(dict.fromkeys(more, self.b))
                self.regions.follow(nodes, into, self.cotangents, lambda lot, into: follow(lot, into, free))
        except BaseException:
            self._restart()  # half a pass must not be added to by the next
            raise
        finally:
            if Remade.ever:
                cool()

    def follow(self, nodes: list[Node], into: dict[Node, Any], free: bool) -> None:
        """Pass cotangents along every edge that leads ``into`` one of some nodes, by the backend that is given for it, and that has not
        been followed. The youngest node is the first."""
        cotangents, sent, asked, of = self.cotangents, self.sent, self.asked, into.get
        for node in nodes:
            edges = node.edges
            if not edges:
                if edges is None:  # by another pass, after this one had found the children
                    raise freed(node)
                sent[node] = 0
                continue
            g = cotangents.get(node)
            if g is None:  # nothing arrives, so nothing is passed on
                sent.setdefault(node, (1 << len(edges)) - 1)
                continue
            done, bit = sent.get(node, 0), 1
            for parent, rule, saved in edges:
                if not done & bit:
                    if rule is None:
                        done += bit
                    elif (b := of(parent)) is not None:
                        done += bit
                        try:
                            c = rule(b, g, *saved)
                        except MissingOp as error:
                            raise self._explained(error, node) from error
                        if parent.shape != node.shape and node.op.broadcasts:  # type: ignore[union-attr]
                            c = sum_to(b, c, parent.shape)
                        before = cotangents.get(parent)
                        cotangents[parent] = c if before is None else b.add(before, c)
                bit += bit
            sent[node] = done
            if done == bit - 1 and node not in asked and not self.keep:
                del cotangents[node]
                self.dropped.add(node)
            if free:
                node.edges, node.params = None, ()

    def _explained(self, error: MissingOp, node: Node) -> MissingOp:
        return MissingOp(f"{error} (needed by the rule of {node.name!r}, in the backward pass of {self.tape})")


def freed(node: Node) -> GraphFreedError:
    """The error for a node that a pass has freed."""
    return GraphFreedError(
        f"the graph was freed at {node.name!r} (shape {tuple(node.shape)}) by an earlier backward(retain_graph=False); "
        "expected its saved values. Try retain_graph=True, the default, in all passes but the last"
    )
