"""What happens when a function of another array library is called with a Tensor: operators work, all else is refused by name.

NumPy and PyTorch ask their arguments before they compute, so nothing of theirs runs on a Tensor, and no array of objects arises.
"""

import re
from typing import Any

from nestgrad.errors import ConversionError
from nestgrad.tensor.handle import Handle, apply, test

_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "true_divide": "truediv", "power": "pow", "float_power": "pow",
    "remainder": "mod", "floor_divide": "floordiv", "divmod": "divmod", "matmul": "matmul", "bitwise_and": "and",
    "bitwise_or": "or", "bitwise_xor": "xor",
}  # fmt: skip
_COMPARISONS = {
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
}  # fmt: skip
_RENAMED = {
    "absolute": "abs", "fabs": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "degrees": "rad2deg", "radians": "deg2rad", "fix": "trunc",
    "rint": "round", "amax": "max", "amin": "min", "cat": "concat", "repeat_interleave": "repeat",
    "take_along_dim": "take_along_axis", "expit": "sigmoid", "gammaln": "lgamma", "inverse": "inv",
    "unsqueeze": "expand_dims", "expand": "broadcast_to", "movedim": "moveaxis", "swapdims": "swapaxes",
}  # fmt: skip
"""NumPy's and torch's names that are spelled otherwise here."""

_WRITTEN = {
    "mv": "x @ y", "mm": "x @ y", "bmm": "x @ y", "mul": "x * y",
    "sub": "x - y", "div": "x / y", "pow": "x ** y", "neg": "-x", "invert": "~x", "shape": "x.shape", "size": "x.size", "ndim": "x.ndim",
    "logdet": "ng.linalg.slogdet(x)[1]", "t": "x.T", "numel": "x.size", "dim": "x.ndim", "double": "x.astype('float64')",
    "float": "x.astype('float32')", "long": "x.astype('int64')", "bool": "x.astype('bool')", "clone": "x, which nothing writes into",
}  # fmt: skip
"""What has another form here."""


class Foreign(Handle):
    """The protocols of other array libraries."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """``array * x`` and ``np.float64(2.0) * x`` come here; so does ``np.sin(x)``, which is refused."""
        name = ufunc.__name__
        if method == "__call__" and not kwargs:
            if name in _OPERATORS:
                x, y = inputs
                operator = _OPERATORS[name]
                return getattr(x, f"__{operator}__")(y) if isinstance(x, Handle) else getattr(y, f"__r{operator}__")(x)
            if name in ("maximum", "minimum"):
                return apply(name, *inputs)
            if name in _COMPARISONS:
                return test(_COMPARISONS[name], *inputs)
        if kwargs.get("out") is not None:
            raise ConversionError(
                f"np.{name} into an array, as in `array += x`: the levels of the Tensor would be lost. "
                "Try array = array + x, which gives a Tensor"
            )
        if method != "__call__":
            called = f"np.{name}.{method}"
            raise ConversionError(f"{called} of a Tensor: NumPy does not know its levels. Try x.sum(), x.prod(), x.max() or x.min()")
        raise _refused(f"np.{name}", name, "NumPy")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Refused: NumPy's functions do not know levels."""
        module = getattr(func, "__module__", "numpy").replace("numpy", "np", 1)
        raise _refused(f"{module}.{func.__name__}", func.__name__, "NumPy")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Refused: torch's functions do not know levels. Its operators take the refusal as a hint, and Python comes to ours."""
        called = re.sub(r"^(linalg|special|fft)_", r"\1.", getattr(func, "__name__", str(func)))
        raise _refused(f"torch.{called}", called.rpartition(".")[2], "torch")


def _refused(called: str, name: str, library: str) -> ConversionError:
    """The error that gives the right spelling, if there is one."""
    way = spelled(name, library) or "to write it with nestgrad's functions"
    return ConversionError(f"{called} of a Tensor: {library} does not know its levels. Try {way}; x.numpy() makes a constant")


def spelled(name: str, library: str) -> str:
    """What a function or method of another library is here; ``""`` if there is none of that name."""
    import nestgrad

    name = _RENAMED.get(name, name)
    if library == "torch" and name in vars(nestgrad.nn)["__all__"]:
        ways = [f"ng.nn.{name}(...)"]  # which takes what torch's takes, as ng.linear and ng.pad do not
    else:
        ways = [f"ng.{name}(...)"] if name in vars(nestgrad)["__all__"] else []
        ways += [f"ng.linalg.{name}(...)"] if name in nestgrad.linalg.__all__ else []
        if callable(getattr(nestgrad.Tensor, name, None)):
            ways.append(f"x.{name}()")
    return _WRITTEN.get(name) or " or ".join(ways)
