"""Colourings: which columns of a sparse matrix may be computed together, in one product, and told apart afterwards.

Gebremedhin, Manne & Pothen, "What color is your Jacobian? Graph coloring for computing derivatives", SIAM Review 47 (2005), 629-705. All
are greedy: vertices of many neighbours come first, and each gets the least colour that it may have. Sets of colours are bits of ints.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

Rows = Sequence[Sequence[int]]
"""For each row the columns of its entries."""


def rows_of(matrix: Any) -> list[list[int]]:
    """The columns of each row of a ``csr_array``, as lists."""
    ends, columns = matrix.indptr.tolist(), matrix.indices.tolist()
    return [columns[start:stop] for start, stop in pairwise(ends)]


def columns_apart(rows: Rows, n: int) -> list[int]:
    """A colour for each of ``n`` columns: those of one colour have no row in common, so that a product with their sum holds their entries.

    Args:
        rows: The columns of each row.
        n: How many columns there are.
    """
    if any(len(row) == n for row in rows):
        return list(range(n))
    at: list[list[int]] = [[] for _ in range(n)]
    for i, row in enumerate(rows):
        for j in row:
            at[j].append(i)
    used = [0] * len(rows)
    colors = [0] * n
    for j in sorted(range(n), key=lambda j: -sum(len(rows[i]) for i in at[j])):
        taken = 0
        for i in at[j]:
            taken |= used[i]
        color = _least(taken)
        colors[j] = color
        for i in at[j]:
            used[i] |= 1 << color
    return colors


def neighbours_apart(neighbours: Rows) -> list[int]:
    """A colour for each vertex of a graph: neighbours have different ones. Enough for the diagonal of a symmetric matrix."""
    colors = [-1] * len(neighbours)
    for v in sorted(range(len(neighbours)), key=lambda v: -len(neighbours[v])):
        taken = 0
        for w in neighbours[v]:
            if colors[w] >= 0 and w != v:
                taken |= 1 << colors[w]
        colors[v] = _least(taken)
    return colors


def stars(neighbours: Rows) -> list[int]:
    """A star colouring of a graph: neighbours have different colours, and no path of four vertices has only two.

    Then each entry of a symmetric matrix stands alone in a product with the sum of the columns of one colour, that of its column or that of
    its row: section 4 of the paper. Fewer colours than ``columns_apart`` needs, where a few rows are long.

    Args:
        neighbours: Of each vertex, the others that it has an edge with; in both directions.
    """
    coloring = _Stars(neighbours)
    for v in sorted(range(len(neighbours)), key=lambda v: -len(neighbours[v])):
        coloring.give(v, coloring.least(v))
    return coloring.colors


class _Stars:
    """A star colouring in the making.

    Attributes:
        colors: -1 where there is none yet.
        around: For each vertex, the colours of its neighbours, as bits.
        first: For each vertex, the neighbour that was the first to have a colour; -1 once there is a second.
        barred: For each vertex, the colours of those neighbours that have another neighbour of the vertex's own colour, as bits. A vertex
            of that colour beside it would be the end of a path of four in two colours.
    """

    __slots__ = ("around", "barred", "colors", "first", "neighbours")

    def __init__(self, neighbours: Rows) -> None:
        n = len(neighbours)
        self.neighbours = neighbours
        self.colors = [-1] * n
        self.around = [0] * n
        self.barred = [0] * n
        self.first: list[dict[int, int]] = [{} for _ in range(n)]

    def least(self, v: int) -> int:
        """The least colour that a vertex may have."""
        taken = 0
        first = self.first[v]
        for w in self.neighbours[v]:
            color = self.colors[w]
            if color >= 0:
                taken |= 1 << color | self.barred[w]
                if first[color] < 0:  # v is between two of one colour, so it is like none of their neighbours
                    taken |= self.around[w]
        return _least(taken)

    def give(self, v: int, color: int) -> None:
        """Colour a vertex."""
        self.colors[v] = color
        bit = 1 << color
        mine = self.first[v]
        for w in self.neighbours[v]:
            other = self.colors[w]
            if other >= 0 and mine[other] < 0:
                self.barred[w] |= bit
            first = self.first[w]
            if color not in first:
                first[color] = v
                self.around[w] |= bit
            else:
                if other >= 0:
                    if first[color] >= 0:
                        self.barred[first[color]] |= 1 << other
                    self.barred[v] |= 1 << other
                first[color] = -1


def _least(taken: int) -> int:
    """The least colour that is not taken."""
    return (~taken & (taken + 1)).bit_length() - 1
