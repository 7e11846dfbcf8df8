"""Whether a pattern is large enough: products along directions of random signs, compared with what the pattern makes of them."""

from math import sqrt
from typing import Any

from nestgrad.dependence.pattern import HOST


def signs(n: int) -> Any:
    """``n`` random signs, the same each time."""
    return HOST.where(HOST.uniform((n,), HOST.generator(n)) < 0.5, -1.0, 1.0)


def direction(n: int) -> Any:
    """``n`` numbers between 1 and 2, with random signs; the same each time."""
    return signs(n) * (HOST.uniform((n,), HOST.generator(n + 1)) + 1.0)


def compared(expected: Any, found: Any, size: Any, eps: float) -> tuple[int, float] | None:
    """How many numbers differ by more than rounding, and by how much at most; ``None`` if none does.

    Half of the digits of each number count, and what is not below the rounding of the largest, or of 1: 1e4 units, but half of
    the digits in short dtypes, of which that would be all.

    Args:
        expected, found: Arrays of one shape.
        size: What each number is the sum of, without signs.
        eps: The resolution of the coarsest dtype that they were computed in.
    """
    off = abs(expected - found)
    most = float(size.max()) if size.size else 0.0
    wrong = off > sqrt(eps) * size + min(1e4 * eps, sqrt(eps)) * max(most, 1.0)
    return (int(wrong.sum()), float(off.max())) if wrong.any() else None
