"""Putting entries at positions along an axis, and finding positions."""

import torch

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.derived.placing import named_twice
from nestgrad.backends.spreading import steps


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
        full = torch.zeros([x.shape[k] for k in along], dtype=x.dtype, device=x.device)
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
