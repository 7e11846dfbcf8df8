"""Methods that change shapes. No entry changes; most give a view of the same memory."""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ShapeError
from nestgrad.levels.marks import NONE
from nestgrad.tensor.axes import axes_of, axis_of, shape_of
from nestgrad.tensor.handle import Handle, is_floating, make

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


class Shaping(Handle):
    """Shapes. Names and arguments as in NumPy."""

    __slots__ = ()

    def _shape(self) -> tuple[int, ...]:
        return tuple(self.b.shape(self.value))

    def reshape(self, *shape: Any) -> "Tensor":
        """The same entries in another shape; one size may be -1. ``reshape(2, 3)`` or ``reshape((2, 3))``.

        Raises:
            ShapeError: If the number of entries differs.
        """
        wanted, have = shape_of("reshape", *shape), self._shape()
        total = prod(have)
        wanted = _completed(wanted, total)
        if any(n < 0 for n in wanted) or prod(wanted) != total:
            raise ShapeError(f"reshape: got {wanted} for shape {have}; expected a shape with {total} entries, one of its sizes may be -1")
        return make(self.b, self.b.reshape(self.value, wanted), self.marks)

    def flatten(self, start: int = 0, end: int = -1) -> "Tensor":
        """The axes from ``start`` to ``end``, both included, as one; without arguments all of them, and of a number a vector of one.

        Raises:
            ShapeError: An axis that there is not, or an end before the start.
        """
        shape = self._shape()
        if not shape and (start, end) in ((0, -1), (0, 0), (-1, -1)):
            return self.reshape(1)
        i, j = axis_of(len(shape), start, "flatten"), axis_of(len(shape), end, "flatten")
        if j < i:
            raise ShapeError(f"flatten: got start {start} and end {end} for shape {shape}; expected an end from the start on")
        return self.reshape(*shape[:i], prod(shape[i : j + 1]), *shape[j + 1 :])

    def ravel(self) -> "Tensor":
        """All entries along one axis."""
        return self.reshape(prod(self._shape()))

    def unflatten(self, axis: int, sizes: Sequence[int]) -> "Tensor":
        """One axis as several, of the given sizes; one of them may be -1.

        Raises:
            ShapeError: If they do not fit.
        """
        shape = self._shape()
        k = axis_of(len(shape), axis, "unflatten")
        n = shape[k]
        wanted = _completed(shape_of("unflatten", sizes), n)
        if not wanted or any(m < 0 for m in wanted) or prod(wanted) != n:
            raise ShapeError(f"unflatten: got sizes {wanted} for axis {k} of shape {shape}; expected sizes whose product is {n}")
        return self.reshape(*shape[:k], *wanted, *shape[k + 1 :])

    def permute(self, *axes: Any) -> "Tensor":
        """The axes in another order, as ``np.transpose``."""
        order = axes_of(len(self._shape()), shape_of("permute", *axes), "permute")
        if len(order) != len(self._shape()):
            raise ShapeError(f"permute: got axes {order} for shape {self._shape()}; expected each axis once")
        return make(self.b, self.b.permute(self.value, order), self.marks)

    def transpose(self, *axes: Any) -> "Tensor":
        """The axes in another order; without arguments, reversed."""
        return self.permute(*(axes or (tuple(reversed(range(len(self._shape())))),)))

    def swapaxes(self, first: int, second: int) -> "Tensor":
        """Two axes exchanged."""
        rank = len(self._shape())
        i, j = axis_of(rank, first, "swapaxes"), axis_of(rank, second, "swapaxes")
        order = list(range(rank))
        order[i], order[j] = j, i
        return make(self.b, self.b.permute(self.value, tuple(order)), self.marks)

    def squeeze(self, axis: int | Sequence[int] | None = None) -> "Tensor":
        """Without axes of size 1: the given ones, or all."""
        shape = self._shape()
        axes = axes_of(len(shape), axis, "squeeze") if axis is not None else tuple(k for k, n in enumerate(shape) if n == 1)
        if wrong := [k for k in axes if shape[k] != 1]:
            raise ShapeError(f"squeeze: got axis {wrong[0]} of shape {shape}, whose size is {shape[wrong[0]]}; expected 1")
        return make(self.b, self.b.reshape(self.value, tuple(n for k, n in enumerate(shape) if k not in axes)), self.marks)

    def expand_dims(self, axis: int | Sequence[int]) -> "Tensor":
        """With new axes of size 1 at the given places of the result."""
        shape = list(self._shape())
        count = len(axis) if isinstance(axis, Sequence) else 1
        for k in sorted(axes_of(len(shape) + count, axis, "expand_dims")):
            shape.insert(k, 1)
        return make(self.b, self.b.reshape(self.value, tuple(shape)), self.marks)

    def broadcast_to(self, *shape: Any) -> "Tensor":
        """Repeated along axes of size 1 and new leading axes.

        Raises:
            ShapeError: If the shape cannot be reached by repeating.
        """
        wanted, have = shape_of("broadcast_to", *shape), self._shape()
        lead = len(wanted) - len(have)
        if lead < 0 or any(n < 0 for n in wanted) or any(m not in (1, n) for m, n in zip(have, wanted[lead:], strict=True)):
            raise ShapeError(f"broadcast_to: got {wanted} for shape {have}; expected each size to stay or to be repeated from 1")
        return make(self.b, self.b.broadcast_to(self.value, wanted), self.marks)

    def astype(self, dtype: Any) -> "Tensor":
        """Cast to another dtype. Between floating ones, the derivative is cast back; integers and booleans are constants.

        Raises:
            DTypeError: A dtype that is unknown, or complex.
        """
        wanted = self.b.base.resolve_dtype(dtype)
        if wanted == self.b.dtype(self.value):
            return self  # type: ignore[return-value]
        b, value = self.b, self.value
        if is_floating(self) and not b.base.is_floating(b.base.full((), 0, wanted)):
            # towards zero, by ops that have no derivative
            value = b.ne(value, 0) if "bool" in str(wanted) else b.where(b.lt(value, 0), b.ceil(value), b.floor(value))
            return make(b, b.cast(value, wanted), NONE)
        return make(b, b.cast(value, wanted), self.marks)


def _completed(sizes: tuple[int, ...], total: int) -> tuple[int, ...]:
    """Sizes of ``total`` entries, where one may be -1; as they are, if they do not fit."""
    if sizes.count(-1) != 1:
        return sizes
    known = prod(n for n in sizes if n != -1)
    return tuple(total // known if n == -1 else n for n in sizes) if known > 0 and total % known == 0 else sizes
