"""Putting entries at positions along an axis, and finding positions."""

import math
from typing import Any

import numpy as np

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.spreading import steps


class Placing(Backend):
    """NumPy's own, row by row where NumPy has it for one list alone."""

    def set_along(self, x: Value, y: Value, z: Value, axis: int, once: bool) -> Value:
        if once:
            self._check_once(y, axis, x.shape[axis])
        copy = np.array(x)
        np.put_along_axis(copy, y, z, axis)
        return copy

    def max_along(self, x: Value, y: Value, z: Value, axis: int) -> Value:
        return self._at(np.maximum, x, y, z, axis)

    def min_along(self, x: Value, y: Value, z: Value, axis: int) -> Value:
        return self._at(np.minimum, x, y, z, axis)

    def _at(self, ufunc: np.ufunc, x: Value, y: Value, z: Value, axis: int) -> Value:
        copy = np.array(x, np.result_type(x, z))
        ufunc.at(copy, self._places(y, axis), z)
        return copy

    def spread(self, x: Value, along: tuple[int, ...]) -> Value:
        if len(along) == x.ndim:
            return x.transpose(along)
        full = np.zeros([x.shape[k] for k in along], x.dtype)
        np.lib.stride_tricks.as_strided(full, x.shape, steps(along, full.strides, x.ndim))[...] = x
        return full

    def searchsorted(self, x: Value, y: Value, right: bool) -> Value:
        side: Any = "right" if right else "left"
        if x.ndim == 1:
            return np.asarray(np.searchsorted(x, y, side))
        n, m = x.shape[-1], y.shape[-1]
        count = math.prod(y.shape[:-1])
        found = [np.searchsorted(row, values, side) for row, values in zip(x.reshape(count, n), y.reshape(count, m), strict=True)]
        return np.array(found, np.int64).reshape(y.shape)
