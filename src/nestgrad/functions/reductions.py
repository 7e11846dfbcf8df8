"""Functions that reduce axes.

``axis`` is an int, a tuple of ints, or ``None`` for all axes; negative ones count from the end. With ``keepdims`` the reduced axes stay,
with size 1. An axis out of range, or named twice, raises ``ShapeError``.
"""

from typing import TYPE_CHECKING

from nestgrad.tensor.handle import Operand, as_tensor
from nestgrad.tensor.reductions import Axis

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = [
    "sum", "mean", "prod", "max", "min", "var", "norm", "logsumexp", "softmax", "log_softmax", "argmax", "argmin",
    "any", "all", "ptp", "aminmax",
]  # fmt: skip


def sum(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """Sum; 0 over no entries. Booleans are counted.

    >>> from nestgrad import tensor
    >>> sum(tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0).tolist()
    [4.0, 6.0]
    """
    return as_tensor(x).sum(axis, keepdims)


def mean(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """Mean; NaN over no entries."""
    return as_tensor(x).mean(axis, keepdims)


def prod(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """Product; 1 over no entries. Exact with zeros at every order."""
    return as_tensor(x).prod(axis, keepdims)


def max(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """Largest entry, NaN if there is one; equal ones share the derivative evenly. ``ShapeError`` over no entries."""
    return as_tensor(x).max(axis, keepdims)


def min(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """Smallest entry, NaN if there is one; equal ones share the derivative evenly. ``ShapeError`` over no entries."""
    return as_tensor(x).min(axis, keepdims)


def var(x: Operand, axis: Axis = None, correction: int = 0, keepdims: bool = False) -> "Tensor":
    """Variance: squared deviations from the mean, summed, over ``n - correction``. 0 is the population's, as in NumPy; 1 the sample's."""
    return as_tensor(x).var(axis, correction, keepdims)


def norm(x: Operand, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> "Tensor":
    """Norm over the axes, as of a vector: Euclid's, or of another order: any positive number, 0, or plus or minus infinity.

    At the origin its first derivative is given as 0; higher ones come out as NaN.

    >>> from nestgrad import tensor
    >>> norm(tensor([3.0, -4.0])).item(), norm(tensor([3.0, -4.0]), ord=1).item()
    (5.0, 7.0)
    """
    return as_tensor(x).norm(axis, keepdims, ord)


def logsumexp(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """``log(sum(exp(x)))`` without overflow."""
    return as_tensor(x).logsumexp(axis, keepdims)


def softmax(x: Operand, axis: int = -1) -> "Tensor":
    """``exp(x) / sum(exp(x))`` along an axis, without overflow. The shape stays."""
    return as_tensor(x).softmax(axis)


def log_softmax(x: Operand, axis: int = -1) -> "Tensor":
    """``x - logsumexp(x)`` along an axis, without the loss of small terms. The shape stays."""
    return as_tensor(x).log_softmax(axis)


def any(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """Whether an entry is True, or not 0; a constant. False over no entries."""
    return as_tensor(x).any(axis, keepdims)


def all(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """Whether every entry is True, or not 0; a constant. True over no entries."""
    return as_tensor(x).all(axis, keepdims)


def ptp(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """The greatest entry less the smallest; equal ones share the derivative evenly. ``ShapeError`` over no entries.

    >>> from nestgrad import tensor
    >>> ptp(tensor([3.0, -1.0, 2.0])).item()
    4.0
    """
    least, greatest = aminmax(x, axis, keepdims)
    return greatest - least


def aminmax(x: Operand, axis: Axis = None, keepdims: bool = False) -> "tuple[Tensor, Tensor]":
    """The smallest entry and the greatest; equal ones share the derivative evenly. ``ShapeError`` over no entries.

    >>> from nestgrad import tensor
    >>> [v.item() for v in aminmax(tensor([3.0, -1.0, 2.0]))]
    [-1.0, 3.0]
    """
    x = as_tensor(x)
    return x.min(axis, keepdims), x.max(axis, keepdims)


def argmax(x: Operand, axis: int | None = None, keepdims: bool = False) -> "Tensor":
    """Position of the largest entry, the first of equals; a constant, int64. ``None``: in the flattened array."""
    return as_tensor(x).argmax(axis, keepdims)


def argmin(x: Operand, axis: int | None = None, keepdims: bool = False) -> "Tensor":
    """Position of the smallest entry, the first of equals; a constant, int64. ``None``: in the flattened array."""
    return as_tensor(x).argmin(axis, keepdims)
