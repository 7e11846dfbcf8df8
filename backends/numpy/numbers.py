"""Roots, logarithms, angles and the parts of numbers: NumPy's own."""

import math
from typing import Any

import numpy as np

from nestgrad.backends.base import Backend, Value


class Numbers(Backend):
    """Ufuncs do not bind, so they stand here as they are."""

    cbrt: Any = np.cbrt
    exp2: Any = np.exp2
    log2: Any = np.log2
    log10: Any = np.log10
    logaddexp: Any = np.logaddexp
    logaddexp2: Any = np.logaddexp2
    hypot: Any = np.hypot
    atan2: Any = np.arctan2
    deg2rad: Any = np.deg2rad
    rad2deg: Any = np.rad2deg
    trunc: Any = np.trunc
    floor_divide: Any = np.floor_divide
    remainder: Any = np.remainder
    fmod: Any = np.fmod
    copysign: Any = np.copysign
    heaviside: Any = np.heaviside
    isinf: Any = np.isinf
    logical_xor: Any = np.logical_xor

    def times_log(self, x: Value, n: int, k: int) -> Value:
        return np.multiply(x, math.log(n)) if k > 0 else np.true_divide(x, math.log(n))

    def apart(self, x: Value, y: Value) -> Value:
        with np.errstate(invalid="ignore"):
            out = np.subtract(x, y)
        flat = out.ravel("K")
        if np.isfinite(flat.dot(flat)):  # NaN and inf survive a sum of squares
            return out
        return np.where(np.equal(x, y), out.dtype.type(0), out)

    def xlogy(self, x: Value, y: Value) -> Value:
        return _product(x, y, np.log)

    def xlog1py(self, x: Value, y: Value) -> Value:
        return _product(x, y, np.log1p)

    def signbit(self, x: Value) -> Value:
        return np.signbit(x) if x.dtype.kind == "f" else np.less(x, 0)

    def isposinf(self, x: Value) -> Value:
        return np.equal(x, math.inf)

    def isneginf(self, x: Value) -> Value:
        return np.equal(x, -math.inf)

    def nan_to_num(self, x: Value, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Value:
        return np.nan_to_num(x, True, nan, posinf, neginf)


def _product(x: Any, y: Any, log: Any) -> Any:
    """``x * log(y)``, and 0 where ``x`` is 0, unless ``y`` is NaN."""
    if isinstance(y, (int, float)):
        y = np.asarray(y, x.dtype)
    with np.errstate(all="ignore"):
        out = np.multiply(x, log(y))
        return np.where(np.equal(x, 0) & np.equal(y, y), out.dtype.type(0), out)
