"""What ``Autodiff`` adds to a value: a node of its graph.

A node keeps its parents and the inner values that the rules read; not its own value, and not its coat. When nobody holds the coat or
a child, reference counting frees the node at once.
"""

from collections.abc import Iterable
from typing import Any

from nestgrad.levels.base import Coat, Tape, now
from nestgrad.levels.recipe import remade
from nestgrad.levels.reverse.bundle import packed, unpacked
from nestgrad.ops.table import Op, Operands


class Node:
    """One recorded operation of one level.

    Attributes:
        age: The clock when it was made; parents are older than children.
        lo: Age of the oldest variable that it depends on. A variable's own age.
        op: The table's entry, or the name of what else made it.
        shape: Shape of the value.
        raw: Whether no argument wore a coat of another level, so that all that the rules read are raw arrays.
        edges: ``(parent, rule, saved)`` for each argument tracked on this level: ``rule(b, g, *saved)`` is what goes to the parent, and a
            rule of ``None`` connects without passing anything. ``None`` once freed.
        params: The op's parameters, in its order.
    """

    __slots__ = ("__weakref__", "age", "edges", "lo", "op", "params", "raw", "shape")
    age: int
    lo: int
    op: Op | str
    shape: tuple[int, ...]
    raw: bool
    edges: tuple[tuple["Node", Any, tuple[Any, ...]], ...] | None
    params: tuple[Any, ...]

    @property
    def name(self) -> str:
        """Name of what made it."""
        return self.op if isinstance(self.op, str) else self.op.name

    def __repr__(self) -> str:
        return f"<{self.name} of shape {self.shape}, age {self.age}>"


class Tracked(Coat):
    """The coat of a value that an ``Autodiff`` level tracks."""

    __slots__ = ("node",)
    node: Node

    def over(self, inner: Any) -> "Tracked":
        """The same node over another inner value."""
        return tracked(self.tape, inner, self.node)

    @property
    def oldest(self) -> float:
        """Age of the oldest variable that the value depends on."""
        return self.node.lo

    @property
    def moment(self) -> float:
        """The node's age: variables made later are none that the value depends on."""
        return self.node.age

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Record ``op``; the way for ops and mixtures of coats that have no unrolled recorder."""
        tape = self.tape
        inner = Operands([a.value if isinstance(a, Tracked) and a.tape is tape else a for a in args])
        out = b.run(op, inner, params)
        edges = []
        for i, a in enumerate(args):
            rule = op.rules[0 if op.variadic else i] if isinstance(a, Tracked) and a.tape is tape else None
            if rule is not None:
                saved = op.saved(b, rule, i, inner, out, params)
                edges.append((a.node, unpacked, (rule.call, *saved)) if op.results else (a.node, rule.call, saved))
        if not edges:
            return out
        if op.results:
            # raw=False: bundles are added by the backend over dressed values
            shared, n = make(op, (), tuple(edges), False, params), len(out)
            return tuple(
                v if name in op.fixed else fanned(tape, op, shared, k, n, v, tuple(b.shape(v)))
                for k, (name, v) in enumerate(zip(op.results, out, strict=True))
            )
        raw = not any(isinstance(v, Coat) for v in (out, *inner))
        return tracked(tape, out, make(op, b.shape(out), tuple(edges), raw, params))


def tracked(tape: Tape, value: Any, node: Node) -> Tracked:
    """A coat."""
    coat = Tracked()
    coat.tape, coat.value, coat.node = tape, value, node
    return coat


def make(
    op: Op | str,
    shape: tuple[int, ...],
    edges: tuple[tuple[Node, Any, tuple[Any, ...]], ...],
    raw: bool = True,
    params: tuple[Any, ...] = (),
) -> Node:
    """A node after the parents of its edges."""
    node = Node()
    node.age = now()
    node.lo = min([edge[0].lo for edge in edges])
    node.op, node.shape, node.raw, node.edges, node.params = op, shape, raw, edges, params
    return node


def fanned(tape: Tape, op: Op, shared: Node, k: int, n: int, value: Any, shape: tuple[int, ...]) -> Tracked:
    """Result ``k`` of the ``n`` that one node has: a node of its own, with one edge to the node that they share."""
    return tracked(tape, value, make(op, shape, ((shared, packed, (k, n)),), raw=False))


def leaves(tapes: Iterable[Tape], value: Any, shape: tuple[int, ...]) -> Any:
    """A new variable on each of the tapes, oldest first."""
    for tape in tapes:
        if tape.policy is not None:
            value = remade(value, tape.policy)
        node = Node()
        node.age = node.lo = now()
        node.op, node.shape, node.raw, node.edges, node.params = "variable", shape, True, (), ()
        coat = Tracked()
        coat.tape, coat.value, coat.node = tape, value, node
        value = coat
    return value


def identity(tape: Tape, value: Any, before: Tracked) -> Tracked:
    """A new variable that is equal to an older value, and remembers it."""
    return tracked(tape, value, make("variable", before.node.shape, ((before.node, _same, ()),)))


def connection(value: Any, g: Tracked | None, root: Tracked, shape: tuple[int, ...]) -> Tracked:
    """``value`` of the given shape, with what ``g`` recorded, if anything, and a zero edge to ``root``."""
    edges = () if g is None else ((g.node, _same, ()),)
    return tracked(root.tape, value, make("derivative", shape, (*edges, (root.node, None, ()))))


def _same(b: Any, g: Any) -> Any:
    return g
