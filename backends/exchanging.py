"""An order of elimination for one matrix, by exchanging rows and columns; for arrays of NumPy and of PyTorch, whose indices agree."""

from typing import Any

from nestgrad.backends.derived.linalg import noise, vague

LARGE = 16
"""From how many rows on matrices are eliminated one by one, each step in what is left of it, and not all of a stack at once."""

Order = tuple[list[int], list[int], list[int]]
"""Rows, columns, and a word on each pivot; see ``Linalg.pivots``."""


def eliminated(rest: Any, grain: Any, eps: float) -> Order:
    """By complete pivoting. ``rest`` is a copy of the matrix, and ``grain`` its absolute values; both are written over."""
    n = len(rest)
    rows, columns, worth = list(range(n)), list(range(n)), [0] * n
    for k in range(n - 3):
        size = abs(rest[k:, k:])
        size[size <= noise(n, eps) * grain[k:, k:]] = 0
        i, j = divmod(int(size.argmax()), n - k)
        for order, at in ((rows, k + i), (columns, k + j)):
            order[k], order[at] = order[at], order[k]
        for array in (rest, grain):
            array[[k, k + i]] = array[[k + i, k]]
            array[:, [k, k + j]] = array[:, [k + j, k]]
        if not size[i, j]:
            worth[k:] = [2] * (n - k)
            break
        if size[i, j] <= vague(eps) * grain[k, k]:
            worth[k:] = [1] * (n - k)
        change = (rest[k + 1 :, k] / rest[k, k])[:, None] * rest[k, k + 1 :]
        rest[k + 1 :, k + 1 :] -= change
        grain[k + 1 :, k + 1 :] += abs(change)
    return _finished(rows, columns, worth)


def chosen(x: Any, inverse: Any, eps: float) -> Order | None:
    """The last three rows and columns by three steps of elimination of the inverse, which is written over.

    What stands ahead has a determinant that is the whole one times that of their part of the inverse (Jacobi), so that this is to be large,
    and an inverse that is what these steps leave. ``None`` where the inverse has not its digits, or a pivot may be vague.
    """
    n, size = len(inverse), abs(x).max()
    if not size * abs(inverse).max() < eps**-0.5:  # nor where anything is NaN
        return None
    rows, columns = list(range(n)), list(range(n))
    for k in range(3):
        i, j = divmod(int(abs(inverse[k:, k:]).argmax()), n - k)
        for order, at in ((columns, k + i), (rows, k + j)):  # a row of the inverse is of a column
            order[k], order[at] = order[at], order[k]
        inverse[[k, k + i]] = inverse[[k + i, k]]
        inverse[:, [k, k + j]] = inverse[:, [k + j, k]]
        inverse[k + 1 :, k + 1 :] -= (inverse[k + 1 :, k] / inverse[k, k])[:, None] * inverse[k, k + 1 :]
    if not size * abs(inverse[3:, 3:]).max() < 0.25 / vague(eps):
        return None
    return _finished(rows[3:] + rows[:3], columns[3:] + columns[:3], [0] * n)


def _finished(rows: list[int], columns: list[int], worth: list[int]) -> Order:
    """With the last three in order, and the last two rows exchanged if both permutations together are odd."""
    rows[-3:], columns[-3:] = sorted(rows[-3:]), sorted(columns[-3:])
    if _is_odd(rows) != _is_odd(columns):
        rows[-2], rows[-1] = rows[-1], rows[-2]
    return rows, columns, worth


def _is_odd(order: list[int]) -> bool:
    """The parity of a permutation: that of how many places there are, less its cycles."""
    seen, cycles = [False] * len(order), 0
    for start in range(len(order)):
        cycles += not seen[start]
        k = start
        while not seen[k]:
            seen[k], k = True, order[k]
    return (len(order) - cycles) % 2 == 1
