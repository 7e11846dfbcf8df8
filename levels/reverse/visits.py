"""A backward pass among regions: it enters the region of the nodes that it comes to, and leaves it behind without their arrays."""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from nestgrad.levels.base import now
from nestgrad.levels.recipe import Recipe, current, innermost, stored
from nestgrad.levels.region import Region, Spans, regions_of
from nestgrad.levels.reverse.node import Node


class Visits:
    """The regions of the nodes under a root.

    Attributes:
        nodes: The nodes of each span, by its number: those that were recorded in one go inside of a region.
    """

    def __init__(self, spans: Spans, nodes: Iterable[Node]) -> None:
        self._spans = spans
        self.nodes: dict[int, list[Node]] = {}
        for node in nodes:
            k = spans.at(node.age)
            if k >= 0:
                self.nodes.setdefault(k, []).append(node)

    def region(self, node: Node) -> Region | None:
        """The region of a node; where there is none, the one that is running."""
        return self._spans.region(self._spans.at(node.age)) or current.get()

    def follow(self, nodes: list[Node], cotangents: dict[Node, Any], follow: Callable[[list[Node]], None]) -> None:
        """Call ``follow`` for all nodes, in their order, each lot inside of its region.

        A cotangent that goes from one region to another is stored. All others are the region's own to forget: an older node of the same
        region that waits for them makes them again when the pass comes to it.
        """
        outside = here = current.get()
        try:
            for there, lot in groupby(nodes, lambda node: self._spans.region(self._spans.at(node.age)) or outside):
                _move(here, there, outside)
                here = there
                if here is None or here is outside:
                    follow(list(lot))
                else:
                    self._visit(here, list(lot), cotangents, follow, outside)
        finally:
            _move(here, outside, outside)

    def _visit(
        self, here: Region, lot: list[Node], cotangents: dict[Node, Any], follow: Callable[[list[Node]], None], outside: Region | None
    ) -> None:
        far: dict[Node, Region | None] = {}
        for node in lot:
            g = cotangents.get(node)
            if g is not None:
                cotangents[node] = here.enter(g)
            for parent, _, _ in node.edges or ():
                to = self._spans.region(self._spans.at(parent.age)) or outside
                if to is not here:
                    far[parent] = to
        began = now()
        follow(lot)
        ended = now()
        if ended > began + 1:  # an older level has recorded something
            here.spans.append((began, ended))
        for parent, to in far.items():
            c = cotangents.get(parent)
            if c is not None:
                cotangents[parent] = here.leave(c, to)

    def whole(self, nodes: set[Node], sent: Mapping[Node, int]) -> set[int]:
        """Numbers of the spans that hold one of the nodes, and of which not all has been followed."""
        found = {self._spans.at(node.age) for node in nodes if node not in sent}
        running = current.get()
        return {k for k in found if k >= 0 and not (running is not None and running.within(self._spans.region(k)))}


def visits(children: Mapping[Node, Any]) -> Visits | None:
    """The regions of all nodes, if there are any."""
    saved = (v for node in children if not node.raw for _, _, values in node.edges or () for v in values)
    regions = regions_of(part for v in saved for part in (v if v.__class__ is tuple else (v,)))
    return Visits(Spans(regions), children) if regions else None


def early(children: Mapping[Node, list[Node]], spans: Iterable[Iterable[Node]], needed: set[Node], sent: Mapping[Node, int]) -> set[Node]:
    """Parents of the spans' nodes that are not needed yet, to which what comes from there may go at once.

    Contributions are added by age, so that sums do not depend on the order of look-ups: whatever is younger must have gone there already.
    """
    found = {parent for nodes in spans for node in nodes for parent, _, _ in node.edges or () if parent not in needed}

    def in_order(parent: Node) -> bool:
        open_ = False
        for child in sorted(children[parent], key=lambda node: node.age, reverse=True):
            if child not in needed:
                edges, bits = child.edges or (), sent.get(child, 0)
                open_ = open_ or any(edge[0] is parent and not bits >> k & 1 for k, edge in enumerate(edges))
            elif open_:
                return False
        return True

    return {parent for parent in found if in_order(parent)}


def settled(g: Any) -> Any:
    """A cotangent as it goes to whoever asked for it: stored, and without a recipe where no level records what becomes of it."""
    here = current.get()

    def handed(v: Any) -> Any:
        if v.__class__ is not Recipe:
            return v if here is None else stored(v, here)
        if v.keeper.lasting:
            v.store()
            return v
        return v.keeper.leave(v, here)

    g = innermost(g, handed)
    return g.array if g.__class__ is Recipe and here is None else g


def _move(here: Region | None, there: Region | None, outside: Region | None) -> None:
    """Go from one region to another: those that are left, and in which nobody else is, forget their arrays."""
    current.set(there)
    while here is not None:
        if not (there is not None and there.within(here)) and not (outside is not None and outside.within(here)):
            here.forget()
        here = here.parent
