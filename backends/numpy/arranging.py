"""Turning, shifting, triangles and diagonals."""

import string
from typing import Any

import numpy as np

from nestgrad.backends.base import Backend, Value

_FEW = 128
"""Terms of a sum that may be added one after the other."""


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

    def vecdot(self, x: Value, y: Value, axis: int) -> Value:
        if x.dtype.kind != "f" or x.shape[axis] > _FEW:  # NumPy's sum of products adds one after the other, which loses digits of many
            return super().vecdot(x, y, axis)
        letters = string.ascii_letters[: x.ndim]
        return np.asarray(np.einsum(f"{letters},{letters}->{letters.replace(letters[axis], '')}", x, y))
