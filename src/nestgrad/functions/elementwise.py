"""Functions of each entry by itself.

What holds for all: arguments are Tensors, numbers or arrays, which broadcast as in NumPy. The result has the broadcast shape, and the
dtype of the argument: a Python number never changes a floating dtype, and integers become floats where the mathematics asks for it.
Functions of the reals are differentiable at every order; ``sign`` and roundings are constants. Where a derivative is infinite at a finite
point (``sqrt`` at 0) it comes out as infinity, unless the cotangent is 0: then it is 0.

Raises, all of them: ``ShapeError`` if shapes do not broadcast, ``LevelError`` for tensors over different base backends.
"""

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nestgrad.tensor.handle import Handle, Operand, apply, as_tensor, called, can_meet, constant, is_scalar

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = [
    "add", "subtract", "multiply", "divide", "negative", "power", "reciprocal", "square", "sqrt", "rsqrt", "exp", "expm1", "log", "log1p",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "sigmoid", "softplus", "relu",
    "abs", "maximum", "minimum", "clamp", "clip", "sign", "floor", "ceil", "round",
]  # fmt: skip

_AT_ONCE = (Handle, int, float)
"""What meets a Tensor without a question to the backend."""


def _by(operate: Callable[[Any, Any], Any], x: Operand, y: Operand) -> "Tensor":
    """The operator, which is where arithmetic is defined, with a Tensor on one side at least."""
    if not isinstance(x, Handle) and not isinstance(y, Handle):
        x = as_tensor(x)
    if not (isinstance(x, _AT_ONCE) and isinstance(y, _AT_ONCE)):
        tensor, other = (x, y) if isinstance(x, Handle) else (y, x)
        if not can_meet(tensor.b, other):
            constant(tensor.b, other, called())  # it raises, where an operator would ask the other operand
    result: Tensor = operate(x, y)
    return result


# arithmetic


def add(x: Operand, y: Operand) -> "Tensor":
    """``x + y``."""
    return _by(operator.add, x, y)


def subtract(x: Operand, y: Operand) -> "Tensor":
    """``x - y``."""
    return _by(operator.sub, x, y)


def multiply(x: Operand, y: Operand) -> "Tensor":
    """``x * y``, entry by entry."""
    return _by(operator.mul, x, y)


def divide(x: Operand, y: Operand) -> "Tensor":
    """``x / y``; the quotient of integers is a float."""
    return _by(operator.truediv, x, y)


def negative(x: Operand) -> "Tensor":
    """``-x``."""
    return -as_tensor(x)


def power(x: Operand, y: Operand) -> "Tensor":
    """``x ** y``; NaN where ``x`` is negative and ``y`` not whole, and ``0 ** 0`` is 1.

    A Python number as the exponent is a parameter: whole ones are exact at 0 and for negative bases at every order. A Tensor or array as
    the exponent is differentiated by too, and then wants a positive base.

    >>> power(-2.0, 3).item()
    -8.0
    """
    return _by(operator.pow, x, y)


def reciprocal(x: Operand) -> "Tensor":
    """``1 / x``."""
    return as_tensor(x).reciprocal()


def square(x: Operand) -> "Tensor":
    """``x * x``; exact at 0 at every order."""
    return as_tensor(x).square()


def sqrt(x: Operand) -> "Tensor":
    """Square root: NaN below 0. Its derivative at 0 is infinite."""
    return as_tensor(x).sqrt()


def rsqrt(x: Operand) -> "Tensor":
    """``1 / sqrt(x)``."""
    return as_tensor(x).rsqrt()


# exponentials and logarithms


def exp(x: Operand) -> "Tensor":
    """Exponential function.

    >>> exp(0.0).item()
    1.0
    """
    return as_tensor(x).exp()


def expm1(x: Operand) -> "Tensor":
    """``exp(x) - 1``, accurate near 0."""
    return as_tensor(x).expm1()


def log(x: Operand) -> "Tensor":
    """Natural logarithm: -inf at 0, NaN below."""
    return as_tensor(x).log()


def log1p(x: Operand) -> "Tensor":
    """``log(1 + x)``, accurate near 0."""
    return as_tensor(x).log1p()


# circular and hyperbolic functions


def sin(x: Operand) -> "Tensor":
    """Sine; the argument in radians."""
    return as_tensor(x).sin()


def cos(x: Operand) -> "Tensor":
    """Cosine; the argument in radians."""
    return as_tensor(x).cos()


def tan(x: Operand) -> "Tensor":
    """Tangent; the argument in radians."""
    return as_tensor(x).tan()


def asin(x: Operand) -> "Tensor":
    """Inverse sine: NaN outside of [-1, 1]. Its derivative at -1 and 1 is infinite."""
    return as_tensor(x).asin()


def acos(x: Operand) -> "Tensor":
    """Inverse cosine, between 0 and pi: NaN outside of [-1, 1]. Its derivative at -1 and 1 is infinite."""
    return as_tensor(x).acos()


def atan(x: Operand) -> "Tensor":
    """Inverse tangent, between -pi/2 and pi/2."""
    return as_tensor(x).atan()


def sinh(x: Operand) -> "Tensor":
    """Hyperbolic sine."""
    return as_tensor(x).sinh()


def cosh(x: Operand) -> "Tensor":
    """Hyperbolic cosine."""
    return as_tensor(x).cosh()


def tanh(x: Operand) -> "Tensor":
    """Hyperbolic tangent."""
    return as_tensor(x).tanh()


def asinh(x: Operand) -> "Tensor":
    """Inverse hyperbolic sine."""
    return as_tensor(x).asinh()


def acosh(x: Operand) -> "Tensor":
    """Inverse hyperbolic cosine: NaN below 1, where its derivative is infinite."""
    return as_tensor(x).acosh()


def atanh(x: Operand) -> "Tensor":
    """Inverse hyperbolic tangent: infinite at -1 and 1, NaN outside."""
    return as_tensor(x).atanh()


# special functions and activations


def erf(x: Operand) -> "Tensor":
    """Error function, ``2/sqrt(pi)`` times the integral of ``exp(-t*t)`` from 0 to ``x``."""
    return as_tensor(x).erf()


def sigmoid(x: Operand) -> "Tensor":
    """Logistic function ``1 / (1 + exp(-x))``, without overflow and accurate in both tails."""
    return as_tensor(x).sigmoid()


def softplus(x: Operand) -> "Tensor":
    """``log(1 + exp(x))``, without overflow and accurate in both tails."""
    return as_tensor(x).softplus()


def relu(x: Operand) -> "Tensor":
    """``max(x, 0)``. Its derivative at 0 is 0."""
    return as_tensor(x).relu()


# choosing


def abs(x: Operand) -> "Tensor":
    """Absolute value. Its derivative at 0 is 0."""
    return as_tensor(x).abs()


def maximum(x: Operand, y: Operand) -> "Tensor":
    """The larger of two entries, NaN if either is. Where they are equal, each gets half of the derivative."""
    return apply("maximum", x, y)


def minimum(x: Operand, y: Operand) -> "Tensor":
    """The smaller of two entries, NaN if either is. Where they are equal, each gets half of the derivative."""
    return apply("minimum", x, y)


def clamp(x: Operand, min: Operand | None = None, max: Operand | None = None) -> "Tensor":
    """Entries brought into ``[min, max]``; ``None`` is no bound. With numbers as bounds, the derivative at a bound is 1, as in torch.

    >>> clamp(2.5, -1.0, 1.0).item()
    1.0
    """
    if is_scalar(x) and not all(bound is None or is_scalar(bound) for bound in (min, max)):  # as an operand the number is weakly typed
        if min is not None:
            x = (min if x < min else x) if is_scalar(min) else maximum(x, min)
        return as_tensor(x) if max is None else minimum(x, max)
    given = next((v for v in (x, min, max) if isinstance(v, Handle)), None)
    return as_tensor(x, None if given is None else given.b).clamp(min, max)


clip = clamp

# constants: their results are on no level


def sign(x: Operand) -> "Tensor":
    """-1, 0 or 1, and NaN for NaN; a constant."""
    return as_tensor(x).sign()


def floor(x: Operand) -> "Tensor":
    """Greatest whole number that is not above; a constant."""
    return as_tensor(x).floor()


def ceil(x: Operand) -> "Tensor":
    """Smallest whole number that is not below; a constant."""
    return as_tensor(x).ceil()


def round(x: Operand, decimals: int = 0) -> "Tensor":
    """Nearest number of so many decimals, negative for tens, halves to the even one; a constant.

    >>> round(0.5).item(), round(2.675, 1).item()
    (0.0, 2.7)
    """
    return as_tensor(x).round(decimals)
