"""Operators: arithmetic, powers, products of matrices, comparisons, logic."""

from typing import TYPE_CHECKING, Any

from nestgrad.levels.marks import NONE
from nestgrad.levels.mixing import settle
from nestgrad.ops.shapes import swap_last
from nestgrad.tensor.handle import Handle, Operand, apply, can_meet, constant, is_scalar, make, test
from nestgrad.tensor.products import matmul

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


class Arithmetic(Handle):
    """Operators with Tensors, numbers and arrays on either side, broadcasting as NumPy does.

    The five hot ones try the plain case first: two Tensors over one backend object with the same marks.
    """

    __slots__ = ()

    def __add__(self, other: Operand) -> "Tensor":
        """Sum."""
        if other.__class__ is self.__class__ and other.marks is self.marks and other.b is self.b:
            return make(self.b, self.b.add(self.value, other.value), self.marks)
        return _binary("add", self, other)

    def __sub__(self, other: Operand) -> "Tensor":
        """Difference."""
        if other.__class__ is self.__class__ and other.marks is self.marks and other.b is self.b:
            return make(self.b, self.b.sub(self.value, other.value), self.marks)
        return _binary("sub", self, other)

    def __mul__(self, other: Operand) -> "Tensor":
        """Product, entry by entry."""
        if other.__class__ is self.__class__ and other.marks is self.marks and other.b is self.b:
            return make(self.b, self.b.mul(self.value, other.value), self.marks)
        if other.__class__ is float or other.__class__ is int:
            return make(self.b, self.b.scale(self.value, other), self.marks)
        return _binary("mul", self, other)

    def __truediv__(self, other: Operand) -> "Tensor":
        """Quotient, entry by entry."""
        if other.__class__ is self.__class__ and other.marks is self.marks and other.b is self.b:
            return make(self.b, self.b.div(self.value, other.value), self.marks)
        return _binary("div", self, other)

    def __matmul__(self, other: Operand) -> "Tensor":
        """Product of matrices, vectors, or stacks of matrices, as ``np.matmul``."""
        return matmul(self, other) if can_meet(self.b, other) else _unknown("matmul", self.b, other)

    def __radd__(self, other: Operand) -> "Tensor":
        """Sum."""
        return _binary("add", other, self)

    def __rsub__(self, other: Operand) -> "Tensor":
        """Difference."""
        return _binary("sub", other, self)

    def __rmul__(self, other: Operand) -> "Tensor":
        """Product, entry by entry."""
        if other.__class__ is float or other.__class__ is int:
            return make(self.b, self.b.scale(self.value, other), self.marks)
        return _binary("mul", other, self)

    def __rtruediv__(self, other: Operand) -> "Tensor":
        """Quotient, entry by entry."""
        return _binary("div", other, self)

    def __rmatmul__(self, other: Operand) -> "Tensor":
        """Product of matrices."""
        return matmul(other, self) if can_meet(self.b, other) else _unknown("matmul", self.b, other)

    def __pow__(self, exponent: Operand) -> "Tensor":
        """Power. Integer exponents are exact at 0 and for negative bases, at every order; ``x**0`` keeps its (zero) derivative."""
        if is_scalar(exponent):
            if float(exponent).is_integer():
                return make(self.b, self.b.powi(self.value, int(exponent)), self.marks)
            return make(self.b, self.b.powf(self.value, float(exponent)), self.marks)
        return _binary("pow", self, exponent)

    def __rpow__(self, base: Operand) -> "Tensor":
        """Power with this Tensor as the exponent."""
        return _binary("pow", base, self)

    def __neg__(self) -> "Tensor":
        """Negative."""
        return make(self.b, self.b.neg(self.value), self.marks)

    def __pos__(self) -> "Tensor":
        """The Tensor itself."""
        return self  # type: ignore[return-value]

    def __abs__(self) -> "Tensor":
        """Absolute value; its derivative at 0 is 0."""
        return make(self.b, self.b.abs(self.value), self.marks)

    def __eq__(self, other: Operand) -> "Tensor":  # type: ignore[override]
        """Whether entries are equal. A constant, as all comparisons."""
        return _compare("eq", self, other)

    def __ne__(self, other: Operand) -> "Tensor":  # type: ignore[override]
        """Whether entries differ."""
        return _compare("ne", self, other)

    def __lt__(self, other: Operand) -> "Tensor":
        """Whether entries are smaller."""
        return _compare("lt", self, other)

    def __le__(self, other: Operand) -> "Tensor":
        """Whether entries are smaller or equal."""
        return _compare("le", self, other)

    def __gt__(self, other: Operand) -> "Tensor":
        """Whether entries are larger."""
        return _compare("gt", self, other)

    def __ge__(self, other: Operand) -> "Tensor":
        """Whether entries are larger or equal."""
        return _compare("ge", self, other)

    __hash__ = object.__hash__

    def __invert__(self) -> "Tensor":
        """Logical not."""
        return make(self.b, self.b.logical_not(self.value), NONE)

    def __and__(self, other: Operand) -> "Tensor":
        """Logical and."""
        return test("logical_and", self, other)

    def __or__(self, other: Operand) -> "Tensor":
        """Logical or."""
        return test("logical_or", self, other)

    __rand__ = __and__
    __ror__ = __or__

    @property
    def T(self) -> "Tensor":
        """The axes in reverse order; of a matrix, the transpose."""
        return make(self.b, self.b.permute(self.value, tuple(reversed(range(len(self.b.shape(self.value)))))), self.marks)

    @property
    def mT(self) -> "Tensor":
        """The last two axes exchanged."""
        return make(self.b, self.b.permute(self.value, swap_last(len(self.b.shape(self.value)))), self.marks)


def _binary(name: str, x: Any, y: Any) -> Any:
    if y.__class__ is float or y.__class__ is int:  # the second commonest case
        return make(x.b, getattr(x.b, name)(x.value, y), x.marks)
    if x.__class__ is float or x.__class__ is int:
        return make(y.b, getattr(y.b, name)(x, y.value), y.marks)
    known = x if isinstance(x, Handle) else y
    if can_meet(known.b, x) and can_meet(known.b, y):
        return apply(name, x, y)
    return _unknown(name, known.b, y if known is x else x)


def _compare(name: str, x: Any, y: Any) -> Any:
    return test(name, x, y) if can_meet(x.b, y) else _unknown(name, x.b, y)


def _unknown(name: str, b: Any, other: Any) -> Any:
    """Leave it to Python to ask the other operand; but raise for what is known to give no answer, or a wrong one.

    Raises:
        DTypeError: A complex number, a list, a tuple, or an array of another library.
    """
    if isinstance(other, (complex, list, tuple)) or hasattr(other, "__array__"):
        constant(b, other, name)
    return NotImplemented
