"""Where graphs come from: the levels of a Tensor, or an array library that records its own."""

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from nestgrad.errors import ArgumentError, GraphFreedError, LevelError, MutatedError, NotTrackedError, RuleError, TraceError
from nestgrad.levels.coats import bare, tied, within
from nestgrad.levels.marks import NONE, Marks, Moment, join, opened
from nestgrad.levels.mixing import fitted, settle
from nestgrad.levels.reverse.node import Node
from nestgrad.levels.traced.wire import Wire
from nestgrad.ops.table import TABLE, Op
from nestgrad.partials import own
from nestgrad.partials.graph import Graph, Ref
from nestgrad.tensor.attached import attach, attached
from nestgrad.tensor.handle import Handle, default_backend, make, real_only

__all__ = ["Source", "source", "told"]

Wrap = Callable[[Any], Any]
"""Of an array, the user's kind of tensor."""


def source(tensor: Any) -> "Source":
    """How the graph under a tensor is read.

    Raises:
        ArgumentError: If there is none.
        DTypeError: If it holds complex numbers.
    """
    if isinstance(tensor, Handle):
        return Levels(tensor.b.base)
    base = default_backend(tensor)
    if base.graphs is None or not base.accepts(tensor):
        raise ArgumentError(
            f"backward: got {told(tensor)}; expected a Tensor on levels, or a torch.Tensor that requires gradients, because "
            "derivatives are made of what was recorded. Try what is computed of stack.tensor(x, requires_grad=True), or of "
            "x.requires_grad_(), itself: no module, no list and no number of it"
        )
    real_only("backward", tensor)
    return Foreign(base)


class Source:
    """How graphs of one kind are read.

    Attributes:
        base: The base backend of their arrays.
    """

    __slots__ = ("base",)

    def __init__(self, base: Any) -> None:
        self.base = base

    def rooted(self, tensor: Any) -> None:
        """Check that there is a graph under a tensor."""
        raise NotImplementedError

    def shape(self, tensor: Any) -> tuple[int, ...]:
        """Sizes of the axes of a tensor."""
        return tuple(tensor.shape)

    def dtype(self, tensor: Any) -> Any:
        """That of a tensor with a graph, native to the backend."""
        return self.base.dtype(tensor)

    def key(self, name: str, root: Any, tensor: Any) -> Hashable:
        """What the graph under ``root`` knows a tensor by.

        Raises:
            ArgumentError: If it can be none of that graph.
        """
        raise NotImplementedError

    def adopt(self, graph: Graph, tensor: Any, index: Mapping[Any, Any], attached: bool) -> Ref:
        """Write the graph down."""
        raise NotImplementedError

    def unsupported(self, tensor: Any, index: Mapping[Any, Any]) -> list[str]:
        """The nodes without a rule."""
        raise NotImplementedError

    def supports(self, tensor: Any, index: Mapping[Any, Any]) -> Callable[[Any], bool]:
        """Of the kind of a node, as ``showing.view`` tells it, whether it has a rule."""
        raise NotImplementedError

    def index(self) -> Mapping[Any, Any]:
        """The built-in rules."""
        raise NotImplementedError

    def checked(self, rules: Mapping[Any, Any]) -> dict[Any, Any]:
        """What a user gives as rules.

        Raises:
            RuleError: If one is none.
        """
        raise NotImplementedError

    def array(self, tensor: Any) -> Any:
        """The array of a tensor of either kind, or of an array; ``None`` of anything else."""
        if isinstance(tensor, Handle):
            return bare(tensor.value) if tensor.b.base == self.base else None
        if isinstance(tensor, (bool, int, float)) or not self.base.accepts(tensor):
            return None
        real_only("backward", tensor)
        return self.base.asarray(tensor)

    def seed(self, root: Any, gradient: Any, attached: bool) -> Any:
        """The value of a seed that is known to be a tensor: its array, or what keeps its own graph."""
        return self.array(gradient)

    def wrap(self, raw: Any) -> Any:
        """The user's kind of tensor, on no level."""
        return raw

    def wrapping(self, root: Any, gradient: Any, attached: bool) -> Wrap:
        """What makes the user's kind of tensor of results."""
        return self.wrap

    def mode(self, attached: bool) -> AbstractContextManager[Any]:
        """What is to hold while derivatives are computed."""
        return nullcontext() if self.base.graphs is None else self.base.graphs.recording(attached)

    def attach(self, key: Any, hgrad: Any) -> None:
        """Set the derivatives by a leaf, or with ``None`` delete them."""
        raise NotImplementedError

    def attached(self, key: Any) -> Any:
        """The derivatives by a leaf that are set, or ``None``."""
        raise NotImplementedError


class Levels(Source):
    """Graphs of nestgrad's own levels: of the youngest one that recorded something of the tensor."""

    __slots__ = ()

    def rooted(self, tensor: Any) -> None:
        if any(isinstance(coat, Wire) for coat in within(tensor.value)):
            raise TraceError(
                f"backward: got {told(tensor)} inside a trace, which stands for numbers that are not there yet; expected to be called "
                "outside, because a graph is read with its numbers. Try func.hessian, func.jacfwd or func.taylor in traced functions"
            )
        own.rooted(tensor)

    def dtype(self, tensor: Any) -> Any:
        return tensor.b.dtype(tensor.value)

    def key(self, name: str, root: Any, tensor: Any) -> Node:
        if not isinstance(tensor, Handle):
            raise ArgumentError(f"{name}: got {told(tensor)}; expected a Tensor of the graph, since the output is a Tensor")
        try:
            node: Node = own.key(tensor, own.rooted(root).tape)  # type: ignore[arg-type]
        except (LevelError, NotTrackedError) as error:
            raise ArgumentError(
                f"{name}: Cannot find node of {told(tensor)}; expected one on the level that is differentiated, that the output was made "
                f"of, because others are constants there. Try the very tensor that was used, or one more Autodiff. ({error})"
            ) from error
        return node

    def adopt(self, graph: Graph, tensor: Any, index: Mapping[Any, Any], attached: bool) -> Ref:
        return own.adopt(graph, tensor, attached, index)

    def unsupported(self, tensor: Any, index: Mapping[Any, Any]) -> list[str]:
        return own.unsupported(tensor, index)

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
        tracked = own.rooted(root)
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
        tracked = own.rooted(root)
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


class Foreign(Source):
    """Graphs that an array library has recorded."""

    __slots__ = ()

    def rooted(self, tensor: Any) -> None:
        self._real(tensor)
        if not self.base.graphs.tracked(tensor) or self.base.graphs.key(tensor) is tensor:
            raise ArgumentError(
                f"backward: got {told(tensor)} that no graph was recorded under; expected one that was computed from tensors that require "
                "gradients. Try x.requires_grad_() before it is used, and an output of which grad_fn is not None"
            )

    def key(self, name: str, root: Any, tensor: Any) -> Hashable:
        if isinstance(tensor, Handle) or not self.base.graphs.tracked(tensor):
            raise ArgumentError(
                f"{name}: Cannot find node of {told(tensor)}; expected a tensor of the graph, which requires gradients. Try the very "
                "tensor that the output was made of"
            )
        found: Hashable = self.base.graphs.key(tensor)
        return found

    def adopt(self, graph: Graph, tensor: Any, index: Mapping[Any, Any], attached: bool) -> Ref:
        found: Ref = self.base.graphs.adopt(graph, tensor, index, attached)
        return found

    def unsupported(self, tensor: Any, index: Mapping[Any, Any]) -> list[str]:
        found: list[str] = self.base.graphs.unsupported(tensor, index)
        return found

    def supports(self, tensor: Any, index: Mapping[Any, Any]) -> Callable[[Any], bool]:
        return index.__contains__

    def index(self) -> Mapping[Any, Any]:
        found: Mapping[Any, Any] = self.base.graphs.index()
        return found

    def checked(self, rules: Mapping[Any, Any]) -> dict[Any, Any]:
        built_in = self.index()
        found: dict[Any, Any] = {}
        for kind, given in rules.items():
            rule = getattr(given, "op", given)  # of what nestgrad.define gives
            if not isinstance(kind, type) or not (callable(rule) or isinstance(rule, Op)):
                raise RuleError(
                    f"index: got {kind!r}: {given!r}; expected a rule for a type of grad_fn, a function of (graph, node, inputs) or an op "
                    "of nestgrad.define. Try c.index[type(y.grad_fn)] = rule"
                )
            found[kind] = rule if built_in.get(kind) is rule else _Own(kind, rule)
        return found

    def array(self, tensor: Any) -> Any:
        self._real(tensor)
        return super().array(tensor)

    def _real(self, tensor: Any) -> None:
        if not isinstance(tensor, Handle) and self.base.accepts(tensor) and self.base.graphs.stands_in(tensor):
            raise LevelError(
                f"backward: got {told(tensor)} inside a transform of torch.func, where it stands for other tensors; expected to be called "
                "outside, because a graph is read with its numbers. Try it on the whole batch, of which samples are an independent axis"
            )

    def seed(self, root: Any, gradient: Any, attached: bool) -> Any:
        if attached and not isinstance(gradient, Handle) and self.base.graphs.tracked(gradient):
            return gradient
        return self.array(gradient)

    def wrapping(self, root: Any, gradient: Any, attached: bool) -> Wrap:
        return self.wrap

    def attach(self, key: Any, hgrad: Any) -> None:
        for name, value in (("hgrad", hgrad), ("hdata", None if hgrad is None else hgrad.hdata)):
            if value is not None:
                setattr(key, name, value)
            elif hasattr(key, name):
                delattr(key, name)

    def attached(self, key: Any) -> Any:
        return getattr(key, "hgrad", None)


class _Own:
    """A user's rule for nodes of an array library, of which what it gives is looked at."""

    __slots__ = ("kind", "rule")

    def __init__(self, kind: type, rule: Any) -> None:
        self.kind, self.rule = kind, rule

    def __call__(self, graph: Graph, node: Any, inputs: tuple[Any, ...]) -> Any:
        rule = self.rule
        if isinstance(rule, Op):
            if len(inputs) != len(rule.arguments) or rule.params:
                raise RuleError(
                    f"index: got {rule.signature} for {self.kind.__name__}, which has {len(inputs)} operands; expected an op of as many "
                    "arguments and without parameters. Try a function of (graph, node, inputs) that gives graph.apply(op, *operands, ...)"
                )
            made = graph.apply(rule, *[node.operand(i) for i in range(len(inputs))])
        else:
            made = rule(graph, node, inputs)
        parts = made if isinstance(made, tuple) else (made,)
        if made is None or not all(part is None or isinstance(part, Ref) for part in parts) or len(parts) != node.results:
            raise RuleError(
                f"index: the rule for {self.kind.__name__} gave {made!r}; expected what graph.apply gives, one value for each of the "
                f"node's {node.results} results. Try return graph.apply(op, *inputs)"
            )
        return made


def told(tensor: Any) -> str:
    """A tensor in words."""
    shape = getattr(tensor, "shape", None)
    kind = type(tensor).__name__
    return f"{'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind}" + ("" if shape is None else f" of shape {tuple(shape)}")
