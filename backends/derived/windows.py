"""Windows that slide over the last axes, in terms of the required operations."""

from collections.abc import Sequence

from nestgrad.backends.derived.along import Along
from nestgrad.backends.primitives import Index, Value
from nestgrad.backends.sliding import Table, count

Ints = tuple[int, ...]


class Windows(Along):
    """Windows, and their transpose."""

    def windows(self, x: Value, sizes: Ints, strides: Ints, dilations: Ints) -> Value:
        """Windows of the last axes: axes that count windows, then axes of ``sizes``, whose entries are ``dilations`` apart in ``x``.

        Windows begin ``strides`` apart. The answer may be a view.
        """
        spaces = self.shape(x)[-len(sizes) :]
        return self.getitem(x, self._in_windows(len(self.shape(x)), spaces, sizes, strides, dilations))

    def from_windows(self, x: Value, spaces: Ints, strides: Ints, dilations: Ints) -> Value:
        """Zeros with ``spaces`` entries on the last axes, and each window added where it was: the transpose of ``windows``."""
        shape = self.shape(x)
        rank = len(spaces)
        lead = shape[: len(shape) - 2 * rank]
        return self.put(x, self._in_windows(len(lead) + rank, spaces, shape[len(shape) - rank :], strides, dilations), (*lead, *spaces))

    def _in_windows(self, rank: int, spaces: Ints, sizes: Ints, strides: Ints, dilations: Ints) -> Index:
        tables = [
            tuple(tuple(range(first, first + size * d, d)) for first in range(0, s * count(n, size, s, 0, d), s))
            for n, size, s, d in zip(spaces, sizes, strides, dilations, strict=True)
        ]
        return (*(slice(None),) * (rank - len(tables)), *self._by_tables(tables))

    def _by_tables(self, tables: Sequence[Table]) -> tuple[Value, ...]:
        """Index arrays of the last axes from positions of each: axes that count windows, then axes of their entries."""
        rank = len(tables)
        found = []
        for k, table in enumerate(tables):
            shape = [1] * (2 * rank)
            shape[k], shape[rank + k] = len(table), len(table[0])
            found.append(self.reshape(self.asarray([list(row) for row in table]), tuple(shape)))
        return tuple(found)
