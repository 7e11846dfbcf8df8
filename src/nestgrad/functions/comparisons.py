"""Comparisons and logic of each entry by itself. The answers are booleans, constants, which are on no level.

What is said of ``functions.elementwise`` holds here, too.
"""

from typing import TYPE_CHECKING

from nestgrad.tensor.handle import Operand, as_tensor, test

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = [
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isfinite", "isinf", "isposinf", "isneginf", "signbit",
    "logical_not", "logical_and", "logical_or", "logical_xor",
]  # fmt: skip


def equal(x: Operand, y: Operand) -> "Tensor":
    """``x == y``; NaN equals nothing."""
    return test("eq", x, y)


def not_equal(x: Operand, y: Operand) -> "Tensor":
    """``x != y``; NaN differs from everything."""
    return test("ne", x, y)


def less(x: Operand, y: Operand) -> "Tensor":
    """``x < y``."""
    return test("lt", x, y)


def less_equal(x: Operand, y: Operand) -> "Tensor":
    """``x <= y``."""
    return test("le", x, y)


def greater(x: Operand, y: Operand) -> "Tensor":
    """``x > y``."""
    return test("gt", x, y)


def greater_equal(x: Operand, y: Operand) -> "Tensor":
    """``x >= y``."""
    return test("ge", x, y)


def isnan(x: Operand) -> "Tensor":
    """Whether an entry is NaN."""
    return as_tensor(x).isnan()


def isfinite(x: Operand) -> "Tensor":
    """Whether an entry is neither infinite nor NaN."""
    return as_tensor(x).isfinite()


def isinf(x: Operand) -> "Tensor":
    """Whether an entry is infinite."""
    return as_tensor(x).isinf()


def isposinf(x: Operand) -> "Tensor":
    """Whether an entry is positive infinity."""
    return test("isposinf", x)


def isneginf(x: Operand) -> "Tensor":
    """Whether an entry is negative infinity."""
    return test("isneginf", x)


def signbit(x: Operand) -> "Tensor":
    """Whether an entry is negative, the zero that has a sign too."""
    return as_tensor(x).signbit()


def logical_not(x: Operand) -> "Tensor":
    """True where ``x`` is False or zero."""
    return test("logical_not", x)


def logical_and(x: Operand, y: Operand) -> "Tensor":
    """True where neither is False or zero."""
    return test("logical_and", x, y)


def logical_or(x: Operand, y: Operand) -> "Tensor":
    """True where not both are False or zero."""
    return test("logical_or", x, y)


def logical_xor(x: Operand, y: Operand) -> "Tensor":
    """True where one of the two is False or zero, and the other is not."""
    return test("logical_xor", x, y)
