"""Operators: arithmetic, powers, products of matrices, comparisons, logic."""

from operator import index
from typing import TYPE_CHECKING, Any

from nestgrad.errors import DTypeError, ShapeError
from nestgrad.levels.coats import bare
from nestgrad.levels.mixing import settle
from nestgrad.levels.reverse.node import Tracked
from nestgrad.ops.shapes import swap_last
from nestgrad.tensor.handle import Handle, Operand, apply, as_tensor, can_meet, constant, floating, is_floating, is_scalar, make, real, test
from nestgrad.tensor.products import matmul

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


class Arithmetic(Handle):
    """Operators with Tensors, numbers and arrays on either side, broadcasting as NumPy does.

    A Python number never changes a floating dtype. An integer or boolean Tensor that meets a Python float, or is divided, becomes one of
    the backend's default floating dtype. The five hot operators try the plain case first: two Tensors over one backend object with the
    same marks.
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
            try:
                return make(self.b, self.b.sub(self.value, other.value), self.marks)
            except DTypeError:
                return apply("sub", *_counted(self, other))
        return _binary("sub", self, other)

    def __mul__(self, other: Operand) -> "Tensor":
        """Product, entry by entry."""
        if other.__class__ is self.__class__ and other.marks is self.marks and other.b is self.b:
            return make(self.b, self.b.mul(self.value, other.value), self.marks)
        if other.__class__ is float or other.__class__ is int:
            value = self.value if self.value.__class__ is Tracked else _beside(self, other)
            return make(self.b, self.b.scale(value, other), self.marks)
        return _binary("mul", self, other)

    def __truediv__(self, other: Operand) -> "Tensor":
        """Quotient, entry by entry."""
        if other.__class__ is self.__class__ and other.marks is self.marks and other.b is self.b:
            if self.value.__class__ is Tracked or is_floating(other):
                return make(self.b, self.b.div(self.value, other.value), self.marks)
            return make(self.b, self.b.div(real(self), real(other)), self.marks)
        return _binary("div", self, other)

    def __matmul__(self, other: Operand) -> "Tensor":
        """Product of matrices, vectors, or stacks of matrices, as ``np.matmul``."""
        return matmul(self, other) if can_meet(self.b, other) else unknown("matmul", self.b, other)

    def __radd__(self, other: Operand) -> "Tensor":
        """Sum."""
        return _binary("add", other, self)

    def __rsub__(self, other: Operand) -> "Tensor":
        """Difference."""
        return _binary("sub", other, self)

    def __rmul__(self, other: Operand) -> "Tensor":
        """Product, entry by entry."""
        if other.__class__ is float or other.__class__ is int:
            value = self.value if self.value.__class__ is Tracked else _beside(self, other)
            return make(self.b, self.b.scale(value, other), self.marks)
        return _binary("mul", other, self)

    def __rtruediv__(self, other: Operand) -> "Tensor":
        """Quotient, entry by entry."""
        return _binary("div", other, self)

    def __rmatmul__(self, other: Operand) -> "Tensor":
        """Product of matrices."""
        return matmul(other, self) if can_meet(self.b, other) else unknown("matmul", self.b, other)

    def __pow__(self, exponent: Operand) -> "Tensor":
        """Power. Integer exponents are exact at 0 and for negative bases, at every order; ``x**0`` keeps its (zero) derivative."""
        whole = _whole(exponent)
        if whole is not None:
            value = _beside(self, exponent) if whole >= 0 else real(self)
            return make(self.b, self.b.powi(value, whole), self.marks)
        if isinstance(exponent, float):
            return make(self.b, self.b.powf(real(self), float(exponent)), self.marks)
        return _binary("pow", self, exponent)

    def __rpow__(self, base: Operand) -> "Tensor":
        """Power with this Tensor as the exponent."""
        return _binary("pow", base, self)

    def pow(self, exponent: Operand) -> "Tensor":
        """``x ** exponent``, as a method."""
        power: Tensor = self**exponent
        return power

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
        """Logical not, of booleans."""
        return _logical("logical_not", "~", self)

    def __and__(self, other: Operand) -> "Tensor":
        """Logical and, of booleans."""
        return _logical("logical_and", "&", self, other)

    def __or__(self, other: Operand) -> "Tensor":
        """Logical or, of booleans."""
        return _logical("logical_or", "|", self, other)

    def __xor__(self, other: Operand) -> "Tensor":
        """Whether one of two booleans holds, but not both."""
        return _logical("ne", "^", self, other)

    __rand__ = __and__
    __ror__ = __or__
    __rxor__ = __xor__

    @property
    def T(self) -> "Tensor":
        """The axes in reverse order; of a matrix, the transpose."""
        return make(self.b, self.b.permute(self.value, tuple(reversed(range(len(self.b.shape(self.value)))))), self.marks)

    @property
    def mT(self) -> "Tensor":
        """The last two axes exchanged."""
        rank = len(self.b.shape(self.value))
        if rank < 2:
            raise ShapeError(f"mT: got shape {tuple(self.b.shape(self.value))}; expected at least two axes")
        return make(self.b, self.b.permute(self.value, swap_last(rank)), self.marks)


def _binary(name: str, x: Any, y: Any) -> "Tensor":
    if y.__class__ is float or y.__class__ is int:  # the second commonest case
        value = x.value if x.value.__class__ is Tracked else real(x) if name == "div" else _beside(x, y)
        return make(x.b, getattr(x.b, name)(value, y), x.marks)
    if x.__class__ is float or x.__class__ is int:
        value = y.value if y.value.__class__ is Tracked else real(y) if name == "div" else _beside(y, x)
        return make(y.b, getattr(y.b, name)(x, value), y.marks)
    if x.__class__ is y.__class__ and x.value.__class__ is y.value.__class__ is Tracked and x.b is y.b:  # the marks differ
        (p, q), marks = settle((x.value, y.value), (x.marks, y.marks))
        return make(x.b, getattr(x.b, name)(p, q), marks)
    known, other = (x, y) if isinstance(x, Handle) else (y, x)
    if not can_meet(known.b, other):
        return unknown(name, known.b, other)
    if is_scalar(other):  # NumPy's float, or a bool
        number = float(other) if isinstance(other, float) else int(other)
        return _binary(name, x, number) if known is x else _binary(name, number, y)
    x, y = as_tensor(x, known.b), as_tensor(y, known.b)
    if name == "div":
        x, y = floating(x), floating(y)
    if name in ("sub", "pow"):
        x, y = _counted(x, y)
    return apply(name, x, y)


def _counted(x: Any, y: Any) -> list[Any]:
    """The operands, where a boolean beside a number counts as 0 or 1: not all backends subtract booleans."""
    kinds = [t.b.base.kind(bare(t.value)) for t in (x, y)]
    return [t.astype("int64") if kind == "bool" and kinds.count("bool") == 1 else t for t, kind in zip((x, y), kinds, strict=True)]


def _beside(x: Handle, number: Operand) -> Any:
    """The value of ``x`` as it meets a Python number: integers become floats beside a float, and booleans become what the number is."""
    if x.value.__class__ is Tracked or x.b.base.is_floating(bare(x.value)):
        return x.value
    if isinstance(number, float):
        return real(x)
    return x.b.cast(x.value, "int64") if x.b.base.kind(bare(x.value)) == "bool" else x.value


def _whole(exponent: Any) -> int | None:
    """An exponent that is one whole number, as an int."""
    if exponent.__class__ is int:
        return int(exponent)
    if isinstance(exponent, Handle):
        return None
    if isinstance(exponent, float):
        return int(exponent) if exponent.is_integer() else None
    if getattr(exponent, "shape", ()) == () and hasattr(exponent, "__index__"):
        try:
            return index(exponent)
        except TypeError:  # an array without axes, of floats
            return None
    return None


def _compare(name: str, x: Any, y: Any) -> "Tensor":
    return test(name, x, y) if can_meet(x.b, y) else unknown(name, x.b, y)


def _logical(name: str, sign: str, x: Any, *others: Any) -> "Tensor":
    for other in others:
        if not can_meet(x.b, other):
            return unknown(name, x.b, other)
    for operand in (x, *others):
        tensor = as_tensor(operand, x.b)
        if tensor.b.base.kind(bare(tensor.value)) != "bool":
            raise DTypeError(
                f"{sign}: got an operand of dtype {tensor.dtype}; expected booleans, since bits are not numbers here. "
                "Try ng.logical_not, ng.logical_and or ng.logical_or, for which 0 is False"
            )
    return test(name, x, *others)


def unknown(name: str, b: Any, other: Any) -> "Tensor":
    """Leave it to Python to ask the other operand; but raise for what is known to give no answer, or a wrong one.

    Raises:
        DTypeError: A complex number, a list, a tuple, or an array of another library.
    """
    if isinstance(other, (complex, list, tuple)) or hasattr(other, "__array__"):
        constant(b, other, name)
    return NotImplemented  # type: ignore[no-any-return]
