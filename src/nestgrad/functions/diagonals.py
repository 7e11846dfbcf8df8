"""Triangles and diagonals of matrices."""

from typing import TYPE_CHECKING

from nestgrad.errors import ShapeError
from nestgrad.tensor.arguments import whole_number
from nestgrad.tensor.axes import axes_of
from nestgrad.tensor.handle import Operand, as_tensor, make

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["triu", "tril", "diagonal", "diag", "diag_embed", "trace"]


def triu(x: Operand, k: int = 0) -> "Tensor":
    """The entries of the last two axes on and above the ``k``-th diagonal, zeros below.

    >>> from nestgrad import ones
    >>> triu(ones((2, 3)), 1).tolist()
    [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    """
    return as_tensor(x).triu(k)


def tril(x: Operand, k: int = 0) -> "Tensor":
    """The entries of the last two axes on and below the ``k``-th diagonal, zeros above."""
    return as_tensor(x).tril(k)


def diagonal(x: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "Tensor":
    """Entries ``i`` and ``i + offset`` of two axes, which a last one takes the place of.

    >>> from nestgrad import tensor
    >>> diagonal(tensor([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    return as_tensor(x).diagonal(offset, axis1, axis2)


def diag(x: Operand, k: int = 0) -> "Tensor":
    """Of a vector the matrix with this ``k``-th diagonal, of a matrix its ``k``-th diagonal.

    Raises:
        ShapeError: Of other arrays. ``diag_embed`` and ``diagonal`` take stacks of them.

    >>> from nestgrad import tensor
    >>> diag(tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    x = as_tensor(x)
    if x.ndim not in (1, 2):
        raise ShapeError(f"diag: got shape {x.shape}; expected a vector or a matrix. Try diagonal or diag_embed, which take stacks of them")
    return diag_embed(x, k) if x.ndim == 1 else x.diagonal(k)


def diag_embed(x: Operand, offset: int = 0, axis1: int = -2, axis2: int = -1) -> "Tensor":
    """Zeros, with the last axis of ``x`` on a diagonal of two new axes: the transpose of ``diagonal``.

    Args:
        x: At least one axis.
        offset: Which diagonal: entries ``i`` and ``i + offset``.
        axis1, axis2: Where the new axes are in the result.

    Raises:
        ShapeError: Of a number; or one place for both axes.
    """
    x = as_tensor(x)
    if not x.ndim:
        raise ShapeError("diag_embed: got a number; expected at least one axis")
    offset = whole_number("diag_embed", "offset", offset)
    rank, n = x.ndim + 1, x.shape[-1] + abs(offset)
    axes = axes_of(rank, (axis1, axis2), "diag_embed")
    rest = iter(x.shape[:-1])
    shape = tuple(n if k in axes else next(rest) for k in range(rank))
    return make(x.b, x.b.from_diagonal(x.value, offset, axes, shape), x.marks)


def trace(x: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "Tensor":
    """Sum of a diagonal of two axes; of a matrix a number. To record a function as a program, see ``func.trace``.

    >>> from nestgrad import tensor
    >>> trace(tensor([[1.0, 2.0], [3.0, 4.0]])).item()
    5.0
    """
    return as_tensor(x).trace(offset, axis1, axis2)
