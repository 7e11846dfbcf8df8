"""The distinct entries of symmetric arrays: those of sorted positions, in lexicographic order."""

from itertools import permutations
from math import comb, prod
from typing import Any

from nestgrad.backends.derived.linalg import resolution
from nestgrad.backends.numpy import NumpyBackend
from nestgrad.errors import RuleError, ShapeError
from nestgrad.partials.structure import Structure

HOST = NumpyBackend()
"""Makes arrays of positions."""


def packed(b: Any, x: Any, made: Structure) -> Any:
    """Of an array ``x`` stored as ``made`` tells: ``[legs..., rest of the output laid out, distinct entries]``.

    Raises:
        RuleError: If entries that should be equal differ by more than roundings.
    """
    lead, outs, n = _sizes(made)
    k, count = made.order, prod(lead) * outs
    _check(b, b.reshape(x, (count, *(n,) * k)), k)
    flat = b.reshape(x, (count, n**k))
    chosen = b.getitem(flat, (slice(None), b.index(_flat(_sorted(n, k), n))))
    return b.reshape(chosen, (*lead, outs, comb(n + k - 1, k)))


def unpacked(b: Any, numbers: Any, made: Structure) -> Any:
    """The inverse of ``packed``: an array stored as ``made`` tells.

    Raises:
        ShapeError: If the numbers are not as many.
    """
    lead, outs, n = _sizes(made)
    k, count = made.order, prod(lead) * outs
    entries = comb(n + k - 1, k)
    got, want = tuple(b.shape(numbers)), (*lead, outs, entries)
    if got != want:
        raise ShapeError(
            f"unpacked: got an array of shape {got}; expected {want}, because legs have sizes {lead}, the rest of the output {outs}, and "
            f"{k} slots of {n} entries {entries} distinct ones. Try what packed() gave, with the same legs"
        )
    flat = b.reshape(numbers, (count, entries))
    return b.reshape(b.getitem(flat, (slice(None), b.index(_ranks(n, k)))), made.shape)


def _sizes(made: Structure) -> tuple[tuple[int, ...], int, int]:
    """The legs' sizes, how many entries the rest of the output has, and how many the rest of each slot."""
    lead = made.shape[: len(made.legs)]
    rest = [(axes[0][0], made.shape[k]) for k, axes in enumerate(made.axes) if k >= len(lead)]
    return lead, prod([n for place, n in rest if place == 0]), prod([n for place, n in rest if place == 1])


def _sorted(n: int, k: int) -> tuple[Any, ...]:
    """All ``i1 <= ... <= ik < n`` in lexicographic order: an array for each of the positions."""
    columns = [HOST.arange(0, n)]
    for _ in range(k - 1):
        last = columns[-1]
        repeats = n - last  # how many positions may follow
        total = int(repeats.sum())
        start = HOST.arange(0, total) - (repeats.cumsum() - repeats).repeat(repeats)
        columns = [*[column.repeat(repeats) for column in columns], start + last.repeat(repeats)]
    return tuple(columns)


def _flat(columns: tuple[Any, ...], n: int) -> Any:
    """Positions laid out, the last fastest."""
    found = columns[0] * 0
    for column in columns:
        found = found * n + column
    return found


def _ranks(n: int, k: int) -> Any:
    """For every position laid out, which of the distinct entries it is."""
    columns = _sorted(n, k)
    found = HOST.full((n**k,), 0)
    for order in permutations(columns):
        found[_flat(order, n)] = HOST.arange(0, len(columns[0]))
    return found


def _check(b: Any, x: Any, k: int) -> None:
    """Refuse an array that changes by more than roundings if two neighbouring slots are exchanged; NaN and infinities agree with all."""
    if k < 2 or 0 in b.shape(x):
        return
    whole = tuple(range(k + 1))
    size = b.abs(b.where(b.isfinite(x), x, 0))
    bound = resolution(b, b.dtype(x)) ** 0.5 * b.to_numpy(b.amax(size, whole)).item()
    for s in range(1, k):
        gap = b.abs(b.sub(x, b.permute(x, (*range(s), s + 1, s, *range(s + 2, k + 1)))))
        worst = b.to_numpy(b.amax(b.where(b.isfinite(gap), gap, 0), whole)).item()
        if worst > bound:
            raise RuleError(
                f"packed: entries that exchange slots {s} and {s + 1} differ by {worst:.3g}; expected equal ones, to {bound:.3g}, because "
                "partial derivatives commute, and one entry of each kind is kept. Try data, which keeps all; and look for a rule that "
                "is not the derivative of its op"
            )
