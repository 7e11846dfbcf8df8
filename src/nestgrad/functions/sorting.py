"""Functions that order entries."""

from typing import TYPE_CHECKING

from nestgrad.tensor.handle import Operand, as_tensor, one_axis, results

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["sort", "argsort"]


def sort(x: Operand, axis: int = -1, descending: bool = False) -> "Tensor":
    """The entries in order along an axis. Equal ones keep their order, which says who gets the derivative.

    Args:
        x: At least one axis.
        axis: Along which axis.
        descending: Whether the greatest comes first.

    Returns:
        The shape and dtype of ``x``. NaN counts as greater than every number.

    Raises:
        ShapeError: If there is no such axis.

    >>> from nestgrad import tensor
    >>> sort(tensor([3.0, 1.0, 2.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    x = as_tensor(x)
    return results("sort", x, axis=one_axis(x, axis, "sort"), descending=descending)[0]


def argsort(x: Operand, axis: int = -1, descending: bool = False) -> "Tensor":
    """The positions of the entries in order, as int64; a constant. ``sort`` says which order.

    >>> from nestgrad import tensor
    >>> argsort(tensor([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
    x = as_tensor(x)
    return results("sort", x, axis=one_axis(x, axis, "argsort"), descending=descending)[1]
