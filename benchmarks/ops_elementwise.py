"""Rows of the table of all operations: functions of each entry."""

import torch

import nestgrad as ng
from benchmarks.ops_cases import ABOVE, POSITIVE, REAL, UNIT, case, cases, draw

_F = torch.nn.functional
_S = torch.special

for _name in ("negative", "square", "exp", "expm1", "exp2", "sin", "cos", "atan", "sinh", "cosh", "tanh", "asinh", "erf", "erfc", "sigmoid",
              "abs", "frac", "deg2rad", "rad2deg", "nan_to_num"):  # fmt: skip
    case(_name, getattr(torch, _name), REAL)
case("tan", torch.tan, draw(-1.2, 1.2))
case("sinc", torch.sinc, draw(0.5, 1.8))  # torch loses all digits of the second derivative near 0
case("positive", lambda x: +x, REAL)
for _name in ("reciprocal", "sqrt", "rsqrt", "log", "log1p", "log2", "log10", "lgamma", "digamma"):
    case(_name, getattr(torch, _name), POSITIVE)
for _name in ("asin", "acos", "atanh", "erfinv"):
    case(_name, getattr(torch, _name), UNIT)
case("acosh", torch.acosh, ABOVE)
case("cbrt", lambda x: torch.pow(x, 1 / 3), POSITIVE)
for _name in ("erfcx", "ndtr", "log_ndtr"):
    case(_name, getattr(_S, _name), REAL)
case("polygamma", lambda x: torch.polygamma(1, x), POSITIVE, ours=lambda x: ng.polygamma(1, x))
case("softplus", _F.softplus, REAL)
case("relu", torch.relu, REAL)
for _name in ("add", "subtract", "multiply", "maximum", "minimum", "hypot", "atan2", "logaddexp", "logaddexp2"):
    case(_name, getattr(torch, _name), REAL, draw(-1.8, 1.8))
for _name in ("divide", "xlogy", "remainder", "fmod"):
    case(_name, getattr(torch, _name), REAL, draw(0.2, 2.5))
case("xlog1py", _S.xlog1py, REAL, draw(0.2, 2.5))
case("copysign", lambda x: torch.copysign(x, x - 1.0), draw(0.5, 1.8), ours=lambda x: ng.copysign(x, x - 1.0))
for _name, _theirs in (("power", torch.pow), ("float_power", torch.float_power)):
    case(_name, _theirs, POSITIVE, REAL)
cases({
    "power 3": (lambda x: x**3, lambda x: x**3),
    "power 2.5": (lambda x: x**2.5, lambda x: x**2.5),
    "multiply by a number": (lambda x: x * 1.7, lambda x: x * 1.7),
    "clamp": (lambda x: ng.clamp(x, 0.5, 1.5), lambda x: torch.clamp(x, 0.5, 1.5)),
}, POSITIVE)  # fmt: skip
case("where", lambda x, y: torch.where(x > y, x, y), REAL, REAL, ours=lambda x, y: ng.where(x > y, x, y))

# activations, and losses of all numbers
for _name in ("relu6", "hardtanh", "hardswish", "hardshrink", "softshrink", "elu", "celu", "selu", "silu", "mish", "gelu",
              "tanhshrink", "softsign", "leaky_relu", "logsigmoid"):  # fmt: skip
    case(f"nn.{_name}", getattr(_F, _name), REAL)
case("nn.threshold", lambda x: _F.threshold(x, 0.1, 0.5), REAL, ours=lambda x: ng.nn.threshold(x, 0.1, 0.5))
case("nn.prelu", _F.prelu, draw(-1.8, 1.8, 1000, 1000), draw(0.1, 0.3, 1000))
case("nn.glu", _F.glu, draw(-1.8, 1.8, 1000, 1000))
case("nn.softmin", lambda x: _F.softmin(x, 1) ** 2, draw(-1.8, 1.8, 1000, 1000), ours=lambda x: ng.nn.softmin(x, 1) ** 2)
case("nn.gelu, tanh", lambda x: _F.gelu(x, approximate="tanh"), REAL, ours=lambda x: ng.nn.gelu(x, approximate="tanh"))
for _name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "poisson_nll_loss"):
    case(f"nn.{_name}", getattr(_F, _name), REAL, draw(0.2, 2.0))
case("nn.gaussian_nll_loss", _F.gaussian_nll_loss, REAL, REAL, POSITIVE)
case("nn.binary_cross_entropy", _F.binary_cross_entropy, draw(0.1, 0.9), draw(0.1, 0.9))
case("nn.binary_cross_entropy_with_logits", _F.binary_cross_entropy_with_logits, REAL, draw(0.1, 0.9))
case("nn.kl_div", _F.kl_div, draw(-3.0, -0.1), draw(0.1, 0.9))
