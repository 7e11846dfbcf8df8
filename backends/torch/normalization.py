"""Normalisation in one kernel where torch has one: for a layer, a batch or groups of channels."""

from typing import Any

import torch

from nestgrad.backends.base import Backend, Value


def _bare(function: Any) -> Any:
    """The function in C++ without the Python around it."""
    return getattr(function, "_op", function)


_layer: Any = _bare(torch.ops.aten.native_layer_norm.default)
_layer_backward: Any = _bare(torch.ops.aten.native_layer_norm_backward.default)
_batch: Any = _bare(torch.ops.aten.native_batch_norm.default)
_batch_backward: Any = _bare(torch.ops.aten.native_batch_norm_backward.default)
_group: Any = _bare(torch.ops.aten.native_group_norm.default)
_group_backward: Any = _bare(torch.ops.aten.native_group_norm_backward.default)
_OF_INPUT, _OF_SCALE = [True, False, False], [False, True, False]
_DTYPES = frozenset({torch.float32, torch.float64})


class Normalization(Backend):
    """Torch's kernels, and the formulas elsewhere."""

    def standardise(self, x: Value, y: Value, z: Value, axes: tuple[int, ...], eps: float) -> tuple[Value, Value, Value]:
        kind = _kind(x, axes)
        if kind is None or (kind == "batch" and eps == 0.0):  # there torch's kernel would give zeros where the variance is 0
            return super().standardise(x, y, z, axes, eps)
        inner, n = x.shape[axes[0] :], x.ndim
        if kind == "batch":
            channels = (x.shape[1], *(1,) * (n - 2))
            fits = _fits(y, channels, x) and _fits(z, channels, x)
            values, mean, r = _batch(x, *(_flat(y, z) if fits else (None, None)), None, None, True, 0.0, eps)
            mean, r = mean.view(1, *channels), r.view(1, *channels)
        elif n == 4 and len(axes) == 2 and _fits(y, (*x.shape[1:3], 1), x) and _fits(z, (*x.shape[1:3], 1), x):
            fits, (count, groups, per, size) = True, x.shape
            values, mean, r = _group(x.contiguous(), *_flat(y, z), count, groups * per, size, groups, eps)
            mean, r = mean.view(count, groups, 1, 1), r.view(count, groups, 1, 1)
        else:
            fits = _fits(y, inner, x) and _fits(z, inner, x)
            values, mean, r = _layer(x, inner, *((y, z) if fits else (None, None)), eps)
        if not fits and not _is(y, 1.0):
            values = values * y
        return values if fits or _is(z, 0.0) else values + z, mean, r

    def standardise_vjp(self, *xs: Value, axes: tuple[int, ...]) -> Value:
        """The cotangent of ``x`` from ``g, x, mean, r, y``."""
        g, x, mean, r, y = xs
        kind = _kind(x, axes)
        if kind is not None and g.dtype is x.dtype is r.dtype:
            if kind == "batch":
                y, g = (y.reshape(-1), g) if _fits(y, (x.shape[1], *(1,) * (x.ndim - 2)), x) else (None, _scaled(g, y))
                return _batch_backward(g, x, y, None, None, mean.reshape(-1), r.reshape(-1), True, 0.0, _OF_INPUT)[0]
            if x.ndim == 4 and len(axes) == 2 and _fits(y, (*x.shape[1:3], 1), x):
                return _in_groups(_OF_INPUT, g, x, mean, r, y)[0]
            inner = x.shape[axes[0] :]
            y, g = (y, g) if _fits(y, inner, x) else (None, _scaled(g, y))
            if g.dtype is x.dtype:
                return _layer_backward(g, x, inner, mean, r, y, None, _OF_INPUT)[0]
        h = (x - mean).mul_(r)
        c = _scaled(g, y)
        return (c - self.mean(c, axes, True)).sub_(h.mul_(self.mean(c * h, axes, True))).mul_(r)

    def standardise_scale_vjp(self, *xs: Value, sizes: tuple[int, ...]) -> Value:
        """The cotangent of the scale from ``g, x, mean, r``."""
        g, x, mean, r = xs
        shape, first = tuple(x.shape), x.ndim - len(sizes)
        if g.dtype is x.dtype is r.dtype and x.dtype in _DTYPES and x.numel():
            ones, statistics = (1,) * (x.ndim - 2), tuple(r.shape)
            if sizes == shape[first:] and statistics == (*shape[:first], *(1,) * len(sizes)):
                return _layer_backward(g, x, list(sizes), mean, r, g.new_ones(sizes), None, _OF_SCALE)[1]
            if x.ndim > 1 and sizes == (shape[1], *ones) and statistics == (1, shape[1], *ones):
                y = g.new_ones(shape[1])
                return _batch_backward(g, x, y, None, None, mean.reshape(-1), r.reshape(-1), True, 0.0, _OF_SCALE)[1].view(sizes)
            if x.ndim == 4 and sizes == (*shape[1:3], 1) and statistics == (*shape[:2], 1, 1):
                return _in_groups(_OF_SCALE, g, x, mean, r, g.new_ones(sizes))[1].view(sizes)
        total = (x - mean).mul_(r).mul_(g)
        axes = [k for k in range(total.ndim) if k < first or (sizes[k - first] == 1 and total.shape[k] != 1)]
        return (total.sum(axes) if axes else total).reshape(sizes)

    def project(self, x: Value, y: Value, axes: tuple[int, ...], centred: bool) -> Value:
        if centred and x.dtype is y.dtype and _kind(x, axes) == "layer":
            inner = x.shape[axes[0] :]
            zero = x.new_zeros((*x.shape[: axes[0]], *(1,) * len(axes)))
            return _layer_backward(x, y, inner, zero, zero + 1, None, None, _OF_INPUT)[0]
        out = torch.addcmul(x, y, self.mean(x * y, axes, True), value=-1)
        return out.sub_(self.mean(x, axes, True)) if centred else out

    def rms_norm(self, x: Value, y: Value, axes: tuple[int, ...], eps: float) -> tuple[Value, Value]:
        r = torch.rsqrt(self.mean(torch.square(x), axes, True) + eps)
        values = x * r
        return values.mul_(y) if getattr(y, "dtype", x.dtype) is x.dtype else values * y, r

    def rms_norm_vjp(self, *xs: Value, axes: tuple[int, ...]) -> Value:
        """The cotangent of ``x`` from ``g, x, r, y``."""
        g, x, r, y = xs
        c = _scaled(g, y)
        turn = self.mean(c * x, axes, True) * torch.square(r)
        return torch.addcmul(c, x, turn, value=-1).mul_(r)


def _kind(x: Value, axes: tuple[int, ...]) -> str | None:
    """Whether the axes are the last ones, as for a layer, or all but the second, as for a batch, of an array that torch's kernels take."""
    n = x.ndim
    if x.dtype not in _DTYPES or not axes or not x.numel():
        return None
    if axes == tuple(range(n - len(axes), n)):
        return "layer"
    return "batch" if n > 1 and axes == (0, *range(2, n)) else None


def _fits(y: Value, shape: Any, x: Value) -> bool:
    return y.__class__ is torch.Tensor and y.shape == shape and y.dtype is x.dtype


def _is(y: Value, number: float) -> bool:
    return y.__class__ is float and y == number


def _scaled(g: Value, y: Value) -> Value:
    return g if _is(y, 1.0) else g * y


def _flat(y: Value, z: Value) -> tuple[Value, Value]:
    return y.reshape(-1), z.reshape(-1)


def _in_groups(wanted: list[bool], g: Value, x: Value, mean: Value, r: Value, y: Value) -> Any:
    count, groups, per, size = x.shape
    statistics = mean.reshape(count, groups), r.reshape(count, groups)
    return _group_backward(g.contiguous(), x.contiguous(), *statistics, y.reshape(-1), count, groups * per, size, groups, wanted)
