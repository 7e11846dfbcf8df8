"""Solutions, inverses and determinants."""

from typing import Any

import torch

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.derived.linalg import singular


class Linalg(Backend):
    """Torch's own."""

    large_det: Any = torch.linalg.det

    def solve(self, x: Value, y: Value) -> Value:
        if y.dim() < x.dim():  # torch would take a matrix for a stack of vectors
            y = y.reshape((1,) * (x.dim() - y.dim()) + y.shape)
        dtype = torch.promote_types(x.dtype, y.dtype)
        try:
            return torch.linalg.solve(x.to(dtype), y.to(dtype))
        except torch.linalg.LinAlgError as error:
            raise singular("solve", x.shape) from error

    def inv(self, x: Value) -> Value:
        try:
            return torch.linalg.inv(x)
        except torch.linalg.LinAlgError as error:
            raise singular("inv", x.shape) from error

    def slogdet(self, x: Value) -> tuple[Value, Value]:
        return tuple(torch.linalg.slogdet(x))  # type: ignore[return-value]
