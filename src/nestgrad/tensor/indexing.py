"""Indexing and its functional counterpart, ``x.at[index].set(v)``."""

from typing import TYPE_CHECKING, Any

from nestgrad.errors import DTypeError, ImmutableError, LevelError, ShapeError
from nestgrad.levels.coats import bare, worn
from nestgrad.levels.marks import NONE
from nestgrad.levels.traced.wire import Wire
from nestgrad.tensor.gathering import gathered
from nestgrad.tensor.handle import Handle, Operand, apply, as_tensor, is_scalar, make
from nestgrad.tensor.positions import positions, unique

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nestgrad.tensor.tensor import Tensor


class Indexing(Handle):
    """Slices, integers, integer arrays and boolean masks, as in NumPy."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> "Tensor":
        """Entries by ints, slices, ``None``, ``...``, integer arrays and boolean masks.

        Raises:
            IndexRangeError: An index outside its axis, or too many of them.
        """
        b, value = self.b, self.value
        found = positions(b, tuple(b.shape(value)), index)
        if found.before is not None:
            value = b.reshape(value, found.before)
        out = gathered(b, value, found.items) if found.dressed else b.getitem(value, found.items)
        if found.drop is not None:
            shape = b.shape(out)
            out = b.reshape(out, (*shape[: found.drop], *shape[found.drop + 1 :]))
        return make(b, out, self.marks)

    def __len__(self) -> int:
        """Size of the first axis."""
        shape = self.b.shape(self.value)
        if not shape:
            raise ShapeError("len: got a 0-dimensional tensor; expected an axis. Try x.item(), or, for torch.tensor(x), x.numpy()")
        return int(shape[0])

    def __iter__(self) -> "Iterator[Tensor]":
        """Slices along the first axis."""
        return (self[k] for k in range(len(self)))

    def __contains__(self, value: Operand) -> bool:
        """Whether some entry is equal to ``value``."""
        return bool((self == value).any())

    def __setitem__(self, index: Any, value: Any) -> None:
        """Refused: Tensors are immutable."""
        raise ImmutableError(
            "item assignment: a Tensor is immutable, since values that were recorded are read late. "
            "Try y = x.at[index].set(value), or x.at[index].add(value), which give a new Tensor"
        )

    @property
    def at(self) -> "At":
        """``x.at[index].set(v)`` and ``x.at[index].add(v)``: new Tensors with some entries replaced, or added to."""
        return At(self)


class At:
    """The first half of ``x.at[index].set(v)``."""

    __slots__ = ("x",)

    def __init__(self, x: Indexing) -> None:
        self.x = x

    def __getitem__(self, index: Any) -> "Place":
        """Choose the entries."""
        return Place(self.x, index)


class Place:
    """Entries of a Tensor that are to be replaced or added to."""

    __slots__ = ("found", "x")

    def __init__(self, x: Indexing, index: Any) -> None:
        self.x = x
        self.found = positions(x.b, tuple(x.b.shape(x.value)), index)
        if self.found.dressed:
            for coat in (coat for item in self.found.items for coat in worn(item) if isinstance(coat, Wire)):
                coat.read()  # raises
            raise LevelError(
                "at[...]: got an index that differs by the sample of a batch; expected the same for all. "
                "Try ng.index_add, ng.index_copy or ng.scatter, which take such; or ng.where(ng.arange(n) == index, value, x)"
            )

    def set(self, value: Operand) -> "Tensor":
        """A new Tensor with these entries replaced; ``value`` broadcasts, and is cast to the dtype. Differentiable in both.

        Raises:
            ShapeError: If an entry is named twice: which value stays would be undefined. Or if ``value`` does not fit.
            DTypeError: Floats into integers, whose fractions would be lost.
        """
        unique(self.x.b.base, self.found, tuple(self.x.b.shape(self.x.value)))
        return self._change("index_set", value)

    def add(self, value: Operand) -> "Tensor":
        """A new Tensor with ``value`` added to these entries; an entry that is named twice gets both.

        Raises:
            ShapeError: If ``value`` does not fit.
            DTypeError: Floats to integers, whose fractions would be lost.
        """
        return self._change("index_add", value)

    def _change(self, name: str, value: Operand) -> "Tensor":
        x: Any = self.x
        base, found = x.b.base, self.found
        if is_scalar(value):
            given = make(x.b, base.full((), value), NONE)
        else:
            given = as_tensor(value, x.b)
        if not holds(x.b, x.value, given.value):
            raise DTypeError(
                f"at[...].{name.removeprefix('index_')}: got dtype {given.dtype} for entries of dtype {x.dtype}, which cannot hold it. "
                "Try x.astype('float64').at[...]"
            )
        if given.dtype != x.dtype:
            given = given.astype(x.dtype)
        if found.drop is not None:
            after = len(base.shape(base.getitem(base.broadcast_to(base.full((), 0), found.before), found.items))) - found.drop - 1
            if given.ndim > after:
                given = given.expand_dims(given.ndim - after)
        whole = x if found.before is None else x.reshape(found.before)
        return apply(name, whole, given, index=found.items).reshape(x.shape)


def holds(b: Any, entries: Any, values: Any) -> bool:
    """Whether the dtype of ``entries`` can hold ``values`` of this kind: floats hold integers, and integers booleans."""
    kinds = ("bool", "int", "float")
    return kinds.index(b.base.kind(bare(values))) <= kinds.index(b.base.kind(bare(entries)))
