"""Polynomials in the values of a program: sums of products, and how to write them with few ops.

A monomial is one integer, with eight bits for the exponent of each atom: the product of two is their sum. A polynomial is a dictionary
from monomials to coefficients, without zeros unless these stand for a factor that must not get lost.
"""

from collections.abc import Callable
from math import copysign, gcd
from typing import Any

Polynomial = dict[int, float]

BITS = 8
ATOMS = 500
"""How many atoms there may be."""

EXPONENT = (1 << BITS) - 1
"""The bits of an exponent."""

ONES = sum(1 << BITS * k for k in range(ATOMS + 16))
HIGH = ONES << BITS - 1
"""The lowest bits of all exponents; and the highest, of those that are too high."""


def factors(monomial: int) -> list[tuple[int, int]]:
    """The atoms of a monomial, by their numbers, with their exponents."""
    found = []
    while monomial:
        k = ((monomial & -monomial).bit_length() - 1) // BITS
        e = (monomial >> (BITS * k)) & EXPONENT
        found.append((k, e))
        monomial &= ~(EXPONENT << (BITS * k))
    return found


def plain(monomial: int) -> bool:
    """Whether a monomial is an atom."""
    return monomial & (monomial - 1) == 0 and monomial & ONES != 0


def atoms(p: Polynomial) -> list[int]:
    """The numbers of the atoms that occur in a polynomial."""
    union = 0
    for monomial in p:
        union |= monomial
    return [k for k, _ in factors(union)]


def plus(p: Polynomial, q: Polynomial, sign: float = 1.0) -> Polynomial:
    """``p + sign q``. Where terms cancel, a zero stays for each atom that would be gone: it may be NaN."""
    out = dict(p)
    zeros = []
    for monomial, c in q.items():
        total = out.get(monomial, 0.0) + sign * c
        out[monomial] = total
        if total == 0.0:
            zeros.append(monomial)
    for monomial in zeros:
        del out[monomial]
        here = set(atoms(out))
        if monomial and any(k not in here for k, _ in factors(monomial)):
            out[monomial] = 0.0
    return out


def multiplied(p: Polynomial, q: Polynomial) -> Polynomial:
    """``p q``. What would be gone is kept as in ``plus``."""
    if len(p) > len(q):
        p, q = q, p
    out: Polynomial = {}
    for m, c in p.items():
        share = {m + n: c * d for n, d in q.items()}
        out = plus(out, share) if out else share
    return out


class Writer:
    """Writes polynomials as sums and products, each common part once.

    Args:
        variable: The value of an atom, by its number.
        size: How many numbers a value has.
        op: Adds an op of values and numbers, ``op(name, *operands, params=())``, and gives its value.
    """

    def __init__(self, variable: Callable[[int], Any], size: Callable[[Any], int], op: Callable[..., Any]) -> None:
        self._variable = variable
        self._size = size
        self._op = op
        self._written: dict[Any, Any] = {}
        self._powers: dict[tuple[int, int], Any] = {}

    def write(self, p: Polynomial, absorb: bool = False) -> tuple[float, Any]:
        """``(c, value)`` such that the polynomial is their product; without a value it is the number ``c``.

        What is smaller is multiplied by itself, and comes last, since others may share what is before it.

        Args:
            p: What to write.
            absorb: Whether a factor that is smaller than the value takes ``c`` up.
        """
        c, common, rest = content(p)
        values: dict[int, Any] = {}
        parts = [self._power(k, e) for k, e in factors(common)]
        if len(rest) > 1 or 0 not in rest:
            parts.append(self.written(rest))
        for factor in parts:
            size = self._size(factor)
            values[size] = self._times(values.get(size), factor)
        value = None
        for size in sorted(values, reverse=True):
            if absorb and abs(c) != 1.0 and size < max(values):
                values[size], c = self.scaled(abs(c), values[size]), copysign(1.0, c)
            value = self._times(value, values[size])
        return c, value

    def scaled(self, c: float, value: Any) -> Any:
        """``c`` times a value."""
        if value is None or c == 1.0:
            return c if value is None else value
        return self._op("neg", value) if c == -1.0 else self._op("scale", value, params=(c,))

    def written(self, p: Polynomial) -> Any:
        """A polynomial whose terms have no factor in common, by Horner's rule."""
        key = frozenset(p.items())
        if key not in self._written:
            parts: list[Polynomial] = []
            while len(p) > 1 and (k := _first(p)) is not None:
                shift = BITS * k
                parts.append({m: c for m, c in p.items() if (m >> shift) & EXPONENT})
                p = {m: c for m, c in p.items() if not (m >> shift) & EXPONENT}
            parts += [{m: c} for m, c in p.items()]
            self._written[key] = self._total([self.write(part, absorb=True) for part in parts])
        return self._written[key]

    def _total(self, terms: list[tuple[float, Any]]) -> Any:
        """The sum of scaled values."""
        number = sum(c for c, v in terms if v is None)
        groups: dict[float, list[tuple[float, Any]]] = {}
        for c, v in terms:
            if v is not None:
                groups.setdefault(abs(c), []).append((c, v))
        total: tuple[float, Any] | None = None
        for size, same in sorted(groups.items(), key=lambda item: item[0] == 1.0):
            signed = [(c / size if size else 1.0, v) for c, v in same]
            signed.sort(key=lambda term: term[0] < 0)
            sign, value = signed[0]
            for s, v in signed[1:]:
                value = self._op("add" if s == sign else "sub", value, v)
            total = self._plus(total, (size * sign, value))
        if total is None:
            return number
        value = self.scaled(*total)
        return self._op("add", value, number) if number else value

    def _plus(self, total: tuple[float, Any] | None, term: tuple[float, Any]) -> tuple[float, Any]:
        """The sum of two scaled values."""
        if total is None:
            return term
        (c, x), (d, y) = total, term
        if d == -1.0 and c != -1.0:
            return 1.0, self._op("sub", self.scaled(c, x), y)
        if c < 0:
            return 1.0, self._op("sub", self.scaled(d, y), self.scaled(-c, x))
        return 1.0, self._op("add", self.scaled(c, x), self.scaled(d, y))

    def _power(self, k: int, e: int) -> Any:
        if e == 1:
            return self._variable(k)
        if (k, e) not in self._powers:
            if e % 2:
                made = self._op("mul", self._power(k, e - 1), self._variable(k))
            else:
                made = self._op("square", self._power(k, e // 2))
            self._powers[k, e] = made
        return self._powers[k, e]

    def _times(self, x: Any, y: Any) -> Any:
        return y if x is None else self._op("mul", x, y)


def content(p: Polynomial) -> tuple[float, int, Polynomial]:
    """A polynomial as a number, times a monomial, times a polynomial whose terms have nothing in common."""
    everywhere = -1
    for m in p:
        everywhere &= _present(m)
        if not everywhere:
            break
    common = 0
    for k, _ in factors(everywhere):
        shift = BITS * k
        common += min([(m >> shift) & EXPONENT for m in p]) << shift
    sizes = {abs(c) for c in p.values()}
    if len(sizes) == 1:
        (c,) = sizes
    elif all((c * 64).is_integer() and c < 2**40 for c in sizes):
        c = gcd(*[int(c * 64) for c in sizes]) / 64
    else:
        c = 1.0
    if c == 0.0:
        return (0.0, common, {m - common: 1.0 for m in p}) if len(p) == 1 else (1.0, common, {m - common: d for m, d in p.items()})
    if p[min(p)] < 0:
        c = -c
    return c, common, {m - common: d / c for m, d in p.items()}


def _first(p: Polynomial) -> int | None:
    """The first atom that several terms have. The same order everywhere makes for many common parts."""
    once = several = 0
    for m in p:
        present = _present(m)
        several |= once & present
        once |= present
    return ((several & -several).bit_length() - 1) // BITS if several else None


def _present(m: int) -> int:
    """A monomial with 1 for each exponent."""
    return (m | m >> 1 | m >> 2 | m >> 3 | m >> 4 | m >> 5 | m >> 6) & ONES
