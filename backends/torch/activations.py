"""Activations and their rules: torch's own kernels, forward and backward."""

from typing import Any

import torch

from nestgrad.backends.base import Backend, Value


def _kernel(name: str) -> Any:
    """A function of torch in C++, without the Python around it."""
    op = getattr(torch.ops.aten, name).default
    return getattr(op, "_op", op)


_threshold_backward = _kernel("threshold_backward")
_leaky_relu, _leaky_relu_backward = _kernel("leaky_relu"), _kernel("leaky_relu_backward")
_prelu = _kernel("_prelu_kernel")
_hardtanh_backward = _kernel("hardtanh_backward")  # hardsigmoid_backward has a sixth of single precision in torch 2.13
_hardshrink_backward, _hardswish_backward = _kernel("hardshrink_backward"), _kernel("hardswish_backward")
_elu, _elu_backward = _kernel("elu"), _kernel("elu_backward")
_softplus_backward, _silu_backward, _mish_backward = _kernel("softplus_backward"), _kernel("silu_backward"), _kernel("mish_backward")


def _alike(x: Value, y: Value) -> bool:
    """Whether a kernel may take both: it does not broadcast, and knows one dtype."""
    try:
        return bool(x.shape == y.shape and x.dtype is y.dtype and x.dtype.is_floating_point)
    except AttributeError:  # a Python number
        return False


class Activations(Backend):
    """Torch's builtins do not bind, so they stand here as they are. A rule that its kernel cannot take goes the default's way."""

    hardsigmoid: Any = staticmethod(_kernel("hardsigmoid"))
    hardswish: Any = staticmethod(_kernel("hardswish"))
    hardshrink: Any = staticmethod(_kernel("hardshrink"))
    softshrink: Any = staticmethod(_kernel("softshrink"))
    silu: Any = staticmethod(_kernel("silu"))
    mish: Any = staticmethod(_kernel("mish"))
    log_sigmoid: Any = torch.nn.functional.logsigmoid
    leaky_relu: Any = staticmethod(_leaky_relu)
    threshold: Any = torch.threshold

    def prelu(self, x: Value, y: Value) -> Value:
        if isinstance(y, torch.Tensor) and x.dtype is y.dtype and x.dim() >= y.dim():
            return _prelu(x, y)
        return super().prelu(x, y)

    def elu(self, x: Value, alpha: float, scale: float = 1.0, rate: float = 1.0) -> Value:
        return _elu(x, alpha, scale, rate)

    def above(self, x: Value, y: Value, c: float) -> Value:
        return _threshold_backward(x, y, c) if _alike(x, y) else super().above(x, y, c)

    def inside(self, x: Value, y: Value, lo: float, hi: float, n: int = 1) -> Value:
        if not _alike(x, y):
            return super().inside(x, y, lo, hi, n)
        taken = _hardtanh_backward(x, y, lo, hi)
        return taken if n == 1 else taken.div_(n)

    def outside(self, x: Value, y: Value, c: float) -> Value:
        return _hardshrink_backward(x, y, c) if _alike(x, y) else super().outside(x, y, c)

    def leaky(self, x: Value, y: Value, slope: float) -> Value:
        return _leaky_relu_backward(x, y, slope, False) if _alike(x, y) else super().leaky(x, y, slope)

    def hardswish_vjp(self, x: Value, y: Value) -> Value:
        return _hardswish_backward(x, y) if _alike(x, y) else super().hardswish_vjp(x, y)

    def elu_vjp(self, x: Value, y: Value, alpha: float, scale: float = 1.0, rate: float = 1.0) -> Value:
        return _elu_backward(x, alpha, scale, rate, False, y) if _alike(x, y) else super().elu_vjp(x, y, alpha, scale, rate)

    def gated(self, x: Value, y: Value, sign: int) -> Value:
        return _softplus_backward(x, y, sign, 40.0) if _alike(x, y) else super().gated(x, y, sign)

    def silu_vjp(self, x: Value, y: Value) -> Value:
        return _silu_backward(x, y) if _alike(x, y) else super().silu_vjp(x, y)

    def mish_vjp(self, x: Value, y: Value) -> Value:
        return _mish_backward(x, y) if _alike(x, y) else super().mish_vjp(x, y)
