"""Methods that act on each entry by itself. Cost: one op; the shape stays."""

from typing import TYPE_CHECKING

from nestgrad.levels.marks import NONE
from nestgrad.tensor.handle import Handle, Operand, apply, as_tensor, is_scalar, make, real

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


class Elementwise(Handle):
    """Elementwise functions of one Tensor. Functions of the reals turn integers and booleans into the backend's default floating dtype."""

    __slots__ = ()

    def sqrt(self) -> "Tensor":
        """Square root. Its derivative at 0 is infinite."""
        return make(self.b, self.b.sqrt(real(self)), self.marks)

    def rsqrt(self) -> "Tensor":
        """Reciprocal square root, ``1 / sqrt(x)``."""
        return make(self.b, self.b.rsqrt(real(self)), self.marks)

    def reciprocal(self) -> "Tensor":
        """``1 / x``."""
        return make(self.b, self.b.reciprocal(real(self)), self.marks)

    def square(self) -> "Tensor":
        """``x * x``. Exact at 0 at every order."""
        return make(self.b, self.b.square(self.value), self.marks)

    def exp(self) -> "Tensor":
        """Exponential function."""
        return make(self.b, self.b.exp(real(self)), self.marks)

    def expm1(self) -> "Tensor":
        """``exp(x) - 1``, accurate near 0."""
        return make(self.b, self.b.expm1(real(self)), self.marks)

    def log(self) -> "Tensor":
        """Natural logarithm."""
        return make(self.b, self.b.log(real(self)), self.marks)

    def log1p(self) -> "Tensor":
        """``log(1 + x)``, accurate near 0."""
        return make(self.b, self.b.log1p(real(self)), self.marks)

    def sin(self) -> "Tensor":
        """Sine; the argument in radians."""
        return make(self.b, self.b.sin(real(self)), self.marks)

    def cos(self) -> "Tensor":
        """Cosine; the argument in radians."""
        return make(self.b, self.b.cos(real(self)), self.marks)

    def tan(self) -> "Tensor":
        """Tangent; the argument in radians."""
        return make(self.b, self.b.tan(real(self)), self.marks)

    def asin(self) -> "Tensor":
        """Inverse sine, in radians."""
        return make(self.b, self.b.asin(real(self)), self.marks)

    def acos(self) -> "Tensor":
        """Inverse cosine, in radians."""
        return make(self.b, self.b.acos(real(self)), self.marks)

    def atan(self) -> "Tensor":
        """Inverse tangent, in radians."""
        return make(self.b, self.b.atan(real(self)), self.marks)

    def sinh(self) -> "Tensor":
        """Hyperbolic sine."""
        return make(self.b, self.b.sinh(real(self)), self.marks)

    def cosh(self) -> "Tensor":
        """Hyperbolic cosine."""
        return make(self.b, self.b.cosh(real(self)), self.marks)

    def tanh(self) -> "Tensor":
        """Hyperbolic tangent."""
        return make(self.b, self.b.tanh(real(self)), self.marks)

    def asinh(self) -> "Tensor":
        """Inverse hyperbolic sine."""
        return make(self.b, self.b.asinh(real(self)), self.marks)

    def acosh(self) -> "Tensor":
        """Inverse hyperbolic cosine."""
        return make(self.b, self.b.acosh(real(self)), self.marks)

    def atanh(self) -> "Tensor":
        """Inverse hyperbolic tangent."""
        return make(self.b, self.b.atanh(real(self)), self.marks)

    def erf(self) -> "Tensor":
        """Error function, ``2/sqrt(pi)`` times the integral of ``exp(-t*t)`` from 0 to x."""
        return make(self.b, self.b.erf(real(self)), self.marks)

    def sigmoid(self) -> "Tensor":
        """Logistic function ``1 / (1 + exp(-x))``, without overflow and accurate in both tails."""
        return make(self.b, self.b.sigmoid(real(self)), self.marks)

    def softplus(self) -> "Tensor":
        """``log(1 + exp(x))``, without overflow and accurate in both tails."""
        return make(self.b, self.b.softplus(real(self)), self.marks)

    def relu(self) -> "Tensor":
        """``max(x, 0)``. Its derivative at 0 is 0, and it has no curvature: every second derivative is 0."""
        return make(self.b, self.b.relu(self.value), self.marks)

    def abs(self) -> "Tensor":
        """Absolute value. Its derivative at 0 is 0."""
        return make(self.b, self.b.abs(self.value), self.marks)

    def sign(self) -> "Tensor":
        """-1, 0 or 1; a constant."""
        return make(self.b, self.b.sign(self.value), NONE)

    def floor(self) -> "Tensor":
        """Largest integer not above; a constant."""
        return make(self.b, self.b.floor(self.value), NONE)

    def ceil(self) -> "Tensor":
        """Smallest integer not below; a constant."""
        return make(self.b, self.b.ceil(self.value), NONE)

    def isnan(self) -> "Tensor":
        """Whether an entry is NaN."""
        return make(self.b, self.b.isnan(self.value), NONE)

    def isfinite(self) -> "Tensor":
        """Whether an entry is neither infinite nor NaN."""
        return make(self.b, self.b.isfinite(self.value), NONE)

    def maximum(self, other: Operand) -> "Tensor":
        """The larger of two entries, broadcasting; equal ones share the derivative, half each."""
        return apply("maximum", self, other)

    def minimum(self, other: Operand) -> "Tensor":
        """The smaller of two entries, broadcasting; equal ones share the derivative, half each."""
        return apply("minimum", self, other)

    def clamp(self, min: Operand | None = None, max: Operand | None = None) -> "Tensor":
        """Entries brought into ``[min, max]``; ``None`` is no bound, and ``max`` wins over ``min``.

        With numbers as bounds the derivative at a bound is 1, as in torch; with arrays it is 1/2 for each, as of ``maximum``.
        """
        if (min is None or is_scalar(min)) and (max is None or is_scalar(max)):
            value = real(self) if isinstance(min, float) or isinstance(max, float) else self.value
            lo, hi = (float(v) if isinstance(v, float) else v for v in (min, max))  # NumPy's float is not weak in all places
            return make(self.b, self.b.clamp(value, lo, hi), self.marks)
        low: Tensor = as_tensor(self) if min is None else self.maximum(min)
        return low if max is None else low.minimum(max)

    clip = clamp
