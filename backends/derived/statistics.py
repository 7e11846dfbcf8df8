"""Spread, and norms of any power, in terms of the required operations."""

import math

from nestgrad.backends.derived.arrays import Arrays
from nestgrad.backends.primitives import Value


class Statistics(Arrays):
    """What sums powers."""

    def std(self, x: Value, axes: tuple[int, ...], correction: float, keepdims: bool = False) -> Value:
        """The root of the sum of squared deviations from the mean over ``axes``, over ``n - correction``; NaN if that is not above 0."""
        left = math.prod(self.shape(x)[k] for k in axes) - correction
        if left <= 0:
            return self.scale(self.sum(x, axes, keepdims), math.nan)
        return self.sqrt(self.div(self.sum(self.square(self.sub(x, self.mean(x, axes, True))), axes, keepdims), left))

    def abspow(self, x: Value, p: float, odd: bool) -> Value:
        """``|x|**p``, with the sign of ``x`` if ``odd``; to the power 0 that is 1, and the sign itself."""
        size = self.abs(x)
        power = self.powi(size, int(p)) if p == int(p) else self.powf(size, p)
        return self.mul(power, self.sign(x)) if odd else power

    def pnorm(self, x: Value, p: float, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        """The ``p``-th root of the sum of ``|x|**p`` over ``axes``, for a positive number ``p``; whatever overflows in between."""
        size = self.abs(x)
        if 0 in (self.shape(x)[k] for k in axes):
            return self.sum(size, axes, keepdims)
        top = self.amax(size, axes, True)
        scale = self.where(self.logical_and(self.isfinite(top), self.ne(top, 0)), top, 1)
        share = self.div(size, scale)
        total = self.sum(self.abspow(share, p, False), axes, True)
        out = self.mul(self.powf(total, 1 / p), scale)
        shape = self.shape(out)
        return out if keepdims else self.reshape(out, tuple(n for k, n in enumerate(shape) if k not in axes))
