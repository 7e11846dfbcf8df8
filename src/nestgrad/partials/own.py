"""Graphs that our own levels recorded: which level is meant, what a graph knows a Tensor by, and the graph as ops."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nestgrad.errors import (
    ArgumentError,
    GraphFreedError,
    LevelError,
    MutatedError,
    NotTrackedError,
    RuleError,
    TraceError,
    UnsupportedNode,
)
from nestgrad.levels.base import Tape
from nestgrad.levels.coats import on, tied, transparent, within, worn
from nestgrad.levels.marks import NONE, Marks, Moment, join, opened
from nestgrad.levels.mixing import fitted, settle
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.levels.traced.wire import Wire
from nestgrad.ops.table import TABLE, Op
from nestgrad.partials.graph import Graph, Ref
from nestgrad.partials.source import Source, Wrap, told
from nestgrad.partials.walk import Walk
from nestgrad.tensor.attached import attach, attached
from nestgrad.tensor.differentiation import untracked
from nestgrad.tensor.handle import Handle, make

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


def adopt(graph: Graph, x: "Tensor", attached: bool = False, rules: Mapping[str, Op] = TABLE) -> Ref:
    """Write down what the youngest level of ``x`` recorded. The graph knows each node by itself, leaves (without edges) among them.

    Args:
        graph: Over the base of ``x``.
        x: The root.
        attached: Whether values keep the coats of the older levels that ``x`` is on, so that what is computed of them is recorded there.
        rules: By the names of ops, what is written down for them; of an op that is not in the table, and not among these, itself is.

    Returns:
        The value of ``x``.

    Raises:
        UnsupportedNode: Nodes that keep too little to be computed again.
        NoLevelLeft, NotTrackedError, LevelError: As ``rooted``.
        GraphFreedError: A pass has freed the graph.
        MutatedError: A value that was kept shares memory that was written into.

    Cost: about 10 us a node.
    """
    walk = Walk(graph, rooted(x), attached, rules)
    ref = walk.run()
    if walk.missing:
        raise UnsupportedNode(
            f"backward: got a graph with {', '.join(walk.missing)}; expected nodes that can be computed again from what they keep, because "
            "derivatives of any order are made of their ops. Try ops of the table, or nestgrad.define for an op of your own"
        )
    return ref


def unsupported(x: "Tensor", rules: Mapping[str, Op] = TABLE) -> list[str]:
    """The names of the nodes under ``x`` that ``adopt`` does not support, each once."""
    walk = Walk(Graph(x.b.base), rooted(x), False, rules)
    walk.run()
    return [*walk.missing]


class Levels(Source):
    """Graphs of nestgrad's own levels: of the youngest one that recorded something of the tensor."""

    __slots__ = ()

    def rooted(self, tensor: Any) -> None:
        if any(isinstance(coat, Wire) for coat in within(tensor.value)):
            raise TraceError(
                f"backward: got {told(tensor)} inside a trace, which stands for numbers that are not there yet; expected to be called "
                "outside, because a graph is read with its numbers. Try func.hessian, func.jacfwd or func.taylor in traced functions"
            )
        rooted(tensor)

    def dtype(self, tensor: Any) -> Any:
        return tensor.b.dtype(tensor.value)

    def key(self, name: str, root: Any, tensor: Any) -> Node:
        if not isinstance(tensor, Handle):
            raise ArgumentError(f"{name}: got {told(tensor)}; expected a Tensor of the graph, since the output is a Tensor")
        try:
            node: Node = key(tensor, rooted(root).tape)  # type: ignore[arg-type]
        except (LevelError, NotTrackedError) as error:
            raise ArgumentError(
                f"{name}: Cannot find node of {told(tensor)}; expected one on the level that is differentiated, that the output was made "
                f"of, because others are constants there. Try the very tensor that was used, or one more Autodiff. ({error})"
            ) from error
        return node

    def adopt(self, graph: Graph, tensor: Any, index: Mapping[Any, Any], attached: bool) -> Ref:
        return adopt(graph, tensor, attached, index)

    def unsupported(self, tensor: Any, index: Mapping[Any, Any]) -> list[str]:
        return unsupported(tensor, index)

    def supports(self, tensor: Any, index: Mapping[Any, Any]) -> Callable[[Any], bool]:
        try:
            lost = {name.partition(" (")[0] for name in self.unsupported(tensor, index)}
        except (GraphFreedError, MutatedError):
            lost = set()  # what is left of the graph is shown
        return lambda name: name not in lost

    def index(self) -> Mapping[Any, Any]:
        return TABLE

    def checked(self, rules: Mapping[Any, Any]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for name, given in rules.items():
            op = getattr(given, "op", given)  # of what nestgrad.define gives
            if not isinstance(name, str) or not isinstance(op, Op):
                raise RuleError(f"index: got {name!r}: {given!r}; expected ops by their names, as nestgrad.define gives them")
            known = TABLE.get(name)
            if known is not None and (known.arguments, known.params, known.results) != (op.arguments, op.params, op.results):
                raise RuleError(
                    f"index: got {op.signature} for {name!r}; expected {known.signature}, because it is called as that is"
                )
            found[name] = op
        return found

    def seed(self, root: Any, gradient: Any, attached: bool) -> Any:
        if not attached or not isinstance(gradient, Handle):
            return self.array(gradient)
        tracked = rooted(root)
        value, marks = opened(gradient.value, gradient.marks)
        met, _ = settle([tracked.value, value], [root.marks, marks])
        if met[0] is not tracked.value or met[1] is not value or any(coat.tape is tracked.tape for coat in within(value)):
            raise LevelError(
                f"backward: got a gradient that depends on variables of {tracked.tape}, which is differentiated, with create_graph=True; "
                "expected one of older levels, because a seed is a constant there. Try detach() if it is one, or one more Autodiff"
            )
        return value

    def wrap(self, raw: Any) -> Any:
        return make(self.base.dressed, raw, NONE)

    def wrapping(self, root: Any, gradient: Any, attached: bool) -> Wrap:
        if not attached:
            return self.wrap
        tracked = rooted(root)
        node = tracked.node
        moment = Moment(node.age, "a partial derivative of a", node.name, "of shape", node.shape)
        marks = join(join(root.marks, {tracked.tape: moment}), gradient.marks if isinstance(gradient, Handle) else NONE)
        return _Tying(self.base, tracked.value, marks)

    def attach(self, key: Any, hgrad: Any) -> None:
        attach(key, hgrad)

    def attached(self, key: Any) -> Any:
        return attached(key)


class _Tying:
    """Makes Tensors of results that live on older levels, connected to what the output was made of there."""

    __slots__ = ("base", "marks", "root")

    def __init__(self, base: Any, root: Any, marks: Marks) -> None:
        self.base, self.root, self.marks = base, root, marks

    def __call__(self, value: Any) -> Any:
        b = self.base.dressed
        return make(b, *fitted(tied(value, self.root, tuple(b.shape(value))), self.marks))

    def __reduce__(self) -> Any:
        return getattr, (Levels(self.base), "wrap")
