"""Indexing and its functional counterpart, ``x.at[index].set(v)``."""

from typing import TYPE_CHECKING, Any

from nestgrad.errors import ImmutableError, IndexRangeError, ShapeError
from nestgrad.tensor.handle import Handle, Operand, apply, is_scalar, make

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
        plain, shape = _plain(self, index)
        value = self.value if shape is None else self.b.reshape(self.value, shape)
        return make(self.b, self.b.getitem(value, plain), self.marks)

    def __len__(self) -> int:
        """Size of the first axis."""
        shape = self.b.shape(self.value)
        if not shape:
            raise ShapeError("len: got a 0-dimensional tensor; expected at least one axis")
        return int(shape[0])

    def __iter__(self) -> "Iterator[Tensor]":
        """Slices along the first axis."""
        return (self[k] for k in range(len(self)))

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

    __slots__ = ("index", "shape", "x")

    def __init__(self, x: Indexing, index: Any) -> None:
        self.x = x
        self.index, self.shape = _plain(x, index)

    def set(self, value: Operand) -> "Tensor":
        """A new Tensor with these entries replaced; ``value`` broadcasts. Differentiable in both.

        Raises:
            ShapeError: If an entry is named twice: which value stays would be undefined.
        """
        _unique(self.x.b.base, self.index)
        return self._change("index_set", value)

    def add(self, value: Operand) -> "Tensor":
        """A new Tensor with ``value`` added to these entries; an entry that is named twice gets both."""
        return self._change("index_add", value)

    def _change(self, name: str, value: Operand) -> "Tensor":
        x: Any = self.x
        if is_scalar(value):
            value = make(x.b, x.b.base.full((), value, x.dtype), x.marks)
        whole = x if self.shape is None else x.reshape(self.shape)
        return apply(name, whole, value, index=self.index).reshape(x.shape)


def _plain(x: Indexing, index: Any) -> tuple[tuple[Any, ...], tuple[int, ...] | None]:
    """An index of ints, slices and native integer arrays; and the shape to bring the array to first, where ``None`` adds axes."""
    base = x.b.base
    items = list(index) if isinstance(index, tuple) else [index]
    items = [part for item in items for part in _native(base, item)]
    shape = tuple(x.b.shape(x.value))
    used = sum(1 for item in items if item is not None and item is not Ellipsis)
    if used > len(shape) or sum(1 for item in items if item is Ellipsis) > 1:
        raise IndexRangeError(f"getitem: got {len(items)} indices for shape {shape}; expected at most one per axis, and one ellipsis")
    if any(item is Ellipsis for item in items):
        k = next(k for k, item in enumerate(items) if item is Ellipsis)
        items[k : k + 1] = [slice(None)] * (len(shape) - used)
    if not any(item is None for item in items):
        _check(items, shape, base)
        return tuple(items), None
    sizes, rest = [], list(shape)
    for item in items:
        sizes.append(1 if item is None else rest.pop(0))
    whole = (*sizes, *rest)
    plain = [slice(None) if item is None else item for item in items]
    _check(plain, whole, base)
    return tuple(plain), whole


def _native(base: Any, item: Any) -> list[Any]:
    """One item of an index as the backend takes it; a mask becomes one integer array per axis."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return [item]
    if isinstance(item, bool):
        raise IndexRangeError(f"getitem: got {item}; expected an int, a slice, an integer array or a mask with axes")
    if hasattr(item, "__index__") and not hasattr(item, "shape"):
        return [int(item)]
    if isinstance(item, Handle):
        value = item.b.read(item.value)
        item = value if item.b.base == base else base.asarray(item.b.base.to_numpy(value))
    elif isinstance(item, (list, range)):
        item = base.asarray(list(item)) if len(item) else base.index([])
    elif base.accepts(item):
        item = base.asarray(item)
    else:
        raise IndexRangeError(f"getitem: got an index of type {type(item).__name__}; expected an int, slice, array or mask")
    kind = base.kind(item)
    if kind == "bool":
        return list(base.nonzero(item))
    if kind != "int":
        raise IndexRangeError(f"getitem: got an index of dtype {base.dtype(item)}; expected integers or booleans")
    return [int(item)] if tuple(base.shape(item)) == () else [base.index(item)]


def _check(items: list[Any], shape: tuple[int, ...], base: Any) -> None:
    for item, n in zip(items, shape, strict=False):
        if isinstance(item, int) and not -n <= item < n:
            raise IndexRangeError(f"getitem: got index {item} for an axis of size {n} (shape {shape})")


def _unique(base: Any, index: tuple[Any, ...]) -> None:
    arrays = [base.to_numpy(item) for item in index if not isinstance(item, (int, slice))]
    if not arrays:
        return
    count = max(a.size for a in arrays)
    if len(set(zip(*((a.reshape(-1).tolist() * (count if a.size == 1 else 1)) for a in arrays), strict=True))) < count:
        raise ShapeError("at[...].set: got an index that names an entry twice; expected each entry once. Try at[...].add, or unique indices")
