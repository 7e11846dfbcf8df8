"""The gamma function's family in terms of the required operations, to double precision.

To the right by asymptotic series in ``z = x + 10``, to which recurrences lead: Stirling's, and Euler and Maclaurin's of the sums that
polygamma is. To the left by reflection. Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964): 6.1.40, 6.3.18, 23.1.30;
6.1.17, 6.3.7, 6.4.7.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from nestgrad.backends.derived.elementary import Elementary
from nestgrad.backends.primitives import Value

_STEPS = 10
_HIGH = 20  # above, poles beside the nearest ones add nothing to a derivative of the cotangent
_EULER = 0.57721566490153286061


class Gamma(Elementary):
    """The gamma function, its logarithm and that one's derivatives, elementwise."""

    def lgamma(self, x: Value) -> Value:
        """The logarithm of the size of the gamma function: infinite at 0 and at negative whole numbers."""
        right = self.lt(0.5, x)
        z = self.where(right, x, self.sub(1, x))
        out = self._lgamma_right(z)
        sine, _ = turned(self, self.where(right, 0.5, x))
        mirrored = self.sub(self.log(self.div(self._pi(x), self.abs(sine))), out)
        return self.where(self.lt(self.abs(x), math.inf), self.where(right, out, mirrored), self.abs(x))

    def _lgamma_right(self, x: Value) -> Value:
        near = self.lt(x, 2.5)
        # about 1 and 2, where it is 0: t (1 - euler) + sum (-1)^k (zeta(k) - 1) t^k / k, Abramowitz and Stegun 6.1.33
        one = self.lt(x, 1.5)
        t = self.where(near, self.sub(x, self.where(one, 1.0, 2.0)), 0)
        series: Any = 0.0
        for k in range(30, 1, -1):
            series = self.mul(self.add(series, (-1.0) ** k * zeta_less_one(k) / k), t)
        series = self.mul(self.add(series, 1 - _EULER), t)
        series = self.where(one, self.sub(series, self.log1p(self.where(one, t, 0))), series)
        far = self.where(near, 3.0, x)
        steps = self.where(self.lt(far, 1000.0), far, 0.5)
        product = steps
        for k in range(1, _STEPS):
            product = self.mul(product, self.add(steps, float(k)))
        z = self.where(self.lt(far, 1000.0), self.add(far, float(_STEPS)), far)
        w = self.reciprocal(z)
        tail = _series(self, self.square(w), [bernoulli(2 * j) / (2 * j * (2 * j - 1)) for j in range(1, 9)])
        half_log = self.scale(self.log(self.scale(self._pi(z), 2.0)), 0.5)
        stirling = self.add(self.sub(self.mul(self.sub(z, 0.5), self.log(z)), z), self.add(half_log, self.mul(tail, w)))
        stirling = self.where(self.lt(far, 1000.0), self.sub(stirling, self.log(product)), stirling)
        return self.where(near, series, stirling)

    def digamma(self, x: Value) -> Value:
        """The derivative of lgamma: infinite or NaN at 0 and at negative whole numbers."""
        right = self.lt(0, x)
        z = self.where(right, x, self.sub(1, x))
        total = None
        for k in range(_STEPS):
            term = self.reciprocal(self.add(z, float(k)))
            total = term if total is None else self.add(total, term)
        far = self.add(z, float(_STEPS))
        w = self.reciprocal(far)
        tail = self.mul(_series(self, self.square(w), [bernoulli(2 * j) / (2 * j) for j in range(1, 9)]), self.square(w))
        out = self.sub(self.sub(self.sub(self.log(far), self.scale(w, 0.5)), tail), total)
        return self.where(right, out, self.sub(out, self._mirror(self.where(right, 0.5, x), 0)))

    def polygamma(self, x: Value, n: int) -> Value:
        """The ``n``-th derivative of digamma."""
        if n == 0:
            return self.digamma(x)
        right = self.lt(0, x)
        unit, rest = factorial(n)
        out = self.scale(self._hurwitz(self.where(right, x, self.sub(1, x)), n + 1, unit), (-1.0) ** (n + 1) * rest)
        mirror = self._mirror(self.where(right, 0.5, x), n)
        return self.where(right, out, self.sub(out if n % 2 == 0 else self.neg(out), mirror))

    def _hurwitz(self, x: Value, s: int, unit: float) -> Value:
        """``sum (unit / (x + k))^s`` by Euler and Maclaurin, ``x`` positive."""
        steps = _STEPS + s // 2
        total = None
        for k in range(steps):
            term = self.powi(self.div(unit, self.add(x, float(k))), s)
            total = term if total is None else self.add(total, term)
        w = self.reciprocal(self.add(x, float(steps)))
        tail = self.mul(_series(self, self.square(w), remainders(s, 11)), self.square(w))
        inner = self.add(self.add(self.scale(w, 0.5), 1 / (s - 1)), tail)
        return self.add(total, self.mul0(self.powi(self.scale(w, unit), s - 1), self.scale(inner, unit)))  # nothing, of an infinite series

    def _mirror(self, x: Value, n: int) -> Value:
        """The ``n``-th derivative of ``pi cot(pi x)``, a polynomial in the cotangent; of high order by the poles."""
        if n > _HIGH:
            unit, rest = factorial(n)
            r, total = self.sub(x, self.round(x)), None
            near = self.abs(r)
            far = self.sub(1, near)  # on the other side
            for k in range(3):
                one, two = (self.powi(self.div(unit, self.add(v, float(k))), n + 1) for v in (near, far))
                both = self.add(one, two) if n % 2 else self.sub(one, two)
                total = both if total is None else self.add(total, both)
            if n % 2:
                return self.scale(total, -rest)
            total = self.where(self.eq(near, far), 0, total)  # halfway, even where both are infinite
            return self.mul(total, self.where(self.lt(r, 0), -rest, rest))
        sine, cosine = turned(self, x)
        c = self.div(cosine, sine)
        coefficients = cotangents(n)
        out: Any = None
        for a in reversed(coefficients):
            out = float(a) if out is None else self.add(self.mul(c, out), float(a))
        return self.mul(out, self.powi(self._pi(x), n + 1))


def turned(b: Any, x: Value) -> tuple[Value, Value]:
    """Sine and cosine of ``pi x`` but for a common sign, exactly 0 where they are."""
    pi = b.scale(b.atan(b.asarray(1.0, b.dtype(x))), 4.0)
    r = b.sub(x, b.round(x))
    return b.sin(b.mul(r, pi)), b.sin(b.mul(b.sub(0.5, b.abs(r)), pi))


def _series(b: Any, x: Value, coefficients: Sequence[Any]) -> Value:
    """A polynomial by Horner's rule."""
    out: Any = float(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        out = b.add(b.mul(x, out), float(c))
    return out


@cache
def factorial(n: int) -> tuple[float, float]:
    """``u`` and ``r`` with ``n! = u^(n+1) r``: powers of ``u / x`` are in range where ``n! / x^(n+1)`` is."""
    whole = math.factorial(n)
    unit = 1.0 if n <= 8 else math.exp(math.log(whole) / (n + 1))
    return unit, float(whole / Fraction(unit) ** (n + 1))


@cache
def bernoulli(n: int) -> Fraction:
    """The Bernoulli number ``B_n``."""
    if n == 0:
        return Fraction(1)
    return -sum((math.comb(n + 1, k) * bernoulli(k) for k in range(n)), Fraction(0)) / (n + 1)


@cache
def remainders(s: int, n: int) -> tuple[float, ...]:
    """The first coefficients of Euler and Maclaurin's remainder of ``sum 1 / x^s``: ``B_2j / (2j)! s (s+1) ... (s+2j-2)``."""
    rising, terms = Fraction(1), []
    for j in range(1, n + 1):
        rising *= s if j == 1 else (s + 2 * j - 3) * (s + 2 * j - 2)
        terms.append(float(bernoulli(2 * j) * rising / math.factorial(2 * j)))
    return tuple(terms)


@cache
def zeta_less_one(s: int) -> float:
    """``1/2^s + 1/3^s + ...``, by Euler and Maclaurin."""
    n = 20
    near = math.fsum(float(m) ** -s for m in range(2, n))
    tail, rising = n ** (1.0 - s) / (s - 1) + 0.5 * float(n) ** -s, float(s)
    for j in range(1, 8):
        tail += float(bernoulli(2 * j)) / math.factorial(2 * j) * rising * float(n) ** (1 - s - 2 * j)
        rising *= (s + 2 * j - 1) * (s + 2 * j)
    return float(near + tail)


@cache
def cotangents(n: int) -> tuple[int, ...]:
    """Coefficients of the ``n``-th derivative of cot as a polynomial in cot: each is minus the derivative times ``1 + c^2``."""
    if n == 0:
        return (0, 1)
    p = cotangents(n - 1)
    slope = [k * p[k] for k in range(1, len(p))]
    out = [0] * (len(slope) + 2)
    for k, a in enumerate(slope):
        out[k] -= a
        out[k + 2] -= a
    return tuple(out)
