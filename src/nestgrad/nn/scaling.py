"""Entries over a size: that of the vector along an axis, or that of neighbouring channels."""

from collections.abc import Sequence
from math import isinf
from typing import TYPE_CHECKING

from nestgrad.errors import ArgumentError
from nestgrad.nn.normalization import channels_of
from nestgrad.tensor.arguments import number, whole_number
from nestgrad.tensor.handle import Operand, floating, make

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["normalize", "local_response_norm"]


def normalize(x: Operand, p: float = 2.0, axis: int | Sequence[int] = 1, eps: float = 1e-12) -> "Tensor":
    """``x`` over its ``p``-norm along ``axis``, or over ``eps`` where the norm is smaller.

    So at the origin, too, it has all derivatives: those of ``x / eps``.

    Args:
        x: Any shape.
        p: A positive number; ``inf`` is the greatest absolute value.
        axis: Along which the norm is taken; an int or several.
        eps: The least that is divided by.

    Returns:
        The shape of ``x``.

    Raises:
        ShapeError: If ``x`` has no such axis.
        ArgumentError: If ``p`` is not positive.

    >>> from nestgrad import tensor
    >>> normalize(tensor([[3.0, 4.0]])).tolist()
    [[0.6, 0.8]]
    """
    x = floating(x)
    p, eps = number("normalize", "p", p), number("normalize", "eps", eps)
    if not p > 0:
        raise ArgumentError(f"normalize: got p={p!r}; expected a positive number, or inf")
    norm: Tensor
    if p == 2.0:  # the square is cut off below, not the norm, which has no second derivative at the origin
        norm = (x * x).sum(axis, keepdims=True).clamp(eps * eps, None).sqrt()
    elif p == 1.0:
        norm = abs(x).sum(axis, keepdims=True).clamp(eps, None)
    elif isinf(p):
        norm = abs(x).max(axis, keepdims=True).clamp(eps, None)
    else:
        norm = (abs(x) ** p).sum(axis, keepdims=True).clamp(eps**p, None) ** (1.0 / p)
    normalized: Tensor = x / norm
    return normalized


def local_response_norm(x: Operand, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> "Tensor":
    """``x / (k + alpha * m)^beta``, where ``m`` is the mean of squares of ``size`` neighbouring channels, zeros beyond the first and last.

    Krizhevsky, Sutskever & Hinton, "ImageNet classification with deep convolutional neural networks", NeurIPS 2012.

    Args:
        x: Shape ``(N, C, ...)``, with one axis at least after the channels.
        size: How many channels are taken together: ``size // 2`` before each, and the others from itself on.
        alpha, beta, k: Numbers of the formula.

    Returns:
        The shape of ``x``.

    Raises:
        ShapeError: If ``x`` has fewer than 3 axes.
        ArgumentError: If ``size`` is no positive int.
    """
    x = floating(x)
    _, channels, rest = channels_of("local_response_norm", x, 3)
    size = whole_number("local_response_norm", "size", size, 1)
    alpha, beta, k = (number("local_response_norm", word, v) for word, v in (("alpha", alpha), ("beta", beta), ("k", k)))
    b = x.b
    before, after = min(size // 2, channels), min((size - 1) // 2, channels)  # beyond there are zeros only
    widths = ((0, 0), (before, after), *((0, 0),) * len(rest))
    squares = make(b, b.pad((x * x).value, widths), x.marks)
    total = squares[:, :channels]
    for first in range(1, before + after + 1):
        total = total + squares[:, first : first + channels]
    out: Tensor = x / (total * (alpha / size) + k) ** beta
    return out
