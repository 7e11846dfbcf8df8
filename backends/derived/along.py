"""Entries along an axis by an array of positions, and their order, in terms of the required operations."""

from nestgrad.backends.derived.arrays import Arrays
from nestgrad.backends.primitives import Index, Value


class Along(Arrays):
    """What moves entries along one axis."""

    def take_along(self, x: Value, y: Value, axis: int) -> Value:
        """The entry at position ``y`` along ``axis``: ``y`` has the shape of the answer, which is that of ``x`` but for the axis."""
        return self.getitem(x, self._places(y, axis))

    def add_along(self, x: Value, y: Value, axis: int, n: int) -> Value:
        """Zeros with ``n`` entries along ``axis``, with ``x`` added at positions ``y``: the transpose of ``take_along``."""
        shape = tuple(self.shape(x))
        return self.put(x, self._places(y, axis), (*shape[:axis], n, *shape[axis + 1 :]))

    def _places(self, y: Value, axis: int) -> Index:
        """An index array for each axis."""
        shape = self.shape(y)
        rank = len(shape)
        lines = (self._upto(n) for n in shape)
        return tuple(
            y if k == axis else self.reshape(line, (*(1,) * k, shape[k], *(1,) * (rank - k - 1))) for k, line in enumerate(lines)
        )

    def sort(self, x: Value, axis: int, descending: bool = False) -> tuple[Value, Value]:
        """``x`` in order along ``axis``, and at which positions its entries were. Equal ones keep their order; NaN is the greatest.

        It compares each entry with each.
        """
        shape = tuple(self.shape(x))
        n, lead, rest = shape[axis], shape[:axis], shape[axis + 1 :]
        this, that = self.reshape(x, (*lead, n, 1, *rest)), self.reshape(x, (*lead, 1, n, *rest))
        here, there = self.isnan(this), self.isnan(that)
        less, more = (self.lt(this, that), self.lt(that, this)) if descending else (self.lt(that, this), self.lt(this, that))
        first, last = (there, here) if descending else (here, there)
        less = self.logical_or(less, self.logical_and(first, self.logical_not(last)))
        more = self.logical_or(more, self.logical_and(last, self.logical_not(first)))
        line = self._upto(n)
        tail = (1,) * len(rest)
        earlier = self.lt(self.reshape(line, (1, n, *tail)), self.reshape(line, (n, 1, *tail)))
        equal = self.logical_not(self.logical_or(less, more))
        before = self.logical_or(less, self.logical_and(equal, earlier))
        rank = self.sum(before, (axis + 1,), True)  # of entry i, along axis; its place among the sorted is rank[i]
        taken = self.eq(rank, self.reshape(line, (1, n, *tail)))
        positions = self.sum(self.where(taken, self.reshape(line, (n, 1, *tail)), 0), (axis,))
        return self.take_along(x, positions, axis), positions
