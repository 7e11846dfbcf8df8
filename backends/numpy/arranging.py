"""Turning, shifting, triangles and diagonals."""

from typing import Any

import numpy as np

from nestgrad.backends.base import Backend, Value


class Arranging(Backend):
    """Views of the same memory where NumPy has them."""

    def roll(self, x: Value, shifts: tuple[int, ...], axes: tuple[int, ...]) -> Value:
        if len(axes) != 1:
            return np.roll(x, shifts, axes)
        (shift,), (axis,) = shifts, axes
        n = x.shape[axis]
        shift = shift % n if n else 0
        out = np.empty(x.shape, x.dtype)
        before = (slice(None),) * axis
        out[(*before, slice(shift, None))] = x[(*before, slice(0, n - shift))]
        out[(*before, slice(0, shift))] = x[(*before, slice(n - shift, None))]
        return out

    def triu(self, x: Value, k: int) -> Value:
        return np.triu(x, k)

    def tril(self, x: Value, k: int) -> Value:
        return np.tril(x, k)

    def diagonal(self, x: Value, offset: int, axes: tuple[int, int]) -> Value:
        return x.diagonal(offset, *axes)

    def from_diagonal(self, x: Value, offset: int, axes: tuple[int, int], shape: tuple[int, ...]) -> Value:
        full = np.zeros(shape, x.dtype)
        line: Any = full.diagonal(offset, *axes)
        line.setflags(write=True)  # NumPy gives a view of its own memory read-only
        line[...] = x
        return full
