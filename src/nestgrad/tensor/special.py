"""Methods that act on each entry by itself, beyond the elementary functions."""

from typing import TYPE_CHECKING

from nestgrad.errors import OrderError
from nestgrad.levels.marks import NONE
from nestgrad.tensor.handle import Handle, is_floating, make, real

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


class Special(Handle):
    """Special functions and parts of numbers. Functions of the reals turn integers and booleans into the default floating dtype."""

    __slots__ = ()

    def cbrt(self) -> "Tensor":
        """Real cube root. Its derivative at 0 is infinite."""
        return make(self.b, self.b.cbrt(real(self)), self.marks)

    def exp2(self) -> "Tensor":
        """``2 ** x``."""
        return make(self.b, self.b.exp2(real(self)), self.marks)

    def log2(self) -> "Tensor":
        """Logarithm of base 2."""
        return make(self.b, self.b.log2(real(self)), self.marks)

    def log10(self) -> "Tensor":
        """Logarithm of base 10."""
        return make(self.b, self.b.log10(real(self)), self.marks)

    def deg2rad(self) -> "Tensor":
        """Degrees in radians."""
        return make(self.b, self.b.deg2rad(real(self)), self.marks)

    def rad2deg(self) -> "Tensor":
        """Radians in degrees."""
        return make(self.b, self.b.rad2deg(real(self)), self.marks)

    def sinc(self) -> "Tensor":
        """``sin(pi x) / (pi x)``, and 1 at 0, where all derivatives are finite."""
        return make(self.b, self.b.sinc(real(self)), self.marks)

    def erfc(self) -> "Tensor":
        """``1 - erf(x)``, accurate where it is small."""
        return make(self.b, self.b.erfc(real(self)), self.marks)

    def erfcx(self) -> "Tensor":
        """``exp(x * x) * erfc(x)``, which does not underflow."""
        return make(self.b, self.b.erfcx(real(self)), self.marks)

    def erfinv(self) -> "Tensor":
        """Inverse of the error function. Its derivatives at -1 and 1 are infinite."""
        return make(self.b, self.b.erfinv(real(self)), self.marks)

    def ndtr(self) -> "Tensor":
        """Standard normal distribution function."""
        return make(self.b, self.b.ndtr(real(self)), self.marks)

    def log_ndtr(self) -> "Tensor":
        """Logarithm of the standard normal distribution function, accurate in both tails."""
        return make(self.b, self.b.log_ndtr(real(self)), self.marks)

    def lgamma(self) -> "Tensor":
        """Logarithm of the size of the gamma function."""
        return make(self.b, self.b.lgamma(real(self)), self.marks)

    def digamma(self) -> "Tensor":
        """Derivative of ``lgamma``."""
        return make(self.b, self.b.digamma(real(self)), self.marks)

    def polygamma(self, n: int) -> "Tensor":
        """The ``n``-th derivative of ``digamma``.

        Raises:
            OrderError: If ``n`` is no whole number from 0 to 1000.
        """
        if not isinstance(n, int) or isinstance(n, bool) or not 0 <= n <= 1000:
            raise OrderError(
                f"polygamma: got n = {n!r}; expected an int from 0 to 1000, the order of the derivative. Try polygamma(n, x), n first"
            )
        return make(self.b, self.b.polygamma(real(self), n) if n else self.b.digamma(real(self)), self.marks)

    def trunc(self) -> "Tensor":
        """Nearest integer towards zero; a constant."""
        return make(self.b, self.b.trunc(self.value), NONE)

    def frac(self) -> "Tensor":
        """What ``trunc`` leaves, with the sign of ``x``; its derivative is 1."""
        return make(self.b, self.b.frac(real(self)), self.marks)

    def isinf(self) -> "Tensor":
        """Whether an entry is infinite."""
        return make(self.b, self.b.isinf(self.value), NONE)

    def signbit(self) -> "Tensor":
        """Whether an entry is negative, the zero that has a sign too."""
        return make(self.b, self.b.signbit(self.value), NONE)

    def nan_to_num(self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> "Tensor":
        """Other numbers for NaN and infinities, with derivative 0; ``None`` is the largest, or smallest, finite number of the dtype."""
        if not is_floating(self):
            return self  # type: ignore[return-value]
        return make(self.b, self.b.nan_to_num(self.value, nan, posinf, neginf), self.marks)
