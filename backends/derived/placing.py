"""Putting entries at positions along an axis, and finding positions, in terms of the required operations."""

from nestgrad.backends.derived.arranging import Arranging
from nestgrad.backends.primitives import Value


class Placing(Arranging):
    """What puts entries at positions ``y`` along an axis, which count from 0 and have the shape of what is put there."""

    def set_along(self, x: Value, y: Value, z: Value, axis: int, once: bool) -> Value:
        """``x`` with ``z``, an array or a number, at positions ``y``.

        Raises:
            ValueError: If a position is named twice along the axis, and ``once`` says that this is to be checked.
        """
        if once:
            self._check_once(y, axis, self.shape(x)[axis])
        return self.index_set(x, z, self._places(y, axis))

    def _check_once(self, y: Value, axis: int, n: int) -> None:
        count = self.add_along(self.add(self.mul(y, 0), 1), y, axis, n)
        if 0 not in self.shape(count) and bool(self.to_numpy(self.amax(count, tuple(range(len(self.shape(count)))))) > 1):
            raise named_twice()

    def max_along(self, x: Value, y: Value, z: Value, axis: int) -> Value:
        """The greatest of each entry of ``x`` and of the entries of ``z`` that are put there; NaN if one is.

        It compares each entry with each position.
        """
        return self.neg(self.min_along(self.neg(x), y, self.neg(z), axis))

    def min_along(self, x: Value, y: Value, z: Value, axis: int) -> Value:
        """The smallest of each entry of ``x`` and of the entries of ``z`` that are put there; NaN if one is.

        It compares each entry with each position.
        """
        shape = self.shape(y)
        n, tail = self.shape(x)[axis], shape[axis + 1 :]
        across = (*shape[:axis], 1, *shape[axis:])
        line = self.reshape(self._upto(n), (n, 1, *(1,) * len(tail)))
        base = self.reshape(x, (*self.shape(x)[: axis + 1], 1, *tail))
        given = self.where(self.eq(self.reshape(y, across), line), self.reshape(z, across), base)
        return self.amin(self.concat(base, given, axis=axis + 1), (axis + 1,))

    def searchsorted(self, x: Value, y: Value, right: bool) -> Value:
        """How many numbers of ``x``, sorted along its last axis, are smaller than each of ``y``, or equal if ``right``; as int64.

        ``x`` has the leading axes of ``y``, or is one list for ``y`` of any shape. NaN counts as the greatest. It compares each with each.
        """
        shape = self.shape(x)
        x = self.reshape(x, (*shape[:-1], 1, shape[-1]) if len(shape) > 1 else (1,) * len(self.shape(y)) + shape)
        y = self.reshape(y, (*self.shape(y), 1))
        before = self.logical_or(self.lt(x, y), self.logical_and(self.isnan(y), self.logical_not(self.isnan(x))))
        if right:
            before = self.logical_or(before, self.logical_or(self.eq(x, y), self.logical_and(self.isnan(y), self.isnan(x))))
        return self.sum(before, (len(self.shape(y)) - 1,))


def named_twice() -> ValueError:
    """The error for a position that is to hold two values."""
    return ValueError(
        "some positions are named twice along the axis; expected each once, since which value stays would be undefined. "
        "Try scatter_add, or scatter_reduce"
    )
