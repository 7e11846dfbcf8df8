"""Normalisation, with as few new arrays as it takes."""

from typing import Any

import numpy as np

from nestgrad.backends.base import Backend, Value


class Normalization(Backend):
    """The formulas, in place where an array is new."""

    def standardise(self, x: Value, y: Value, z: Value, axes: tuple[int, ...], eps: float) -> tuple[Value, Value, Value]:
        mean = self.mean(x, axes, True)
        far = np.subtract(x, mean)
        r = np.true_divide(1.0, np.sqrt(self.mean(np.square(far), axes, True) + eps))
        return _into(np.add, _into(np.multiply, np.multiply(far, r), y), z), mean, r

    def rms_norm(self, x: Value, y: Value, axes: tuple[int, ...], eps: float) -> tuple[Value, Value]:
        r = np.true_divide(1.0, np.sqrt(self.mean(np.square(x), axes, True) + eps))
        return _into(np.multiply, np.multiply(x, r), y), r


def _into(ufunc: Any, new: Any, y: Any) -> Any:
    """``ufunc(new, y)`` in the memory of ``new``, which nobody else has, where it fits."""
    if type(new) is np.ndarray and getattr(y, "dtype", new.dtype) == new.dtype:
        return ufunc(new, y, out=new)
    return ufunc(new, y)
