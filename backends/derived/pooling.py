"""Extrema and means of windows over the last axes, in terms of the required operations."""

from collections.abc import Sequence
from math import prod

from nestgrad.backends.derived.convolution import Convolution
from nestgrad.backends.derived.windows import Ints
from nestgrad.backends.primitives import Value
from nestgrad.backends.sliding import Table, counted, division_places, overhang, places


class Pooling(Convolution):
    """What is done with windows as a whole."""

    def max_pool(self, x: Value, sizes: Ints, strides: Ints, padding: Ints, dilations: Ints, ceil: bool) -> tuple[Value, Value]:
        """The greatest of each window of the last axes, and its position among all their entries.

        Of equal ones it is the first; NaN if there is one. Padding has no say. With ``ceil`` the last window may hang over the end.
        """
        spaces = self.shape(x)[-len(sizes) :]
        return self._greatest_at(x, [places(*row, ceil) for row in zip(spaces, sizes, strides, padding, dilations, strict=True)])

    def adaptive_max_pool(self, x: Value, sizes: Ints) -> tuple[Value, Value]:
        """The greatest of each of ``sizes`` windows that divide the last axes as evenly as can be, and its position; as ``max_pool``."""
        return self._greatest_at(x, [division_places(n, m) for n, m in zip(self.shape(x)[-len(sizes) :], sizes, strict=True)])

    def _greatest_at(self, x: Value, tables: Sequence[Table]) -> tuple[Value, Value]:
        shape = self.shape(x)
        rank = len(tables)
        lead, spaces = shape[: len(shape) - rank], shape[len(shape) - rank :]
        outs = tuple(len(table) for table in tables)
        width = prod(len(table[0]) for table in tables)
        index = self._by_tables(tables)
        entries = self.reshape(self.getitem(x, (*(slice(None),) * len(lead), *index)), (*lead, *outs, width))
        axis = len(lead) + rank
        best = self.argmax(entries, axis, True)
        flat = index[0]
        for n, part in zip(spaces[1:], index[1:], strict=True):
            flat = self.add(self.mul(flat, n), part)
        flat = self.broadcast_to(self.reshape(flat, (*outs, width)), (*lead, *outs, width))
        return tuple(self.reshape(self.take_along(a, best, axis), (*lead, *outs)) for a in (entries, flat))

    def avg_pool(self, x: Value, sizes: Ints, strides: Ints, padding: Ints, ceil: bool, padded: bool, divisor: int | None) -> Value:
        """The sum of each window of the last axes over the number of its entries; or over ``divisor``.

        Entries in the padding are 0, and count if ``padded``.
        """
        shape = self.shape(x)
        lead, spaces = shape[: len(shape) - len(sizes)], shape[len(shape) - len(sizes) :]
        rows = list(zip(spaces, sizes, strides, padding, strict=True))
        widths = tuple((row[3], overhang(*row, ceil)) for row in rows)
        if any(map(any, widths)):
            x = self.pad(x, (*((0, 0),) * len(lead), *widths))
        return self._over_counts(self.window_sums(x, sizes, strides), spaces, sizes, strides, padding, ceil, padded, divisor)

    def from_avg_pool(
        self, x: Value, spaces: Ints, sizes: Ints, strides: Ints, padding: Ints, ceil: bool, padded: bool, divisor: int | None
    ) -> Value:
        """The transpose of ``avg_pool`` for arrays with ``spaces`` entries on the last axes."""
        shape = self.shape(x)
        rank = len(sizes)
        each = self._over_counts(x, spaces, sizes, strides, padding, ceil, padded, divisor)
        each = self.broadcast_to(self.reshape(each, (*shape, *(1,) * rank)), (*shape, *sizes))
        wide = tuple(p + n + overhang(n, k, s, p, ceil) for n, k, s, p in zip(spaces, sizes, strides, padding, strict=True))
        full = self.from_windows(each, wide, strides, (1,) * rank)
        inside = tuple(slice(p, p + n) for p, n in zip(padding, spaces, strict=True))
        return full if wide == tuple(spaces) else self.getitem(full, (*(slice(None),) * (len(shape) - rank), *inside))

    def window_sums(self, x: Value, sizes: Ints, strides: Ints) -> Value:
        """The sum of each window."""
        rank, total = len(sizes), len(self.shape(x))
        return self.sum(self.windows(x, sizes, strides, (1,) * rank), tuple(range(total, total + rank)))

    def _over_counts(
        self, x: Value, spaces: Ints, sizes: Ints, strides: Ints, padding: Ints, ceil: bool, padded: bool, divisor: int | None
    ) -> Value:
        """``x``, a number for each window, over what the window is divided by."""
        if divisor is not None:
            return self.per(x, divisor)
        rank, total = len(sizes), 1
        for k, row in enumerate(zip(spaces, sizes, strides, padding, strict=True)):
            numbers = counted(*row, ceil, padded)
            if len(set(numbers)) == 1:
                total *= numbers[0]
            else:
                counts = self.asarray([float(n) for n in numbers], self.dtype(x))
                x = self.div(x, self.reshape(counts, (len(numbers), *(1,) * (rank - k - 1))))
        return self.per(x, total) if total > 1 else x
