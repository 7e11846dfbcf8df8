"""A backend of fifty digits: NumPy's object arrays, filled with the numbers of mpmath.

It defines what ``REQUIRED`` names and nothing else; all the rest comes from the defaults.
"""

from typing import Any

import numpy as np
from mpmath.ctx_mp import MPContext

from nestgrad.backends import Backend

mp = MPContext()
mp.dps = 50


def each(function: Any, n: int = 1) -> Any:
    """``function`` of numbers made a function of arrays; what is no real number becomes NaN, as in other backends."""

    def real(*xs: Any) -> Any:
        y = function(*(mp.mpf(x if isinstance(x, mp.mpf) else float(x)) for x in xs))
        return mp.nan if isinstance(y, mp.mpc) else y

    loop = np.frompyfunc(real, n, 1)
    return staticmethod(lambda *xs: np.asarray(loop(*xs), object))


def quotient(x: Any, y: Any) -> Any:
    return x / y if y else x * mp.inf


def power(x: Any, y: Any) -> Any:
    return mp.inf if not x and y < 0 else x**y


def greater(x: Any, y: Any) -> Any:
    return x if x > y or x != x else y


def arithmetic(ufunc: np.ufunc) -> Any:
    """A ufunc whose answer is an array, where NumPy would hand out a bare number."""
    return staticmethod(lambda *xs: np.asarray(ufunc(*xs)))


class MpmathBackend(Backend):
    """Floats are ``mpf`` in arrays of objects; integers and bools are NumPy's own."""

    name = "mpmath"
    default_dtype = np.dtype(object)

    def asarray(self, data: Any, dtype: Any = None) -> Any:
        return self.cast(np.array(data), self.resolve_dtype(dtype or np.array(data).dtype)).copy()

    def resolve_dtype(self, dtype: Any = None) -> Any:
        found = np.dtype(object if dtype is None else dtype)
        return np.dtype(object) if found.kind == "f" else found

    def cast(self, x: Any, dtype: Any) -> Any:
        dtype = self.resolve_dtype(dtype)
        if dtype.kind == "O":
            return self._numbers(x)
        return np.asarray(x != 0) if dtype.kind == "b" else np.asarray(x).astype(dtype)

    _numbers = each(lambda x: x)

    def to_numpy(self, x: Any) -> Any:
        return np.array(x, float if x.dtype == object else None)

    def shape(self, x: Any) -> tuple[int, ...]:
        return np.shape(x)

    def dtype(self, x: Any) -> Any:
        return x.dtype

    add, mul, abs = arithmetic(np.add), arithmetic(np.multiply), arithmetic(np.absolute)
    div, pow, exp, log = each(quotient, 2), each(power, 2), each(mp.exp), each(lambda x: mp.log(x) if x else -mp.inf)
    sin, cos, atan, tanh, sqrt, erf = map(each, (mp.sin, mp.cos, mp.atan, mp.tanh, mp.sqrt, mp.erf))
    _floor = each(lambda x: mp.floor(x) if mp.isfinite(x) else x)

    def floor(self, x: Any) -> Any:
        return self._floor(x) if x.dtype == object else x

    def eq(self, x: Any, y: Any) -> Any:
        return np.asarray(np.equal(x, y), bool)

    def lt(self, x: Any, y: Any) -> Any:
        return np.asarray(np.less(x, y), bool)

    def logical_not(self, x: Any) -> Any:
        return np.asarray(np.equal(x, 0))

    def logical_and(self, x: Any, y: Any) -> Any:
        return np.not_equal(x, 0) & np.not_equal(y, 0)

    def where(self, c: Any, x: Any, y: Any) -> Any:
        return np.where(c, x, y)

    def sum(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        total = np.asarray(np.add.reduce(x, axes, None, None, keepdims))
        return self._numbers(total) if x.dtype == object else total

    def amax(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        for axis in axes:
            x = np.asarray(np.frompyfunc(greater, 2, 1).reduce(x, axis, keepdims=True), x.dtype)
        return x if keepdims else x.squeeze(axes)

    def argmax(self, x: Any, axis: int, keepdims: bool = False) -> Any:
        return np.argmax(x, axis, keepdims=keepdims)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return x.reshape(shape)

    def permute(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.transpose(axes)

    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(x, shape)

    def concat(self, *xs: Any, axis: int = 0) -> Any:
        return np.concatenate(xs, axis)

    def getitem(self, x: Any, index: tuple[Any, ...]) -> Any:
        return np.asarray(x[index])

    def index_set(self, x: Any, v: Any, index: tuple[Any, ...]) -> Any:
        x = x.copy()
        x[index] = v
        return x

    def index_add(self, x: Any, v: Any, index: tuple[Any, ...]) -> Any:
        x = x.copy()
        np.add.at(x, index, v)
        return x

    def matmul(self, x: Any, y: Any) -> Any:
        return self.cast(np.matmul(x, y), x.dtype)
