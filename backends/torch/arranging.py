"""Turning, shifting, triangles and diagonals."""

from typing import Any

import torch

from nestgrad.backends.base import Backend, Value

_LARGE = 4096
"""Entries from which on a pass over an array costs much more than a call."""


class Arranging(Backend):
    """Torch's own."""

    flip: Any = torch.flip
    roll: Any = torch.roll
    triu: Any = torch.triu
    tril: Any = torch.tril

    def stack(self, *xs: Value, axis: int) -> Value:
        return torch.stack(xs, axis)

    def diagonal(self, x: Value, offset: int, axes: tuple[int, int]) -> Value:
        return torch.diagonal(x, offset, *axes)

    def from_diagonal(self, x: Value, offset: int, axes: tuple[int, int], shape: tuple[int, ...]) -> Value:
        full = torch.zeros(shape, dtype=x.dtype, device=x.device)
        torch.diagonal(full, offset, *axes).copy_(x)
        return full

    def cross(self, x: Value, y: Value, axis: int) -> Value:
        if x.dtype != y.dtype:
            return super().cross(x, y, axis)
        return torch.linalg.cross(x, y, dim=axis)

    def vecdot(self, x: Value, y: Value, axis: int) -> Value:
        n = x.shape[axis]
        if x.dtype != y.dtype or not x.is_floating_point() or not x.is_cpu or not 2 < n <= x.numel() // _LARGE:
            return super().vecdot(x, y, axis)
        out = torch.select(x, axis, 0) * torch.select(y, axis, 0)  # one by one: no array of all products, which costs more than they do
        for k in range(1, n):
            out.addcmul_(torch.select(x, axis, k), torch.select(y, axis, k))
        return out
