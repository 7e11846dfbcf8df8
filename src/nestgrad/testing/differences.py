"""Finite differences: derivatives that know nothing of rules.

All arithmetic is done in the backend's own numbers, so a backend of fifty digits gets differences to some forty.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log2
from typing import Any

STEPS = 4
"""How often the step is halved. Eight evaluations give an error of order eight."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A derivative by finite differences.

    Attributes:
        value: The derivative.
        doubt: How far the last two extrapolations are apart; large at kinks and singularities.
        noise: What rounding of the function's values may have contributed.
    """

    value: float
    doubt: float
    noise: float


def along(phi: Callable[[float], Any], eps: float) -> Difference:
    """The derivative of ``phi`` at 0.

    Central differences with steps ``h, h/2, h/4, h/8`` and extrapolation to step 0; the entry of the table that agrees best with its
    neighbours is taken (Ridders, "Accurate computation of F'(x) and F'(x)F''(x)", Adv. Eng. Software 4 (1982), 75-76). With
    ``h = eps**(1/8)`` (0.011 in float64), an analytic function whose next singularity is 0.1 away gets some eleven digits.

    Args:
        phi: Maps a number to a 0-dimensional Tensor that is a constant.
        eps: The spacing of the numbers next to 1 in the arithmetic of ``phi``.

    Returns:
        The derivative, with what is known about its error. NaN where ``phi`` is not finite on both sides.
    """
    h = 2.0 ** round(log2(eps) / 8)
    best = Difference(float("nan"), inf, 0.0)
    above: list[Any] = []
    largest = 0.0
    for k in range(STEPS):
        step = h / 2**k
        right, left = phi(step), phi(-step)
        largest = max(largest, abs(right.item()), abs(left.item()))
        row = [(right - left) / (2 * step)]
        for m, coarse in enumerate(above, 1):
            row.append((row[-1] * 4**m - coarse) / (4**m - 1))  # integers: a backend of many digits has no use for a float 1/3
            doubt = max(abs((row[-1] - row[-2]).item()), abs((row[-1] - coarse).item()))
            if doubt <= best.doubt:
                best = Difference(row[-1].item(), doubt, 0.0)
        above = row
    return Difference(best.value, best.doubt, 4 * eps * largest * 2**STEPS / h)


def precision(base: Any, dtype: Any = None) -> float:
    """The spacing of a backend's numbers next to 1.

    >>> from nestgrad.backends import NumpyBackend
    >>> precision(NumpyBackend("float32")) == 2.0**-23
    True
    """
    one, k = base.asarray(1.0, dtype), 0
    while k < 1000 and bool(base.to_numpy(base.ne(base.add(one, 2.0 ** -(k + 1)), one))):
        k += 1
    return 2.0**-k
