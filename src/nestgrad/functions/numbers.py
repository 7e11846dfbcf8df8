"""Roots, logarithms and powers of other bases, angles, and the parts of numbers, of each entry by itself.

What is said of ``functions.elementwise`` holds here, too. Where a function jumps, its derivative is that of the pieces: nothing sits in
the jump.
"""

from typing import TYPE_CHECKING

from nestgrad.tensor import rounding
from nestgrad.tensor.handle import Handle, Operand, as_tensor, is_scalar, make, meet, reals

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = [
    "cbrt", "exp2", "log2", "log10", "logaddexp", "logaddexp2", "xlogy", "xlog1py", "float_power", "positive", "hypot", "atan2", "deg2rad",
    "rad2deg", "trunc", "frac", "remainder", "fmod", "floor_divide", "divmod", "copysign", "heaviside", "nan_to_num",
]  # fmt: skip


def _real(name: str, x: Operand, y: Operand) -> "Tensor":
    """An op of two operands for which integers and booleans become floats."""
    b, values, marks = meet(name, x, y)
    floats = reals(b, values)
    if all(is_scalar(v) for v in floats):
        floats[0] = b.base.asarray(float(floats[0]))
    return make(b, getattr(b, name)(*floats), marks)


# roots, exponentials and logarithms


def cbrt(x: Operand) -> "Tensor":
    """Real cube root, of negative numbers too. Its derivative at 0 is infinite.

    >>> cbrt(-8.0).item()
    -2.0
    """
    return as_tensor(x).cbrt()


def exp2(x: Operand) -> "Tensor":
    """``2 ** x``."""
    return as_tensor(x).exp2()


def log2(x: Operand) -> "Tensor":
    """Logarithm of base 2: -inf at 0, NaN below."""
    return as_tensor(x).log2()


def log10(x: Operand) -> "Tensor":
    """Logarithm of base 10: -inf at 0, NaN below."""
    return as_tensor(x).log10()


def logaddexp(x: Operand, y: Operand) -> "Tensor":
    """``log(exp(x) + exp(y))``, without overflow. Equal operands, infinite ones too, share the derivative, half each.

    >>> import math
    >>> logaddexp(-math.inf, -math.inf).item(), logaddexp(1000.0, -math.inf).item()
    (-inf, 1000.0)
    """
    return _real("logaddexp", x, y)


def logaddexp2(x: Operand, y: Operand) -> "Tensor":
    """``log2(2 ** x + 2 ** y)``, without overflow. Equal operands, infinite ones too, share the derivative, half each."""
    return _real("logaddexp2", x, y)


def xlogy(x: Operand, y: Operand) -> "Tensor":
    """``x * log(y)``, and 0 where ``x`` is 0, unless ``y`` is NaN.

    Where ``x`` is 0, all derivatives by ``y`` are 0. The derivative by ``x`` is ``log(y)``, which is -inf at ``y = 0``.

    >>> xlogy(0.0, 0.0).item()
    0.0
    """
    return _real("xlogy", x, y)


def xlog1py(x: Operand, y: Operand) -> "Tensor":
    """``x * log(1 + y)``, accurate near ``y = 0``, and 0 where ``x`` is 0, unless ``y`` is NaN. Derivatives as of ``xlogy``."""
    return _real("xlog1py", x, y)


def float_power(x: Operand, y: Operand) -> "Tensor":
    """``x ** y`` in float64, whatever the dtypes are; as of ``power``, a Python number as the exponent is a parameter.

    >>> float_power(2, -2).item()
    0.25
    """
    base = next((v.b for v in (x, y) if isinstance(v, Handle)), None)
    exponent = float(y) if is_scalar(y) else as_tensor(y, base).astype("float64")
    return as_tensor(x, base).astype("float64") ** exponent


def positive(x: Operand) -> "Tensor":
    """``+x``, which is ``x``."""
    return as_tensor(x)


# the plane


def hypot(x: Operand, y: Operand) -> "Tensor":
    """``sqrt(x * x + y * y)``, without overflow. Its derivatives at the origin are 0, as those of ``norm``; beyond that there are none.

    >>> hypot(3.0, 4.0).item()
    5.0
    """
    return _real("hypot", x, y)


def atan2(y: Operand, x: Operand) -> "Tensor":
    """Angle of the point ``(x, y)``, between -pi and pi, the ordinate first. At the origin its derivatives are NaN.

    >>> round(atan2(1.0, -1.0).item(), 12)
    2.356194490192
    """
    return _real("atan2", y, x)


def deg2rad(x: Operand) -> "Tensor":
    """Degrees in radians."""
    return as_tensor(x).deg2rad()


def rad2deg(x: Operand) -> "Tensor":
    """Radians in degrees."""
    return as_tensor(x).rad2deg()


# parts of numbers


def trunc(x: Operand) -> "Tensor":
    """Nearest whole number towards zero; a constant."""
    return as_tensor(x).trunc()


def frac(x: Operand) -> "Tensor":
    """What ``trunc`` leaves, with the sign of ``x``; its derivative is 1.

    >>> frac(-2.25).item()
    -0.25
    """
    return as_tensor(x).frac()


def remainder(x: Operand, y: Operand) -> "Tensor":
    """``x % y``, with the sign of the divisor, as in Python and NumPy.

    The derivative by ``x`` is 1, and by ``y`` it is ``-floor(x / y)``.

    >>> remainder(-5.0, 3.0).item()
    1.0
    """
    return rounding.remainder(x, y)


def fmod(x: Operand, y: Operand) -> "Tensor":
    """What division leaves, with the sign of the dividend, as in C.

    The derivative by ``x`` is 1, and by ``y`` it is ``-trunc(x / y)``.

    >>> fmod(-5.0, 3.0).item()
    -2.0
    """
    b, values, marks = rounding.counted("fmod", x, y)
    return make(b, b.fmod(*values), marks)


def floor_divide(x: Operand, y: Operand) -> "Tensor":
    """``x // y``, the quotient rounded down; a constant."""
    return rounding.floor_divide(x, y)


def divmod(x: Operand, y: Operand) -> "tuple[Tensor, Tensor]":
    """``(x // y, x % y)``."""
    return floor_divide(x, y), remainder(x, y)


def copysign(x: Operand, y: Operand) -> "Tensor":
    """The size of ``x`` with the sign of ``y``, that of a zero too. Its derivative by ``x`` is 0 where ``x`` is 0, and by ``y`` always."""
    return _real("copysign", x, y)


def heaviside(x: Operand, y: Operand) -> "Tensor":
    """0 where ``x`` is negative, 1 where it is positive, ``y`` where it is 0.

    Its derivative by ``x`` is 0, and by ``y`` it is 1 where ``x`` is 0.
    """
    return _real("heaviside", x, y)


def nan_to_num(x: Operand, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> "Tensor":
    """Other numbers for NaN and infinities; where an entry is replaced, the derivative is 0.

    Args:
        x: Tensor, number or array.
        nan: What stands for NaN.
        posinf: What stands for infinity; ``None`` is the largest finite number of the dtype.
        neginf: What stands for minus infinity; ``None`` is the smallest.
    """
    return as_tensor(x).nan_to_num(nan, posinf, neginf)
