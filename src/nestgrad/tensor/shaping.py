"""Methods that change shapes. No entry changes; most give a view of the same memory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ShapeError
from nestgrad.tensor.handle import Handle, axes_of, make, shape_of

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
        wanted, have = shape_of(*shape) if shape else (), self._shape()
        if wanted.count(-1) == 1:
            total, known = _count(have), _count(n for n in wanted if n != -1)
            if known and total % known == 0:
                wanted = tuple(total // known if n == -1 else n for n in wanted)
        if any(n < 0 for n in wanted) or _count(wanted) != _count(have):
            raise ShapeError(f"reshape: got {shape} for shape {have}; expected a shape with {_count(have)} entries")
        return make(self.b, self.b.reshape(self.value, wanted), self.marks)

    def flatten(self) -> "Tensor":
        """All entries along one axis."""
        return self.reshape(_count(self._shape()))

    ravel = flatten

    def permute(self, *axes: Any) -> "Tensor":
        """The axes in another order, as ``np.transpose``."""
        order = axes_of(len(self._shape()), shape_of(*axes) if axes else (), "permute")
        if len(order) != len(self._shape()):
            raise ShapeError(f"permute: got axes {order} for shape {self._shape()}; expected each axis once")
        return make(self.b, self.b.permute(self.value, order), self.marks)

    def transpose(self, *axes: Any) -> "Tensor":
        """The axes in another order; without arguments, reversed."""
        return self.permute(*(axes or (tuple(reversed(range(len(self._shape())))),)))

    def swapaxes(self, first: int, second: int) -> "Tensor":
        """Two axes exchanged."""
        rank = len(self._shape())
        (i,), (j,) = axes_of(rank, first, "swapaxes"), axes_of(rank, second, "swapaxes")
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
        count = 1 if isinstance(axis, int) else len(axis)
        for k in sorted(axes_of(len(shape) + count, axis, "expand_dims")):
            shape.insert(k, 1)
        return make(self.b, self.b.reshape(self.value, tuple(shape)), self.marks)

    def broadcast_to(self, *shape: Any) -> "Tensor":
        """Repeated along axes of size 1 and new leading axes.

        Raises:
            ShapeError: If the shape cannot be reached by repeating.
        """
        return make(self.b, self.b.broadcast_to(self.value, shape_of(*shape) if shape else ()), self.marks)

    def pad(self, widths: Sequence[tuple[int, int]], value: float = 0.0) -> "Tensor":
        """With ``(before, after)`` entries of ``value`` added along each axis."""
        shape = self._shape()
        pairs = tuple((int(before), int(after)) for before, after in widths)
        if len(pairs) != len(shape) or any(n < 0 for pair in pairs for n in pair):
            raise ShapeError(f"pad: got widths {pairs} for shape {shape}; expected one pair of non-negative ints per axis")
        out = make(self.b, self.b.pad(self.value, pairs), self.marks)
        if value == 0.0:
            return out
        base, dtype = self.b.base, self.b.dtype(self.value)
        frame = self.b.pad(base.full(shape, 1.0, dtype), pairs)
        return out + make(self.b, self.b.mul(self.b.sub(1.0, frame), float(value)), out.marks)

    def astype(self, dtype: Any) -> "Tensor":
        """Cast to another dtype; the derivative is cast back."""
        dtype = self.b.base.resolve_dtype(dtype)
        if dtype == self.b.dtype(self.value):
            return self  # type: ignore[return-value]
        return make(self.b, self.b.cast(self.value, dtype), self.marks)


def _count(shape: Any) -> int:
    total = 1
    for n in shape:
        total *= n
    return total
