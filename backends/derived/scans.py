"""Running sums, products and extrema in terms of the required operations: in log n steps, each of which doubles what an entry knows."""

from collections.abc import Callable

from nestgrad.backends.derived.arrays import Arrays
from nestgrad.backends.primitives import Index, Value


class Scans(Arrays):
    """What runs along one axis."""

    def cumsum(self, x: Value, axis: int, reverse: bool = False) -> Value:
        """For each entry the sum of all up to it, or from it on if ``reverse``."""
        return self._scan(self.add, x, axis, reverse)

    def cumprod(self, x: Value, axis: int) -> Value:
        """For each entry the product of all up to it."""
        return self._scan(self.mul, x, axis)

    def logcumsumexp(self, x: Value, axis: int) -> Value:
        """``log(cumsum(exp(x)))`` without overflow."""

        def both(later: Value, earlier: Value) -> Value:
            top, low = self.maximum(later, earlier), self.minimum(later, earlier)
            far = self.eq(top, low)  # also where both are infinite, whose difference is NaN
            return self.add(top, self.log1p(self.exp(self.where(far, 0, self.sub(low, self.where(far, 0, top))))))

        return self._scan(both, x, axis)

    def cummax(self, x: Value, axis: int) -> tuple[Value, Value]:
        """For each entry the greatest of all up to it, NaN from one on, and its position: of equals the latest, as int64."""
        return self._extremes(self._scan(self.maximum, x, axis), x, axis)

    def cummin(self, x: Value, axis: int) -> tuple[Value, Value]:
        """For each entry the smallest of all up to it, NaN from one on, and its position: of equals the latest, as int64."""
        return self._extremes(self._scan(self.minimum, x, axis), x, axis)

    def _extremes(self, values: Value, x: Value, axis: int) -> tuple[Value, Value]:
        """With each running extremum the latest position at which the array attains it."""
        n, rest = self.shape(x)[axis], len(self.shape(x)) - axis - 1
        line = self.reshape(self._upto(n), (n, *(1,) * rest))
        here = self.logical_or(self.eq(x, values), self.isnan(x))
        return values, self._scan(self.maximum, self.where(here, line, 0), axis)

    def recur(self, x: Value, y: Value, axis: int, reverse: bool) -> Value:
        """``s_i = y_i s_(i-1) + x_i`` with nothing before the first; in reverse ``s_i = y_(i+1) s_(i+1) + x_i``.

        The first of ``y`` is not read. Where ``s`` is 0, so is its product with ``y``, whatever that is.
        """
        if reverse:
            y = self.shift(y, -1, axis, 0.0)
        n, d = self.shape(x)[axis], 1
        while d < n:
            at, start, rest = _parts(n, d, axis, reverse)
            step = self.mul0(self.getitem(x, start), self.getitem(y, at))
            x = self._doubled(self.getitem(x, rest), self.add(self.getitem(x, at), step), axis, reverse)
            y = self._doubled(self.getitem(y, rest), self.mul(self.getitem(y, at), self.getitem(y, start)), axis, reverse)
            d *= 2
        return x

    def _scan(self, both: Callable[[Value, Value], Value], x: Value, axis: int, reverse: bool = False) -> Value:
        """``both`` of each entry and all before it: an associative function of two arrays, the later one first."""
        n, d = self.shape(x)[axis], 1
        while d < n:
            at, start, rest = _parts(n, d, axis, reverse)
            x = self._doubled(self.getitem(x, rest), both(self.getitem(x, at), self.getitem(x, start)), axis, reverse)
            d *= 2
        return x

    def _doubled(self, rest: Value, changed: Value, axis: int, reverse: bool) -> Value:
        return self.concat(changed, rest, axis=axis) if reverse else self.concat(rest, changed, axis=axis)

    def shift(self, x: Value, n: int, axis: int, fill: float = 0.0) -> Value:
        """``x`` with its entries moved on by ``n`` along ``axis``; those that leave are lost, and ``fill`` comes in."""
        shape = tuple(self.shape(x))
        size = shape[axis]
        k = min(abs(n), size)
        new = self.broadcast_to(self.asarray(fill, self.dtype(x)), (*shape[:axis], k, *shape[axis + 1 :]))
        kept = self.getitem(x, (*(slice(None),) * axis, slice(0, size - k) if n > 0 else slice(k, size)))
        return self.concat(new, kept, axis=axis) if n > 0 else self.concat(kept, new, axis=axis)

    def diff(self, x: Value, n: int, axis: int) -> Value:
        """The differences of neighbours, ``n`` times; of booleans, whether they differ."""
        lead = (slice(None),) * axis
        for _ in range(n):
            size = max(self.shape(x)[axis], 1)
            later, earlier = self.getitem(x, (*lead, slice(1, size))), self.getitem(x, (*lead, slice(0, size - 1)))
            x = self.ne(later, earlier) if "bool" in str(self.dtype(x)) else self.sub(later, earlier)
        return x


def _parts(n: int, d: int, axis: int, reverse: bool) -> tuple[Index, Index, Index]:
    """Of ``n`` entries those that have one ``d`` before them, the ones before them, and those that have none."""
    lead = (slice(None),) * axis
    first, last, head, tail = slice(0, n - d), slice(d, n), slice(0, d), slice(n - d, n)
    at, start, rest = (first, last, tail) if reverse else (last, first, head)
    return (*lead, at), (*lead, start), (*lead, rest)
