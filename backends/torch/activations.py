"""Activations and their rules: torch's own kernels, forward and backward."""

import math
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
_sigmoid_backward = _kernel("sigmoid_backward")

_ROOT_HALF, _BELL = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)


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

    def exp_below(self, x: Value, y: Value, c: float, rate: float) -> Value:
        if not _alike(x, y):
            return super().exp_below(x, y, c, rate)
        return _elu_backward(x, c / rate, 1.0, rate, False, y).masked_fill_(y > 0, 0.0)

    # One new array each where that is enough, and all else in its memory: a new one costs several passes over an old one.

    def sigmoid_vjp(self, x: Value, y: Value) -> Value:
        if not _alike(x, y):
            return super().sigmoid_vjp(x, y)
        return _sigmoid_backward(x, y.abs().neg_().sigmoid_())  # z (1 - z) with the smaller of both, so no digits are lost

    def sigmoid_curve(self, x: Value, y: Value) -> Value:
        if not _alike(x, y):
            return super().sigmoid_curve(x, y)
        z = y.abs().neg_().sigmoid_()
        return _sigmoid_backward(x, z).mul_(z.mul_(-2.0).add_(1.0).copysign_(y)).neg_()

    def bce_logits(self, x: Value, y: Value) -> Value:
        if not _alike(x, y):
            return super().bce_logits(x, y)
        return torch.clamp(x, min=0.0).addcmul_(x, y, value=-1.0).add_(x.abs().neg_().exp_().log1p_())

    def bce_logits_vjp(self, x: Value, y: Value, z: Value) -> Value:
        if not (_alike(x, y) and _alike(y, z)):
            return super().bce_logits_vjp(x, y, z)
        right, wrong = torch.sigmoid(y), torch.neg(y).sigmoid_()
        return right.addcmul_(right, z, value=-1.0).addcmul_(wrong, z, value=-1.0).mul_(x)

    def log_least(self, x: Value, rest: bool) -> Value:
        return (torch.neg(x).log1p_() if rest else torch.log(x)).clamp_(min=-100.0)

    def over(self, x: Value, y: Value, rest: bool) -> Value:
        if not _alike(x, y):
            return super().over(x, y, rest)
        out = torch.sub(1.0, y) if rest else torch.clone(y)
        return torch.div(x, out, out=out).masked_fill_(self._least(y, rest), 0.0)

    def bce_vjp(self, x: Value, y: Value, z: Value) -> Value:
        if not (_alike(x, y) and _alike(y, z)):
            return super().bce_vjp(x, y, z)
        wrong = torch.sub(1.0, z).div_(torch.sub(1.0, y)).masked_fill_(self._least(y, True), 0.0)
        return wrong.sub_(torch.div(z, y).masked_fill_(self._least(y, False), 0.0)).mul_(x)

    def bce(self, x: Value, y: Value) -> Value:
        if not _alike(x, y):
            return super().bce(x, y)
        right, wrong = torch.log(x).clamp_(min=-100.0), torch.neg(x).log1p_().clamp_(min=-100.0)
        return right.mul_(y).addcmul_(wrong, torch.sub(1.0, y)).neg_()

    def gelu(self, x: Value) -> Value:  # torch's own is made of erf, and has lost all digits at -9
        return torch.mul(x, -_ROOT_HALF).erfc_().mul_(x).mul_(0.5)

    def gelu_vjp(self, x: Value, y: Value) -> Value:
        if not _alike(x, y):
            return super().gelu_vjp(x, y)
        density = torch.mul(y, y).mul_(-0.5).exp_()
        return torch.mul(y, -_ROOT_HALF).erfc_().mul_(0.5).addcmul_(density, y, value=_BELL).mul_(x)

    def gelu_curve(self, x: Value, y: Value) -> Value:
        if not _alike(x, y):
            return super().gelu_curve(x, y)
        square = torch.mul(y, y)
        density = torch.mul(square, -0.5).exp_().mul_(_BELL)
        return square.sub_(2.0).mul_(density).mul_(x).neg_()

    def gelu_tanh(self, x: Value, k: float, a: float) -> Value:
        return torch.mul(x, x).mul_(2 * k * a).add_(2 * k).mul_(x).sigmoid_().mul_(x)

    def gelu_tanh_vjp(self, x: Value, y: Value, k: float, a: float) -> Value:
        if not _alike(x, y):
            return super().gelu_tanh_vjp(x, y, k, a)
        square = torch.mul(y, y)
        z = torch.mul(square, 2 * k * a).add_(2 * k).mul_(y)
        out = square.mul_(6 * k * a).add_(2 * k).mul_(y)
        gate = torch.sigmoid(z)
        return out.mul_(z.neg_().sigmoid_()).add_(1.0).mul_(gate).mul_(x)

    def glu(self, x: Value, axis: int) -> Value:
        return torch.nn.functional.glu(x, axis)
