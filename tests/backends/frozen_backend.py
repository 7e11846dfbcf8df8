"""A backend as somebody once wrote it: the required methods over NumPy, spelled out, and nothing else.

It is never extended. While its tests pass, backends written for an older nestgrad keep working.
"""

from typing import Any

import numpy as np

from nestgrad.backends import Backend


class FrozenBackend(Backend):
    name = "frozen"
    default_dtype = np.dtype(np.float64)

    def asarray(self, data: Any, dtype: Any = None) -> Any:
        return np.array(data, dtype)

    def to_numpy(self, x: Any) -> Any:
        return np.array(x)

    def shape(self, x: Any) -> tuple[int, ...]:
        return np.shape(x)

    def dtype(self, x: Any) -> Any:
        return x.dtype

    def cast(self, x: Any, dtype: Any) -> Any:
        return x.astype(dtype)

    def add(self, x: Any, y: Any) -> Any:
        return np.add(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        return np.multiply(x, y)

    def div(self, x: Any, y: Any) -> Any:
        return np.divide(x, y)

    def pow(self, x: Any, y: Any) -> Any:
        return np.power(x, y)

    def exp(self, x: Any) -> Any:
        return np.exp(x)

    def log(self, x: Any) -> Any:
        return np.log(x)

    def sin(self, x: Any) -> Any:
        return np.sin(x)

    def cos(self, x: Any) -> Any:
        return np.cos(x)

    def atan(self, x: Any) -> Any:
        return np.arctan(x)

    def tanh(self, x: Any) -> Any:
        return np.tanh(x)

    def sqrt(self, x: Any) -> Any:
        return np.sqrt(x)

    def erf(self, x: Any) -> Any:
        from math import erf

        return np.vectorize(erf, otypes=[float])(x).astype(x.dtype)

    def abs(self, x: Any) -> Any:
        return np.abs(x)

    def floor(self, x: Any) -> Any:
        return np.floor(x)

    def eq(self, x: Any, y: Any) -> Any:
        return np.equal(x, y)

    def lt(self, x: Any, y: Any) -> Any:
        return np.less(x, y)

    def logical_not(self, x: Any) -> Any:
        return np.logical_not(x)

    def logical_and(self, x: Any, y: Any) -> Any:
        return np.logical_and(x, y)

    def where(self, c: Any, x: Any, y: Any) -> Any:
        return np.where(c, x, y)

    def sum(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        return np.sum(x, axis=axes, keepdims=keepdims)

    def amax(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        return np.max(x, axis=axes, keepdims=keepdims)

    def argmax(self, x: Any, axis: int, keepdims: bool = False) -> Any:
        return np.argmax(x, axis=axis, keepdims=keepdims)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return np.reshape(x, shape)

    def permute(self, x: Any, axes: tuple[int, ...]) -> Any:
        return np.transpose(x, axes)

    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(x, shape)

    def concat(self, *xs: Any, axis: int = 0) -> Any:
        return np.concatenate(xs, axis)

    def getitem(self, x: Any, index: tuple[Any, ...]) -> Any:
        return x[index]

    def index_set(self, x: Any, v: Any, index: tuple[Any, ...]) -> Any:
        copy = np.array(x)
        copy[index] = v
        return copy

    def index_add(self, x: Any, v: Any, index: tuple[Any, ...]) -> Any:
        copy = np.array(x)
        np.add.at(copy, index, v)
        return copy

    def matmul(self, x: Any, y: Any) -> Any:
        return np.matmul(x, y)
