"""More functions of each entry: powers, special functions, roundings, comparisons."""

from typing import Any

import nestgrad as ng
from torch_ops.table import entries, entry

entries(
    "exp2", "log2", "log10", "logaddexp", "logaddexp2", "xlogy", "positive", "hypot", "deg2rad", "rad2deg", "trunc", "frac", "remainder",
    "fmod", "floor_divide", "copysign", "heaviside", "isinf", "isposinf", "isneginf", "signbit", "logical_xor", "sinc", "erfc", "erfinv",
    "lgamma", "digamma", "special.xlog1py", "special.erfcx", "special.ndtr", "special.log_ndtr", "nan_to_num", "atan2",
)  # fmt: skip
entry("__rmod__", "remainder", lambda x, y: ng.remainder(y, x))
entry("div|floor_rounding", "floor_divide", lambda x, y, rounding_mode: ng.floor_divide(x, y))
entry("div|trunc_rounding", "trunc", lambda x, y, rounding_mode: ng.trunc(ng.divide(x, y)))


def _polygamma(*args: Any) -> Any:
    """Torch's method has the order behind."""
    n, x = args if isinstance(args[0], int) else args[::-1]
    return ng.polygamma(n, x)


for _n in range(5):
    entry(f"polygamma|polygamma_n_{_n}", "polygamma", _polygamma)
entry("special.polygamma|special_polygamma_n_0", "polygamma", _polygamma)
for _p in (1, 3, 5):  # log of the product of gammas, p (p - 1) / 4 log pi beside
    entry(f"mvlgamma|mvlgamma_p_{_p}", "lgamma", lambda x, p: (
        sum((ng.lgamma(x - j / 2.0) for j in range(1, p)), ng.lgamma(x)) + p * (p - 1) / 4.0 * 1.1447298858494002))  # fmt: skip


def _rounded(x: Any, decimals: int = 0) -> Any:
    scale = 10.0 ** abs(decimals)
    return ng.round(x) if decimals == 0 else ng.round(x * scale) / scale if decimals > 0 else ng.round(x / scale) * scale


for _name in ("decimals_0", "decimals_3", "decimals_neg_3"):
    entry(f"round|{_name}", "round", _rounded)
entry("lerp", "multiply", lambda x, y, weight: x + (y - x) * weight)
entry("addcmul", "multiply", lambda x, y, z, value=1: x + y * z * value)
entry("addcdiv", "divide", lambda x, y, z, value=1: x + y / z * value)
entry("logit", "log", lambda x, eps=None: _logit(x if eps is None else ng.clamp(x, eps, 1.0 - eps)))
entry("ldexp", "exp2", lambda x, y: x * ng.exp2(y))
entry("special.entr", "xlogy", lambda x: -ng.xlogy(x, x))


def _logit(x: Any) -> Any:
    return ng.log(x) - ng.log1p(-x)
