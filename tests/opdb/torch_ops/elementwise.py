"""Functions of each entry."""

from typing import Any

import nestgrad as ng
from torch_ops.table import entries, entry

entries(
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "expm1", "floor", "isfinite", "isnan",
    "log", "log1p", "reciprocal", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "maximum", "minimum",
    "logical_and", "logical_or", "logical_not", "round", "nn.functional.relu",
)  # fmt: skip


def _scaled(operate: Any) -> Any:
    def call(x: Any, y: Any, alpha: Any = 1) -> Any:
        return operate(x, y if alpha == 1 else ng.multiply(y, alpha))

    return call


entry("add", "add", _scaled(ng.add))
entry("sub", "subtract", _scaled(ng.subtract))
entry("rsub", "subtract", lambda x, y, alpha=1: _scaled(ng.subtract)(y, x, alpha))
for _name, _ours, _swapped in (
    ("mul", "multiply", False), ("div|no_rounding_mode", "divide", False), ("true_divide", "divide", False), ("pow", "power", False),
    ("float_power", "float_power", False), ("__radd__", "add", True), ("__rsub__", "subtract", True), ("__rmul__", "multiply", True),
    ("__rdiv__", "divide", True), ("__rpow__", "power", True), ("eq", "equal", False), ("ne", "not_equal", False), ("lt", "less", False),
    ("le", "less_equal", False), ("gt", "greater", False), ("ge", "greater_equal", False), ("max|binary", "maximum", False),
    ("min|binary", "minimum", False),
):  # fmt: skip
    entry(_name, _ours, (lambda f: lambda x, y: f(y, x))(getattr(ng, _ours)) if _swapped else None)
entry("neg", "negative")
entry("sgn", "sign")
entry("clamp", "clamp", lambda x, min=None, max=None: ng.clamp(x, min, max))
entry("clamp_max", "clamp", lambda x, bound: ng.clamp(x, None, bound))
entry("clamp_min", "clamp", lambda x, bound: ng.clamp(x, bound))
entry("where", "where", lambda x, condition, y: ng.where(condition, x, y))
entry("isclose", "abs", lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: (
    ng.logical_or(ng.equal(x, y), ng.less_equal(ng.abs(x - y), atol + rtol * ng.abs(y)))))  # fmt: skip
