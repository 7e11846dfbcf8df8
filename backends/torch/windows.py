"""Windows as views of the same memory."""

from itertools import product
from math import prod
from typing import Any

import torch

from nestgrad.backends.base import Backend
from nestgrad.backends.sliding import count

Ints = tuple[int, ...]

_fold: Any = torch.nn.functional.fold


class Windows(Backend):
    """Strides tell where windows are; adding them back is torch's ``fold`` in a plane, else what there is less of, entries or windows."""

    def windows(self, x: Any, sizes: Ints, strides: Ints, dilations: Ints) -> Any:
        rank = len(sizes)
        spaces, steps = x.shape[-rank:], x.stride()[-rank:]
        outs = [count(n, k, s, 0, d) for n, k, s, d in zip(spaces, sizes, strides, dilations, strict=True)]
        apart = (
            *x.stride()[:-rank],
            *(s * step for s, step in zip(strides, steps, strict=True)),
            *(d * step for d, step in zip(dilations, steps, strict=True)),
        )
        return torch.as_strided(x, (*x.shape[:-rank], *outs, *sizes), apart)

    def from_windows(self, x: Any, spaces: Ints, strides: Ints, dilations: Ints) -> Any:
        rank = len(spaces)
        lead, outs, sizes = x.shape[: -2 * rank], x.shape[-2 * rank : -rank], x.shape[-rank:]
        if rank == 2 and x.is_floating_point() and x.numel():
            columns = x.reshape(prod(lead), prod(outs), prod(sizes)).transpose(1, 2)
            return _fold(columns, spaces, sizes, dilations, 0, strides).reshape(*lead, *spaces)
        full = torch.zeros((*lead, *spaces), dtype=x.dtype, device=x.device)
        few = prod(sizes) <= prod(outs)
        for at in product(*map(range, sizes if few else outs)):
            near, far, many = (dilations, strides, outs) if few else (strides, dilations, sizes)
            index: Any = tuple(slice(k * a, k * a + (n - 1) * c + 1, c) for k, a, c, n in zip(at, near, far, many, strict=True))
            full[(..., *index)] += x[(..., *at)] if few else x[(..., *at, *(slice(None),) * rank)]
        return full
