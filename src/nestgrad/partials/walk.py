"""``Walk``: the nodes of a level's graph, from the oldest to the root, written down as ops.

A node keeps what its rules read, and that is all that derivatives of any order read. So an argument that was not kept may be *unknown*
in the program. Where a value that was kept depends on such arguments, it is pinned; the nodes that made it pass derivatives on all the
same. What the program computes from known values alone is computed again, to the same last bit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from nestgrad.levels.coats import worn
from nestgrad.levels.recipe import Remade
from nestgrad.levels.reverse.backward import freed
from nestgrad.levels.reverse.bundle import packed
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.levels.traced.program import FIXED, ITEM, STOP, Program
from nestgrad.ops import lanes
from nestgrad.ops.samples import Samples
from nestgrad.ops.shapes import NUMBERS
from nestgrad.ops.table import ELEMENTWISE, TABLE, Kind, Op
from nestgrad.partials.graph import Graph, Ref
from nestgrad.partials.restoring import APART, KNOWN_POSITIONS, RESTORED, SHAPES
from nestgrad.partials.saved import Call, Values, facts_of

_STOPPED = Op("stopped", Kind.CONSTANT, ("x",), (), (), (), None, False, Samples(()), native=lambda b: lambda x: x, lanes=lanes.each)
"""What ``detach`` makes of a value inside a program."""


class Walk:
    """One adoption.

    Args:
        graph: What it is written down in.
        root: The root, as it is on the level that recorded it.
        attached: Whether values keep the coats of the older levels that the root is on.
        rules: By the names of ops, what is written down for them.

    Attributes:
        missing: The names of nodes that cannot be computed again.
    """

    def __init__(self, graph: Graph, root: Tracked, attached: bool, rules: Mapping[str, Op]) -> None:
        self.graph, self.root, self.b, self.rules = graph, root, graph.base.dressed, rules
        self.dtype = self.b.dtype(root)
        self.missing: dict[str, None] = {}
        self.nodes, self.tied = _under(self.root.node)
        self.calls: dict[Node, Call] = {}
        self.kept: dict[Node, Any] = {}  # values as they are saved
        self.results: dict[Node, list[tuple[int, Node]]] = {}
        self.refs: dict[Node, tuple[Ref, ...]] = {}  # of nodes with several results
        self.good: set[Node] = set()
        self.dtypes: dict[Node, Any] = {}
        self.value = Values(attached, {coat.tape for coat in worn(self.root.value)})
        self._nothing: dict[Any, Ref] = {}  # unknown numbers: one of each dtype serves all, since they have no axes

    def run(self) -> Ref:
        """Write all nodes down, the oldest first. Returns the root's value."""
        self._collect()
        graph = self.graph
        for node in self.nodes:
            op, edges = node.op, node.edges
            assert edges is not None
            if not edges:
                self._leaf(node)
            elif isinstance(op, str):
                self._same(node, edges)
            elif edges[0][1] is packed:
                shared, (k, _) = edges[0][0], edges[0][2]
                ref = self.refs[shared][k]
                self._define(node, ref, shared in self.good)
            elif TABLE.get(op.name) is op and op.name not in self.rules:
                self._lacking(node, node.name)
            elif op.results:
                self.refs[node] = self._several(node, op)
            elif node in self.calls:
                self._one(node, op)
            elif node.params and isinstance(node.params[0], Program):
                self.refs[node] = self._inlined(node)
            else:
                self._lacking(node, node.name)
        for node in self.tied:
            if not node.edges:
                self._leaf(node)
            elif node in graph.wanted:
                self._define(node, self._unknown(node.shape, self._dtype(node)), False)
        return graph[self.root.node]

    # what is known

    def _collect(self) -> None:
        kept = self.kept
        for node in reversed(self.nodes):
            op, edges = node.op, node.edges
            assert edges is not None
            if not edges:
                continue
            if isinstance(op, str):
                if node in kept and edges[0][1] is not None:
                    kept.setdefault(edges[0][0], kept[node])
            elif edges[0][1] is packed:
                self.results.setdefault(edges[0][0], []).append((edges[0][2][0], node))
            elif node.params and isinstance(node.params[0], Program):
                _, inner, tracked, _ = node.params
                kept.update((parent, inner[i]) for (parent, _, _), i in zip(edges, tracked, strict=True))
            elif any(op.rules) and (facts := facts_of(op)):  # an op without rules is made for one node alone
                call = self.calls[node] = Call(node, op, facts)
                for i, parent in call.parents.items():
                    if i in call.kept:
                        kept[parent] = call.kept[i]
                    elif i in call.dtypes:
                        self.dtypes[parent] = call.dtypes[i]
                if "out" in call.words:
                    kept[node] = call.words["out"]
        if not self.root.node.edges:
            kept[self.root.node] = self.root.value
        for call in self.calls.values() if Remade.ever else ():
            self.value.ahead(call.kept.values())
            self.value.ahead(call.words.values())

    # nodes

    def _leaf(self, node: Node) -> None:
        value = self.value(self.kept[node]) if node in self.kept else None
        self.graph.leaf(node, value, node.shape, self._dtype(node))
        if value is not None:
            self.good.add(node)

    def _same(self, node: Node, edges: Sequence[Any]) -> None:
        """A variable that is equal to an older value, or a derivative."""
        parent, rule, _ = edges[0]
        if rule is not None:
            ref = self.graph[parent]
            self._define(node, Ref(ref.number, ref.known), parent in self.good)
        elif node in self.kept:
            self._define(node, Ref(self.graph.data(self.value(self.kept[node])).number), True)
        else:
            self._define(node, self._unknown(node.shape, self._dtype(node)), False)

    def _define(self, node: Node, ref: Ref, good: bool, pinned: bool = False) -> None:
        """The new value of a node; pinned to what was kept of it, unless it is computed from what is known."""
        ref.shape = node.shape
        if node in self.kept:
            value = self.value(self.kept[node])
            if not (good or pinned):
                ref = self.graph.seen_as(ref, value)
            ref.known = value
            good = True
        if good:
            self.good.add(node)
        self.graph.define(node, ref, self._dtype(node) if node in self.graph.wanted else None)

    def _one(self, node: Node, op: Op) -> None:
        made = self._operands(node, op)
        if made is None:
            return
        operands, good = made
        params = dict(zip(op.params, node.params, strict=True))
        named, kind = self._named(op)
        if not good and kind is ELEMENTWISE and node in self.kept:
            ref = self.graph.answered(named, *operands, value=self.value(self.kept[node]), **params)
            self._define(node, ref, False, pinned=True)
        else:
            self._define(node, self.graph.apply(named, *operands, **params), good)

    def _several(self, node: Node, op: Op) -> tuple[Ref, ...]:
        made = self._operands(node, op)
        if made is None:
            return tuple(self._unknown(()) for _ in op.results)
        operands, good = made
        params = dict(zip(op.params, node.params, strict=True))
        words = self.calls[node].words
        named, _ = self._named(op)
        built_in = named.__class__ is str
        if not good and built_in and "positions" in words:
            shape = next(child.shape for k, child in self.results[node] if op.results[k] == "values")
            shapes = tuple(self.calls[node].parents[0].shape), tuple(shape)
            values = KNOWN_POSITIONS[op.name](self.graph, operands[0], self.value(words["positions"]), shapes, params)
            return tuple(values if name == "values" else self._unknown(()) for name in op.results)
        if not good and built_in and op.name in APART:
            return APART[op.name](self.graph, *operands, params)
        if good:
            self.good.add(node)
        refs: tuple[Ref, ...] = self.graph.apply(named, *operands, **params)
        return refs

    def _operands(self, node: Node, op: Op) -> tuple[list[Any], bool] | None:
        """The operands of an op, and whether all of them are known."""
        call, graph = self.calls[node], self.graph
        operands: list[Any] = []
        good = True
        lacks: list[int] = []
        for i in range(call.count):
            parent = call.parents.get(i)
            if parent is not None:
                good = good and parent in self.good
                operands.append(graph[parent])
            elif i in call.kept:
                value = self.value(call.kept[i])
                operands.append(value if value.__class__ in NUMBERS else graph.data(value))
            else:
                operands.append(None)
                lacks.append(i)
                good = False
        if lacks:
            dtype = self._dtype(next(iter(call.parents.values())))
            for i in lacks:
                shape = self._shape(node, op, call, i)
                if shape is None:
                    self._lacking(node, f"{node.name} (its constant argument {i} was not kept)")
                    return None
                operands[i] = self._unknown(shape, dtype)
        if not good and "out" in call.words and op.kind is not ELEMENTWISE:
            restore = RESTORED.get(op.name) if TABLE.get(op.name) is op else None
            bad = [i for i in range(len(operands)) if not (i in call.kept or call.parents.get(i, node) in self.good)]
            if bad:
                if restore is None:
                    self._lacking(node, f"{node.name} (its answer was kept, and not what it was made of)")
                    return None
                (i,) = bad
                known = [None if k == i else self.value(call.kept[k]) for k in range(len(operands))]
                value = restore(self.b, self.value(call.words["out"]), known, dict(zip(op.params, node.params, strict=True)))
                shape = call.parents[i].shape if i in call.parents else tuple(self.b.shape(value))
                operands[i] = graph.seen_as(operands[i], _shrunk(self.b, value, shape)) if i in call.parents else graph.data(value)
                good = True
        return operands, good

    def _shape(self, node: Node, op: Op, call: Call, i: int) -> tuple[int, ...] | None:
        """The shape of an argument that was not kept, or one that broadcasts to it."""
        if i in call.shapes:
            return tuple(call.shapes[i])
        shapes = {k: tuple(parent.shape) for k, parent in call.parents.items()} | {
            k: tuple(self.b.shape(v)) for k, v in call.kept.items() if k not in call.parents
        }
        if op.broadcasts:
            return () if tuple(node.shape) in shapes.values() else tuple(node.shape)
        if TABLE.get(op.name) is not op:
            return None
        results = {op.results[k]: tuple(child.shape) for k, child in self.results.get(node, ())} or {"out": tuple(node.shape)}
        find = SHAPES.get(op.name)
        return None if find is None else find(i, shapes | call.shapes, results, node.params)

    def _inlined(self, node: Node) -> tuple[Ref, ...]:
        """The results of a program, op by op."""
        program, inner, tracked, depending = node.params
        parents = dict(zip(tracked, (parent for parent, _, _ in node.edges or ()), strict=True))
        graph = self.graph
        given = [graph[parents[i]] if i in parents else graph.data(self.value(p)) for i, p in enumerate(inner)]
        found: dict[Any, Any] = dict(zip(program.inputs, given, strict=True))
        found.update((v, graph.data(array)) for v, array in program.constants)
        for step in program.instructions:
            args = [found[a] if a in found else a for a in step.operands]
            if step.op is ITEM or step.op is FIXED:
                found[step.out] = args[0][step.params[0]]
            else:
                op = _STOPPED if step.op is STOP else step.op
                found[step.out] = graph.apply(self._named(op)[0], *args, **dict(zip(op.params, step.params, strict=True)))
        self.good.add(node)  # the values of all inputs are known
        return tuple(found[program.outputs[j]] for j in depending)

    def _named(self, op: Op) -> tuple[str | Op, Kind]:
        """An op as the graph takes it, by the rules; and its kind."""
        built_in = TABLE.get(op.name)
        used = self.rules.get(op.name, op)
        used = op if used is built_in else used  # one of the same name that is not in the table is itself
        return (op.name if used is built_in else used), used.kind

    def _unknown(self, shape: Sequence[int], dtype: Any = None) -> Ref:
        dtype = self.dtype if dtype is None else dtype
        if shape:
            return self.graph.unknown_value(shape, dtype)
        if dtype not in self._nothing:
            self._nothing[dtype] = self.graph.unknown_value((), dtype)
        return Ref(self._nothing[dtype].number, None, ())

    def _lacking(self, node: Node, name: str) -> None:
        self.missing[name] = None
        self.refs[node] = tuple(self._unknown(()) for _ in range(1 + max([k for k, _ in self.results.get(node, ())], default=0)))
        self.graph.define(node, self._unknown(node.shape))

    def _dtype(self, node: Node) -> Any:
        """That of its value; where nothing is kept, that of what it was made of, or the root's."""
        path = []
        found = None
        while found is None:
            path.append(node)
            found = self.dtypes.get(node)
            if found is None and node in self.kept:
                found = self.b.dtype(self.kept[node])
            elif found is None and node.op is TABLE["cast"]:
                found = node.params[0]
            elif found is None and not node.edges:
                found = self.dtype
            if found is None:
                node = node.edges[0][0]  # type: ignore[index]
        self.dtypes.update(dict.fromkeys(path, found))
        return found


def _shrunk(b: Any, value: Any, shape: tuple[int, ...]) -> Any:
    """One of the equal parts of a value that was broadcast from ``shape``."""
    have = tuple(b.shape(value))
    if have == shape:
        return value
    extra = len(have) - len(shape)
    index = (*(0,) * extra, *(slice(0, 1) if n == 1 else slice(None) for n in shape))
    return b.getitem(value, index)


def _under(root: Node) -> tuple[list[Node], list[Node]]:
    """The nodes that pass something on to the root, and those that it is connected to with zero derivative alone; oldest first.

    Raises:
        GraphFreedError: If a part of the graph was freed.
    """
    tied: list[Node] = []
    live = _walked([root], tied.append, ())
    more = _walked(tied, None, live) if tied else set()
    return sorted(live, key=_age), sorted(more, key=_age)


def _walked(roots: Sequence[Node], tie: Callable[[Node], None] | None, seen: Iterable[Node]) -> set[Node]:
    found = set(roots).difference(seen)
    known = found.union(seen)
    stack = [*found]
    while stack:
        node = stack.pop()
        if node.edges is None:
            raise freed(node)
        for parent, rule, _ in node.edges:
            if rule is None and tie is not None:
                tie(parent)
            elif parent not in known:
                known.add(parent)
                found.add(parent)
                stack.append(parent)
    return found


_age = attrgetter("age")
