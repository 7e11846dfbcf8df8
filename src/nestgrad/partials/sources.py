"""Where graphs come from: the levels of a Tensor, or an array library that records its own."""

from collections.abc import Hashable, Mapping
from typing import Any

from nestgrad.errors import ArgumentError, RuleError
from nestgrad.levels.coats import bare
from nestgrad.levels.marks import NONE
from nestgrad.levels.reverse.node import Node
from nestgrad.ops.table import TABLE, Op
from nestgrad.partials import own
from nestgrad.partials.graph import Graph, Ref
from nestgrad.tensor.attached import PARTIALS
from nestgrad.tensor.handle import Handle, default_backend, make

__all__ = ["Source", "source", "told"]


def source(tensor: Any) -> "Source":
    """How the graph under a tensor is read.

    Raises:
        ArgumentError: If there is none.
    """
    if isinstance(tensor, Handle):
        return Levels(tensor.b.base)
    base = default_backend(tensor)
    if base.graphs is None or isinstance(tensor, (bool, int, float)) or not base.accepts(tensor):
        raise ArgumentError(
            f"backward: got a {type(tensor).__name__}; expected a Tensor on levels, or a torch.Tensor that requires gradients, because "
            "derivatives are made of what was recorded. Try stack.tensor(x, requires_grad=True) before it is used"
        )
    return Foreign(base)


class Source:
    """How graphs of one kind are read.

    Attributes:
        base: The base backend of their arrays.
    """

    def __init__(self, base: Any) -> None:
        self.base = base

    def rooted(self, tensor: Any) -> None:
        """Check that there is a graph under a tensor."""
        raise NotImplementedError

    def shape(self, tensor: Any) -> tuple[int, ...]:
        """Sizes of the axes of a tensor."""
        return tuple(tensor.shape)

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

    def index(self) -> Mapping[Any, Any]:
        """The built-in rules."""
        raise NotImplementedError

    def check_index(self, rules: Mapping[Any, Any]) -> None:
        """Check what a user gives as rules.

        Raises:
            RuleError: If it is none.
        """
        raise NotImplementedError

    def array(self, tensor: Any) -> Any:
        """The array of a tensor of either kind, or of an array; ``None`` of anything else."""
        if isinstance(tensor, Handle):
            return bare(tensor.value) if tensor.b.base == self.base else None
        if isinstance(tensor, (bool, int, float)) or not self.base.accepts(tensor):
            return None
        return self.base.asarray(getattr(tensor, "detach", lambda: tensor)())

    def wrap(self, raw: Any) -> Any:
        """The user's kind of tensor."""
        return raw

    def attach(self, key: Any, hgrad: Any) -> None:
        """Set the derivatives by a leaf, or with ``None`` delete them."""
        raise NotImplementedError


class Levels(Source):
    """Graphs of nestgrad's own levels: of the youngest one that recorded something of the tensor."""

    def rooted(self, tensor: Any) -> None:
        own.rooted(tensor)

    def key(self, name: str, root: Any, tensor: Any) -> Node:
        if not isinstance(tensor, Handle):
            raise ArgumentError(f"{name}: got a {type(tensor).__name__}; expected a Tensor of the graph, since the output is a Tensor")
        node: Node = own.key(tensor, own.rooted(root).tape)  # type: ignore[arg-type]
        return node

    def adopt(self, graph: Graph, tensor: Any, index: Mapping[Any, Any], attached: bool) -> Ref:
        return own.adopt(graph, tensor, attached)

    def unsupported(self, tensor: Any, index: Mapping[Any, Any]) -> list[str]:
        return own.unsupported(tensor)

    def index(self) -> Mapping[Any, Any]:
        return TABLE

    def check_index(self, rules: Mapping[Any, Any]) -> None:
        for name, op in rules.items():
            if not isinstance(name, str) or not isinstance(op, Op):
                raise RuleError(f"index: got {name!r}: {op!r}; expected ops by their names, as ng.define gives them")

    def wrap(self, raw: Any) -> Any:
        return make(self.base.dressed, raw, NONE)

    def attach(self, key: Any, hgrad: Any) -> None:
        PARTIALS.pop(key, None)
        if hgrad is not None:
            PARTIALS[key] = hgrad


class Foreign(Source):
    """Graphs that an array library has recorded."""

    def rooted(self, tensor: Any) -> None:
        if not self.base.graphs.tracked(tensor) or self.base.graphs.key(tensor) is tensor:
            raise ArgumentError(
                f"backward: got {told(tensor)} that no graph was recorded under; expected one that was computed from tensors that require "
                "gradients. Try x.requires_grad_() before it is used, and an output of which grad_fn is not None"
            )

    def key(self, name: str, root: Any, tensor: Any) -> Hashable:
        if isinstance(tensor, Handle) or not self.base.graphs.tracked(tensor):
            raise ArgumentError(
                f"{name}: got {told(tensor)}; expected a tensor of the graph, which requires gradients. Cannot find node for it"
            )
        found: Hashable = self.base.graphs.key(tensor)
        return found

    def adopt(self, graph: Graph, tensor: Any, index: Mapping[Any, Any], attached: bool) -> Ref:
        found: Ref = self.base.graphs.adopt(graph, tensor, index, attached)
        return found

    def unsupported(self, tensor: Any, index: Mapping[Any, Any]) -> list[str]:
        found: list[str] = self.base.graphs.unsupported(tensor, index)
        return found

    def index(self) -> Mapping[Any, Any]:
        found: Mapping[Any, Any] = self.base.graphs.index()
        return found

    def check_index(self, rules: Mapping[Any, Any]) -> None:
        for kind, rule in rules.items():
            if not isinstance(kind, type) or not callable(rule):
                raise RuleError(f"index: got {kind!r}: {rule!r}; expected a rule for each type of grad_fn, as Controller.index gives them")

    def attach(self, key: Any, hgrad: Any) -> None:
        for name, value in (("hgrad", hgrad), ("hdata", None if hgrad is None else hgrad.hdata)):
            if value is not None:
                setattr(key, name, value)
            elif hasattr(key, name):
                delattr(key, name)


def told(tensor: Any) -> str:
    """A tensor in words."""
    shape = getattr(tensor, "shape", None)
    return f"a {type(tensor).__name__}" + ("" if shape is None else f" of shape {tuple(shape)}")
