"""Activations in terms of other operations, and their rules. No branch that is not taken overflows."""

import math

from nestgrad.backends.derived.special import Special
from nestgrad.backends.primitives import Value


class Activations(Special):
    """Functions of networks, elementwise."""

    # what is linear in pieces, and its rules

    def above(self, x: Value, y: Value, c: float) -> Value:
        """``x``, and 0 where ``y <= c``."""
        return self.where(self.le(y, c), 0, x)

    def inside(self, x: Value, y: Value, lo: float, hi: float, n: int = 1) -> Value:
        """``x / n`` where ``lo < y < hi``, 0 elsewhere; ``n`` is a positive Python int."""
        taken = self.where(self.logical_and(self.lt(lo, y), self.lt(y, hi)), x, 0)
        return taken if n == 1 else self.per(taken, n)

    def outside(self, x: Value, y: Value, c: float) -> Value:
        """``x``, and 0 where ``-c <= y <= c``."""
        return self.where(self.le(self.abs(y), c), 0, x)

    def leaky(self, x: Value, y: Value, slope: float) -> Value:
        """``x`` where ``y > 0``, ``slope * x`` elsewhere."""
        return self.where(self.gt(y, 0), x, self.scale(x, slope))

    def leaky_relu(self, x: Value, slope: float) -> Value:
        """``x`` where it is positive, ``slope * x`` elsewhere."""
        return self.where(self.gt(x, 0), x, self.scale(x, slope))

    def prelu(self, x: Value, y: Value) -> Value:
        """``x`` where it is positive, ``x * y`` elsewhere."""
        return self.where(self.gt(x, 0), x, self.mul(x, y))

    def hardtanh(self, x: Value, lo: float, hi: float) -> Value:
        """``min(max(x, lo), hi)``."""
        return self.clamp(x, lo, hi)

    def hardsigmoid(self, x: Value) -> Value:
        """``(x + 3) / 6``, brought into [0, 1]."""
        return self.per(self.clamp(self.add(x, 3.0), 0.0, 6.0), 6)

    def threshold(self, x: Value, c: float, value: float) -> Value:
        """``x``, and ``value`` where ``x <= c``."""
        return self.where(self.le(x, c), value, x)

    def hardshrink(self, x: Value, c: float) -> Value:
        """``x``, and 0 where ``-c <= x <= c``."""
        return self.where(self.le(self.abs(x), c), 0, x)

    def softshrink(self, x: Value, c: float) -> Value:
        """``x`` brought nearer to 0 by ``c``, and 0 where ``-c <= x <= c``."""
        return self.sub(x, self.clamp(x, -c, c))

    def huber(self, x: Value, delta: float) -> Value:
        """``x * x / 2`` where ``|x| < delta``, ``delta * (|x| - delta / 2)`` elsewhere."""
        near = self.clamp(x, -delta, delta)
        return self.mul(near, self.sub(x, self.scale(near, 0.5)))

    def hardswish(self, x: Value) -> Value:
        """``x`` times ``hardsigmoid(x)``."""
        return self.per(self.mul(x, self.clamp(self.add(x, 3.0), 0.0, 6.0)), 6)

    def hardswish_vjp(self, x: Value, y: Value) -> Value:
        """``x`` times the derivative of hardswish at ``y``: 0 up to -3, 1 from 3 on, ``y / 3 + 1 / 2`` between."""
        within = self.mul(x, self.add(self.per(y, 3), 0.5))
        return self.where(self.le(y, -3.0), 0, self.where(self.lt(y, 3.0), within, x))

    # what is exponential in one piece

    def elu(self, x: Value, alpha: float, scale: float = 1.0, rate: float = 1.0) -> Value:
        """``scale * x`` where ``x > 0``, ``scale * alpha * (exp(rate * x) - 1)`` elsewhere."""
        below = self.scale(self.expm1(self.scale(self.clamp(x, None, 0.0), rate)), alpha * scale)
        return self.where(self.gt(x, 0), self.scale(x, scale), below)

    def elu_vjp(self, x: Value, y: Value, alpha: float, scale: float = 1.0, rate: float = 1.0) -> Value:
        """``x`` times the derivative of elu at ``y``: ``scale`` where ``y > 0``, ``scale * alpha * rate * exp(rate * y)`` elsewhere."""
        below = self.scale(self.exp(self.scale(self.clamp(y, None, 0.0), rate)), alpha * scale * rate)
        return self.where(self.gt(y, 0), self.scale(x, scale), self.mul(x, below))

    def exp_below(self, x: Value, y: Value, c: float, rate: float) -> Value:
        """``c * x * exp(rate * y)``, and 0 where ``y > 0``."""
        return self.where(self.gt(y, 0), 0, self.scale(self.mul(x, self.exp(self.scale(self.clamp(y, None, 0.0), rate))), c))

    # what is made of the logistic function

    def gated(self, x: Value, y: Value, sign: int) -> Value:
        """``x * sigmoid(sign * y)``; ``sign`` is 1 or -1."""
        return self.mul(x, self.sigmoid(y if sign > 0 else self.neg(y)))

    def sigmoid_vjp(self, x: Value, y: Value) -> Value:
        """``x * s(y) * s(-y)``, with the logistic function ``s``: ``x`` times its derivative at ``y``."""
        return self.mul(x, self.mul(self.sigmoid(y), self.sigmoid(self.neg(y))))

    def sigmoid_curve(self, x: Value, y: Value) -> Value:
        """``x`` times the second derivative of the logistic function at ``y``."""
        return self.mul(self.sigmoid_vjp(x, y), self.tanh(self.scale(y, -0.5)))

    def log_sigmoid(self, x: Value) -> Value:
        """``log(sigmoid(x))``; neither tail overflows or loses digits."""
        return self.neg(self.softplus(self.neg(x)))

    def silu(self, x: Value) -> Value:
        """``x * sigmoid(x)``."""
        return self.mul(x, self.sigmoid(x))

    def silu_vjp(self, x: Value, y: Value) -> Value:
        """``x`` times the derivative of silu at ``y``, ``s(y) (1 + y s(-y))``."""
        return self.mul(x, self.mul(self.sigmoid(y), self.add(self.mul(y, self.sigmoid(self.neg(y))), 1.0)))

    def mish(self, x: Value) -> Value:
        """``x * tanh(softplus(x))``."""
        return self.mul(x, self.tanh(self.softplus(x)))

    def mish_vjp(self, x: Value, y: Value) -> Value:
        """``x`` times the derivative of mish at ``y``."""
        # tanh(softplus(y)) = s (1 + q) / (1 + q^2) with s = s(y) and q = s(-y), and its derivative is s (2 q / (1 + q^2))^2
        s, q = self.sigmoid(y), self.sigmoid(self.neg(y))
        r = self.reciprocal(self.add(self.square(q), 1.0))
        t = self.mul(self.mul(s, self.add(q, 1.0)), r)
        slope = self.mul(self.scale(s, 4.0), self.square(self.mul(q, r)))
        return self.mul(x, self.add(t, self.mul(y, slope)))

    def bce_logits(self, x: Value, y: Value) -> Value:
        """``-y * log(s(x)) - (1 - y) * log(s(-x))``, with the logistic function ``s``."""
        return self.add(self.softplus(self.neg(self.abs(x))), self.mul(x, self.sub(self.where(self.gt(x, 0), 1.0, 0.0), y)))

    def bce_logits_vjp(self, x: Value, y: Value, z: Value) -> Value:
        """``x * (s(y) - z)``, with the logistic function ``s``; where that is near 0 it keeps its digits."""
        return self.mul(x, self.sub(self.mul(self.sigmoid(y), self.sub(1, z)), self.mul(self.sigmoid(self.neg(y)), z)))

    # the loss of probabilities

    def log_least(self, x: Value, rest: bool) -> Value:
        """The greater of ``log(x)`` and -100; with ``rest`` of ``log(1 - x)``."""
        low = self._least(x, rest)
        inside = self.where(low, 0.5, x)
        found = self.log1p(self.neg(inside)) if rest else self.log(inside)
        return self.where(low, -100.0, found)

    def over(self, x: Value, y: Value, rest: bool) -> Value:
        """``x / y``, with ``rest`` ``x / (1 - y)``; 0 where ``log_least`` is -100."""
        low = self._least(y, rest)
        inside = self.where(low, 0.5, y)
        return self.where(low, 0, self.div(x, self.sub(1.0, inside) if rest else inside))

    def _least(self, x: Value, rest: bool) -> Value:
        return self.eq(x, 1.0) if rest else self.logical_and(self.le(0.0, x), self.le(x, math.exp(-100.0)))

    def bce(self, x: Value, y: Value) -> Value:
        """``-y * log(x) - (1 - y) * log(1 - x)``, of which no logarithm is below -100."""
        return self.neg(self.add(self.mul(y, self.log_least(x, False)), self.mul(self.sub(1, y), self.log_least(x, True))))

    def bce_vjp(self, x: Value, y: Value, z: Value) -> Value:
        """``x`` times the derivative of bce at a probability ``y`` for the target ``z``."""
        return self.mul(x, self.sub(self.over(self.sub(1, z), y, True), self.over(z, y, False)))

    # what is made of the normal distribution

    def gelu(self, x: Value) -> Value:
        """``x * ndtr(x)``."""
        return self.mul(x, self.ndtr(x))

    def gelu_vjp(self, x: Value, y: Value) -> Value:
        """``x`` times the derivative of gelu at ``y``."""
        return self.mul(x, self.add(self.ndtr(y), self.mul(y, self.bell(y))))

    def gelu_curve(self, x: Value, y: Value) -> Value:
        """``x`` times the second derivative of gelu at ``y``."""
        return self.mul(self.mul(x, self.bell(y)), self.sub(2.0, self.square(y)))

    def gelu_tanh(self, x: Value, k: float, a: float) -> Value:
        """``x * (1 + tanh(k * (x + a * x**3))) / 2``, of which neither tail loses digits."""
        return self.mul(x, self.sigmoid(self.mul(x, self.add(self.scale(self.square(x), 2 * k * a), 2 * k))))

    def gelu_tanh_vjp(self, x: Value, y: Value, k: float, a: float) -> Value:
        """``x`` times the derivative of gelu_tanh at ``y``."""
        square = self.square(y)
        z = self.mul(y, self.add(self.scale(square, 2 * k * a), 2 * k))
        rate = self.add(self.scale(square, 6 * k * a), 2 * k)
        return self.mul(x, self.mul(self.sigmoid(z), self.add(self.mul(self.mul(y, rate), self.sigmoid(self.neg(z))), 1.0)))

    # others

    def tanhshrink(self, x: Value) -> Value:
        """``x - tanh(x)``."""
        return self.sub(x, self.tanh(x))

    def softsign(self, x: Value) -> Value:
        """``x / (1 + |x|)``."""
        return self.div(x, self.add(self.abs(x), 1.0))
