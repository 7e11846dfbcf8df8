"""Which entries of an axis are repeated around it, in each mode of padding."""

from collections.abc import Sequence
from functools import lru_cache

MODES = ("reflect", "symmetric", "edge", "wrap")

Run = tuple[int, int, int]
"""Start, step (1, -1, or 0: the same entry) and length of a stretch of positions."""


def inside(k: int, n: int, mode: str) -> int:
    """Which of ``n`` entries stands at position ``k``, inside or out."""
    if mode == "edge":
        return min(max(k, 0), n - 1)
    if mode == "wrap":
        return k % n
    period = 2 * n if mode == "symmetric" else max(2 * n - 2, 1)
    k %= period
    return k if k < n else (2 * n - 1 if mode == "symmetric" else period) - k


@lru_cache(maxsize=1024)
def around(n: int, before: int, after: int, mode: str) -> tuple[tuple[int, Run], ...]:
    """What stands before and after ``n`` entries: for each stretch where it begins in the padded axis, and which entries it holds."""
    found = []
    for first, last in ((-before, 0), (n, n + after)):
        start = first + before
        for run in _runs([inside(k, n, mode) for k in range(first, last)]):
            found.append((start, run))
            start += run[2]
    return tuple(found)


def _runs(positions: Sequence[int]) -> list[Run]:
    """Stretches that go on by 1, by -1, or stay."""
    found, k = [], 0
    while k < len(positions):
        step = positions[k + 1] - positions[k] if k + 1 < len(positions) else 1
        step = step if step in (-1, 0, 1) else 1
        end = k + 1
        while end < len(positions) and positions[end] - positions[end - 1] == step:
            end += 1
        found.append((positions[k], step, end - k))
        k = end
    return found


def span(run: Run, offset: int = 0) -> slice:
    """The entries of a run as a slice that goes forward; of one entry that stays, the slice of it alone."""
    start, step, count = run
    low = start - (count - 1) if step < 0 else start
    return slice(offset + low, offset + low + (count if step else 1))
