"""Functions of numbers: NumPy's own wherever they mean the same, and thin ones elsewhere."""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.numpy.memory import default, writes

_quiet = np.errstate(all="ignore")
"""A decorator; half as dear as the statement."""


class Elementwise(Backend):
    """Ufuncs do not bind, so they stand here as they are. A method writes its answer into ``out``, where that is given."""

    add: Any = np.add
    sub: Any = np.subtract
    mul: Any = np.multiply
    scale: Any = np.multiply
    div: Any = np.true_divide
    per: Any = np.true_divide
    pow: Any = np.power
    powf: Any = np.power
    neg: Any = np.negative
    abs: Any = np.absolute
    square: Any = np.square
    sqrt: Any = np.sqrt
    exp: Any = np.exp
    expm1: Any = np.expm1
    log: Any = np.log
    log1p: Any = np.log1p
    sin: Any = np.sin
    cos: Any = np.cos
    tan: Any = np.tan
    asin: Any = np.arcsin
    acos: Any = np.arccos
    atan: Any = np.arctan
    sinh: Any = np.sinh
    cosh: Any = np.cosh
    tanh: Any = np.tanh
    asinh: Any = np.arcsinh
    acosh: Any = np.arccosh
    atanh: Any = np.arctanh
    floor: Any = np.floor
    ceil: Any = np.ceil
    sign: Any = np.sign
    maximum: Any = np.maximum
    minimum: Any = np.minimum
    eq: Any = np.equal
    ne: Any = np.not_equal
    lt: Any = np.less
    le: Any = np.less_equal
    gt: Any = np.greater
    ge: Any = np.greater_equal
    logical_not: Any = np.logical_not
    logical_and: Any = np.logical_and
    logical_or: Any = np.logical_or
    isnan: Any = np.isnan
    isfinite: Any = np.isfinite

    @default
    def reciprocal(self, x: Value) -> Value:
        return np.true_divide(1.0, x)

    @default
    def rsqrt(self, x: Value) -> Value:
        return np.true_divide(1.0, np.sqrt(x))

    @writes(0)
    def powi(self, x: Value, n: int, out: Value = None) -> Value:
        if n == 2:
            return np.square(x, out)
        if 0 < n < 9:  # up to here products are much faster, and as good to three units in the last place
            return super().powi(x, n) if out is None else _power(x, n, out)
        return np.power(x, n, out) if n >= 0 else np.true_divide(1.0, self.powi(x, -n, out), out)

    def erf(self, x: Value) -> Value:
        return _erf()(x)

    def round(self, x: Value) -> Value:
        return np.rint(x) if x.dtype.kind == "f" else x

    def where(self, c: Value, x: Value, y: Value) -> Value:
        if isinstance(x, float) and isinstance(y, float):  # np.where would give float64, whatever the default is
            x = self.asarray(x)
        return np.where(c, x, y)

    @default
    def relu(self, x: Value) -> Value:
        return np.maximum(x, 0)

    @writes(1)
    @_quiet
    def mul0(self, x: Value, y: Value, out: Value = None) -> Value:
        product = np.multiply(x, y, out)
        smaller = isinstance(y, np.ndarray) and y.dtype == product.dtype and y.size < product.size
        return _zero_where_zero(x, product, y if smaller else product, out)

    @writes()
    def mul00(self, x: Value, y: Value, out: Value = None) -> Value:
        product = self.mul0(x, y, out)
        return _zero_where_zero(y, product, product, out)

    @writes(1)
    @_quiet
    def div0(self, x: Value, y: Value, out: Value = None) -> Value:
        quotient = np.true_divide(x, y, out)
        return _zero_where_zero(x, quotient, quotient, out)

    @default
    def triple(self, x: Value, y: Value, z: Value, c: float) -> Value:
        t = np.multiply(x, y)
        if type(t) is type(z) is np.ndarray and z.shape == t.shape and z.dtype == t.dtype:
            np.multiply(t, z, t)
            return np.multiply(t, c, t)
        return np.multiply(np.multiply(t, z), c)

    @default
    def mul_add(self, x: Value, y: Value, z: Value) -> Value:
        t = np.multiply(x, y)
        if type(t) is type(z) is np.ndarray and z.shape == t.shape and z.dtype == t.dtype:
            return np.add(t, z, t)
        return np.add(t, z)

    @default
    def tanh_vjp(self, g: Value, y: Value) -> Value:
        t = y * y
        if type(t) is type(g) is np.ndarray and g.shape in (t.shape, ()) and g.dtype == t.dtype:
            np.subtract(1, t, t)
            return np.multiply(g, t, t)
        return np.multiply(g, 1 - t)


def _power(x: Any, n: int, out: Any) -> Any:
    """``x ** n`` in ``out`` by the products that ``powi`` makes, with room for one square beside it."""
    if n == 1:
        np.copyto(out, x)
        return out
    power, square = None, x
    while True:
        if n & 1:
            power = square if power is None else np.multiply(power, square, out)
        n >>= 1
        if not n:
            return power
        square = np.square(square, out if power is None else None if square is x or square is power else square)


def _zero_where_zero(x: Any, product: Any, witness: Any, out: Any = None) -> Any:
    """``product`` with 0 where ``x`` is 0; one cheap pass unless an element of a witness, it or a factor, is infinite, NaN or huge."""
    flat = witness.ravel("K")
    if math.isfinite(flat.dot(flat)):  # NaN and inf survive a sum of squares
        return product
    if out is None:
        return np.where(np.equal(x, 0), product.dtype.type(0), product)
    np.copyto(out, 0, where=np.equal(x, 0))
    return out


@lru_cache(maxsize=1)
def _erf() -> Any:
    try:
        from scipy.special import erf
    except ImportError:
        each = np.frompyfunc(math.erf, 1, 1)
        return lambda x: np.asarray(each(x), x.dtype if x.dtype.kind == "f" else np.float64)
    return lambda x: erf(x).astype(np.float16) if x.dtype == np.float16 else erf(x)
