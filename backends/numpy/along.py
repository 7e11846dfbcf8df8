"""Entries along an axis by an array of positions, and their order."""

import math

import numpy as np

from nestgrad.backends.base import Backend, Value


class Along(Backend):
    """NumPy's own, and one pass over the positions where NumPy has none."""

    def take_along(self, x: Value, y: Value, axis: int) -> Value:
        return np.take_along_axis(x, y, axis)

    def add_along(self, x: Value, y: Value, axis: int, n: int) -> Value:
        shape = (*x.shape[:axis], n, *x.shape[axis + 1 :])
        lead, rest = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
        places = y.reshape(lead, y.shape[axis], rest)
        if places.size and not 0 <= places.min() <= places.max() < n:
            raise IndexError(f"a position among {int(places.min())} to {int(places.max())} is out of range for {n} entries")
        places = (places + n * np.arange(lead)[:, None, None]) * rest + np.arange(rest)
        total = np.bincount(places.ravel(), x.ravel(), lead * n * rest)  # in double precision
        return total.astype(x.dtype, copy=False).reshape(shape)

    def sort(self, x: Value, axis: int, descending: bool = False) -> tuple[Value, Value]:
        if descending:  # flipped before and after, so that equal ones keep their order
            positions = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, "stable"), axis)
        else:
            positions = np.argsort(x, axis, "stable")
        return np.take_along_axis(x, positions, axis), positions
