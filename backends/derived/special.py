"""The error function's family and sinc in terms of the required operations.

Scaled far tails are continued fractions, in which nothing cancels: with ``h(u, k)`` the integral of ``t^k exp(-u t - t^2/2)`` over
``t > 0``, the ratios ``h(u, k) / h(u, k - 1) = k / (u + h(u, k + 1) / h(u, k))`` are taken from a high ``k`` down (Gautschi,
"Computational aspects of three-term recurrence relations", SIAM Review 1967). How many there are is enough for double precision; a backend
with more digits has its own methods.
"""

import math
from typing import Any

from nestgrad.backends.derived.elementary import Elementary
from nestgrad.backends.primitives import Value

_LEVELS = 80
_TURN = 1.25  # from here on a tail
_LEFT = -3.0


class Special(Elementary):
    """Special functions, elementwise, to double precision."""

    # sinc

    def sinc(self, x: Value) -> Value:
        """``sin(pi x) / (pi x)``, and 1 at 0."""
        return self.sinc_slope(x, 0)

    def sinc_slope(self, x: Value, n: int) -> Value:
        """The ``n``-th derivative of sinc."""
        # with f(z) = sin(z) / z: z f^(n) + n f^(n-1) = sin^(n)(z), upwards for large z, and the power series for small z
        pi = self._pi(x)
        z = self.mul(x, pi)
        small = self.lt(self.abs(z), 1.0 + n / 2)
        far = sinc_far(self, self.where(small, 1, x), n)
        return self.mul(self.where(small, sinc_near(self, self.where(small, z, 0), n), far), self.powi(pi, n))

    # the error function

    def erfc(self, x: Value) -> Value:
        """``1 - erf(x)``, accurate to the right, where it is small."""
        tail = self.lt(_TURN, x)
        far = self.where(tail, x, _TURN)
        scaled = self.div(self.gauss(far), self.add(self.scale(far, 2.0), tail_ratios(self, far, 1)[0]))
        return self.where(tail, scaled, self.sub(1, self.erf(self.where(tail, 0, x))))

    def erfcx(self, x: Value) -> Value:
        """``exp(x * x) * erfc(x)``, of which the far right does not underflow."""
        return self.erfcx_slope(x, 0)

    def erfcx_slope(self, x: Value, n: int) -> Value:
        """The ``n``-th derivative of erfcx."""
        # E' = 2 x E - c and E^(k+1) = 2 x E^(k) + 2 k E^(k-1), where nothing cancels to the left; by ratios to the right
        tail = self.lt(_TURN, x)
        far, near = self.where(tail, x, _TURN), self.where(tail, _TURN, x)
        c = self.gauss(self.asarray(0.0, self.dtype(x)))
        right = self.div(self.where(tail, c, 1), self.add(self.scale(far, 2.0), tail_ratios(self, far, 1)[0]))
        for ratio in tail_ratios(self, far, n) if n else []:
            right = self.neg(self.mul(right, ratio))
        before = self.where(tail, 1, self.mul(self.exp(self.square(near)), self.sub(1, self.erf(near))))
        left = before
        for k in range(n):
            step = self.scale(self.mul(near, left), 2.0)
            left, before = (self.sub(step, c) if k == 0 else self.add(step, self.scale(before, 2.0 * k))), left
        return self.where(tail, right, left)

    def erfinv(self, x: Value) -> Value:
        """The inverse of erf: infinite at 1 and -1, NaN outside."""
        # Winitzki, "A handy approximation for the error function and its inverse" (2008), then Halley's steps on the tail
        # 1 - |x|, which the subtraction gives without rounding near 1
        size = self.abs(x)
        inside = self.lt(size, 1)
        s = self.where(inside, size, 0)
        rest = self.sub(1, s)
        l = self.add(self.log(rest), self.log1p(s))
        a = self.add(self.scale(l, 0.5), 2 / (math.pi * 0.147))
        y = self.sqrt(self.sub(self.sqrt(self.sub(self.square(a), self.scale(l, 1 / 0.147))), a))
        central = self.lt(s, 0.5)
        for _ in range(4):
            over = self.where(central, self.sub(self.erf(y), s), self.sub(rest, self.erfc(y)))
            step = self.div(over, self.gauss(y))
            y = self.sub(y, self.div(step, self.add(self.mul(y, step), 1)))
        y = self.where(inside, y, self.where(self.eq(size, 1), math.inf, math.nan))
        return self.where(self.lt(x, 0), self.neg(y), self.where(self.eq(x, 0), x, y))

    def widening(self, x: Value) -> Value:
        """``sqrt(pi) / 2 * exp(x * x)``, the derivative of erfinv by its answer."""
        return self.mul(self.exp(self.square(x)), self.scale(self.sqrt(self._pi(x)), 0.5))

    # the normal distribution

    def bell(self, x: Value) -> Value:
        """``exp(-x * x / 2) / sqrt(2 pi)``, the density of the standard normal distribution."""
        return self.div(self.exp(self.scale(self.square(x), -0.5)), self.sqrt(self.scale(self._pi(x), 2.0)))

    def ndtr(self, x: Value) -> Value:
        """The standard normal distribution function, accurate to the left, where it is small."""
        return self.scale(self.erfc(self._over_root_two(self.neg(x))), 0.5)

    def log_ndtr(self, x: Value) -> Value:
        """The logarithm of ndtr, accurate in both tails."""
        left = self.lt(x, -1)
        t, s = self.where(left, x, -1), self.where(left, 0, x)
        scaled = self.scale(self.erfcx(self._over_root_two(self.neg(t))), 0.5)
        far = self.sub(self.log(scaled), self.scale(self.square(t), 0.5))
        return self.where(left, far, self.log1p(self.scale(self.erfc(self._over_root_two(s)), -0.5)))

    def log_ndtr_slope(self, x: Value, n: int) -> Value:
        """The ``n``-th derivative of log_ndtr, from 1 on."""
        left = self.lt(x, _LEFT)
        return self.where(left, mills_left(self, self.where(left, x, _LEFT), n), self._mills(self.where(left, 0, x), n))

    def _mills(self, x: Value, n: int) -> Value:
        scaled = self.erfcx(self._over_root_two(self.neg(x)))
        return mills_right(self, x, self.div(self.sqrt(self.div(2.0, self._pi(x))), scaled), n)

    def _over_root_two(self, x: Value) -> Value:
        return self.div(x, self.sqrt(self.asarray(2.0, self.dtype(x))))


def sinc_near(b: Any, z: Value, n: int) -> Value:
    """The ``n``-th derivative of ``sin(z) / z`` by its power series, for ``|z|`` up to about ``1 + n/2``."""
    # the coefficient of z^m is (-1)^((m+n)/2) / (m! (m+n+1)) where m + n is even
    last = n % 2 + 2 * (8 + n)
    square = b.square(z)
    total = None
    for m in range(last, -1, -2):
        c = (-1) ** ((m + n) // 2) / (math.factorial(m) * (m + n + 1))
        total = b.add(b.mul(square, 0), c) if total is None else b.add(b.mul(total, square), c)
    return b.mul(total, z) if n % 2 else total


def sinc_far(b: Any, x: Value, n: int) -> Value:
    """The ``n``-th derivative of ``sin(z) / z`` at ``z = pi x``, away from 0."""
    pi = b.scale(b.atan(b.asarray(1.0, b.dtype(x))), 4.0)
    z = b.mul(x, pi)
    turned = b.mul(b.sub(x, b.scale(b.round(b.scale(x, 0.5)), 2.0)), pi)  # exact, so that far out no digits are lost
    s, c = b.sin(turned), b.cos(turned)
    waves = (s, c, b.neg(s), b.neg(c))
    out = b.div(s, z)
    for k in range(1, n + 1):
        out = b.div(b.sub(waves[k % 4], b.scale(out, float(k))), z)
    return out


def tail_ratios(b: Any, x: Value, n: int) -> list[Value]:
    """For ``k = 1 .. n`` the ratio ``2 k / (2 x + ratio(k + 1))`` of a derivative of erfcx to the one before, but for the sign."""
    double = b.scale(x, 2.0)
    top = _LEVELS + n
    ratio = b.div(2.0 * top, b.add(b.sqrt(b.add(b.square(x), 2.0 * top)), x))  # what it is where neighbours hardly differ
    found = []
    for k in range(top, 0, -1):
        ratio = b.div(2.0 * k, b.add(double, ratio))
        if k <= n:
            found.append(ratio)
    return found[::-1]


def mills_left(b: Any, x: Value, n: int) -> Value:
    """The ``n``-th derivative of log_ndtr for ``x < -3``.

    It is the ``n``-th cumulant of the density ``exp(x t - t^2/2)`` on ``t > 0``, less the derivative of ``x^2/2``.
    """
    top = 48 + n
    u = b.neg(x)
    ratio = b.div(2.0 * top, b.add(b.sqrt(b.add(b.square(u), 4.0 * top)), u))
    ratios = []
    for k in range(top, 0, -1):
        ratio = b.div(float(k), b.add(u, ratio))
        if k <= n:
            ratios.append(ratio)
    moments: list[Value] = []
    for ratio in ratios[::-1]:
        moments.append(ratio if not moments else b.mul(moments[-1], ratio))
    cumulants: list[Value] = []
    for k in range(1, n + 1):
        value = moments[k - 1]
        for j in range(1, k):
            value = b.sub(value, b.scale(b.mul(cumulants[j - 1], moments[k - j - 1]), float(math.comb(k - 1, j - 1))))
        cumulants.append(value)
    return b.add(cumulants[-1], u) if n == 1 else b.sub(cumulants[-1], 1.0) if n == 2 else cumulants[-1]


def mills_right(b: Any, x: Value, d: Value, n: int) -> Value:
    """The ``n``-th derivative of log_ndtr for ``x`` from -3 on, whose first is ``d``: ``d' = -d (x + d)``."""
    gaps, slopes = [b.add(x, d)] if n > 1 else [], [d]
    for k in range(1, n):
        total = None
        for j in range(k):
            share = b.scale(b.mul(slopes[j], gaps[k - 1 - j]), -float(math.comb(k - 1, j)))
            total = share if total is None else b.add(total, share)
        slopes.append(total)
        gaps.append(b.add(total, 1.0) if k == 1 else total)
    return slopes[-1]
