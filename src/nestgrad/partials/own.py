"""The graph that a level of ours recorded, on its way to a program.

A node keeps what its rules read, and that is all that derivatives of any order read. So an argument that was not kept may be *unknown*
in the program. Where a value that was kept depends on such arguments, it is pinned; the nodes that made it pass derivatives on all the
same. What the program computes from known values alone is computed again, to the same last bit.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from nestgrad.errors import LevelError, UnsupportedNode
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.coats import on, transparent, without, worn
from nestgrad.levels.marks import opened
from nestgrad.levels.recipe import Recipe, Remade, innermost, made_again
from nestgrad.levels.reverse.backward import freed
from nestgrad.levels.reverse.bundle import packed
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.levels.shared import Shared
from nestgrad.levels.traced.program import FIXED, ITEM, STOP, Program
from nestgrad.ops.samples import Samples
from nestgrad.ops.shapes import NUMBERS
from nestgrad.ops.table import ELEMENTWISE, TABLE, Kind, Op
from nestgrad.partials.graph import Graph, Ref
from nestgrad.partials.restoring import APART, KNOWN_POSITIONS, RESTORED, SHAPES
from nestgrad.tensor.differentiation import untracked

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor


def rooted(x: "Tensor") -> Tracked:
    """What ``x`` wears for the youngest level that recorded something of it, the one that ``x.backward()`` differentiates.

    Raises:
        NoLevelLeft: It was taken out of every level that recorded it.
        NotTrackedError: Nothing that it was made of requires gradients.
        LevelError: It lives on a level without a backward pass, or it is one of many samples.
    """
    value, marks = opened(x.value, x.marks)
    root = transparent(value)
    if not isinstance(root, Tracked):
        raise untracked(x, value, marks)
    for coat in worn(root):
        if coat.hidden:
            raise LevelError(
                f"backward: got a value of shape {tuple(x.b.shape(value))} that is many samples of {coat.tape}; expected one, since it "
                "would leave that level. Try to call it outside, on the whole batch, of which the samples are an independent axis"
            )
    return root


def key(x: "Tensor", tape: Tape | None = None) -> Node:
    """What the graph of ``tape`` knows ``x`` by; of the youngest one that recorded something of it if it is ``None``.

    Raises:
        NotTrackedError, NoLevelLeft, LevelError: ``x`` is not on that tape, or on none.
    """
    value, marks = opened(x.value, x.marks)
    found = transparent(value) if tape is None else on(value, tape)
    if not isinstance(found, Tracked):
        raise untracked(x, value, marks) if tape is None else LevelError(
            f"backward: got a tensor of shape {tuple(x.b.shape(value))} that is not tracked on {tape}; expected one on the level that is "
            "differentiated. Try a tensor that the output was made of, not one made anew"
        )
    return found.node


def adopt(graph: Graph, x: "Tensor", attached: bool = False) -> Ref:
    """Write down what the youngest level of ``x`` recorded. The graph knows each node by itself, leaves (without edges) among them.

    Args:
        graph: Over the base of ``x``.
        x: The root.
        attached: Whether values keep the coats of the older levels that ``x`` is on, so that what is computed of them is recorded there.

    Returns:
        The value of ``x``.

    Raises:
        UnsupportedNode: Nodes that keep too little to be computed again.
        NoLevelLeft, NotTrackedError, LevelError: As ``rooted``.
        GraphFreedError: A pass has freed the graph.
        MutatedError: A value that was kept shares memory that was written into.

    Cost: about 10 us a node.
    """
    walk = _Walk(graph, x, attached)
    ref = walk.run()
    if walk.missing:
        raise UnsupportedNode(
            f"backward: got a graph with {', '.join(walk.missing)}; expected nodes that can be computed again from what they keep, because "
            "derivatives of any order are made of their ops. Try ops of the table, or nestgrad.define for an op of your own"
        )
    return ref


def unsupported(x: "Tensor") -> list[str]:
    """The names of the nodes under ``x`` that ``adopt`` does not support, each once."""
    walk = _Walk(Graph(x.b.base), x, False)
    walk.run()
    return [*walk.missing]


class _Fact(NamedTuple):
    """What an edge of an op saves, by its rule."""

    argument: int | None  # which one the rule is of; ``None`` where the word "i" tells
    values: tuple[tuple[int, int], ...]  # position among what is saved, and among the arguments
    shapes: tuple[tuple[int, int], ...]
    dtypes: tuple[tuple[int, int], ...]
    words: dict[str, int]


@cache
def _facts(op: Op) -> dict[Any, _Fact]:
    """By what an edge calls, what it tells."""
    found = {}
    for k, rule in enumerate(op.rules):
        if rule is not None:
            told = [(j, *word.partition("_")[::2]) for j, word in enumerate(rule.reads)]
            of = {kind: tuple((j, op.arguments.index(a)) for j, a, what in told if a in op.arguments and what == kind)
                  for kind in ("", "shape", "dtype")}  # fmt: skip
            words = {word: j for j, word in enumerate(rule.reads)}
            found[rule.call] = _Fact(None if op.variadic else k, of[""], of["shape"], of["dtype"], words)
    return found


_STOPPED = Op("stopped", Kind.CONSTANT, ("x",), (), (), (), None, False, Samples(()), native=lambda b: lambda x: x)
"""What ``detach`` makes of a value inside a program."""


class _Call:
    """What is known of the arguments of one node."""

    __slots__ = ("count", "dtypes", "kept", "parents", "shapes", "words")

    def __init__(self, node: Node) -> None:
        op = node.op
        assert isinstance(op, Op)
        facts, fan = _facts(op), bool(op.results)
        self.parents: dict[int, Node] = {}
        self.kept: dict[int, Any] = {}
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.dtypes: dict[int, Any] = {}
        self.words: dict[str, Any] = {}
        told = ("out", *op.results)
        count = 0 if op.variadic else len(op.arguments)
        for parent, call, saved in node.edges or ():
            if fan:
                call, *saved = saved  # type: ignore[assignment]
            fact = facts[call]
            i = saved[fact.words["i"]] if fact.argument is None else fact.argument
            self.parents[i] = parent
            for j, k in fact.values:
                self.kept[k] = saved[j]
            for j, k in fact.shapes:
                self.shapes[k] = saved[j]
            for j, k in fact.dtypes:
                self.dtypes[k] = saved[j]
            for word in told:
                if word in fact.words:
                    self.words[word] = saved[fact.words[word]]
            if op.variadic:
                if "shapes" in fact.words:
                    self.shapes.update(enumerate(saved[fact.words["shapes"]]))
                if "others" in fact.words:
                    self.kept.update((k, v) for k, v in enumerate(saved[fact.words["others"]]) if v is not None)
                count = len(self.shapes) or node.shape[node.params[op.params.index("axis")]]
        self.count = count


class _Walk:
    """One adoption."""

    def __init__(self, graph: Graph, x: "Tensor", attached: bool) -> None:
        self.graph, self.root, self.b = graph, rooted(x), x.b
        self.attached = attached
        self.tapes = {coat.tape for coat in worn(self.root.value)}
        self.dtype = x.b.dtype(self.root)
        self.missing: dict[str, None] = {}
        self.nodes, self.tied = _under(self.root.node)
        self.calls: dict[Node, _Call] = {}
        self.kept: dict[Node, Any] = {}  # values as they are saved
        self.results: dict[Node, list[tuple[int, Node]]] = {}
        self.refs: dict[Node, tuple[Ref, ...]] = {}  # of nodes with several results
        self.good: set[Node] = set()
        self.dtypes: dict[Node, Any] = {}
        self._read: dict[int, tuple[Any, Any]] = {}

    def run(self) -> Ref:
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
            elif op.results:
                self.refs[node] = self._several(node, op)
            elif node in self.calls:
                self._one(node, op)
            elif node.params and isinstance(node.params[0], Program):
                self.refs[node] = self._inlined(node)
            else:
                self._lacking(node, node.name)
        for node in self.tied:
            if node.edges == () or node in graph.wanted:
                self._leaf(node)
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
            elif op.rules != (None,):
                if op.variadic and not all("i" in f.words for f in _facts(op).values()):
                    continue
                if any((saved[0] if op.results else rule) not in _facts(op) for _, rule, saved in edges):
                    continue
                call = self.calls[node] = _Call(node)
                for i, parent in call.parents.items():
                    if i in call.kept:
                        kept[parent] = call.kept[i]
                    elif i in call.dtypes:
                        self.dtypes[parent] = call.dtypes[i]
                if "out" in call.words:
                    kept[node] = call.words["out"]
        if not self.root.node.edges:
            kept[self.root.node] = self.root.value
        if Remade.ever:
            self._make_again()

    def _make_again(self) -> None:
        """All values that were forgotten, in one go."""
        found: dict[int, Recipe] = {}
        for value in self._saved():
            bottom = value
            while isinstance(bottom, Coat) and bottom.__class__ is not Remade:
                bottom = bottom.value
            if bottom.__class__ is Remade and bottom.array is None:
                found[id(bottom.recipe)] = bottom.recipe
        arrays = made_again([*found.values()])
        self._again = dict(zip(found, arrays, strict=True))

    _again: dict[int, Any] = {}  # noqa: RUF012

    def _saved(self) -> Iterable[Any]:
        for call in self.calls.values():
            yield from call.kept.values()
            yield from call.words.values()

    def value(self, saved: Any) -> Any:
        """A value as the program is to read it: raw, or in the coats of the levels that look on."""
        if not isinstance(saved, Coat):
            return saved
        found = self._read.get(id(saved))
        if found is None:
            found = self._read[id(saved)] = saved, self._bare(saved)  # with the value, so that no other one gets its id
        return found[1]

    def _bare(self, saved: Coat) -> Any:
        if not self.attached:
            bottom: Any = saved
            while isinstance(bottom, Coat) and bottom.__class__ is not Remade:
                bottom = bottom.read()
            return self._array(bottom) if isinstance(bottom, Coat) else bottom
        strange = {coat.tape for coat in worn(saved) if coat.differentiates and coat.tape not in self.tapes}
        return innermost(without(saved, strange) if strange else saved, self._array)

    def _array(self, p: Any) -> Any:
        if p.__class__ is Remade:
            return self._again[id(p.recipe)] if p.array is None and id(p.recipe) in self._again else p.value
        return p.read() if p.__class__ is Shared else p

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
            self._define(node, self.graph[parent], parent in self.good)
        elif node in self.kept:
            self._define(node, self.graph.data(self.value(self.kept[node])), True)
        else:
            self._define(node, self._unknown(node.shape, self._dtype(node)), False)

    def _define(self, node: Node, ref: Ref, good: bool, pinned: bool = False) -> None:
        """The value of a node; pinned to what was kept of it, unless it is computed from what is known."""
        ref = Ref(ref.number, ref.known, tuple(node.shape))
        if node in self.kept:
            value = self.value(self.kept[node])
            if not (good or pinned):
                ref = self.graph.seen_as(ref, value)
            ref.known = value
            good = True
        if good:
            self.good.add(node)
        self.graph.define(node, ref, self._dtype(node))

    def _one(self, node: Node, op: Op) -> None:
        made = self._operands(node, op)
        if made is None:
            return
        operands, good = made
        params = dict(zip(op.params, node.params, strict=True))
        named = op.name if TABLE.get(op.name) is op else op
        if not good and op.kind is ELEMENTWISE and node in self.kept:
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
        if not good and "positions" in words:
            shape = next(child.shape for k, child in self.results[node] if op.results[k] == "values")
            shapes = tuple(self.calls[node].parents[0].shape), tuple(shape)
            values = KNOWN_POSITIONS[op.name](self.graph, operands[0], self.value(words["positions"]), shapes, params)
            return tuple(values if name == "values" else self._unknown(()) for name in op.results)
        if not good and op.name in APART:
            return APART[op.name](self.graph, *operands, params)
        if good:
            self.good.add(node)
        refs: tuple[Ref, ...] = self.graph.apply(op.name if TABLE.get(op.name) is op else op, *operands, **params)
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

    def _shape(self, node: Node, op: Op, call: _Call, i: int) -> tuple[int, ...] | None:
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
                named = op.name if TABLE.get(op.name) is op else op
                found[step.out] = graph.apply(named, *args, **dict(zip(op.params, step.params, strict=True)))
        self.good.add(node)  # the values of all inputs are known
        return tuple(found[program.outputs[j]] for j in depending)

    def _unknown(self, shape: Sequence[int], dtype: Any = None) -> Ref:
        return self.graph.unknown_value(shape, self.dtype if dtype is None else dtype)

    def _lacking(self, node: Node, name: str) -> None:
        self.missing[name] = None
        self.refs[node] = tuple(self._unknown(()) for _ in range(1 + max([k for k, _ in self.results.get(node, ())], default=0)))
        self.graph.define(node, self._unknown(node.shape))

    def _dtype(self, node: Node) -> Any:
        """That of its value; where nothing is kept, that of what it was made of, or the root's."""
        found = self.dtypes.get(node)
        if found is None:
            if node in self.kept:
                found = self.b.dtype(self.kept[node])
            elif node.op is TABLE["cast"] and node.edges:
                found = node.params[0]
            elif node.edges and node.edges[0][0] in self.dtypes:
                found = self.dtypes[node.edges[0][0]]
            else:
                found = self.dtype
            self.dtypes[node] = found
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
