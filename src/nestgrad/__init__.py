"""nestgrad: derivatives of any order from backend decorators.

>>> import nestgrad as ng
>>> S = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))
>>> x = S.tensor(2.0, requires_grad=True)
>>> y = x**3
>>> y.wrt(x).wrt(x).item()
12.0
"""

from typing import TYPE_CHECKING, Any

from nestgrad import errors, func, implicit, random
from nestgrad.backends import NumpyBackend, get_backend
from nestgrad.custom import custom_jvp, custom_vjp, define
from nestgrad.functions import (
    abs,
    acos,
    acosh,
    add,
    arange,
    argmax,
    argmin,
    asarray,
    asin,
    asinh,
    atan,
    atanh,
    broadcast_to,
    ceil,
    clamp,
    clip,
    concat,
    concatenate,
    cos,
    cosh,
    divide,
    einsum,
    equal,
    erf,
    exp,
    expand_dims,
    expm1,
    eye,
    floor,
    from_numpy,
    from_torch,
    full,
    full_like,
    greater,
    greater_equal,
    isfinite,
    isnan,
    less,
    less_equal,
    linear,
    linspace,
    log,
    log1p,
    log_softmax,
    logical_and,
    logical_not,
    logical_or,
    logsumexp,
    matmul,
    max,
    maximum,
    mean,
    min,
    minimum,
    multiply,
    negative,
    norm,
    not_equal,
    ones,
    ones_like,
    pad,
    permute,
    power,
    prod,
    ravel,
    reciprocal,
    relu,
    reshape,
    round,
    rsqrt,
    safe_where,
    sigmoid,
    sign,
    sin,
    sinh,
    softmax,
    softplus,
    sqrt,
    square,
    squeeze,
    stack,
    subtract,
    sum,
    swapaxes,
    tan,
    tanh,
    tensor,
    transpose,
    var,
    where,
    zeros,
    zeros_like,
)
from nestgrad.levels import Autodiff, Balanced, Batched, Forward, Taylor, Traced
from nestgrad.recomputing import checkpoint
from nestgrad.tensor import Gradients, Tensor

if TYPE_CHECKING:
    from nestgrad.backends import TorchBackend as TorchBackend

__version__ = "0.1.0"

# TorchBackend is public but not in the list: a star import must not load torch.
__all__ = [
    "Tensor", "Gradients", "Autodiff", "Balanced", "Batched", "Forward", "Taylor", "Traced", "NumpyBackend", "get_backend",
    "errors", "func", "implicit", "random", "checkpoint",
    "define", "custom_vjp", "custom_jvp",
    "tensor", "asarray", "from_numpy", "from_torch", "zeros", "ones", "full", "eye", "arange", "linspace", "zeros_like", "ones_like",
    "full_like",
    "add", "subtract", "multiply", "divide", "negative", "power", "reciprocal", "square", "sqrt", "rsqrt", "exp", "expm1", "log",
    "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "sigmoid",
    "softplus", "relu", "abs", "maximum", "minimum", "clamp", "clip", "sign", "floor", "ceil", "round", "isnan", "isfinite", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_not", "logical_and", "logical_or",
    "where", "safe_where",
    "sum", "mean", "prod", "max", "min", "var", "norm", "logsumexp", "softmax", "log_softmax", "argmax", "argmin",
    "reshape", "ravel", "permute", "transpose", "swapaxes", "squeeze", "expand_dims", "broadcast_to", "pad", "concat", "concatenate",
    "stack",
    "einsum", "linear", "matmul",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "TorchBackend":
        from nestgrad import backends

        return backends.TorchBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
