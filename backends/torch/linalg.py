"""Solutions, inverses and determinants."""

from typing import Any

import torch

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.derived.linalg import singular
from nestgrad.backends.exchanging import LARGE, Order, chosen, eliminated


class Linalg(Backend):
    """Torch's own."""

    large_det: Any = torch.linalg.det

    def solve(self, x: Value, y: Value) -> Value:
        if y.dim() < x.dim():  # torch would take a matrix for a stack of vectors
            y = y.reshape((1,) * (x.dim() - y.dim()) + y.shape)
        dtype = torch.promote_types(x.dtype, y.dtype)
        out, failed = torch.linalg.solve_ex(x.to(dtype), y.to(dtype))
        if failed.any():
            raise singular("solve", x.shape)
        return out

    def inv(self, x: Value) -> Value:
        out, failed = torch.linalg.inv_ex(x)
        if failed.any():
            raise singular("inv", x.shape)
        return out

    def slogdet(self, x: Value) -> tuple[Value, Value]:
        sign, logabsdet = torch.linalg.slogdet(x)
        return sign, logabsdet

    def pivots(self, x: Value) -> Value:
        n = x.shape[-1]
        if n < LARGE or not x.is_cpu:  # elsewhere each step would wait for the device
            return super().pivots(x)
        orders = [_order(part, torch.finfo(x.dtype).eps) for part in x.reshape(-1, n, n)]
        return torch.tensor(orders, dtype=torch.int64).reshape(*x.shape[:-2], 3, n)


def _order(x: torch.Tensor, eps: float) -> Order:
    """Of one matrix."""
    inverse, failed = torch.linalg.inv_ex(x)
    if not failed and (order := chosen(x, inverse, eps)):
        return order
    return eliminated(x.clone(), x.abs(), eps)
