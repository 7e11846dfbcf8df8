"""What is known of a value without its inputs: between which numbers it is, what it takes to be NaN or infinite, and what suffices.

Reasons are bits: for each atom one for "is NaN", one for "is an input and infinite", one for "is infinite otherwise", as at a pole.
Overflow of finite numbers is no reason here.
"""

from dataclasses import dataclass
from math import exp, inf, log, sqrt

from nestgrad.compiled.passes.polynomials import ATOMS, Polynomial, atoms, factors


@dataclass(frozen=True, slots=True)
class Range:
    """What is known of a value.

    Attributes:
        low, high: Bounds, unless it is NaN.
        nan, bad: If it is NaN, or not finite, one of these reasons holds.
        makes_nan: If one of these holds, it is NaN.
        makes_bad: If one of these holds, it is not finite, or it is made of an infinite input.
    """

    low: float
    high: float
    nan: int
    bad: int
    makes_nan: int
    makes_bad: int


def free(k: int, given: bool = False) -> Range:
    """Of the atom ``k``, of which nothing is known, or that is ``given``, as an input is."""
    is_nan, is_infinite = 1 << 3 * k, (2 if given else 4) << 3 * k
    return Range(-inf, inf, is_nan, is_nan | is_infinite, is_nan, is_nan | is_infinite)


def polynomial(p: Polynomial, known: list[Range]) -> Range:
    """Of a polynomial in atoms."""
    low = high = size = 0.0
    for monomial, c in p.items():
        a = b = c
        for k, e in factors(monomial):
            u, v = _power(known[k].low, known[k].high, e)
            ends = [_product(x, y) for x in (a, b) for y in (u, v)]
            a, b = min(ends), max(ends)
        low, high, size = low + a, high + b, max(size, abs(a), abs(b))
    if len(p) > 1 and low != 0.0:  # rounded; a sum of squares is not below 0
        low, high = low - size * _ROUNDING if size < inf else low, high + size * _ROUNDING
    parts = [known[k] for k in atoms(p)]
    nan = bad = makes_nan = makes_bad = 0
    for part in parts:
        bad |= part.bad
        makes_nan |= part.makes_nan
        makes_bad |= part.makes_bad
    if len(parts) == 1 and len(p) - (0 in p) == 1 and 0.0 not in p.values():  # no infinity meets another, nor a zero
        nan = parts[0].nan
    else:
        nan = bad
    return Range(low if low == low else -inf, high if high == high else inf, nan, bad, makes_nan, makes_bad)


def reasons(p: Polynomial, known: list[Range]) -> tuple[int, int]:
    """Of a polynomial only ``bad`` and ``makes_bad``."""
    bad = makes_bad = 0
    for k in atoms(p):
        bad |= known[k].bad
        makes_bad |= known[k].makes_bad
    return bad, makes_bad


def _power(low: float, high: float, e: int) -> tuple[float, float]:
    try:
        ends = (low**e, high**e)
    except OverflowError:
        return (0.0 if e % 2 == 0 else -inf), inf
    if e % 2 == 0:
        return (0.0 if low <= 0 <= high else min(ends)), max(ends)
    return ends


def _product(x: float, y: float) -> float:
    return 0.0 if x == 0 or y == 0 else x * y


def function(name: str, u: Range, k: int) -> Range | None:
    """Of the atom ``k``, an elementary function of a value; ``None`` of functions that are not known here."""
    born_nan, born_infinite = 1 << 3 * k, 4 << 3 * k
    reached = u.makes_nan | (u.makes_bad & ~_BORN)
    if name in ("sin", "cos"):
        return Range(-1.0, 1.0, u.bad, u.bad, u.makes_bad, u.makes_bad)
    if name in _BOUNDED:
        return Range(*_BOUNDED[name], u.nan, u.nan, u.makes_nan, reached)
    if name == "exp":
        low = exp(u.low) if u.low < 700 else inf
        if u.high < 80:  # finite in single precision, too
            return Range(low, exp(u.high), u.nan, u.nan, u.makes_nan, reached)
        return Range(low, inf, u.nan, u.nan | born_infinite, u.makes_nan, reached | born_infinite)
    if name == "sqrt" and u.low >= 0:
        return Range(sqrt(u.low), sqrt(u.high), u.nan, u.bad, u.makes_nan, u.makes_bad)
    if name == "log" and u.low > 0:
        return Range(log(u.low), log(u.high) if u.high < inf else inf, u.nan, u.bad, u.makes_nan, u.makes_bad)
    if name == "reciprocal":
        if u.low > _LEAST or u.high < -_LEAST:
            return Range(1 / u.high, 1 / u.low, u.nan, u.nan, u.makes_nan, reached)
        return Range(-inf, inf, u.nan, u.nan | born_infinite, u.makes_nan, reached | born_infinite)
    if name in ("sqrt", "log"):
        born = born_nan | born_infinite
        return Range(-inf, inf, u.nan | born_nan, u.bad | born, u.makes_nan | born_nan, u.makes_nan | born)
    return None


_BOUNDED = {"tanh": (-1.0, 1.0), "erf": (-1.0, 1.0), "atan": (-1.6, 1.6), "sigmoid": (0.0, 1.0)}
_BORN = sum(4 << 3 * k for k in range(ATOMS + 16))
"""The reasons "is infinite" of what is no input."""

_ROUNDING = 1e-5
_LEAST = 1e-30
"""Whose reciprocal is finite in single precision."""
