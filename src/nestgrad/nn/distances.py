"""Distances between vectors. Where two are equal, a distance has a kink: see ``Tensor.norm`` at the origin."""

from typing import TYPE_CHECKING

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.tensor.arguments import number
from nestgrad.tensor.handle import Operand, as_tensor

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["pairwise_distance", "cdist"]


def pairwise_distance(x: Operand, y: Operand, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> "Tensor":
    """The ``p``-norm of ``x - y + eps`` along the last axis.

    Args:
        x, y: Shape ``(..., n)``; they broadcast.
        p: A number from 0 on, or infinity.
        eps: Added to each difference, which keeps equal vectors off the kink.
        keepdim: Whether the last axis stays, with size 1.

    Returns:
        Shape ``(...)``.

    Raises:
        ShapeError: If the last axes differ.
        ArgumentError: If ``p`` is negative.

    >>> from nestgrad import tensor
    >>> pairwise_distance(tensor([3.0, 4.0]), tensor([0.0, 0.0]), eps=0.0).item()
    5.0
    """
    x, y = as_tensor(x), as_tensor(y)
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"pairwise_distance: got shapes {x.shape} and {y.shape}; expected vectors of one size along the last axes")
    distance: Tensor = (x - y + number("pairwise_distance", "eps", eps)).norm(-1, keepdim, _order("pairwise_distance", p))
    return distance


def cdist(x: Operand, y: Operand, p: float = 2.0) -> "Tensor":
    """The ``p``-norm of the difference of each vector of ``x`` and each of ``y``.

    Args:
        x: Shape ``(..., n, d)``.
        y: Shape ``(..., m, d)``; leading axes broadcast.
        p: A number from 0 on, or infinity. 0 counts the entries that differ, a constant.

    Returns:
        Shape ``(..., n, m)``. Where two vectors are equal the first derivative is 0; higher ones are NaN, except with ``p`` of 0 or 1
        or infinity, where they are 0. Memory: all ``n * m * d`` differences, which are exact, unlike those of products of matrices.

    Raises:
        ShapeError: If the shapes do not fit.
        ArgumentError: If ``p`` is negative.

    >>> from nestgrad import tensor
    >>> cdist(tensor([[0.0, 0.0]]), tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    x, y = as_tensor(x), as_tensor(y)
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"cdist: got shapes {x.shape} and {y.shape}; expected (..., n, d) and (..., m, d)")
    distances: Tensor = (x.expand_dims(-2) - y.expand_dims(-3)).norm(-1, ord=_order("cdist", p))
    return distances


def _order(name: str, p: float) -> float:
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not p >= 0:
        raise ArgumentError(f"{name}: got p={p!r}; expected a number from 0 on, or infinity")
    return p
