"""Operators of division with remainder, and what Python calls to round a number."""

from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError
from nestgrad.levels.coats import bare
from nestgrad.levels.marks import NONE, Marks
from nestgrad.tensor.arguments import whole_number
from nestgrad.tensor.arithmetic import unknown
from nestgrad.tensor.handle import Handle, Operand, can_meet, is_scalar, make, meet, weak

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


class Rounding(Handle):
    """``%``, ``//`` and ``divmod``, broadcasting as NumPy does, and ``round``, ``math.floor``, ``math.ceil`` and ``math.trunc``."""

    __slots__ = ()

    def __mod__(self, other: Operand) -> "Tensor":
        """Remainder with the sign of the divisor; its derivatives are those of ``x - y * (x // y)`` with the quotient constant."""
        return remainder(self, other) if can_meet(self.b, other) else unknown("remainder", self.b, other)

    def __rmod__(self, other: Operand) -> "Tensor":
        """Remainder."""
        return remainder(other, self) if can_meet(self.b, other) else unknown("remainder", self.b, other)

    def __floordiv__(self, other: Operand) -> "Tensor":
        """Quotient rounded down; a constant."""
        return floor_divide(self, other) if can_meet(self.b, other) else unknown("floor_divide", self.b, other)

    def __rfloordiv__(self, other: Operand) -> "Tensor":
        """Quotient rounded down."""
        return floor_divide(other, self) if can_meet(self.b, other) else unknown("floor_divide", self.b, other)

    def __divmod__(self, other: Operand) -> "tuple[Tensor, Tensor]":
        """``(x // y, x % y)``."""
        if not can_meet(self.b, other):
            return unknown("divmod", self.b, other)  # type: ignore[return-value]
        return floor_divide(self, other), remainder(self, other)

    def __rdivmod__(self, other: Operand) -> "tuple[Tensor, Tensor]":
        """``(y // x, y % x)``."""
        if not can_meet(self.b, other):
            return unknown("divmod", self.b, other)  # type: ignore[return-value]
        return floor_divide(other, self), remainder(other, self)

    def round(self, decimals: int = 0) -> "Tensor":
        """Nearest number of so many decimals, negative for tens, halves to the even one; a constant.

        Raises:
            ArgumentError: If ``decimals`` is no whole number from -308 to 308.
        """
        decimals = whole_number("round", "decimals", decimals)
        if not decimals:
            return make(self.b, self.b.round(self.value), NONE)
        if abs(decimals) > 308:
            raise ArgumentError(f"round: got {decimals} decimals; expected from -308 to 308, as many as floats have")
        x: Any = self
        power = 10.0 ** abs(decimals) if abs(decimals) > 18 else 10 ** abs(decimals)
        return (x * power).round() / power if decimals > 0 else (x / power).round() * power  # type: ignore[no-any-return]

    def __round__(self, decimals: int | None = None) -> "Tensor":
        """See ``round``."""
        return self.round(decimals or 0)

    def __floor__(self) -> "Tensor":
        """Largest integer not above; a constant."""
        return make(self.b, self.b.floor(self.value), NONE)

    def __ceil__(self) -> "Tensor":
        """Smallest integer not below; a constant."""
        return make(self.b, self.b.ceil(self.value), NONE)

    def __trunc__(self) -> "Tensor":
        """Nearest integer towards zero; a constant."""
        return make(self.b, self.b.trunc(self.value), NONE)


def remainder(x: Operand, y: Operand) -> "Tensor":
    """``x % y``."""
    b, values, marks = counted("remainder", x, y)
    return make(b, b.remainder(*values), marks)


def floor_divide(x: Operand, y: Operand) -> "Tensor":
    """``x // y``."""
    b, values, _ = counted("floor_divide", x, y)
    return make(b, b.floor_divide(*values), NONE)


def counted(name: str, x: Operand, y: Operand) -> tuple[Any, list[Any], Marks]:
    """What ``meet`` gives, with values of one dtype, in which booleans count as 0 or 1."""
    b, values, marks = meet(name, x, y)
    values = weak(b, values, (x, y))
    return b, [b.cast(v, "int64") if not is_scalar(v) and b.base.kind(bare(v)) == "bool" else v for v in values], marks
