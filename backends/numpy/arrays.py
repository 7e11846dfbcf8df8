"""Operations on whole arrays: sums, extrema, shapes, indices, products."""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from nestgrad.backends.base import Backend, Index, Value
from nestgrad.backends.contractions import parse
from nestgrad.backends.numpy.memory import writes
from nestgrad.errors import ShapeError

_total: Any = np.add.reduce
_greatest: Any = np.maximum.reduce
_least: Any = np.minimum.reduce

_BLOCK = 4096
"""How many numbers a running sum keeps while it goes over a big array: 16 KiB of float32 stay in the first cache."""


class Arrays(Backend):
    """Methods of NumPy's arrays, with the shapes and dtypes that the contract asks for."""

    def sum(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        if x.size > _BLOCK and x.dtype.kind == "f" and x.flags.c_contiguous and 0 < len(axes) < x.ndim:
            answer = _long_sum(x, axes)
            if answer is not None:
                return answer.reshape([1 if k in axes else n for k, n in enumerate(x.shape)]) if keepdims else answer
        return _total(x, axes, None, None, keepdims)

    def amax(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        return _greatest(x, axes, None, None, keepdims)

    def amin(self, x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
        return _least(x, axes, None, None, keepdims)

    def argmax(self, x: Value, axis: int, keepdims: bool = False) -> Value:
        return x.argmax(axis, keepdims=keepdims)

    def argmin(self, x: Value, axis: int, keepdims: bool = False) -> Value:
        return x.argmin(axis, keepdims=keepdims)

    def reshape(self, x: Value, shape: tuple[int, ...]) -> Value:
        return x.reshape(shape)

    def permute(self, x: Value, axes: tuple[int, ...]) -> Value:
        return x.transpose(axes)

    def broadcast_to(self, x: Value, shape: tuple[int, ...]) -> Value:
        if math.prod(shape) > _BLOCK:
            return np.broadcast_to(x, shape)
        full = np.empty(shape, x.dtype)  # five times faster than a view while it is small
        full[...] = x
        return full

    def concat(self, *xs: Value, axis: int = 0) -> Value:
        return np.concatenate(xs, axis)

    def index_set(self, x: Value, v: Value, index: Index) -> Value:
        copy = np.array(x)
        copy[index] = v
        return copy

    def index_add(self, x: Value, v: Value, index: Index) -> Value:
        copy = np.array(x)
        if any(isinstance(k, np.ndarray) for k in index):
            np.add.at(copy, index, v)
        else:
            copy[index] += v
        return copy

    def put(self, x: Value, index: Index, shape: tuple[int, ...]) -> Value:
        full = np.zeros(shape, x.dtype)
        if any(isinstance(k, np.ndarray) for k in index):
            np.add.at(full, index, x)
        else:
            full[index] = x
        return full

    @writes()
    def matmul(self, x: Value, y: Value, out: Value = None) -> Value:
        if x.ndim == 2 and y.ndim == 2:
            return x.dot(y, out)  # the same product with half the overhead
        return np.matmul(x, y, out)

    @writes()
    def product(self, x: Value, y: Value, tx: bool, ty: bool, out: Value = None) -> Value:
        x, y = x.swapaxes(-1, -2) if tx else x, y.swapaxes(-1, -2) if ty else y
        return self.matmul(x, y) if out is None else self.matmul(x, y, out)  # a subclass may have a matmul of two arrays

    def vecmat(self, x: Value, y: Value, ty: bool) -> Value:
        return y.dot(x) if ty else x.dot(y)

    @writes()
    def linear(self, x: Value, w: Value, bias: Value, out: Value = None) -> Value:
        if x.ndim == 2:
            product = x.dot(w, out if out is not None and out.shape == (len(x), w.shape[1]) else None)
        else:  # one product of matrices instead of one per leading index
            lead, m = x.shape[:-1], w.shape[-1]
            rows = math.prod(lead)
            into = out.reshape(rows, m) if out is not None and out.shape == (*lead, m) else None
            product = x.reshape(rows, x.shape[-1]).dot(w, into).reshape(*lead, m)
        if out is None and bias.shape == product.shape[-1:] and bias.dtype == product.dtype:
            return np.add(product, bias, product)
        return np.add(product, bias, out)  # a bias may have more axes than the product

    def einsum(self, *xs: Value, subscripts: str) -> Value:
        small = sum(x.size for x in xs) < 512  # there the plain loop of NumPy beats the way over a product of matrices
        if len(xs) < 3 and not small:
            return super().einsum(*xs, subscripts=subscripts)
        parse(subscripts)
        try:
            return np.einsum(subscripts, *xs, optimize=not small)
        except ValueError as error:
            shapes = ", ".join(str(x.shape) for x in xs)
            raise ShapeError(f"einsum: {subscripts!r} does not fit the shapes {shapes}: {error}") from error


def _long_sum(x: Any, axes: tuple[int, ...]) -> Any:
    """A sum over leading or over trailing axes of a big array; None where the plain way is as good.

    NumPy adds row after row, which loses digits in proportion to their number and goes at the speed of short rows. Here
    rows are added up by products with ones, or laid side by side: few long sums, then short ones.
    """
    if axes == tuple(range(len(axes))):
        n, m = math.prod(x.shape[: len(axes)]), math.prod(x.shape[len(axes) :])
        if n < 128 or not m:
            return None
        rows = x.reshape(n, m)
        total = _column_sums(rows) if x.dtype in _PRODUCTS else _side_by_side(rows)
        return total.reshape(x.shape[len(axes) :])
    if axes == tuple(range(x.ndim - len(axes), x.ndim)):
        m = math.prod(x.shape[x.ndim - len(axes) :])
        if 1 < m <= 256:
            return x.reshape(-1, m).dot(_ones(m, x.dtype)).reshape(x.shape[: x.ndim - len(axes)])
    return None


_PRODUCTS = (np.dtype(np.float32), np.dtype(np.float64))
"""What the library of products takes."""

_ROWS = 1024
"""How many rows one product adds up, which it does a few at a time, so that it loses digits in proportion to a fraction of them."""


def _column_sums(rows: Any) -> Any:
    n = len(rows)
    if n <= _ROWS:
        return _ones(n, rows.dtype).dot(rows)
    k = n // _ROWS
    blocks = rows[: k * _ROWS].reshape(k, _ROWS, rows.shape[1])
    total = _column_sums(np.matmul(_ones(_ROWS, rows.dtype), blocks))
    if k * _ROWS < n:
        total += _ones(n - k * _ROWS, rows.dtype).dot(rows[k * _ROWS :])
    return total


def _side_by_side(rows: Any) -> Any:
    n, m = rows.shape
    q = max(_BLOCK // m, 1) if m < _BLOCK // 8 else math.isqrt(n)
    k = n // q
    blocks = rows[: k * q].reshape(k, q, m)
    total = _total(_total(blocks, 0 if m < _BLOCK // 8 else 1), 0)
    if k * q < n:
        total += _total(rows[k * q :], 0)
    return total


@lru_cache(maxsize=64)
def _ones(n: int, dtype: Any) -> Any:
    """That many ones, which nobody may write over."""
    ones = np.ones(n, dtype)
    ones.setflags(write=False)
    return ones
