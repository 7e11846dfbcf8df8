"""Putting entries at positions along an axis, and finding positions."""

import math
import mmap

import torch

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.derived.placing import named_twice
from nestgrad.backends.spreading import steps

_PRIVATE = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
"""How memory is had that nobody else sees; 0 where the system has no such words."""

_LARGE = 1 << 23
"""From how many bytes on it pays to ask the system for memory, which costs some microseconds."""


def _zeros(shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    """Zeros that are to get the numbers of ``like``.

    Torch writes all zeros itself. Where they are many, and few places get another number, the system gives pages of zeros for nothing until
    they are written to, which is up to ten times as fast.
    """
    nbytes = math.prod(shape) * like.element_size()
    if not like.is_cpu or not _PRIVATE or nbytes < max(_LARGE, 8 * like.numel() * like.element_size()):
        return torch.zeros(shape, dtype=like.dtype, device=like.device)
    return torch.frombuffer(mmap.mmap(-1, nbytes, flags=_PRIVATE), dtype=like.dtype).view(shape)


class Placing(Backend):
    """Torch's own."""

    def set_along(self, x: Value, y: Value, z: Value, axis: int, once: bool) -> Value:
        if once:
            named = torch.zeros((*y.shape[:axis], x.shape[axis], *y.shape[axis + 1 :]), dtype=torch.bool, device=y.device)
            if int(torch.count_nonzero(named.scatter_(axis, y, True))) < y.numel():
                raise named_twice()
        return torch.scatter(x, axis, y, z.to(x.dtype) if isinstance(z, torch.Tensor) else z)

    def max_along(self, x: Value, y: Value, z: Value, axis: int) -> Value:
        return self._reduced(x, y, z, axis, "amax")

    def min_along(self, x: Value, y: Value, z: Value, axis: int) -> Value:
        return self._reduced(x, y, z, axis, "amin")

    def _reduced(self, x: Value, y: Value, z: Value, axis: int, how: str) -> Value:
        dtype = torch.promote_types(x.dtype, z.dtype)
        return torch.scatter_reduce(x.to(dtype), axis, y, z.to(dtype), how)

    def spread(self, x: Value, along: tuple[int, ...]) -> Value:
        if len(along) == x.dim():
            return torch.permute(x, along)
        full = _zeros(tuple([x.shape[k] for k in along]), x)
        torch.as_strided(full, x.shape, steps(along, full.stride(), x.dim())).copy_(x)
        return full

    def searchsorted(self, x: Value, y: Value, right: bool) -> Value:
        if x.dtype != y.dtype:
            dtype = torch.promote_types(x.dtype, y.dtype)
            x, y = x.to(dtype), y.to(dtype)
        found = torch.searchsorted(x.contiguous(), y.contiguous(), right=right)
        if not y.is_floating_point() or not x.shape[-1]:
            return found
        # torch takes NaN for equal to every number; here it is the greatest
        numbers = torch.logical_not(torch.isnan(x)).sum(-1, keepdim=x.dim() > 1)
        return torch.where(torch.isnan(y), x.shape[-1] if right else numbers, torch.minimum(found, numbers))
