"""The backend itself: arrays in and out, dtypes, new arrays. The operations are in the modules beside."""

from operator import attrgetter, getitem
from typing import Any

import numpy as np

from nestgrad.backends.base import Value, freeze, frozen, no_complex, no_masked
from nestgrad.backends.numpy.along import Along
from nestgrad.backends.numpy.arranging import Arranging
from nestgrad.backends.numpy.arrays import Arrays
from nestgrad.backends.numpy.convolution import Convolution
from nestgrad.backends.numpy.elementwise import Elementwise
from nestgrad.backends.numpy.linalg import Linalg
from nestgrad.backends.numpy.memory import NumpyMemory
from nestgrad.backends.numpy.normalization import Normalization
from nestgrad.backends.numpy.numbers import Numbers
from nestgrad.backends.numpy.padding import Padding
from nestgrad.backends.numpy.placing import Placing
from nestgrad.backends.numpy.pooling import Pooling
from nestgrad.backends.numpy.scans import Scans
from nestgrad.backends.numpy.sorting import Sorting
from nestgrad.backends.numpy.special import Special
from nestgrad.errors import DTypeError, ShapeError

_range: Any = np.arange

_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float"}


class NumpyBackend(
    Elementwise, Numbers, Special, Along, Arranging, Padding, Placing, Pooling, Convolution, Normalization, Scans, Linalg, Sorting, Arrays
):  # fmt: skip
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

    # builtins do not bind, so they stand here as they are

    shape: Any = attrgetter("shape")
    dtype: Any = attrgetter("dtype")
    getitem: Any = getitem

    @property
    def memory(self) -> NumpyMemory:
        return NumpyMemory(self, NumpyBackend)

    def quietly(self, f: Any) -> Any:
        return np.errstate(all="ignore")(f)

    # arrays in and out

    def asarray(self, data: Any, dtype: Any = None) -> Value:
        wanted = None if dtype is None else self.resolve_dtype(dtype)
        no_masked(data)
        try:
            # asarray first: foreign arrays are asked for a view, which they all have, and not for a copy
            given = np.asarray(data) if hasattr(data, "__array__") else data
            if getattr(given, "dtype", np.dtype(float)).kind == "c":  # which a cast would halve
                raise no_complex(given.dtype)
            array = np.array(given, wanted)
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
        no_masked(data)
        chain = freeze(data)
        return data.view(np.ndarray), chain

    def stamp(self, value: Value) -> Any:
        return ()  # NumPy counts no versions

    def changed(self, value: Value, token: Any) -> bool:
        return not frozen(token)

    def overlaps(self, x: Value, y: Value) -> bool:
        return bool(np.may_share_memory(x, y))

    def owner(self, x: Value) -> Any:
        while isinstance(x, np.ndarray) and x.base is not None:
            x = x.base
        return id(x)

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


def _random(draw: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    single = dtype == np.float32
    return np.asarray(draw(shape, np.float32 if single else np.float64)).astype(dtype, copy=False)
