"""Roots, logarithms, angles and the parts of numbers: torch's own, with numbers beside arrays where torch refuses them."""

import math
from typing import Any

import torch

from nestgrad.backends.base import Backend, Value


class Numbers(Backend):
    """Torch's builtins do not bind, so they stand here as they are."""

    exp2: Any = torch.exp2
    log2: Any = torch.log2
    log10: Any = torch.log10
    xlogy: Any = torch.xlogy
    xlog1py: Any = torch.special.xlog1py
    deg2rad: Any = torch.deg2rad
    rad2deg: Any = torch.rad2deg
    trunc: Any = torch.trunc
    frac: Any = torch.frac
    remainder: Any = torch.remainder
    signbit: Any = torch.signbit
    isinf: Any = torch.isinf
    isposinf: Any = torch.isposinf
    isneginf: Any = torch.isneginf

    def cbrt(self, x: Value) -> Value:
        size = torch.abs(x)
        root = torch.pow(size, 1 / 3)
        step = torch.square(root).reciprocal_().mul_(size)
        root = torch.where(torch.isfinite(step), root.lerp(step, 1 / 3), root)  # a step of Newton's
        return root.copysign_(x)

    def times_log(self, x: Value, n: int, k: int) -> Value:
        return torch.mul(x, math.log(n) ** k)

    def apart(self, x: Value, y: Value) -> Value:
        out = torch.sub(*_both(x, y))
        if out.is_cpu:
            flat = out.reshape(-1)
            total = torch.dot(flat, flat).item()  # NaN and inf survive a sum of squares
            if total - total == 0:
                return out
        return torch.where(torch.eq(*_both(x, y)), 0, out)

    def logaddexp(self, x: Value, y: Value) -> Value:
        return torch.logaddexp(*_both(x, y))

    def logaddexp2(self, x: Value, y: Value) -> Value:
        return torch.logaddexp2(*_both(x, y))

    def hypot(self, x: Value, y: Value) -> Value:
        return torch.hypot(*_both(x, y))

    def atan2(self, x: Value, y: Value) -> Value:
        return torch.atan2(*_both(x, y))

    def pole(self, x: Value, y: Value, n: int, part: int) -> Value:
        x, y = _both(x, y)
        size = torch.square(x).add(torch.square(y)) if x.shape != y.shape else torch.square(x).addcmul_(y, y)
        if size.is_cpu and size.numel() and _plain(size):  # the square neither underflows nor overflows
            if n == 1:
                return size.reciprocal_().mul_(x).neg_() if part else size.reciprocal_().mul_(y)
            re, im = torch.div(y, size), torch.div(x, size).neg_()
        else:
            size = torch.hypot(x, y)
            re, im = torch.div(y, size).div_(size), torch.div(x, size).div_(size).neg_()
        if n == 1:
            return im if part else re
        if n == 2:
            return torch.mul(re, im).mul_(2.0) if part else re.square_().addcmul_(im, im, value=-1.0)
        return super().pole(x, y, n, part)

    def floor_divide(self, x: Value, y: Value) -> Value:
        return torch.div(*_both(x, y), rounding_mode="floor")

    def fmod(self, x: Value, y: Value) -> Value:
        return torch.fmod(*_both(x, y))

    def copysign(self, x: Value, y: Value) -> Value:
        return torch.copysign(*_both(x, y))

    def heaviside(self, x: Value, y: Value) -> Value:
        x, y = _both(x, y)
        return torch.where(torch.isnan(x), x, torch.heaviside(x, y))  # torch: 0 for NaN

    def nan_to_num(self, x: Value, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Value:
        return torch.nan_to_num(x, nan, posinf, neginf)

    def logical_xor(self, x: Value, y: Value) -> Value:
        return torch.logical_xor(*_both(x, y))


def _plain(x: torch.Tensor) -> bool:
    """Whether all entries are far from 0 and from infinity, and none is NaN."""
    least, most = torch.aminmax(x)
    limit = torch.finfo(x.dtype).eps ** 4
    return bool(limit < least.item() and most.item() < 1 / limit)


def _both(x: Any, y: Any) -> tuple[Any, Any]:
    """The operands as arrays: a Python number gets the dtype of the other, if that is floating or the number is whole."""
    if not isinstance(x, torch.Tensor):
        x = torch.tensor(x, dtype=_beside(x, y), device=y.device)
    if not isinstance(y, torch.Tensor):
        y = torch.tensor(y, dtype=_beside(y, x), device=x.device)
    return x, y


def _beside(number: float, array: torch.Tensor) -> torch.dtype | None:
    return array.dtype if array.is_floating_point() or not isinstance(number, float) else None
