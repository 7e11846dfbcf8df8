"""Extrema and means of windows by the kernels of torch."""

from math import prod
from typing import Any

import torch

from nestgrad.backends.base import Backend

Ints = tuple[int, ...]

_aten: Any = torch.ops.aten


class Pooling(Backend):
    """Lines are planes of height 1. What torch has no kernel for, as means of windows larger than the space, goes the general way."""

    def max_pool(self, x: Any, sizes: Ints, strides: Ints, padding: Ints, dilations: Ints, ceil: bool) -> tuple[Any, Any]:
        if not _served(x, sizes):
            return super().max_pool(x, sizes, strides, padding, dilations, ceil)
        kernel = _aten.max_pool3d_with_indices if len(sizes) == 3 else _aten.max_pool2d_with_indices
        found = kernel(_planes(x, sizes), *(_two(p, fill) for p, fill in ((sizes, 1), (strides, 1), (padding, 0), (dilations, 1))), ceil)
        return tuple(_lined(x, a, sizes) for a in found)

    def adaptive_max_pool(self, x: Any, sizes: Ints) -> tuple[Any, Any]:
        if not _served(x, sizes):
            return super().adaptive_max_pool(x, sizes)
        kernel = _aten.adaptive_max_pool3d if len(sizes) == 3 else _aten.adaptive_max_pool2d
        return tuple(_lined(x, a, sizes) for a in kernel(_planes(x, sizes), _two(sizes, 1)))

    def avg_pool(self, x: Any, sizes: Ints, strides: Ints, padding: Ints, ceil: bool, padded: bool, divisor: int | None) -> Any:
        if not _served(x, sizes) or (len(sizes) == 3 and any(k > n for k, n in zip(sizes, x.shape[-3:], strict=True))):
            return super().avg_pool(x, sizes, strides, padding, ceil, padded, divisor)
        kernel = _aten.avg_pool3d if len(sizes) == 3 else _aten.avg_pool2d
        found = kernel(_planes(x, sizes), _two(sizes, 1), _two(strides, 1), _two(padding, 0), ceil, padded, divisor)
        return _lined(x, found, sizes)

    def from_avg_pool(
        self, x: Any, spaces: Ints, sizes: Ints, strides: Ints, padding: Ints, ceil: bool, padded: bool, divisor: int | None
    ) -> Any:
        if not _served(x, sizes) or (len(sizes) == 3 and any(k > n for k, n in zip(sizes, spaces, strict=True))):
            return super().from_avg_pool(x, spaces, sizes, strides, padding, ceil, padded, divisor)
        kernel = _aten.avg_pool3d_backward if len(sizes) == 3 else _aten.avg_pool2d_backward
        g = _planes(x, sizes).contiguous()
        like = x.new_empty((*g.shape[:2], *_two(spaces, 1)))
        found = kernel(g, like, _two(sizes, 1), _two(strides, 1), _two(padding, 0), ceil, padded, divisor)
        return found.reshape(*x.shape[: x.dim() - len(sizes)], *spaces)


def _served(x: Any, sizes: Ints) -> bool:
    return len(sizes) <= 3 and x.is_floating_point() and x.numel() > 0


def _two(numbers: Ints, fill: int) -> Ints:
    return (fill, *numbers) if len(numbers) == 1 else numbers


def _planes(x: Any, sizes: Ints) -> Any:
    """All leading axes as one, and one of size 1 for channels."""
    rank = len(sizes)
    lead, spaces = x.shape[: x.dim() - rank], x.shape[x.dim() - rank :]
    return x.reshape(prod(lead), 1, *_two(spaces, 1))


def _lined(x: Any, found: Any, sizes: Ints) -> Any:
    """The leading axes of ``x``, and the spatial ones of ``found``."""
    rank = len(sizes)
    return found.reshape(*x.shape[: x.dim() - rank], *found.shape[-rank:])
