"""Functions of numbers: torch's own wherever they mean the same."""

import math
from typing import Any

import torch

from nestgrad.backends.base import Backend, Value

_addcmul: Any = torch.addcmul
# The function in C++ without the Python around it.
_tanh_backward: Any = getattr(torch.ops.aten.tanh_backward.default, "_op", torch.ops.aten.tanh_backward.default)


_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_MOST = {dtype: math.ldexp(0.5, math.frexp(torch.finfo(dtype).max)[1]) for dtype in _FLOATS}
"""The largest power of two."""


class Elementwise(Backend):
    """Torch's builtins do not bind, so they stand here as they are."""

    default_device: Any
    _numbers: dict[tuple[float, torch.dtype], torch.Tensor]
    _nothings: dict[torch.dtype, torch.Tensor]

    add: Any = torch.add
    sub: Any = torch.sub
    mul: Any = torch.mul
    div: Any = torch.div
    pow: Any = torch.pow
    powf: Any = torch.pow
    neg: Any = torch.neg
    abs: Any = torch.abs
    reciprocal: Any = torch.reciprocal
    square: Any = torch.square
    sqrt: Any = torch.sqrt
    rsqrt: Any = torch.rsqrt
    exp: Any = torch.exp
    expm1: Any = torch.expm1
    log: Any = torch.log
    log1p: Any = torch.log1p
    sin: Any = torch.sin
    cos: Any = torch.cos
    tan: Any = torch.tan
    asin: Any = torch.asin
    acos: Any = torch.acos
    atan: Any = torch.atan
    sinh: Any = torch.sinh
    cosh: Any = torch.cosh
    tanh: Any = torch.tanh
    asinh: Any = torch.asinh
    acosh: Any = torch.acosh
    atanh: Any = torch.atanh
    erf: Any = torch.erf
    sigmoid: Any = torch.sigmoid
    relu: Any = torch.relu
    floor: Any = torch.floor
    ceil: Any = torch.ceil
    round: Any = torch.round
    logical_not: Any = torch.logical_not
    isnan: Any = torch.isnan
    isfinite: Any = torch.isfinite

    # torch refuses a Python number as the first operand, or as any, of what follows

    def eq(self, x: Value, y: Value) -> Value:
        return torch.eq(x, y) if isinstance(x, torch.Tensor) else torch.eq(y, x)

    def ne(self, x: Value, y: Value) -> Value:
        return torch.ne(x, y) if isinstance(x, torch.Tensor) else torch.ne(y, x)

    def lt(self, x: Value, y: Value) -> Value:
        return torch.lt(x, y) if isinstance(x, torch.Tensor) else torch.gt(y, x)

    def le(self, x: Value, y: Value) -> Value:
        return torch.le(x, y) if isinstance(x, torch.Tensor) else torch.ge(y, x)

    def gt(self, x: Value, y: Value) -> Value:
        return torch.gt(x, y) if isinstance(x, torch.Tensor) else torch.lt(y, x)

    def ge(self, x: Value, y: Value) -> Value:
        return torch.ge(x, y) if isinstance(x, torch.Tensor) else torch.le(y, x)

    def logical_and(self, x: Value, y: Value) -> Value:
        return torch.logical_and(self._array(x), self._array(y))

    def logical_or(self, x: Value, y: Value) -> Value:
        return torch.logical_or(self._array(x), self._array(y))

    def _array(self, x: Value) -> torch.Tensor:
        return x if isinstance(x, torch.Tensor) else self.asarray(x)

    def maximum(self, x: Value, y: Value) -> Value:
        if not isinstance(y, torch.Tensor):
            return torch.clamp(x, min=y)
        return torch.maximum(x, y) if isinstance(x, torch.Tensor) else torch.clamp(y, min=x)

    def minimum(self, x: Value, y: Value) -> Value:
        if not isinstance(y, torch.Tensor):
            return torch.clamp(x, max=y)
        return torch.minimum(x, y) if isinstance(x, torch.Tensor) else torch.clamp(y, max=x)

    def where(self, c: Value, x: Value, y: Value) -> Value:
        if isinstance(x, float) and isinstance(y, float):  # torch would give its own default dtype
            x = self.asarray(x)
        return torch.where(c, x, y)

    def clamp(self, x: Value, lo: float | None = None, hi: float | None = None) -> Value:
        return x if lo is None and hi is None else torch.clamp(x, lo, hi)

    def sign(self, x: Value) -> Value:
        if not x.is_floating_point():
            return torch.sign(x)
        # torch.sign(NaN) is 0; clamp keeps NaN. Twice the largest power of two brings the smallest number above 1.
        most = _MOST[x.dtype]
        return torch.mul(x, most).mul_(most).clamp_(-1.0, 1.0)

    def powi(self, x: Value, n: int) -> Value:
        if n == 2:
            return torch.square(x)
        return torch.pow(x, n) if n >= 0 or x.is_floating_point() else torch.reciprocal(torch.pow(x, -n))

    def softplus(self, x: Value) -> Value:
        return torch.nn.functional.softplus(x, 1.0, 40.0)  # from 40 on it is x in double precision too

    def mul0(self, x: Value, y: Value) -> Value:
        return _zero_where_zero(x, torch.mul(x, y))

    def mul00(self, x: Value, y: Value) -> Value:
        product = torch.mul(x, y)
        return product if _all_finite(product) else _zero_where_zero(y, _zero_where_zero(x, product))

    def div0(self, x: Value, y: Value) -> Value:
        return _zero_where_zero(x, torch.div(x, y))

    def quotient00(self, x: Value, y: Value, z: Value) -> Value:
        try:
            if x.dtype is y.dtype is z.dtype and x.is_floating_point():
                out = torch.mul(x, y).div_(z).neg_()  # one new array
                if _all_finite(out):
                    return out
        except (RuntimeError, AttributeError):  # z is larger than the product, or one is a Python number
            pass
        return super().quotient00(x, y, z)

    def power0(self, x: Value, y: Value, n: int, c: float) -> Value:
        if n in (-2, -1, 1, 2, 3) and isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x.dtype is y.dtype:
            out = torch.mul(x, y) if n > 0 else torch.div(x, y)  # all else in its memory
            for _ in range(abs(n) - 1):
                out = out.mul_(y) if n > 0 else out.div_(y)
            return _zero_where_zero(x, out if c == 1.0 else out.mul_(c))
        return super().power0(x, y, n, c)

    def secant(self, x: Value) -> Value:
        if not x.is_floating_point():
            return super().secant(x)
        return torch.sub(1.0, x).mul_(torch.add(x, 1.0)).rsqrt_()

    def scale(self, x: Value, c: float) -> Value:
        return torch.mul(x, self._number(c, x)) if x.is_floating_point() else torch.mul(x, c)

    def per(self, x: Value, n: int) -> Value:
        return torch.div(x, self._number(float(n), x)) if x.is_floating_point() else torch.div(x, n)

    def _number(self, c: float, x: torch.Tensor) -> torch.Tensor:
        """``c`` as an array without axes, which costs half the time of a number."""
        key = (c, x.dtype)
        number = self._numbers.get(key)
        if number is None:
            if len(self._numbers) > 1000:
                self._numbers.clear()
            number = self._numbers[key] = torch.tensor(c, dtype=x.dtype, device=self.default_device)
        return number

    def triple(self, x: Value, y: Value, z: Value, c: float) -> Value:
        try:
            dtype = x.dtype
            if z.dtype is dtype and dtype.is_floating_point:  # two passes over the memory of one new array, instead of three of two
                nothing = self._nothings.get(dtype)
                if nothing is None:  # minus zero keeps the sign of a zero that it is added to
                    nothing = self._nothings[dtype] = torch.tensor(-0.0, dtype=dtype, device=self.default_device)
                return _addcmul(nothing, x, y, value=c).mul_(z)
        except (RuntimeError, TypeError, AttributeError):  # z is larger than the product of x and y, or one is a Python number
            pass
        return self.scale(torch.mul(torch.mul(x, y), z), c)

    def mul_add(self, x: Value, y: Value, z: Value) -> Value:
        try:
            if x.dtype is y.dtype is z.dtype and x.dtype.is_floating_point:
                return _addcmul(z, x, y)
        except AttributeError:  # one is a Python number
            pass
        return torch.add(torch.mul(x, y), z)

    def tanh_vjp(self, g: Value, y: Value) -> Value:
        try:
            return _tanh_backward(g, y)
        except (RuntimeError, TypeError):  # a Python number, or shapes that do not broadcast
            return torch.mul(g, 1 - y * y)


def _all_finite(product: torch.Tensor) -> bool:
    """Whether all elements are finite, if that is cheap to know and none is huge; else False."""
    if not product.is_cpu or not product.is_floating_point():
        return False
    flat = product.reshape(-1)
    total = torch.dot(flat, flat).item()  # NaN and inf survive a sum of squares
    return bool(total - total == 0)


def _zero_where_zero(x: Any, product: torch.Tensor) -> torch.Tensor:
    """``product`` with 0 where ``x`` is 0; on the CPU one cheap pass unless an element is infinite, NaN or huge."""
    if _all_finite(product):
        return product
    if isinstance(x, torch.Tensor):
        return torch.where(x == 0, 0, product)
    return product if x else torch.zeros_like(product)
