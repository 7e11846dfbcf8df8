"""Determinants."""

from typing import TYPE_CHECKING, NamedTuple

from nestgrad.linalg.matrices import matrices
from nestgrad.tensor.handle import Operand, apply, results

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["det", "slogdet"]


def det(a: Operand) -> "Tensor":
    """The determinant, as ``np.linalg.det``; its derivatives are right at singular matrices, too.

    Args:
        a: Shape ``(..., n, n)``. Of matrices without entries it is 1.

    Returns:
        Shape ``(...)``. Up to three rows it is written out, so that derivatives are exact at every order. From four rows on, elimination
        with complete pivoting goes on down to three, which are written out. Derivatives up to the third are right at every matrix, and
        those of all orders where no more than three pivots are small. Where a fourth is (less than ``1e-4``, in single precision
        ``0.02``, of what it is the difference of), those from the fourth order on would lose their digits: they are infinite or NaN.
        From four rows on, derivatives also need the determinant itself to be in the range of the dtype: where it rounds to 0 or overflows,
        so do they. ``slogdet`` does neither. O(n^3); with derivatives, in n steps.

    Raises:
        ShapeError: If the matrices are not square.

    >>> from nestgrad import func, tensor
    >>> det(tensor([[1.0, 2.0], [3.0, 4.0]])).item()
    -2.0
    >>> func.grad(det)(tensor([[1.0, 2.0], [2.0, 4.0]])).tolist()
    [[4.0, -2.0], [-2.0, 1.0]]
    """
    return apply("det", matrices("det", a))


class SignAndLogarithm(NamedTuple):
    """What ``slogdet`` returns; the fields are called as NumPy's."""

    sign: "Tensor"
    logabsdet: "Tensor"


def slogdet(a: Operand) -> SignAndLogarithm:
    """The sign of the determinant, and the logarithm of its absolute value, as ``np.linalg.slogdet``.

    Args:
        a: Shape ``(..., n, n)``.

    Returns:
        A named tuple of two of shape ``(...)``, ``sign`` and ``logabsdet``: ``(0, -inf)`` of a singular matrix. The sign is a constant.

    Raises:
        ShapeError: If the matrices are not square.
        SingularMatrixError: Where the derivative at a singular matrix is asked for.

    >>> from nestgrad import tensor
    >>> [v.item() for v in slogdet(tensor([[-1.0, 0.0], [0.0, 1.0]]))]
    [-1.0, 0.0]
    """
    return SignAndLogarithm(*results("slogdet", matrices("slogdet", a)))
