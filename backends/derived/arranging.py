"""Turning, shifting, triangles and diagonals, in terms of the required operations."""

from nestgrad.backends.derived.along import Along
from nestgrad.backends.primitives import Index, Value


class Arranging(Along):
    """What moves entries by shapes alone. The triangles are those of the last two axes."""

    def flip(self, x: Value, axes: tuple[int, ...]) -> Value:
        """``x`` with the order of its entries reversed along ``axes``."""
        backwards = slice(None, None, -1)
        return self.getitem(x, tuple(backwards if k in axes else slice(None) for k in range(len(self.shape(x)))))

    def roll(self, x: Value, shifts: tuple[int, ...], axes: tuple[int, ...]) -> Value:
        """``x`` with its entries moved on by ``shifts`` along ``axes``; those that leave at the end come in at the start."""
        for shift, axis in zip(shifts, axes, strict=True):
            n = self.shape(x)[axis]
            if n and shift % n:
                cut = n - shift % n
                before = (slice(None),) * axis
                x = self.concat(self.getitem(x, (*before, slice(cut, n))), self.getitem(x, (*before, slice(0, cut))), axis=axis)
        return x

    def stack(self, *xs: Value, axis: int) -> Value:
        """Arrays of one shape along a new axis."""
        shape = self.shape(xs[0])
        return self.concat(*(self.reshape(x, (*shape[:axis], 1, *shape[axis:])) for x in xs), axis=axis)

    def triu(self, x: Value, k: int) -> Value:
        """``x`` with zeros below its ``k``-th diagonal."""
        return self.where(self._below(x, k), self.asarray(0, self.dtype(x)), x)

    def tril(self, x: Value, k: int) -> Value:
        """``x`` with zeros above its ``k``-th diagonal."""
        return self.where(self._below(x, k + 1), x, self.asarray(0, self.dtype(x)))

    def _below(self, x: Value, k: int) -> Value:
        """Which entries of the last two axes are below the ``k``-th diagonal."""
        n, m = self.shape(x)[-2:]
        rows, columns = self._upto(n), self._upto(m)
        return self.lt(self.reshape(columns, (1, m)), self.add(self.reshape(rows, (n, 1)), k))

    def diagonal(self, x: Value, offset: int, axes: tuple[int, int]) -> Value:
        """Entries ``i`` and ``i + offset`` of two axes, along a new last axis."""
        shape = self.shape(x)
        order = (*axes, *(k for k in range(len(shape)) if k not in axes))
        out = self.getitem(self.permute(x, order), self._line(shape, offset, axes))
        return self.permute(out, (*range(1, len(shape) - 1), 0))

    def from_diagonal(self, x: Value, offset: int, axes: tuple[int, int], shape: tuple[int, ...]) -> Value:
        """Zeros of ``shape`` with ``x`` on a diagonal: the transpose of ``diagonal``."""
        order = (*axes, *(k for k in range(len(shape)) if k not in axes))
        rank = len(shape)
        front = self.permute(x, (rank - 2, *range(rank - 2)))
        out = self.put(front, self._line(shape, offset, axes), tuple(shape[k] for k in order))
        return self.permute(out, tuple(order.index(k) for k in range(rank)))

    def _line(self, shape: tuple[int, ...], offset: int, axes: tuple[int, int]) -> Index:
        """Positions of a diagonal, on both axes."""
        first, start = max(-offset, 0), max(offset, 0)
        n = max(min(shape[axes[0]] - first, shape[axes[1]] - start), 0)
        return self.add(self._upto(n), first), self.add(self._upto(n), start)

    def cross(self, x: Value, y: Value, axis: int) -> Value:
        """The vector product of vectors along ``axis``; ``x`` and ``y`` have as many axes, and others broadcast."""
        x1, x2 = self.roll(x, (-1,), (axis,)), self.roll(x, (-2,), (axis,))
        y1, y2 = self.roll(y, (-1,), (axis,)), self.roll(y, (-2,), (axis,))
        return self.sub(self.mul(x1, y2), self.mul(x2, y1))

    def vecdot(self, x: Value, y: Value, axis: int) -> Value:
        """Sums along ``axis`` of the products of ``x`` and ``y``, which are of one shape."""
        return self.sum(self.mul(x, y), (axis,))
