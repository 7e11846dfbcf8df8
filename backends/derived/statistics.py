"""Norms of any power in terms of the required operations."""

from nestgrad.backends.derived.arrays import Arrays
from nestgrad.backends.primitives import Value


class Statistics(Arrays):
    """What sums powers."""

    def pnorm(self, x: Value, p: float, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        """The ``p``-th root of the sum of ``|x|**p`` over ``axes``, for a positive number ``p``; whatever overflows in between."""
        size = self.abs(x)
        if 0 in (self.shape(x)[k] for k in axes):
            return self.sum(size, axes, keepdims)
        top = self.amax(size, axes, True)
        scale = self.where(self.logical_and(self.isfinite(top), self.ne(top, 0)), top, 1)
        share = self.div(size, scale)
        total = self.sum(self.powi(share, int(p)) if p == int(p) else self.powf(share, p), axes, True)
        out = self.mul(self.powf(total, 1 / p), scale)
        shape = self.shape(out)
        return out if keepdims else self.reshape(out, tuple(n for k, n in enumerate(shape) if k not in axes))
