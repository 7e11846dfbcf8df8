"""Running sums, products and extrema along an axis."""

from typing import Any

import numpy as np

from nestgrad.backends.base import Backend, Value


class Scans(Backend):
    """NumPy's own, in double precision where they add up float32."""

    def cumsum(self, x: Value, axis: int, reverse: bool = False) -> Value:
        total = _running(np.add, np.flip(x, axis) if reverse else x, axis)
        return np.flip(total, axis) if reverse else total

    def cumprod(self, x: Value, axis: int) -> Value:
        return np.cumprod(x, axis)

    def logcumsumexp(self, x: Value, axis: int) -> Value:
        with np.errstate(invalid="ignore"):  # infinity less infinity, of which NumPy makes no NaN
            return _running(np.logaddexp, x, axis)

    def cummax(self, x: Value, axis: int) -> tuple[Value, Value]:
        return _attained(np.maximum, x, axis)

    def cummin(self, x: Value, axis: int) -> tuple[Value, Value]:
        return _attained(np.minimum, x, axis)

    def recur(self, x: Value, y: Value, axis: int, reverse: bool) -> Value:
        dtype = np.result_type(x, y)
        scale = np.array(y, dtype)
        scale[(*(slice(None),) * axis, slice(0, 1))] = 1
        np.cumprod(scale, axis, out=scale)
        # the products must be far from the ends of the range, where they lose digits; not where a factor is 0
        with np.errstate(all="ignore"):
            inverse = np.reciprocal(scale)
            flat, back = scale.ravel("K"), inverse.ravel("K")
            if not flat.dot(flat) + back.dot(back) < np.finfo(dtype).max ** 0.6:
                return super().recur(x, y, axis, reverse)
            return self.cumsum(x * scale, axis, True) * inverse if reverse else self.cumsum(x * inverse, axis) * scale

    def shift(self, x: Value, n: int, axis: int, fill: float = 0.0) -> Value:
        out = np.empty(x.shape, x.dtype)
        lead, size = (slice(None),) * axis, x.shape[axis]
        k = min(abs(n), size)
        into, of, new = (
            (slice(k, size), slice(0, size - k), slice(0, k)) if n > 0 else (slice(0, size - k), slice(k, size), slice(size - k, size))
        )
        out[(*lead, into)] = x[(*lead, of)]
        out[(*lead, new)] = fill
        return out

    def diff(self, x: Value, n: int, axis: int) -> Value:
        return np.diff(x, n, axis)


def _running(ufunc: np.ufunc, x: Any, axis: int) -> Any:
    if x.dtype == np.float32:
        return ufunc.accumulate(x, axis, np.float64).astype(np.float32)
    return ufunc.accumulate(x, axis)


def _attained(ufunc: np.ufunc, x: Any, axis: int) -> tuple[Any, Any]:
    """Running extrema, and the latest positions at which they are attained."""
    values = ufunc.accumulate(x, axis)
    here = np.equal(x, values) | (np.not_equal(x, x))
    line = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
    return values, np.maximum.accumulate(np.where(here, line, 0), axis)
