"""The NumPy backend: NumPy's own functions wherever they mean the same, and thin ones elsewhere."""

import math
from functools import lru_cache
from operator import attrgetter, getitem
from typing import Any

import numpy as np

from nestgrad.backends.base import Backend, Index, Value, freeze, frozen, no_complex
from nestgrad.backends.contractions import parse
from nestgrad.errors import DTypeError, ShapeError

_total: Any = np.add.reduce
_greatest: Any = np.maximum.reduce
_least: Any = np.minimum.reduce
_range: Any = np.arange

_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float"}

_BLOCK = 4096
"""How many numbers a running sum keeps while it goes over a big array: 16 KiB of float32 stay in the first cache."""


class NumpyBackend(Backend):
    """Arrays of NumPy, on the CPU.

    >>> b = NumpyBackend("float32")
    >>> b.mul(b.asarray([1.0, 2.0]), 2.0)
    array([2., 4.], dtype=float32)
    """

    name = "numpy"

    def __init__(self, dtype: Any = np.float64) -> None:
        self.default_dtype = np.dtype(np.float64)
        self.default_dtype = self.resolve_dtype(dtype)
        if self.default_dtype.kind != "f":
            raise DTypeError(f"NumpyBackend: the default dtype must be floating, got {self.default_dtype}")

    def __repr__(self) -> str:
        return "numpy" if self.default_dtype == np.float64 else f"numpy({self.default_dtype})"

    # ufuncs and builtins do not bind, so they stand here as they are; functions in Python get a staticmethod.

    shape: Any = attrgetter("shape")
    dtype: Any = attrgetter("dtype")
    getitem: Any = getitem
    add: Any = np.add
    sub: Any = np.subtract
    mul: Any = np.multiply
    div: Any = np.true_divide
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

    # arrays in and out

    def asarray(self, data: Any, dtype: Any = None) -> Value:
        wanted = None if dtype is None else self.resolve_dtype(dtype)
        try:
            # asarray first: foreign arrays are asked for a view, which they all have, and not for a copy
            array = np.array(np.asarray(data) if hasattr(data, "__array__") else data, wanted)
        except ValueError as error:
            if "inhomogeneous" not in str(error):
                raise
            raise ShapeError(
                f"asarray: the lists are ragged, and an array needs rows of equal lengths ({error})"
            ) from error
        if wanted is None and array.dtype == np.float64 and not hasattr(data, "dtype"):
            array = array.astype(self.default_dtype, copy=False)
        if array.dtype.kind == "c":
            raise no_complex(array.dtype)
        if array.dtype.kind not in "biuf":
            raise DTypeError(
                f"asarray: got {type(data).__name__} {data!r:.60}, whose dtype would be {array.dtype}; expected numbers"
            )
        return array

    def to_numpy(self, x: Value) -> Any:
        return np.array(x)

    def cast(self, x: Value, dtype: Any) -> Value:
        return x.astype(self.resolve_dtype(dtype), copy=False)

    def resolve_dtype(self, dtype: Any = None) -> Any:
        if dtype is None or dtype is float:
            return self.default_dtype
        try:
            found: Any = np.dtype(str(dtype).removeprefix("torch.") if hasattr(dtype, "is_floating_point") else dtype)
        except TypeError as error:
            raise DTypeError(f"unknown dtype {dtype!r}; try 'float32', 'float64', 'int64' or 'bool'") from error
        if found.kind == "c":
            raise no_complex(found)
        return found

    def kind(self, x: Value) -> str:
        return _KINDS[x.dtype.kind]

    def is_floating(self, x: Value) -> bool:
        return bool(x.dtype.kind == "f")

    def accepts(self, data: Any) -> bool:
        return isinstance(data, (np.ndarray, np.generic))

    def share(self, data: Any) -> tuple[Value, Any]:
        if not isinstance(data, np.ndarray) or data.dtype.kind not in "biuf":
            return self.asarray(data), ()
        chain = freeze(data)
        return data.view(np.ndarray), chain

    def changed(self, value: Value, token: Any) -> bool:
        return not frozen(token)

    def overlaps(self, x: Value, y: Value) -> bool:
        return bool(np.may_share_memory(x, y))

    def index(self, data: Any) -> Value:
        array = np.array(data)
        if array.size and array.dtype.kind not in "iu":
            raise DTypeError(f"index: positions must be integers, got {array.dtype}")
        return array.astype(np.int64, copy=False)

    def nonzero(self, mask: Value) -> tuple[Value, ...]:
        return tuple(np.nonzero(mask))

    def nbytes(self, x: Value) -> int:
        return int(x.nbytes)

    def full(self, shape: tuple[int, ...], value: float, dtype: Any = None) -> Value:
        if dtype is None:
            return np.full(shape, value, self.default_dtype if isinstance(value, float) else None)
        return np.full(shape, value, self.resolve_dtype(dtype))

    def arange(self, start: float, stop: float, step: float = 1, dtype: Any = None) -> Value:
        floating = any(isinstance(bound, float) for bound in (start, stop, step))
        wanted = self.resolve_dtype(dtype) if dtype is not None else self.default_dtype if floating else None
        return _range(start, stop, step, wanted)

    def generator(self, seed: int | None = None) -> Any:
        return np.random.default_rng(seed)

    def uniform(self, shape: tuple[int, ...], generator: Any, dtype: Any = None) -> Value:
        return _random(generator.random, shape, self.resolve_dtype(dtype))

    def normal(self, shape: tuple[int, ...], generator: Any, dtype: Any = None) -> Value:
        return _random(generator.standard_normal, shape, self.resolve_dtype(dtype))

    # elementwise

    def reciprocal(self, x: Value) -> Value:
        return np.true_divide(1.0, x)

    def rsqrt(self, x: Value) -> Value:
        return np.true_divide(1.0, np.sqrt(x))

    def powi(self, x: Value, n: int) -> Value:
        if n == 2:
            return np.square(x)
        if 0 < n < 9:
            return super().powi(
                x, n
            )  # up to here products are much faster, and as good to three units in the last place
        return np.power(x, n) if n >= 0 else np.true_divide(1.0, self.powi(x, -n))

    def erf(self, x: Value) -> Value:
        return _erf()(x)

    def round(self, x: Value) -> Value:
        return np.rint(x) if x.dtype.kind == "f" else x

    def where(self, c: Value, x: Value, y: Value) -> Value:
        if isinstance(x, float) and isinstance(y, float):  # np.where would give float64, whatever the default is
            x = self.asarray(x)
        return np.where(c, x, y)

    def relu(self, x: Value) -> Value:
        return np.maximum(x, 0)

    def mul0(self, x: Value, y: Value) -> Value:
        with np.errstate(all="ignore"):
            return _zero_where_zero(x, np.multiply(x, y))

    def mul00(self, x: Value, y: Value) -> Value:
        return _zero_where_zero(y, self.mul0(x, y))

    def div0(self, x: Value, y: Value) -> Value:
        with np.errstate(all="ignore"):
            return _zero_where_zero(x, np.true_divide(x, y))

    def triple(self, x: Value, y: Value, z: Value, c: float) -> Value:
        t = np.multiply(x, y)
        if type(t) is type(z) is np.ndarray and z.shape == t.shape and z.dtype == t.dtype:
            np.multiply(t, z, t)
            return np.multiply(t, c, t)
        return np.multiply(np.multiply(t, z), c)

    def mul_add(self, x: Value, y: Value, z: Value) -> Value:
        t = np.multiply(x, y)
        if type(t) is type(z) is np.ndarray and z.shape == t.shape and z.dtype == t.dtype:
            return np.add(t, z, t)
        return np.add(t, z)

    def tanh_vjp(self, g: Value, y: Value) -> Value:
        t = y * y
        if type(t) is type(g) is np.ndarray and g.shape == t.shape and g.dtype == t.dtype:
            np.subtract(1, t, t)
            return np.multiply(g, t, t)
        return np.multiply(g, 1 - t)

    # whole arrays

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

    def matmul(self, x: Value, y: Value) -> Value:
        if x.ndim == 2 and y.ndim == 2:
            return x.dot(y)  # the same product with half the overhead
        return np.matmul(x, y)

    def product(self, x: Value, y: Value, tx: bool, ty: bool) -> Value:
        return self.matmul(x.swapaxes(-1, -2) if tx else x, y.swapaxes(-1, -2) if ty else y)

    def linear(self, x: Value, w: Value, bias: Value) -> Value:
        if x.ndim == 2:
            product = x.dot(w)
        else:  # one product of matrices instead of one per leading index
            lead = x.shape[:-1]
            product = x.reshape(math.prod(lead), x.shape[-1]).dot(w).reshape(*lead, w.shape[-1])
        if bias.shape == product.shape[-1:] and bias.dtype == product.dtype:
            return np.add(product, bias, product)
        return np.add(product, bias)

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


def _random(draw: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    single = dtype == np.float32
    return np.asarray(draw(shape, np.float32 if single else np.float64)).astype(dtype, copy=False)


def _zero_where_zero(x: Any, product: Any) -> Any:
    """``product`` with 0 where ``x`` is 0; one cheap pass unless an element is infinite, NaN or huge."""
    flat = product.ravel("K")
    if np.isfinite(flat.dot(flat)):  # NaN and inf survive a sum of squares
        return product
    return np.where(np.equal(x, 0), product.dtype.type(0), product)


def _long_sum(x: Any, axes: tuple[int, ...]) -> Any:
    """A sum over leading or over trailing axes of a big array; None where the plain way is as good.

    NumPy adds row after row, which loses digits in proportion to their number and goes at the speed of short rows. Here
    the rows are laid side by side first: few long sums, then one short one.
    """
    if axes == tuple(range(len(axes))):
        n, m = math.prod(x.shape[: len(axes)]), math.prod(x.shape[len(axes) :])
        if n < 128 or not m:
            return None
        rows = x.reshape(n, m)
        q = max(_BLOCK // m, 1) if m < _BLOCK // 8 else math.isqrt(n)
        k = n // q
        blocks = rows[: k * q].reshape(k, q, m)
        total = _total(_total(blocks, 0 if m < _BLOCK // 8 else 1), 0)
        if k * q < n:
            total += _total(rows[k * q :], 0)
        return total.reshape(x.shape[len(axes) :])
    if axes == tuple(range(x.ndim - len(axes), x.ndim)):
        m = math.prod(x.shape[x.ndim - len(axes) :])
        if 1 < m <= 256:
            return x.reshape(-1, m).dot(np.ones(m, x.dtype)).reshape(x.shape[: x.ndim - len(axes)])
    return None


@lru_cache(maxsize=1)
def _erf() -> Any:
    try:
        from scipy.special import erf
    except ImportError:
        each = np.frompyfunc(math.erf, 1, 1)
        return lambda x: np.asarray(each(x), x.dtype if x.dtype.kind == "f" else np.float64)
    return erf
