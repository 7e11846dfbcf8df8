"""Entries added around an array."""

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from nestgrad.backends.repeating import MODES
from nestgrad.errors import ArgumentError, DTypeError, ShapeError
from nestgrad.levels.coats import bare
from nestgrad.tensor.handle import Handle, make

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor

Widths = tuple[tuple[int, int], ...]


class Padding(Handle):
    """Names as in NumPy."""

    __slots__ = ()

    def pad(self, widths: Any, value: float = 0.0, mode: str = "constant") -> "Tensor":
        """With entries added around.

        Args:
            widths: A pair ``(before, after)`` for each axis; or one pair, or one int, for all axes.
            value: In mode ``"constant"``: any number that the dtype can hold, infinity too.
            mode: ``"constant"``; or what comes before and after ``a b c``: ``"reflect"`` (``c b | a b c | b a``), ``"symmetric"``
                (``b a | a b c | c b``), ``"edge"`` (``a a | a b c | c c``), ``"wrap"`` (``b c | a b c | a b``), and so on.

        Raises:
            ShapeError: Widths that are negative, or not for each axis; an axis without entries to repeat.
            DTypeError: A value that an integer dtype cannot hold.
            ArgumentError: Another mode.
        """
        shape = tuple(self.b.shape(self.value))
        pairs = _widths(widths, shape)
        known = ("constant", *MODES)
        if mode not in known or isinstance(value, str):
            got = f"mode={mode!r}" if mode not in known else f"value={value!r}"
            raise ArgumentError(f"pad: got {got}; expected a number as value, and as mode one of {', '.join(known)}. Try mode='reflect'")
        if mode == "constant":
            return self._constant(pairs, value)
        if value != 0:
            raise ArgumentError(f"pad: got value {value} in mode {mode!r}, which repeats entries; expected none. Try mode='constant'")
        if nothing := [k for k, (n, pair) in enumerate(zip(shape, pairs, strict=True)) if not n and any(pair)]:
            raise ShapeError(f"pad: got shape {shape} and widths {pairs}; expected entries to repeat along axis {nothing[0]}")
        return make(self.b, self.b.extend(self.value, pairs, mode), self.marks)

    def _constant(self, pairs: Widths, value: float) -> "Tensor":
        kind = self.b.base.kind(bare(self.value))
        if kind != "float" and not float(value).is_integer():
            dtype = self.b.dtype(self.value)
            raise DTypeError(f"pad: got value {value} for dtype {dtype}; expected a whole number. Try x.astype('float64').pad(...)")
        out = make(self.b, self.b.pad(self.value, pairs), self.marks)
        if value == 0:
            return out
        base = self.b.base
        inside = base.pad(base.full(tuple(self.b.shape(self.value)), 1), pairs)
        fill = base.full((), value, self.b.dtype(self.value))
        return make(self.b, self.b.where(base.eq(inside, 1), out.value, fill), self.marks)


def _widths(widths: Any, shape: tuple[int, ...]) -> Widths:
    """A pair for each axis."""
    try:
        if not isinstance(widths, Sequence):
            pairs = ((index(widths), index(widths)),) * len(shape)
        elif len(widths) == 2 and not any(isinstance(w, Sequence) for w in widths):
            pairs = ((index(widths[0]), index(widths[1])),) * len(shape)
        else:
            pairs = tuple((index(before), index(after)) for before, after in widths)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"pad: got widths {widths!r}; expected an int, a pair of ints, or one pair for each axis") from error
    if len(pairs) != len(shape) or any(n < 0 for pair in pairs for n in pair):
        raise ShapeError(f"pad: got widths {pairs} for shape {shape}; expected one pair of non-negative ints for each axis")
    return pairs
