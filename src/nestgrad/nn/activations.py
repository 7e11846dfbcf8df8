"""Activations: functions of each entry by itself, and those along an axis that end a network.

What holds for all: the argument is a Tensor, a number or an array. The result has its shape, and its dtype; integers become floats.
At a kink the derivatives are those that the docstring prints. Every other point has derivatives of every order, and the functions made of
exponentials keep their digits in both tails, in value and derivatives. Numbers such as ``alpha`` are parameters: nothing is differentiated
by them.
"""

import math
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.functions.elementwise import relu, sigmoid, tanh
from nestgrad.functions.reductions import log_softmax, softmax
from nestgrad.tensor.arguments import number
from nestgrad.tensor.axes import one_axis
from nestgrad.tensor.handle import Operand, apply, as_tensor, first_beside, is_scalar, make, real

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = [
    "relu", "leaky_relu", "prelu", "relu6", "hardtanh", "hardsigmoid", "hardswish", "hardshrink", "softshrink", "threshold",
    "elu", "celu", "selu", "sigmoid", "log_sigmoid", "logsigmoid", "softplus", "silu", "mish", "gelu", "glu",
    "tanh", "tanhshrink", "softsign", "softmax", "softmin", "log_softmax",
]  # fmt: skip


def _of(name: str, x: Operand, *params: Any) -> "Tensor":
    """An op of one array of real numbers."""
    x = as_tensor(x)
    return make(x.b, getattr(x.b, name)(real(x), *params), x.marks)


# linear in pieces


def leaky_relu(x: Operand, negative_slope: float = 0.01) -> "Tensor":
    """``x`` where it is positive, ``negative_slope * x`` elsewhere. Its derivative at 0 is ``negative_slope``.

    >>> leaky_relu(-2.0, 0.1).item()
    -0.2
    """
    return _of("leaky_relu", x, number("leaky_relu", "negative_slope", negative_slope))


def prelu(x: Operand, weight: Operand, axis: int = 1) -> "Tensor":
    """``x`` where it is positive, ``weight * x`` elsewhere, with a weight that is learnt. Its derivative at 0 is ``weight``.

    Args:
        x: Any shape.
        weight: One number, or one for each place along ``axis``.
        axis: Of the channels: 1, but 0 where ``x`` has one axis only.

    Returns:
        The shape of ``x``.

    Raises:
        ShapeError: If ``weight`` has another number of entries.

    >>> prelu(-1.0, 0.25).item()
    -0.25
    """
    x = first_beside(x, weight)
    if not is_scalar(weight):
        weight = as_tensor(weight, x.b)
        if weight.size == 1:
            weight = weight.reshape(())
        else:
            axis = one_axis(x, 0 if len(x.shape) == 1 and axis == 1 else axis, "prelu")
            n = x.shape[axis]
            if weight.shape != (n,):
                raise ShapeError(
                    f"prelu: got a weight of shape {weight.shape} for shape {x.shape}; expected one entry, or {n}, as axis {axis} has"
                )
            weight = weight.reshape(n, *(1,) * (len(x.shape) - axis - 1))
    return apply("prelu", x, weight)


def relu6(x: Operand) -> "Tensor":
    """``min(max(x, 0), 6)``. Its derivative at 0 and at 6 is 0."""
    return _of("hardtanh", x, 0.0, 6.0)


def hardtanh(x: Operand, min_val: float = -1.0, max_val: float = 1.0) -> "Tensor":
    """``min(max(x, min_val), max_val)``. Its derivative at both bounds is 0, while that of ``clamp`` is 1."""
    return _of("hardtanh", x, number("hardtanh", "min_val", min_val), number("hardtanh", "max_val", max_val))


def hardsigmoid(x: Operand) -> "Tensor":
    """``min(max(x + 3, 0), 6) / 6``. Its derivative at -3 and 3 is 0."""
    return _of("hardsigmoid", x)


def hardswish(x: Operand) -> "Tensor":
    """``x * hardsigmoid(x)``. Its derivative is 0 at -3 and 1 at 3, its second derivative 0 at both.

    >>> hardswish(1.0).item()
    0.6666666666666666
    """
    return _of("hardswish", x)


def hardshrink(x: Operand, lambd: float = 0.5) -> "Tensor":
    """``x``, and 0 where ``|x| <= lambd``. Its derivative at the jumps is 0."""
    return _of("hardshrink", x, number("hardshrink", "lambd", lambd))


def softshrink(x: Operand, lambd: float = 0.5) -> "Tensor":
    """``x`` brought nearer to 0 by ``lambd``, and 0 where ``|x| <= lambd``. Its derivative at the kinks is 0."""
    return _of("softshrink", x, number("softshrink", "lambd", lambd))


def threshold(x: Operand, threshold: float, value: float) -> "Tensor":
    """``x`` where it is above ``threshold``, ``value`` elsewhere. Its derivative at the jump is 0."""
    return _of("threshold", x, number("threshold", "threshold", threshold), number("threshold", "value", value))


# exponential in one piece


def elu(x: Operand, alpha: float = 1.0) -> "Tensor":
    """``x`` where it is positive, ``alpha * (exp(x) - 1)`` elsewhere. At 0 all derivatives are those of the exponential: ``alpha``.

    >>> elu(0.0, 2.0).item()
    0.0
    """
    return _of("elu", x, number("elu", "alpha", alpha))


def celu(x: Operand, alpha: float = 1.0) -> "Tensor":
    """``x`` where it is positive, ``alpha * (exp(x / alpha) - 1)`` elsewhere. At 0 all derivatives are those of the exponential.

    Raises:
        ArgumentError: If ``alpha`` is 0.
    """
    rate = number("celu", "alpha", alpha)
    if not rate:
        raise ArgumentError("celu: got alpha 0, by which it divides; expected another number. Try relu, the limit")
    return _of("elu", x, rate, 1.0, 1.0 / rate)


def selu(x: Operand) -> "Tensor":
    """``1.0507 * elu(x, 1.6733)``, with the numbers that keep mean 0 and variance 1. At 0 all derivatives are those of the exponential."""
    return _of("elu", x, SELU_ALPHA, SELU_SCALE)


# Klambauer et al., "Self-Normalizing Neural Networks" (2017), appendix: the fixed point at mean 0 and variance 1.
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805

# made of the logistic function


def log_sigmoid(x: Operand) -> "Tensor":
    """``log(sigmoid(x))``, without overflow.

    >>> round(log_sigmoid(-40.0).item(), 6)
    -40.0
    """
    return _of("log_sigmoid", x)


logsigmoid = log_sigmoid


def softplus(x: Operand, beta: float = 1.0) -> "Tensor":
    """``log(1 + exp(beta * x)) / beta``, without overflow. It is never replaced by ``x``, so no threshold is needed.

    Raises:
        ArgumentError: If ``beta`` is 0.
    """
    rate = number("softplus", "beta", beta)
    if not rate:
        raise ArgumentError("softplus: got beta 0, by which it divides; expected another number")
    return _of("softplus", x) if rate == 1.0 else softplus(as_tensor(x) * rate) / rate


def silu(x: Operand) -> "Tensor":
    """``x * sigmoid(x)``, also called swish.

    >>> silu(0.0).item()
    0.0
    """
    return _of("silu", x)


def mish(x: Operand) -> "Tensor":
    """``x * tanh(softplus(x))``."""
    return _of("mish", x)


def gelu(x: Operand, approximate: str = "none") -> "Tensor":
    """``x`` times the standard normal distribution function at ``x``.

    Args:
        x: Any shape.
        approximate: ``"none"``, or ``"tanh"``: ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``.

    Returns:
        The value of the formula that was asked for, and its derivatives.

    Raises:
        ArgumentError: Another word.

    >>> round(gelu(1.0).item(), 6), round(gelu(1.0, "tanh").item(), 6)
    (0.841345, 0.841192)
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"gelu: got approximate {approximate!r}; expected 'none' or 'tanh'")
    return _of("gelu", x) if approximate == "none" else _of("gelu_tanh", x, _GELU_K, _GELU_A)


# Hendrycks & Gimpel, "Gaussian Error Linear Units" (2016).
_GELU_K, _GELU_A = math.sqrt(2 / math.pi), 0.044715


def glu(x: Operand, axis: int = -1) -> "Tensor":
    """The first half along an axis, times ``sigmoid`` of the second half.

    Args:
        x: At least one axis.
        axis: Of even size.

    Returns:
        Half as many entries along ``axis``.

    Raises:
        ShapeError: If the size is odd, or there is no such axis.
    """
    x = as_tensor(x)
    axis = one_axis(x, axis, "glu")
    if x.shape[axis] % 2:
        raise ShapeError(f"glu: got {x.shape[axis]} entries along axis {axis} of shape {x.shape}; expected an even number, to halve it")
    return make(x.b, x.b.glu(real(x), axis), x.marks)


# others


def tanhshrink(x: Operand) -> "Tensor":
    """``x - tanh(x)``."""
    return _of("tanhshrink", x)


def softsign(x: Operand) -> "Tensor":
    """``x / (1 + |x|)``. Its second and third derivative at 0 are given as 0: there the second one jumps."""
    return _of("softsign", x)


def softmin(x: Operand, axis: int = -1) -> "Tensor":
    """``softmax(-x)`` along an axis."""
    return softmax(-as_tensor(x), axis)
