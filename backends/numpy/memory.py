"""Ops that write into arrays: ufuncs, and methods with an ``out`` at the end of their parameters."""

from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import numpy as np

from nestgrad.backends.derived import Derived
from nestgrad.backends.memory import Layout, Memory, Writer

F = TypeVar("F", bound=Callable[..., Any])

FRESH = frozenset({
    "matmul", "product", "vecmat", "linear", "sum", "amax", "amin", "argmax", "argmin", "concat", "where", "index_set", "index_add", "put",
    "mul_add", "triple", "tanh_vjp", "mul0", "mul00", "div0", "quotient00", "reciprocal", "rsqrt", "erf", "gauss", "relu", "sigmoid",
    "sigmoid_vjp", "sigmoid_curve", "softplus", "silu", "silu_vjp", "gelu", "gelu_vjp", "gelu_curve", "leaky_relu", "leaky", "elu",
    "elu_vjp", "softmax", "log_softmax", "logsumexp", "mean", "cumsum", "cumprod", "take_along", "add_along", "standardise", "rms_norm",
    "norm", "solve", "inv", "conv", "conv_input", "conv_weight", "xlogy", "xlog1py", "triu", "tril",
})  # fmt: skip
"""Ops whose answers are always new arrays. Others may be too: no more than a longer life of what they read depends on it."""


_LINE = 64
"""Bytes of a line of the cache."""


def writes(*over: int) -> Callable[[F], F]:
    """Marks a method whose last parameter is ``out=None``: without one it makes a new array, with one it gives the same numbers there.

    Args:
        over: Positions of the arrays that ``out`` may be; one that is read after something was written is not among them.
    """

    def mark(method: F) -> F:
        method.writes = frozenset(over)  # type: ignore[attr-defined]
        return method

    return mark


def default(method: F) -> F:
    """Marks a method that computes what the default of backends does, to the last bit, in fewer arrays."""
    method.default = True  # type: ignore[attr-defined]
    return method


class NumpyMemory(Memory):
    """Memory of NumPy's arrays.

    Args:
        backend: A ``NumpyBackend``.
        own: The class whose methods ``FRESH`` tells about.
    """

    def __init__(self, backend: Any, own: type) -> None:
        self._backend = backend
        self._own = own

    def writer(self, name: str) -> Writer | None:
        method = getattr(self._backend, name, None)
        if isinstance(method, np.ufunc):
            return Writer(method, frozenset(range(method.nin)), False) if method.nout == 1 else None
        over = getattr(method, "writes", None)
        return None if method is None or over is None else Writer(method, over, True)

    def expands(self, name: str) -> bool:
        method = getattr(self._backend, name, None)
        own = getattr(method, "__func__", method)
        if type(self._backend) is self._own and getattr(own, "default", False):
            return True
        return own is not None and own is getattr(Derived, name, None)

    def fresh(self, name: str) -> bool:
        method = getattr(self._backend, name, None)
        if isinstance(method, np.ufunc):
            return True
        return name in FRESH and getattr(method, "__func__", method) is getattr(self._own, name)

    def layout(self, x: Any) -> Layout | None:
        if type(x) is not np.ndarray or not x.ndim or not x.size:
            return None
        axes = tuple(sorted(range(x.ndim), key=lambda k: (-x.strides[k], k)))
        return axes if x.transpose(axes).flags.c_contiguous else None

    def nbytes(self, shape: tuple[int, ...], dtype: Any) -> int:
        return prod(shape) * int(np.dtype(dtype).itemsize)

    def room(self, nbytes: int) -> Any:
        whole = np.empty(nbytes + _LINE, np.uint8)
        return whole[-whole.ctypes.data % _LINE :]

    def placed(self, room: Any, start: int, shape: tuple[int, ...], dtype: Any, layout: Layout) -> Any:
        whole = room[start : start + self.nbytes(shape, dtype)].view(dtype).reshape([shape[k] for k in layout])
        return whole.transpose([layout.index(k) for k in range(len(shape))])
