"""What a node of PyTorch's graph tells: its operands, what it saved, and the shapes of its results.

A saved value is the value of some node, or of a leaf, and belongs to it: else a derivative would lose the terms that go through it. So
rules ask for an *operand*, by its place and by the name under which the node saved it, and say nothing of where it came from.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import torch

from nestgrad.backends.base import no_complex
from nestgrad.errors import GraphFreedError, MutatedError

TYPES: dict[str, Any] = vars(getattr(torch._C, "_functions"))  # noqa: B009
"""The types of torch's own nodes, by their names."""


class Builder(Protocol):
    """What a graph is written down with: ``nestgrad.partials.graph.Graph``."""

    def leaf(self, key: Hashable, value: Any = ..., shape: tuple[int, ...] | None = ..., dtype: Any = ...) -> Any:
        """A variable."""

    def data(self, array: Any) -> Any:
        """A constant."""

    def unknown_value(self, shape: Sequence[int], dtype: Any = ...) -> Any:
        """A value that no derivative reads."""

    def apply(self, op: Any, *operands: Any, told: tuple[int, ...] | None = ..., **params: Any) -> Any:
        """An op of the table."""

    def split(self, x: Any, sizes: tuple[int, ...], axis: int) -> tuple[Any, ...]:
        """Parts along an axis."""
        ...

    def unstack(self, x: Any, axis: int) -> tuple[Any, ...]:
        """Slices along an axis."""
        ...

    def answered(self, op: str, *operands: Any, value: Any, **params: Any) -> Any:
        """An elementwise op of which the answer is known."""

    def seen_as(self, ref: Any, value: Any) -> Any:
        """``ref``, which one op takes to have this value."""

    def define(self, key: Hashable, ref: Any, dtype: Any = ...) -> None:
        """What a node makes."""

    def settle(self, key: Hashable, value: Any) -> Any:
        """What is the value of a node, for all who read it from now on."""

    def __getitem__(self, key: Hashable) -> Any: ...

    def __contains__(self, key: Hashable) -> bool: ...


Inputs = tuple[Any, ...]
"""The operands of a node: for each its Ref, ``None`` where torch tracks none."""

Rule = Callable[[Any, "Node", Inputs], Any]
"""Of the builder, the node and its operands (``None`` where there is no graph) to the Ref of its result, or to a tuple of them."""


class Node:
    """A node of PyTorch's graph, as rules see it.

    Attributes:
        fn: The node itself, torch's own.
        inputs: For each operand its Ref; ``None`` where torch tracks none.
    """

    __slots__ = ("_attached", "_graph", "_keys", "_meta", "fn", "inputs")

    def __init__(self, graph: Builder, fn: Any, keys: tuple[Any, ...], attached: bool) -> None:
        self._graph, self.fn, self._keys, self._attached = graph, fn, keys, attached
        self._meta = fn._input_metadata
        self.inputs = tuple([None if key is None else graph[key] for key in keys])

    # results

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return tuple(self._meta[0].shape)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of all results."""
        return tuple([tuple(meta.shape) for meta in self._meta])

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the first result."""
        found: torch.dtype = self._meta[0].dtype
        return found

    @property
    def device(self) -> torch.device:
        """Where the first result is."""
        found: torch.device = self._meta[0].device
        return found

    @property
    def results(self) -> int:
        """How many there are."""
        return len(self._meta)

    def fact(self, nr: int) -> tuple[tuple[int, ...], torch.dtype]:
        """The shape and the dtype of a result."""
        meta = self._meta[nr]
        return tuple(meta.shape), meta.dtype

    def tracked(self, i: int) -> bool:
        """Whether operand ``i`` depends on a variable."""
        return self.inputs[i] is not None

    def key(self, i: int) -> Hashable:
        """What the graph knows operand ``i`` by."""
        found: Hashable = self._keys[i]
        return found

    def device_of(self, i: int) -> torch.device:
        """The device of operand ``i``, which is tracked."""
        key = self._keys[i]
        found: torch.device = key.device if isinstance(key, torch.Tensor) else key[0]._input_metadata[key[1]].device
        return found

    # what was saved

    def saved(self, name: str) -> Any:
        """What the node saved as ``name``: a tensor, without its graph unless graphs are asked for; or what else it may be.

        Raises:
            GraphFreedError: It was freed.
            MutatedError: It was written into since.
            DTypeError: It is complex.
        """
        try:
            value = getattr(self.fn, f"_saved_{name}")
        except RuntimeError as error:
            raise lost(self.fn, repr(name), error) from error
        if isinstance(value, torch.Tensor):
            if value.dtype.is_complex:
                raise no_complex(value.dtype)
            return value if self._attached else value.detach()
        return value

    def pulled(self, cotangent: torch.Tensor, recorded: bool = False) -> tuple[Any, ...]:
        """What the node makes of a cotangent for each operand. Of a linear operation that tells what it does not tell itself."""
        try:
            with torch.set_grad_enabled(recorded):
                found = self.fn(cotangent)
        except RuntimeError as error:
            raise lost(self.fn, "what it needs", error) from error
        return found if isinstance(found, tuple) else (found,)

    def dim(self, name: str, ndim: int) -> int:
        """A saved axis, counted from the first."""
        return signed(getattr(self.fn, f"_saved_{name}")) % max(ndim, 1)

    def dims(self, name: str, ndim: int) -> tuple[int, ...]:
        """Saved axes, in their order; all of them if none were named."""
        given = getattr(self.fn, f"_saved_{name}")
        return tuple(sorted({signed(d) % ndim for d in given})) if given and ndim else tuple(range(ndim))

    # operands

    def operand(self, i: int, name: str = "") -> Any:
        """The Ref of operand ``i``, of which the value is known if the node saved it as ``name``.

        What torch neither tracks nor saved is unknown, and as large as the result: nothing reads it.
        """
        ref = self.inputs[i]
        if ref is None:
            value = self.saved(name) if name else None
            return self._graph.unknown_value(self.shape, self.dtype) if value is None else self.constant(value)
        key = self._keys[i]
        if name and (ref.known is None or isinstance(key, torch.Tensor)):  # a leaf may have changed since, which torch finds
            value = self.saved(name)
            if value is not None and ref.known is None:
                return self._graph.settle(key, value)
        return self._graph[key]

    def constant(self, value: torch.Tensor) -> Any:
        """The Ref of a tensor that does not depend on variables. A number's dtype gives way to the result's."""
        if (value.dim() == 0 or not value.is_floating_point()) and value.dtype not in (torch.bool, self.dtype):
            value = value.to(self.dtype)
        return self._graph.data(value)

    def behind(self, i: int, value: Callable[[], Any]) -> Any:
        """The Ref of operand ``i`` for this node alone, told by what the node saved of its result.

        Where a value is known it is taken as it is, but for that of a leaf: torch did not save it, and would not mind if it had changed.
        """
        ref: Any = self.inputs[i]
        if ref.known is not None and not isinstance(self._keys[i], torch.Tensor):
            return ref
        return self._graph.seen_as(ref, value())


def signed(dim: int) -> int:
    """An axis that is counted from the last comes as a number without a sign."""
    return dim - (1 << 64) if dim >= 1 << 63 else dim


def lost(fn: Any, name: str, error: RuntimeError) -> Exception:
    """The error for a saved value that cannot be had."""
    text = str(error)
    if "inplace" in text:
        return MutatedError(
            f"backward: {name}, which {fn.name()} saved, was written into afterwards; expected what was computed with, because "
            f"derivatives are those at these values. Try out-of-place operations, or a clone() before the write. torch says: {text}"
        )
    if "freed" in text:
        return GraphFreedError(
            f"backward: the graph was freed at {fn.name()} by an earlier backward() of torch; expected its saved values. "
            "Try retain_graph=True there"
        )
    return error
