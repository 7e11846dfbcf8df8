"""Entries added around an array."""

from collections.abc import Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError, DTypeError, ShapeError
from nestgrad.levels.coats import bare
from nestgrad.tensor.handle import Handle, make

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor

MODES = ("constant", "reflect", "symmetric", "edge", "wrap")
"""What may be added: a number, or entries of the array itself."""

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
        if mode not in MODES or isinstance(value, str):
            got = f"mode={mode!r}" if mode not in MODES else f"value={value!r}"
            raise ArgumentError(f"pad: got {got}; expected a number as value, and as mode one of {', '.join(MODES)}. Try mode='reflect'")
        if mode == "constant":
            return self._constant(pairs, value)
        if value != 0:
            raise ArgumentError(f"pad: got value {value} in mode {mode!r}, which repeats entries; expected none. Try mode='constant'")
        out = self.value
        for axis, (n, (before, after)) in enumerate(zip(shape, pairs, strict=True)):
            if before or after:
                if not n:
                    raise ShapeError(f"pad: got shape {shape} and widths {pairs}; expected entries to repeat along axis {axis}")
                out = taken(self.b, out, axis, [inside(k, n, mode) for k in range(-before, n + after)])
        return make(self.b, out, self.marks)

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


def inside(k: int, n: int, mode: str) -> int:
    """Which of ``n`` entries stands at position ``k``, inside or out."""
    if mode == "edge":
        return min(max(k, 0), n - 1)
    if mode == "wrap":
        return k % n
    period = 2 * n if mode == "symmetric" else max(2 * n - 2, 1)
    k %= period
    return k if k < n else (2 * n - 1 if mode == "symmetric" else period) - k


def taken(b: Any, value: Any, axis: int, positions: Sequence[int]) -> Any:
    """The entries at ``positions`` along an axis, by slices, whose transposes are quick where neighbours stand side by side."""
    before = (slice(None),) * axis
    parts = []
    for start, step, count in _runs(positions):
        if step == 0:
            one = b.getitem(value, (*before, slice(start, start + 1)))
            shape = tuple(b.shape(one))
            parts.append(b.broadcast_to(one, (*shape[:axis], count, *shape[axis + 1 :])))
        else:
            stop = start + step * count
            parts.append(b.getitem(value, (*before, slice(start, None if stop < 0 else stop, step))))
    return b.concat(*parts, axis=axis) if len(parts) > 1 else parts[0]


def _runs(positions: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Start, step and length of stretches that go on by 1, by -1, or stay."""
    k = 0
    while k < len(positions):
        step = positions[k + 1] - positions[k] if k + 1 < len(positions) else 1
        step = step if step in (-1, 0, 1) else 1
        end = k + 1
        while end < len(positions) and positions[end] - positions[end - 1] == step:
            end += 1
        yield positions[k], step, end - k
        k = end


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
