"""``Source``: how graphs of one kind are read, and results given back in the same kind of tensor."""

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from nestgrad.levels.coats import bare
from nestgrad.partials.graph import Graph, Ref
from nestgrad.tensor.handle import Handle, real_only

Wrap = Callable[[Any], Any]
"""Of an array, the user's kind of tensor."""


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


def told(tensor: Any) -> str:
    """A tensor in words."""
    shape = getattr(tensor, "shape", None)
    kind = type(tensor).__name__
    return f"{'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind}" + ("" if shape is None else f" of shape {tuple(shape)}")
