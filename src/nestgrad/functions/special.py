"""Special functions of each entry by itself.

What is said of ``functions.elementwise`` holds here, too. All of them are accurate in their tails, and so are their derivatives: relative
errors are those of a few roundings, as long as the result is a normal number of its dtype. Beside zeros of a function or
a derivative, such as those of ``sinc`` and those of ``lgamma`` left of 0, it is the absolute errors that are.
"""

from typing import TYPE_CHECKING

from nestgrad.tensor.handle import Operand, as_tensor

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["sinc", "erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "lgamma", "digamma", "polygamma"]


def sinc(x: Operand) -> "Tensor":
    """``sin(pi x) / (pi x)``, and 1 at 0, where derivatives of every order are finite and exact.

    >>> import nestgrad as ng
    >>> x = ng.Autodiff(ng.Autodiff(ng.NumpyBackend())).tensor(0.0, requires_grad=True)
    >>> round(sinc(x).wrt(x).wrt(x).item(), 12)
    -3.289868133696
    """
    return as_tensor(x).sinc()


def erfc(x: Operand) -> "Tensor":
    """``1 - erf(x)``, accurate to the right, where it is small.

    >>> erfc(10.0).item() < 1e-44
    True
    """
    return as_tensor(x).erfc()


def erfcx(x: Operand) -> "Tensor":
    """``exp(x * x) * erfc(x)``: falls like ``1 / x`` to the right, and overflows to the left of -26."""
    return as_tensor(x).erfcx()


def erfinv(x: Operand) -> "Tensor":
    """Inverse of ``erf``: infinite at -1 and 1, as its derivatives are, and NaN outside."""
    return as_tensor(x).erfinv()


def ndtr(x: Operand) -> "Tensor":
    """Standard normal distribution function: the chance that a standard normal number is below ``x``."""
    return as_tensor(x).ndtr()


def log_ndtr(x: Operand) -> "Tensor":
    """Logarithm of ``ndtr``. Neither tail underflows or loses digits, in derivatives neither.

    >>> round(log_ndtr(-40.0).item(), 6)
    -804.608442
    """
    return as_tensor(x).log_ndtr()


def lgamma(x: Operand) -> "Tensor":
    """Logarithm of the size of the gamma function: infinite at 0, -1, -2, ...; its derivative is ``digamma``."""
    return as_tensor(x).lgamma()


def digamma(x: Operand) -> "Tensor":
    """Derivative of ``lgamma``: infinite or NaN at 0, -1, -2, ..."""
    return as_tensor(x).digamma()


def polygamma(n: int, x: Operand) -> "Tensor":
    """The ``n``-th derivative of ``digamma``; that one itself is ``n = 0``. From ``n = 171`` on it is beyond double precision near 1.
    Costs sums of ``10 + n / 2`` terms.

    Raises:
        OrderError: If ``n`` is no whole number from 0 to 1000.

    >>> round(polygamma(1, 1.0).item(), 12)
    1.644934066848
    """
    return as_tensor(x).polygamma(n)
