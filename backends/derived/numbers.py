"""Roots, logarithms, angles and the parts of numbers in terms of the required operations."""

import math
import sys

from nestgrad.backends.derived.elementary import Elementary
from nestgrad.backends.primitives import Value

_LARGEST = {"bfloat16": (2.0 - 2.0**-7) * 2.0**127, "float16": 65504.0, "float32": (2.0 - 2.0**-23) * 2.0**127}


class Numbers(Elementary):
    """Functions of numbers beyond the elementary ones, elementwise."""

    # roots, exponentials and logarithms

    def cbrt(self, x: Value) -> Value:
        """The real cube root."""
        size = self.abs(x)
        plain = self.logical_and(self.lt(0, size), self.isfinite(size))
        safe = self.where(plain, size, 1)
        root = self.exp(self.div(self.log(safe), 3))
        # a step of Newton's: the logarithm of a large number has lost digits
        root = self.sub(root, self.div(self.sub(root, self.div(safe, self.square(root))), 3))
        root = self.where(plain, root, size)
        return self.where(self.lt(x, 0), self.neg(root), root)

    def exp2(self, x: Value) -> Value:
        """``2 ** x``."""
        return self.pow(2.0, x)

    def log2(self, x: Value) -> Value:
        """The logarithm of base 2: -inf at 0, NaN below."""
        return self.times_log(self.log(x), 2, -1)

    def log10(self, x: Value) -> Value:
        """The logarithm of base 10: -inf at 0, NaN below."""
        return self.times_log(self.log(x), 10, -1)

    def times_log(self, x: Value, n: int, k: int) -> Value:
        """``x * log(n) ** k`` for Python ints, ``k`` being 1 or -1."""
        size = self.log(self.asarray(float(n), self.dtype(x)))
        return self.mul(x, size) if k > 0 else self.div(x, size)

    def apart(self, x: Value, y: Value) -> Value:
        """``x - y``, and 0 where they are equal, infinite ones too."""
        return self.where(self.eq(x, y), 0, self.sub(x, y))

    def logaddexp(self, x: Value, y: Value) -> Value:
        """``log(exp(x) + exp(y))``, without overflow."""
        return self.add(self.maximum(x, y), self.log1p(self.exp(self.neg(self.abs(self.apart(x, y))))))

    def logaddexp2(self, x: Value, y: Value) -> Value:
        """``log2(2 ** x + 2 ** y)``, without overflow."""
        rest = self.log1p(self.exp2(self.neg(self.abs(self.apart(x, y)))))
        return self.add(self.maximum(x, y), self.times_log(rest, 2, -1))

    def xlogy(self, x: Value, y: Value) -> Value:
        """``x * log(y)``, and 0 where ``x`` is 0, unless ``y`` is NaN."""
        if isinstance(y, (int, float)):
            y = self.asarray(float(y), self.dtype(x))
        return self.where(self.logical_and(self.eq(x, 0), self.eq(y, y)), 0, self.mul(x, self.log(y)))

    def xlog1py(self, x: Value, y: Value) -> Value:
        """``x * log(1 + y)``, accurate near ``y = 0``, and 0 where ``x`` is 0, unless ``y`` is NaN."""
        if isinstance(y, (int, float)):
            y = self.asarray(float(y), self.dtype(x))
        return self.where(self.logical_and(self.eq(x, 0), self.eq(y, y)), 0, self.mul(x, self.log1p(y)))

    # the plane

    def hypot(self, x: Value, y: Value) -> Value:
        """``sqrt(x * x + y * y)``, without overflow."""
        x, y = self._sizes(x, y)
        large, small = self.maximum(x, y), self.minimum(x, y)
        plain = self.logical_and(self.lt(0, large), self.lt(large, math.inf))
        ratio = self.div(self.where(plain, small, 0), self.where(plain, large, 1))
        out = self.mul(large, self.sqrt(self.add(self.square(ratio), 1)))
        return self.where(self.logical_or(self.eq(x, math.inf), self.eq(y, math.inf)), math.inf, out)

    def _sizes(self, x: Value, y: Value) -> tuple[Value, Value]:
        x = abs(x) if isinstance(x, (int, float)) else self.abs(x)
        return x, abs(y) if isinstance(y, (int, float)) else self.abs(y)

    def atan2(self, x: Value, y: Value) -> Value:
        """The angle between -pi and pi of the point with ordinate ``x`` and abscissa ``y``."""
        if isinstance(x, (int, float)):
            x = self.asarray(float(x), self.dtype(y))
        if isinstance(y, (int, float)):
            y = self.asarray(float(y), self.dtype(x))
        a, b = self.abs(x), self.abs(y)
        zero = self.eq(a, b)  # both of them 0, or infinite, or on a diagonal, for which the quotient is 1
        angle = self.atan(self.where(zero, self.where(self.eq(a, 0), 0, 1), self.div(a, self.where(zero, 1, b))))
        pi = self._pi(angle)
        angle = self.where(self.signbit(y), self.sub(pi, angle), angle)
        angle = self.where(self.logical_or(self.isnan(x), self.isnan(y)), math.nan, angle)
        return self.where(self.signbit(x), self.neg(angle), angle)

    def direction(self, x: Value, y: Value) -> Value:
        """``x / y`` for ``|x| <= y``, and 0 where both are 0."""
        return self.div0(x, y)

    def pole(self, x: Value, y: Value, n: int, part: int) -> Value:
        """The real part of ``1 / (y + i x)^n``, or the imaginary one for ``part = 1``; NaN at the origin."""
        size = self.hypot(x, y)
        re, im = self.div(self.div(y, size), size), self.neg(self.div(self.div(x, size), size))
        u, v = re, im
        for _ in range(n - 1):
            u, v = self.sub(self.mul(u, re), self.mul(v, im)), self.add(self.mul(u, im), self.mul(v, re))
        return v if part else u

    def deg2rad(self, x: Value) -> Value:
        """Degrees in radians."""
        return self.mul(x, self.div(self._pi(x), 180))

    def rad2deg(self, x: Value) -> Value:
        """Radians in degrees."""
        return self.mul(x, self.div(180, self._pi(x)))

    # parts of numbers

    def trunc(self, x: Value) -> Value:
        """The nearest whole number towards zero."""
        return self.where(self.lt(x, 0), self.ceil(x), self.floor(x))

    def frac(self, x: Value) -> Value:
        """What ``trunc`` leaves, with the sign of ``x``."""
        return self.sub(x, self.trunc(x))

    def floor_divide(self, x: Value, y: Value) -> Value:
        """The greatest whole number that is not above ``x / y``, in the dtype of the operands; NaN where ``x`` is infinite."""
        quotient = self.div(x, y)
        down = self.floor(quotient)
        # the division may have rounded up to the next whole number, or up to 0
        rest = self.sub(x, self.mul(down, y))
        against = self.ne(self._is_negative(x), self._is_negative(y))
        over = self.logical_or(
            self.logical_and(self.ne(rest, 0), self.ne(self.lt(rest, 0), self._is_negative(y))),
            self.logical_and(self.eq(quotient, 0), self.logical_and(against, self.ne(x, 0))),
        )
        down = self.where(over, self.sub(down, 1), down)
        if not self._any_float(x, y):
            return self.cast(down, self.dtype(self.add(x, y)))
        return self.where(self.eq(self._sizes(x, y)[0], math.inf), math.nan, down)

    def _floats(self, x: Value) -> bool:
        name = str(self.dtype(x))
        return "int" not in name and "bool" not in name

    def remainder(self, x: Value, y: Value) -> Value:
        """``x - y * floor(x / y)``, with the sign of ``y``."""
        rest = self.fmod(x, y)
        opposite = self.logical_and(self.ne(rest, 0), self.ne(self.lt(rest, 0), self._is_negative(y)))
        return self.where(opposite, self.add(rest, y), rest)

    def _is_negative(self, y: Value) -> Value:
        return y < 0 if isinstance(y, (int, float)) else self.lt(y, 0)

    def fmod(self, x: Value, y: Value) -> Value:
        """``x - y * trunc(x / y)``, with the sign of ``x``; floats lose the digits that the whole quotient has."""
        size = self.floor_divide(*self._sizes(x, y))
        a, b = self._sizes(x, y)
        rest = self.sub(a, self.mul(size, b))
        rest = self.where(self.logical_and(self.lt(a, math.inf), self.eq(b, math.inf)), a, rest) if self._any_float(x, y) else rest
        negative = self._is_negative(x)
        return self.where(negative, self.neg(rest), rest)

    def _any_float(self, x: Value, y: Value) -> bool:
        return any(isinstance(v, float) or (not isinstance(v, int) and self._floats(v)) for v in (x, y))

    def copysign(self, x: Value, y: Value) -> Value:
        """The size of ``x`` with the sign of ``y``, that of a zero too."""
        size, _ = self._sizes(x, 0)
        negative = math.copysign(1.0, y) < 0 if isinstance(y, (int, float)) else self.signbit(y)
        if isinstance(negative, bool):
            return self.neg(size) if negative else size
        minus = -size if isinstance(size, (int, float)) else self.neg(size)
        if isinstance(size, (int, float)):
            size, minus = self.asarray(float(size), self.dtype(y)), self.asarray(float(minus), self.dtype(y))
        return self.where(negative, minus, size)

    def heaviside(self, x: Value, y: Value) -> Value:
        """0 where ``x`` is negative, 1 where it is positive, ``y`` where it is 0, and NaN for NaN."""
        step = self.where(self.lt(x, 0), 0.0, self.where(self.lt(0, x), 1.0, x))
        return self.where(self.eq(x, 0), y, step)

    def signbit(self, x: Value) -> Value:
        """True where ``x`` is negative, the zero that has a sign too."""
        if not self._floats(x):
            return self.lt(x, 0)
        zero = self.eq(x, 0)
        return self.lt(self.where(zero, self.div(1, self.where(zero, x, 1)), x), 0)

    def isinf(self, x: Value) -> Value:
        """True where ``x`` is infinite."""
        return self.eq(self.abs(x), math.inf)

    def isposinf(self, x: Value) -> Value:
        """True where ``x`` is positive infinity."""
        return self.eq(x, math.inf)

    def isneginf(self, x: Value) -> Value:
        """True where ``x`` is negative infinity."""
        return self.eq(x, -math.inf)

    def nan_to_num(self, x: Value, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Value:
        """``x`` with other numbers for NaN and infinities; None stands for the largest and smallest finite number of the dtype.

        Of a dtype whose name is not known that is float64's.
        """
        name = str(self.dtype(x))
        largest = next((size for known, size in _LARGEST.items() if known in name), sys.float_info.max)
        x = self.where(self.ne(x, x), nan, x)
        x = self.where(self.eq(x, math.inf), largest if posinf is None else posinf, x)
        return self.where(self.eq(x, -math.inf), -largest if neginf is None else neginf, x)

    def logical_xor(self, x: Value, y: Value) -> Value:
        """True where one of the two is False or zero, and the other is not."""
        return self.ne(self.logical_not(x), self.logical_not(y))
