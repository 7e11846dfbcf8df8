"""Normalisation in one kernel where torch has one."""

from typing import Any

import torch

from nestgrad.backends.base import Backend, Value

# The functions in C++ without the Python around them.
_normalise: Any = getattr(torch.ops.aten.native_layer_norm.default, "_op", torch.ops.aten.native_layer_norm.default)
_backward: Any = getattr(torch.ops.aten.native_layer_norm_backward.default, "_op", torch.ops.aten.native_layer_norm_backward.default)
_OF_INPUT, _OF_SCALE = [True, False, False], [False, True, False]


class Normalization(Backend):
    """Torch's layer norm over last axes, its batch norm over all axes but one, and the formulas elsewhere."""

    def standardise(self, x: Value, y: Value, z: Value, axes: tuple[int, ...], eps: float) -> tuple[Value, Value, Value]:
        if not _usual(x, axes):
            return super().standardise(x, y, z, axes, eps)
        inner = x.shape[axes[0] :]
        if _fits(y, inner, x) and _fits(z, inner, x):
            return tuple(_normalise(x, inner, y, z, eps))  # type: ignore[return-value]
        values, mean, r = _normalise(x, inner, None, None, eps)
        if not (y.__class__ is float and y == 1.0):
            values = values * y
        return values + z if not (z.__class__ is float and z == 0.0) else values, mean, r

    def standardise_vjp(self, *xs: Value, axes: tuple[int, ...]) -> Value:
        """The cotangent of ``x`` from ``g, x, mean, r, y``."""
        g, x, mean, r, y = xs
        if _usual(x, axes) and g.dtype is x.dtype:
            inner = x.shape[axes[0] :]
            if not _fits(y, inner, x):
                g, y = g if y.__class__ is float and y == 1.0 else g * y, None
            if g.dtype is x.dtype:
                return _backward(g, x, inner, mean, r, y, None, _OF_INPUT)[0]
        h = (x - mean).mul_(r)
        c = g * y
        middle = self.mean(c, axes, True)
        return c.sub_(middle).sub_(h.mul_(self.mean(c * h, axes, True))).mul_(r)

    def standardise_scale_vjp(self, *xs: Value, sizes: tuple[int, ...]) -> Value:
        """The cotangent of the scale from ``g, x, mean, r``."""
        g, x, mean, r = xs
        first = x.ndim - len(sizes)
        if g.dtype is x.dtype is r.dtype and tuple(x.shape[first:]) == tuple(sizes) and tuple(r.shape) == (*x.shape[:first], *(1,) * len(sizes)):
            return _backward(g, x, list(sizes), mean, r, g.new_ones(sizes), None, _OF_SCALE)[1]
        total = (x - mean).mul_(r).mul_(g)
        axes = [k for k in range(total.ndim) if k < first or (sizes[k - first] == 1 and total.shape[k] != 1)]
        return (total.sum(axes) if axes else total).reshape(sizes)

    def rms_norm(self, x: Value, y: Value, axes: tuple[int, ...], eps: float) -> tuple[Value, Value]:
        r = torch.rsqrt(self.mean(torch.square(x), axes, True) + eps)
        values = x * r
        return values.mul_(y) if getattr(y, "dtype", x.dtype) is x.dtype else values * y, r

    def rms_norm_vjp(self, *xs: Value, axes: tuple[int, ...]) -> Value:
        """The cotangent of ``x`` from ``g, x, r, y``."""
        g, x, r, y = xs
        c = g * y
        turn = self.mean(c * x, axes, True) * torch.square(r)
        return torch.addcmul(c, x, turn, value=-1).mul_(r)


def _usual(x: Value, axes: tuple[int, ...]) -> bool:
    """Whether the axes are the last ones of an array that torch's layer norm takes."""
    return bool(axes) and axes == tuple(range(x.ndim - len(axes), x.ndim)) and x.dtype in _DTYPES and x.numel() > 0


def _fits(y: Value, inner: Any, x: Value) -> bool:
    return y.__class__ is torch.Tensor and y.shape == inner and y.dtype is x.dtype


_DTYPES = frozenset({torch.float32, torch.float64})
