"""Methods that move whole slices about: flipped, rolled and repeated axes, triangles and diagonals."""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ShapeError
from nestgrad.tensor.arguments import whole_number
from nestgrad.tensor.axes import axes_of, one_axis, shape_of
from nestgrad.tensor.handle import Handle, make
from nestgrad.tensor.places import integers

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor

Axes = int | Sequence[int] | None


class Arranging(Handle):
    """Names and arguments as in NumPy, where it differs from torch."""

    __slots__ = ()

    def flip(self, axis: Axes = None) -> "Tensor":
        """The entries in reversed order along the axes; ``None``: along all."""
        axes = axes_of(len(self.b.shape(self.value)), axis, "flip")
        return make(self.b, self.b.flip(self.value, axes), self.marks)

    def roll(self, shift: int | Sequence[int], axis: Axes = None) -> "Tensor":
        """The entries moved on along an axis; those that leave at the end come in at the start.

        Args:
            shift: How far; or one number for each axis.
            axis: Which axes, each once; ``None``: in the flattened array.

        Raises:
            ShapeError: Not as many shifts as axes.
        """
        shape = tuple(self.b.shape(self.value))
        shifts = tuple(shift) if isinstance(shift, Sequence) else (shift,)
        if axis is None:
            if len(shifts) != 1:
                raise ShapeError(f"roll: got shift {shift} and no axis; expected one number. Try axis=(0, 1) for the axes of the shifts")
            flat = self.b.roll(self.b.reshape(self.value, (prod(shape),)), _around(shifts, (prod(shape),)), (0,))
            return make(self.b, self.b.reshape(flat, shape), self.marks)
        axes = axes_of(len(shape), axis, "roll")
        shifts = shifts * len(axes) if len(shifts) == 1 else shifts
        if len(shifts) != len(axes):
            raise ShapeError(f"roll: got shift {shift} for axes {axis}; expected one number, or as many as axes")
        if not axes:
            return self  # type: ignore[return-value]
        return make(self.b, self.b.roll(self.value, _around(shifts, [shape[k] for k in axes]), axes), self.marks)

    def repeat(self, repeats: Any, axis: int | None = None) -> "Tensor":
        """Each entry several times, one beside the other, as ``np.repeat`` and ``torch.repeat_interleave``.

        Args:
            repeats: How many times; or one whole number for each entry along the axis.
            axis: Which axis; ``None``: the flattened array. What torch calls ``x.repeat(2, 3)`` is ``x.tile((2, 3))``.

        Raises:
            ShapeError: Negative numbers, or not as many as entries.
        """
        shape = tuple(self.b.shape(self.value))
        if axis is None:
            return make(self.b, self.b.reshape(self.value, (prod(shape),)), self.marks).repeat(repeats, 0)
        k = one_axis(self, axis, "repeat")
        times = integers("repeat", self.b, repeats)
        if any(n < 0 for n in times) or len(times) not in (1, shape[k]):
            raise ShapeError(
                f"repeat: got repeats {repeats!r:.60} for axis {k} of shape {shape}; expected a number from 0 on, or one for each entry"
            )
        if len(times) == 1:
            n = times[0]
            spread = self.b.broadcast_to(self.b.reshape(self.value, (*shape[: k + 1], 1, *shape[k + 1 :])),
                                         (*shape[: k + 1], n, *shape[k + 1 :]))  # fmt: skip
            return make(self.b, self.b.reshape(spread, (*shape[:k], n * shape[k], *shape[k + 1 :])), self.marks)
        places = self.b.base.index([i for i, n in enumerate(times) for _ in range(n)])
        return make(self.b, self.b.getitem(self.value, (*(slice(None),) * k, places)), self.marks)

    def tile(self, *reps: Any) -> "Tensor":
        """The whole array several times along each axis, as ``np.tile``; torch's ``x.repeat``. ``tile(2, 3)`` or ``tile((2, 3))``.

        Raises:
            ShapeError: Negative numbers.
        """
        times = shape_of("tile", *reps)
        if any(n < 0 for n in times):
            raise ShapeError(f"tile: got {times}; expected how many times for each axis, from 0 on")
        shape = tuple(self.b.shape(self.value))
        rank = max(len(times), len(shape))
        times, shape = (1,) * (rank - len(times)) + times, (1,) * (rank - len(shape)) + shape
        apart = tuple(n for k in range(rank) for n in ((1, shape[k]) if times[k] != 1 else (shape[k],)))
        spread = tuple(n for k in range(rank) for n in ((times[k], shape[k]) if times[k] != 1 else (shape[k],)))
        out = self.b.broadcast_to(self.b.reshape(self.value, apart), spread)
        return make(self.b, self.b.reshape(out, tuple(n * m for n, m in zip(times, shape, strict=True))), self.marks)

    def triu(self, k: int = 0) -> "Tensor":
        """The entries of the last two axes on and above the ``k``-th diagonal, zeros below.

        Raises:
            ShapeError: Fewer than two axes.
        """
        return self._triangle("triu", k)

    def tril(self, k: int = 0) -> "Tensor":
        """The entries of the last two axes on and below the ``k``-th diagonal, zeros above.

        Raises:
            ShapeError: Fewer than two axes.
        """
        return self._triangle("tril", k)

    def _triangle(self, name: str, k: int) -> "Tensor":
        shape = tuple(self.b.shape(self.value))
        if len(shape) < 2:
            raise ShapeError(f"{name}: got shape {shape}; expected a matrix, or a stack of them")
        return make(self.b, getattr(self.b, name)(self.value, whole_number(name, "k", k)), self.marks)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "Tensor":
        """Entries ``i`` and ``i + offset`` of two axes, which a last one takes the place of.

        Raises:
            ShapeError: Fewer than two axes, or the same one twice.
        """
        shape = tuple(self.b.shape(self.value))
        if len(shape) < 2:
            raise ShapeError(f"diagonal: got shape {shape}; expected at least two axes. Try ng.diag for a matrix with this diagonal")
        axes, k = axes_of(len(shape), (axis1, axis2), "diagonal"), whole_number("diagonal", "offset", offset)
        return make(self.b, self.b.diagonal(self.value, k, axes), self.marks)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "Tensor":
        """Sum of a diagonal of two axes; of a matrix a number. Integers and booleans give int64.

        Raises:
            ShapeError: Fewer than two axes, or the same one twice.
        """
        line = self.diagonal(offset, axis1, axis2)
        return line.sum(-1)

def _around(shifts: Sequence[Any], sizes: Sequence[int]) -> tuple[int, ...]:
    """Shifts of less than once around."""
    return tuple(n if -size < n < size else n % size if size else 0 for n, size in zip(shape_of("roll", shifts), sizes, strict=True))
