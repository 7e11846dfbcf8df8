"""Turning, shifting, triangles and diagonals."""

from typing import Any

import torch

from nestgrad.backends.base import Backend, Value


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
