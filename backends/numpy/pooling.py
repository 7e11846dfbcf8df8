"""Extrema and means of windows, entry by entry of all windows at once."""

from itertools import product
from math import prod
from typing import Any

import numpy as np

from nestgrad.backends.base import Backend
from nestgrad.backends.sliding import count, places

Ints = tuple[int, ...]

_FEW = 64
"""Up to how many entries of a window one pass over all windows for each is quickest."""


class Pooling(Backend):
    """A pass over all windows for each of their entries: long loops in NumPy, and short ones outside."""

    def max_pool(self, x: Any, sizes: Ints, strides: Ints, padding: Ints, dilations: Ints, ceil: bool) -> tuple[Any, Any]:
        rank, width = len(sizes), prod(sizes)
        spaces = x.shape[-rank:]
        outs = tuple(count(*row, ceil) for row in zip(spaces, sizes, strides, padding, dilations, strict=True))
        ends = tuple((m - 1) * s + (k - 1) * d + 1 for m, s, k, d in zip(outs, strides, sizes, dilations, strict=True))
        outside = any(padding) or any(end > n for end, n in zip(ends, spaces, strict=True))
        plain = not outside or max(dilations) == 1  # else a window may not hold the entry at the edge
        if width > _FEW or not x.size or not plain or bool(x.max() != x.max()):  # where NaN is the greatest
            return super().max_pool(x, sizes, strides, padding, dilations, ceil)
        if outside:  # by entries at the edge, which the window has already
            for axis, (n, p, end) in enumerate(zip(spaces, padding, ends, strict=True)):
                x = x.take(np.clip(np.arange(-p, end - p), 0, n - 1), axis - rank)
        best, which = x, np.empty(0)
        for number, at in enumerate(product(*map(range, sizes))):
            rows = zip(at, dilations, strides, outs, strict=True)
            part = x[(..., *(slice(k * d, k * d + (m - 1) * s + 1, s) for k, d, s, m in rows))]
            if not number:
                best, which = part.copy(), np.zeros(part.shape, np.int64)
                continue
            better = part > best
            np.copyto(best, part, where=better)
            which[better] = number
        flat: Any = 0
        for axis, row in enumerate(zip(spaces, sizes, strides, padding, dilations, strict=True)):
            shape = [1] * (2 * rank)
            shape[axis], shape[rank + axis] = outs[axis], sizes[axis]
            flat = flat * spaces[axis] + np.array(places(*row, ceil)).reshape(shape)
        which += (width * np.arange(prod(outs))).reshape(outs)
        return best, flat.reshape(-1).take(which)

    def window_sums(self, x: Any, sizes: Ints, strides: Ints) -> Any:
        rank = len(sizes)
        for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
            before = (slice(None),) * (x.ndim - rank + axis)
            m = count(x.shape[x.ndim - rank + axis], size, stride)
            if size > _FEW:
                where = np.arange(m)[:, None] * stride + np.arange(size)
                x = x[(*before, where)].sum(x.ndim - rank + axis + 1)
                continue
            total = x[(*before, slice(0, (m - 1) * stride + 1, stride))].copy()
            for k in range(1, size):
                total += x[(*before, slice(k, k + (m - 1) * stride + 1, stride))]
            x = total
        return x
