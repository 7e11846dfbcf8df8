"""Special functions: those of SciPy where it is installed and as accurate as the defaults, which serve elsewhere."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.derived.special import mills_left, mills_right, sinc_far, sinc_near


class Special(Backend):
    """Functions of the error function's and of the gamma function's families, and sinc."""

    sinc: Any = staticmethod(np.sinc)

    def sinc_slope(self, x: Value, n: int) -> Value:
        small = np.abs(x) < (1.0 + n / 2) / math.pi
        out = sinc_far(self, np.where(small, np.ones_like(x), x), n)
        out = _patched(out, small, x, lambda v: sinc_near(self, v * v.dtype.type(math.pi), n))
        return np.multiply(out, math.pi**n)

    def gauss(self, x: Value) -> Value:
        return np.exp(-np.square(x)) * (2 / math.sqrt(math.pi))

    def widening(self, x: Value) -> Value:
        return np.exp(np.square(x)) * (math.sqrt(math.pi) / 2)

    def bell(self, x: Value) -> Value:
        return np.exp(np.square(x) * -0.5) * (1 / math.sqrt(2 * math.pi))

    def erfc(self, x: Value) -> Value:
        scipy = _scipy()
        return super().erfc(x) if scipy is None else scipy.erfc(x)

    def erfcx(self, x: Value) -> Value:
        scipy = _scipy()
        return super().erfcx(x) if scipy is None else scipy.erfcx(x)

    def erfinv(self, x: Value) -> Value:
        scipy = _scipy()
        return super().erfinv(x) if scipy is None else scipy.erfinv(x)

    def ndtr(self, x: Value) -> Value:
        scipy = _scipy()
        return super().ndtr(x) if scipy is None else scipy.ndtr(x)

    def log_ndtr(self, x: Value) -> Value:
        scipy = _scipy()
        return super().log_ndtr(x) if scipy is None else scipy.log_ndtr(x)

    def log_ndtr_slope(self, x: Value, n: int) -> Value:
        d = math.sqrt(2 / math.pi) / self.erfcx(np.multiply(x, -math.sqrt(0.5)))
        if n == 1:
            return d
        turn = -3.0 if x.dtype == np.float64 else -1.5  # fewer digits bear less cancelling
        return _patched(mills_right(self, x, d, n), x < turn, x, lambda v: mills_left(self, v, n))

    def lgamma(self, x: Value) -> Value:
        scipy = _scipy()
        if scipy is None:
            return super().lgamma(x)
        near = np.abs(np.abs(x - 1.5) - 0.5) < 0.25  # about its zeros at 1 and 2 SciPy's loses digits
        out = scipy.gammaln(np.maximum(x, np.finfo(x.dtype).min))  # infinite at minus infinity, as at all numbers so far down
        return _patched(out, near, x, super().lgamma)

    def digamma(self, x: Value) -> Value:
        scipy = _scipy()
        return super().digamma(x) if scipy is None else scipy.psi(x)

    def polygamma(self, x: Value, n: int) -> Value:
        scipy = _scipy()
        if scipy is None or n == 0 or n > (20 if x.dtype == np.float64 else 8):  # above, powers leave the range of the dtype
            return super().polygamma(x, n)
        out = scipy.zeta(n + 1.0, np.abs(x)) * x.dtype.type((-1.0) ** (n + 1) * math.factorial(n))
        return _patched(out, x < 0, x, lambda v: super(Special, self).polygamma(v, n))


def _patched(out: Any, where: Any, x: Any, f: Callable[[Any], Any]) -> Any:
    """``out`` with ``f(x)`` where it is asked for, computed nowhere else."""
    if not np.any(where):
        return out
    out, x = np.array(out), np.asarray(x)
    out[where] = f(x[where])
    return out


class _Halves:
    """SciPy's functions, which answer half precision in double, with results in the dtype of their last argument."""

    def __init__(self, special: Any) -> None:
        for name in ("erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "gammaln", "psi", "zeta"):
            setattr(self, name, _kept(getattr(special, name)))


def _kept(f: Callable[..., Any]) -> Callable[..., Any]:
    def in_its_dtype(*args: Any) -> Any:
        out = f(*args)
        return out.astype(np.float16) if getattr(args[-1], "dtype", None) == np.float16 else out

    return in_its_dtype


@lru_cache(maxsize=1)
def _scipy() -> Any:
    try:
        from scipy import special
    except ImportError:
        return None
    return _Halves(special)
