"""Entries by their place in the order along an axis, by sorting all of them."""

from nestgrad.backends.derived.along import Along
from nestgrad.backends.primitives import Value


class Sorting(Along):
    """What picks entries by rank. Equal ones keep their order; NaN is the greatest."""

    def topk(self, x: Value, k: int, axis: int, largest: bool = True) -> tuple[Value, Value]:
        """The ``k`` greatest entries along ``axis``, the greatest first, or the smallest ones; and their positions."""
        values, positions = self.sort(x, axis, largest)
        first = (*(slice(None),) * axis, slice(0, k))
        return self.getitem(values, first), self.getitem(positions, first)

    def ranked(self, x: Value, ranks: tuple[int, ...], axis: int) -> tuple[Value, Value]:
        """The entries that have these ``ranks`` in ascending order along ``axis``, counted from 0; and their positions."""
        values, positions = self.sort(x, axis)
        at = (*(slice(None),) * axis, self.asarray(list(ranks)))
        return self.getitem(values, at), self.getitem(positions, at)
