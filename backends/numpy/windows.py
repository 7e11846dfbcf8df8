"""Windows as views of the same memory."""

from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.sliding import count

Ints = tuple[int, ...]


class Windows(Backend):
    """Strides tell where windows are; adding them back goes by what there is less of, entries of a window or windows."""

    def windows(self, x: Value, sizes: Ints, strides: Ints, dilations: Ints) -> Value:
        rank = len(sizes)
        spaces, steps = x.shape[-rank:], x.strides[-rank:]
        outs = tuple(count(n, k, s, 0, d) for n, k, s, d in zip(spaces, sizes, strides, dilations, strict=True))
        shape = (*x.shape[:-rank], *outs, *sizes)
        apart = (
            *x.strides[:-rank],
            *(s * step for s, step in zip(strides, steps, strict=True)),
            *(d * step for d, step in zip(dilations, steps, strict=True)),
        )
        return as_strided(x, shape, apart, writeable=False)

    def from_windows(self, x: Value, spaces: Ints, strides: Ints, dilations: Ints) -> Value:
        rank = len(spaces)
        lead, outs, sizes = x.shape[: -2 * rank], x.shape[-2 * rank : -rank], x.shape[-rank:]
        full: Any = np.zeros((*lead, *spaces), x.dtype)
        few = prod(sizes) <= prod(outs)  # then for each entry of a window those of all windows, else window by window
        for at in product(*map(range, sizes if few else outs)):
            near, far, many = (dilations, strides, outs) if few else (strides, dilations, sizes)
            index = tuple(slice(k * a, k * a + (n - 1) * c + 1, c) for k, a, c, n in zip(at, near, far, many, strict=True))
            part = x[(..., *at)] if few else x[(..., *at, *(slice(None),) * rank)]
            full[(..., *index)] += part
        return full
