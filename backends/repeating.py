"""Which entries of an axis are repeated around it, in each mode of padding; and how, in arrays that slices can write to."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

MODES = ("reflect", "symmetric", "edge", "wrap")

Widths = tuple[tuple[int, int], ...]
"""For each axis, how many entries come before and after."""

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
def _around(n: int, before: int, after: int, mode: str) -> tuple[tuple[int, Run], ...]:
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


def _span(run: Run, offset: int = 0) -> slice:
    """The entries of a run as a slice that goes forward; of one entry that stays, the slice of it alone."""
    start, step, count = run
    low = start - (count - 1) if step < 0 else start
    return slice(offset + low, offset + low + (count if step else 1))


def fill(out: Any, x: Any, widths: Widths, mode: str, flip: Callable[[Any, int], Any]) -> Any:
    """``out``, an array that may be written to, with ``x`` in its middle and entries of it around: copies within one array."""
    filled = [slice(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True)]
    out[tuple(filled)] = x
    for axis, (n, (before, after)) in enumerate(zip(x.shape, widths, strict=True)):
        for start, run in _around(n, before, after, mode):
            part = out[(*filled[:axis], _span(run, before), *filled[axis + 1 :])]
            out[(*filled[:axis], slice(start, start + run[2]), *filled[axis + 1 :])] = flip(part, axis) if run[1] < 0 else part
        filled[axis] = slice(None)
    return out


def fold(out: Any, widths: Widths, mode: str, flip: Callable[[Any, int], Any]) -> Any:
    """The middle of ``out``, an array that may be written to, with what is around added to the entries that it repeats: a view."""
    for axis in range(len(widths) - 1, -1, -1):
        before, after = widths[axis]
        if before or after:
            here = (slice(None),) * axis
            n = out.shape[axis] - before - after
            core = out[(*here, slice(before, before + n))]
            for start, run in _around(n, before, after, mode):
                part = out[(*here, slice(start, start + run[2]))]
                place = core[(*here, _span(run))]
                place += flip(part, axis) if run[1] < 0 else part if run[1] else part.sum(axis, keepdims=True)
            out = core
    return out
