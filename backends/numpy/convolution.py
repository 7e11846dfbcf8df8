"""Convolution as products of matrices that stay in the cache."""

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from nestgrad.backends.numpy.windows import Ints, Windows

_ROOM = 1 << 21
"""How many bytes of columns are made at a time."""


class Convolution(Windows):
    """The columns of a few samples at a time, which one product then reads while the cache has them."""

    def conv(self, x: Any, y: Any, strides: Ints, padding: Ints, dilations: Ints, groups: int) -> Any:
        places = self._steps(x.shape[2:], y.shape[2:], strides, padding, dilations)
        weight = self._matrices(y, groups)
        out = np.empty((x.shape[0], groups, weight.shape[1], prod(places)), np.result_type(x, y))
        for part in _parts(x, y.shape[1:], places, groups):
            np.matmul(weight, self._columns(x[part], y.shape[2:], strides, padding, dilations, groups), out=out[part])
        return out.reshape(x.shape[0], y.shape[0], *places)

    def conv_input(self, x: Any, y: Any, spaces: Ints, strides: Ints, padding: Ints, dilations: Ints, groups: int) -> Any:
        if x.shape[0] < 2:
            return super().conv_input(x, y, spaces, strides, padding, dilations, groups)
        out = np.empty((x.shape[0], groups * y.shape[1], *spaces), np.result_type(x, y))
        for part in _parts(x, y.shape[1:], x.shape[2:], groups):
            out[part] = super().conv_input(x[part], y, spaces, strides, padding, dilations, groups)
        return out

    def conv_weight(self, x: Any, y: Any, kernel: Ints, strides: Ints, padding: Ints, dilations: Ints, groups: int) -> Any:
        channels, out = x.shape[1] // groups, y.shape[1] // groups
        total = np.zeros((groups, out, channels * prod(kernel)), np.result_type(x, y))
        g = y.reshape(y.shape[0], groups, out, prod(y.shape[2:]))
        for part in _parts(x, (channels, *kernel), y.shape[2:], groups):
            columns = self._columns(x[part], kernel, strides, padding, dilations, groups)
            total += np.matmul(g[part], columns.swapaxes(-1, -2)).sum(0)
        return total.reshape(y.shape[1], channels, *kernel)


def _parts(x: Any, window: Ints, places: Ints, groups: int) -> Iterator[slice]:
    """Samples whose columns fit into the room; at least one at a time."""
    step = max(1, _ROOM // max(1, groups * prod(window) * prod(places) * x.itemsize))
    return (slice(k, k + step) for k in range(0, x.shape[0], step))
