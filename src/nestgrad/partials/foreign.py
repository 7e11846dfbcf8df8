"""Graphs that an array library has recorded: what its backend offers of them, for its own tensors, and with a user's rules."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from nestgrad.errors import ArgumentError, LevelError, RuleError
from nestgrad.ops.table import Op
from nestgrad.partials.graph import Graph, Ref
from nestgrad.partials.source import Source, Wrap, told
from nestgrad.tensor.handle import Handle


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
                f"{name}: Cannot find node of {told(tensor)}; expected a tensor of the graph, which requires gradients, because others are "
                "constants there. Try the very tensor that the output was made of, and x.requires_grad_() before it is used"
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
