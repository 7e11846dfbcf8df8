"""Running sums, products and extrema along an axis."""

from typing import Any

import torch

from nestgrad.backends.base import Backend, Value


class Scans(Backend):
    """Torch's own."""

    cumprod: Any = torch.cumprod
    logcumsumexp: Any = torch.logcumsumexp
    diff: Any = torch.diff

    def cumsum(self, x: Value, axis: int, reverse: bool = False) -> Value:
        return torch.cumsum(x.flip(axis), axis).flip(axis) if reverse else torch.cumsum(x, axis)

    def cummax(self, x: Value, axis: int) -> tuple[Value, Value]:
        return tuple(torch.cummax(x, axis))  # type: ignore[return-value]

    def cummin(self, x: Value, axis: int) -> tuple[Value, Value]:
        return tuple(torch.cummin(x, axis))  # type: ignore[return-value]

    def recur(self, x: Value, y: Value, axis: int, reverse: bool) -> Value:
        dtype = torch.promote_types(x.dtype, y.dtype)
        scale = y.to(dtype, copy=True, memory_format=torch.contiguous_format)
        scale.narrow(axis, 0, min(1, scale.shape[axis])).fill_(1)
        torch.cumprod(scale, axis, out=scale)
        inverse = torch.reciprocal(scale)
        # the products must be far from the ends of the range, where they lose digits; not where a factor is 0
        flat, back = scale.view(-1), inverse.view(-1)
        if not torch.dot(flat, flat).item() + torch.dot(back, back).item() < torch.finfo(dtype).max ** 0.6:
            return super().recur(x, y, axis, reverse)
        if reverse:
            return torch.cumsum((x * scale).flip(axis), axis).flip(axis).mul_(inverse)
        return torch.cumsum(x * inverse, axis).mul_(scale)

    def shift(self, x: Value, n: int, axis: int, fill: float = 0.0) -> Value:
        k = max(min(n, x.shape[axis]), -x.shape[axis])
        return torch.constant_pad_nd(x, [*(0, 0) * (x.dim() - axis - 1), k, -k], fill)
