"""Functions of numbers in terms of the required ones."""

import math

from nestgrad.backends.primitives import Primitives, Value


class Elementary(Primitives):
    """Functions of numbers, elementwise."""

    def sub(self, x: Value, y: Value) -> Value:
        """``x - y``."""
        return self.add(x, -y if isinstance(y, (int, float)) else self.mul(y, -1))

    def neg(self, x: Value) -> Value:
        """``-x``."""
        return self.mul(x, -1)

    def reciprocal(self, x: Value) -> Value:
        """``1 / x``."""
        return self.div(1.0, x)

    def square(self, x: Value) -> Value:
        """``x * x``."""
        return self.mul(x, x)

    def powi(self, x: Value, n: int) -> Value:
        """``x ** n`` for a Python int, by multiplication; ``0 ** 0`` is 1 and a negative ``n`` gives a float."""
        if n < 0:
            return self.reciprocal(self.powi(x, -n))
        if n == 0:
            return self.broadcast_to(self.asarray(1, self.dtype(x)), self.shape(x))
        power = None
        while True:
            if n & 1:
                power = x if power is None else self.mul(power, x)
            n >>= 1
            if not n:
                return power
            x = self.square(x)

    def powf(self, x: Value, n: float) -> Value:
        """``x ** n`` for a Python float."""
        return self.pow(x, n)

    def powlog(self, x: Value, y: Value, n: int) -> Value:
        """``x ** y * log(x) ** n`` for a Python int ``n`` from 0 on, and 0 where ``x ** y`` is 0."""
        power = self.pow(x, y)
        if n == 0:
            return power
        if isinstance(x, (int, float)):
            return self.mul0(power, (math.log(x) if x > 0 else -math.inf if x == 0 else math.nan) ** n)
        dtype = self.dtype(power)
        return self.mul0(power, self.powi(self.log(x if self.dtype(x) == dtype else self.cast(x, dtype)), n))

    def rsqrt(self, x: Value) -> Value:
        """``1 / sqrt(x)``."""
        return self.reciprocal(self.sqrt(x))

    def expm1(self, x: Value) -> Value:
        """``exp(x) - 1``, accurate near 0."""
        # (u - 1) x / log u: the rounding of u cancels.
        # Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 1.14.1.
        small = self.lt(self.abs(x), 1)
        near = self.where(small, x, 1)
        u = self.exp(near)
        exact = self.eq(u, 1)
        quotient = self.div(self.mul(self.sub(u, 1), near), self.where(exact, 1, self.log(u)))
        return self.where(small, self.where(exact, x, quotient), self.sub(self.exp(x), 1))

    def log1p(self, x: Value) -> Value:
        """``log(1 + x)``, accurate near 0."""
        small = self.lt(self.abs(x), 1)
        near = self.where(small, x, 1)
        u = self.add(near, 1)
        exact = self.eq(u, 1)
        quotient = self.div(self.mul(self.log(u), near), self.where(exact, 1, self.sub(u, 1)))
        return self.where(small, self.where(exact, x, quotient), self.log(self.add(x, 1)))

    def tan(self, x: Value) -> Value:
        """The tangent."""
        return self.div(self.sin(x), self.cos(x))

    def asin(self, x: Value) -> Value:
        """The inverse sine: NaN outside of [-1, 1]."""
        # 1 - x*x would lose digits near 1; (1 - x)(1 + x) does not. The half angle has no pole at 1.
        cosine = self.sqrt(self.mul(self.sub(1, x), self.add(1, x)))
        return self.mul(self.atan(self.div(x, self.add(cosine, 1))), 2)

    def acos(self, x: Value) -> Value:
        """The inverse cosine, between 0 and pi: NaN outside of [-1, 1]."""
        size = self.abs(x)
        angle = self.mul(self.atan(self.sqrt(self.div(self.sub(1, size), self.add(1, size)))), 2)
        return self.where(self.lt(x, 0), self.sub(self._pi(angle), angle), angle)

    def _pi(self, x: Value) -> Value:
        return self.mul(self.atan(self.asarray(1.0, self.dtype(x))), 4)

    def secant(self, x: Value) -> Value:
        """``1 / sqrt(1 - x * x)``, accurate near 1 and -1, where it is infinite."""
        return self.rsqrt(self.mul(self.sub(1, x), self.add(1, x)))

    def sinh(self, x: Value) -> Value:
        """The hyperbolic sine."""
        return self.mul(self.sub(self.expm1(x), self.expm1(self.neg(x))), 0.5)

    def cosh(self, x: Value) -> Value:
        """The hyperbolic cosine."""
        return self.mul(self.add(self.exp(x), self.exp(self.neg(x))), 0.5)

    def asinh(self, x: Value) -> Value:
        """The inverse hyperbolic sine."""
        # log1p(a + a a / (1 + sqrt(1 + a a))), and with r = 1 / a where a a would overflow.
        a = self.abs(x)
        s, r = self.minimum(a, 1), self.reciprocal(self.maximum(a, 1))
        near = self.div(self.square(s), self.add(self.sqrt(self.add(self.square(s), 1)), 1))
        far = self.div(a, self.add(r, self.sqrt(self.add(self.square(r), 1))))
        size = self.log1p(self.add(a, self.where(self.lt(a, 1), near, far)))
        return self.where(self.lt(x, 0), self.neg(size), self.where(self.eq(x, 0), x, size))

    def acosh(self, x: Value) -> Value:
        """The inverse hyperbolic cosine: NaN below 1."""
        t = self.sub(x, 1)
        return self.log1p(self.add(t, self.mul(self.sqrt(t), self.sqrt(self.add(t, 2)))))

    def atanh(self, x: Value) -> Value:
        """The inverse hyperbolic tangent: infinite at 1 and -1."""
        return self.mul(self.sub(self.log1p(x), self.log1p(self.neg(x))), 0.5)

    def gauss(self, x: Value) -> Value:
        """``2 exp(-x*x) / sqrt(pi)``, the derivative of ``erf``."""
        return self.div(self.mul(self.exp(self.neg(self.square(x))), 2), self.sqrt(self._pi(x)))

    def sigmoid(self, x: Value) -> Value:
        """``1 / (1 + exp(-x))``; neither tail overflows or loses digits."""
        e = self.exp(self.neg(self.abs(x)))
        return self.div(self.where(self.lt(x, 0), e, 1), self.add(e, 1))

    def softplus(self, x: Value) -> Value:
        """``log(1 + exp(x))``; neither tail overflows or loses digits."""
        return self.add(self.maximum(x, 0), self.log1p(self.exp(self.neg(self.abs(x)))))

    def relu(self, x: Value) -> Value:
        """``max(x, 0)``."""
        return self.maximum(x, 0)

    def maximum(self, x: Value, y: Value) -> Value:
        """The greater of the two, NaN if either is."""
        return self.where(self.logical_or(self.ne(x, x), self.lt(y, x)), x, y)

    def minimum(self, x: Value, y: Value) -> Value:
        """The smaller of the two, NaN if either is."""
        return self.where(self.logical_or(self.ne(x, x), self.lt(x, y)), x, y)

    def clamp(self, x: Value, lo: float | None = None, hi: float | None = None) -> Value:
        """``min(max(x, lo), hi)`` for Python numbers; None means no bound."""
        x = x if lo is None else self.maximum(x, lo)
        return x if hi is None else self.minimum(x, hi)

    def sign(self, x: Value) -> Value:
        """-1, 0 or 1, and NaN for NaN."""
        return self.where(self.lt(0, x), 1, self.where(self.lt(x, 0), -1, x))

    def ceil(self, x: Value) -> Value:
        """The smallest whole number that is not below ``x``."""
        return self.neg(self.floor(self.neg(x)))

    def round(self, x: Value) -> Value:
        """The nearest whole number, halves to the even one."""
        low = self.floor(x)
        high = self.add(low, 1)
        rest = self.sub(x, low)
        even = self.eq(self.mul(self.floor(self.mul(low, 0.5)), 2), low)
        return self.where(
            self.logical_or(self.lt(rest, 0.5), self.logical_and(self.eq(rest, 0.5), even)),
            low,
            self.where(self.isfinite(x), high, x),
        )

    def ne(self, x: Value, y: Value) -> Value:
        """``x != y``; NaN differs from everything."""
        return self.logical_not(self.eq(x, y))

    def le(self, x: Value, y: Value) -> Value:
        """``x <= y``."""
        return self.logical_or(self.lt(x, y), self.eq(x, y))

    def gt(self, x: Value, y: Value) -> Value:
        """``x > y``."""
        return self.lt(y, x)

    def ge(self, x: Value, y: Value) -> Value:
        """``x >= y``."""
        return self.le(y, x)

    def logical_or(self, x: Value, y: Value) -> Value:
        """True where not both are False or zero."""
        return self.logical_not(self.logical_and(self.logical_not(x), self.logical_not(y)))

    def isnan(self, x: Value) -> Value:
        """True where ``x`` is NaN."""
        return self.ne(x, x)

    def isfinite(self, x: Value) -> Value:
        """True where ``x`` is neither infinite nor NaN."""
        return self.lt(self.abs(x), math.inf)

    def mul0(self, x: Value, y: Value) -> Value:
        """``x * y``, and 0 where ``x`` is 0, whatever ``y`` is: infinite and NaN too."""
        if isinstance(x, (int, float)):
            return self.mul(x, y) if x else self.mul(self.powi(y, 0), x)
        return self.where(self.eq(x, 0), 0, self.mul(x, y))

    def div0(self, x: Value, y: Value) -> Value:
        """``x / y``, and 0 where ``x`` is 0, whatever ``y`` is: 0 and NaN too."""
        if isinstance(x, (int, float)):
            return self.div(x, y) if x else self.div(x, self.powi(y, 0))
        return self.where(self.eq(x, 0), 0, self.div(x, y))

    def mul00(self, x: Value, y: Value) -> Value:
        """``x * y``, and 0 where either is 0, whatever the other is."""
        if isinstance(y, (int, float)):
            return self.mul0(x, y) if y else self.mul0(y, x)
        if isinstance(x, (int, float)):
            return self.mul0(y, x) if x else self.mul0(x, y)
        return self.where(self.eq(y, 0), 0, self.mul0(x, y))

    def quotient00(self, x: Value, y: Value, z: Value) -> Value:
        """``-x * y / z``, and 0 where ``x`` or ``y`` is 0, whatever the others are."""
        return self.neg(self.div0(self.mul00(x, y), z))

    def power0(self, x: Value, y: Value, n: int, c: float) -> Value:
        """``c * x * y ** n`` for a Python int ``n``, and 0 where ``x`` is 0, whatever ``y`` is: 0, infinite and NaN too."""
        out = self.scale(x if n else self.mul0(x, self.powi(y, 0)), c)
        for _ in range(abs(n)):  # never y ** n, whose own derivatives would be infinite where x is 0
            out = self.mul0(out, y) if n > 0 else self.div0(out, y)
        return out

    def scale(self, x: Value, c: float) -> Value:
        """``x`` times a Python number."""
        return self.mul(x, c)

    def per(self, x: Value, n: int) -> Value:
        """``x`` divided by a positive Python int."""
        return self.div(x, n)

    def triple(self, x: Value, y: Value, z: Value, c: float) -> Value:
        """``c * x * y * z``; ``c`` is a Python number."""
        return self.scale(self.mul(self.mul(x, y), z), c)

    def mul_add(self, x: Value, y: Value, z: Value) -> Value:
        """``x * y + z``."""
        return self.add(self.mul(x, y), z)

    def tanh_vjp(self, g: Value, y: Value) -> Value:
        """``g * (1 - y * y)``, the cotangent of tanh whose answer is ``y``."""
        return self.mul(g, self.sub(1, self.square(y)))
