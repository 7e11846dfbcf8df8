"""Normalisation in terms of the required operations."""

from nestgrad.backends.derived.arrays import Arrays
from nestgrad.backends.primitives import Value


class Normalization(Arrays):
    """Entries brought to mean 0 and variance 1, or to mean square 1, then scaled and shifted."""

    def standardise(self, x: Value, y: Value, z: Value, axes: tuple[int, ...], eps: float) -> tuple[Value, Value, Value]:
        """``(x - mean) r y + z``, ``mean`` and ``r = 1 / sqrt(var + eps)`` over ``axes``; ``y`` and ``z`` broadcast to ``x``'s shape."""
        mean = self.mean(x, axes, True)
        far = self.sub(x, mean)
        r = self.rsqrt(self.add(self.mean(self.square(far), axes, True), eps))
        return self.add(self.mul(self.mul(far, r), y), z), mean, r

    def rms_norm(self, x: Value, y: Value, axes: tuple[int, ...], eps: float) -> tuple[Value, Value]:
        """``x r y`` and ``r = 1 / sqrt(mean(x^2) + eps)`` over ``axes``; ``y`` broadcasts to the shape of ``x``."""
        r = self.rsqrt(self.add(self.mean(self.square(x), axes, True), eps))
        return self.mul(self.mul(x, r), y), r

    def project(self, x: Value, y: Value, axes: tuple[int, ...], centred: bool) -> Value:
        """``x - y mean(x y)`` over ``axes``, and without the mean of ``x`` if ``centred``; ``x`` and ``y`` have one shape."""
        out = self.sub(x, self.mul(y, self.mean(self.mul(x, y), axes, True)))
        return self.sub(out, self.mean(x, axes, True)) if centred else out
