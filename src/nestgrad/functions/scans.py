"""Functions that run along an axis: running sums, products and extrema, differences.

``axis=None`` runs through the flattened array, as in NumPy. An axis that the array does not have raises ``ShapeError``.
"""

from typing import TYPE_CHECKING

from nestgrad.errors import ShapeError
from nestgrad.functions.shaping import concat
from nestgrad.tensor.axes import one_axis
from nestgrad.tensor.handle import Operand, apply, as_tensor, constant_of, floating, is_floating, is_scalar, make, results
from nestgrad.tensor.scans import line_of

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "diff"]


def cumsum(x: Operand, axis: int | None = None, reverse: bool = False) -> "Tensor":
    """For each entry the sum of all up to it. Integers and booleans give int64.

    Args:
        x: Any shape.
        axis: Along which axis.
        reverse: Whether to sum from each entry on, instead.

    >>> from nestgrad import tensor
    >>> cumsum(tensor([1.0, 2.0, 3.0])).tolist(), cumsum(tensor([1.0, 2.0, 3.0]), reverse=True).tolist()
    ([1.0, 3.0, 6.0], [6.0, 5.0, 3.0])
    """
    return as_tensor(x).cumsum(axis, reverse)


def cumprod(x: Operand, axis: int | None = None) -> "Tensor":
    """For each entry the product of all up to it. Exact with zeros at every order. Integers and booleans give int64.

    >>> from nestgrad import tensor
    >>> cumprod(tensor([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 6.0]
    """
    return as_tensor(x).cumprod(axis)


def cummax(x: Operand, axis: int | None = None) -> "tuple[Tensor, Tensor]":
    """For each entry the greatest of all up to it, and its position.

    Returns:
        The values, and the positions as int64, which are constants. NaN is the greatest from where it stands on. Of equal entries the
        latest is taken, and gets the derivative.

    >>> from nestgrad import tensor
    >>> values, positions = cummax(tensor([2.0, 1.0, 2.0]))
    >>> values.tolist(), positions.tolist()
    ([2.0, 2.0, 2.0], [0, 0, 2])
    """
    return _extreme("cummax", x, axis)


def cummin(x: Operand, axis: int | None = None) -> "tuple[Tensor, Tensor]":
    """For each entry the smallest of all up to it, and its position.

    Returns:
        The values, and the positions as int64, which are constants. NaN is the smallest from where it stands on. Of equal entries the
        latest is taken, and gets the derivative.
    """
    return _extreme("cummin", x, axis)


def _extreme(name: str, x: Operand, axis: int | None) -> "tuple[Tensor, Tensor]":
    x = as_tensor(x)
    x = x if axis is not None else x.flatten()
    values, positions = results(name, x, axis=0 if axis is None else one_axis(x, axis, name))
    return values, positions


def logcumsumexp(x: Operand, axis: int | None = None) -> "Tensor":
    """``log(cumsum(exp(x)))`` without overflow. Where it is -inf, since nothing but -inf came yet, its derivative is given as 0.

    >>> from nestgrad import tensor
    >>> logcumsumexp(tensor([1000.0, 1000.0])).tolist()
    [1000.0, 1000.6931471805599]
    """
    x = floating(x)
    value, k = line_of(x, axis, "logcumsumexp")
    return make(x.b, x.b.logcumsumexp(value, k), x.marks)


def diff(x: Operand, n: int = 1, axis: int = -1, prepend: Operand = None, append: Operand = None) -> "Tensor":
    """The differences of neighbours along an axis, ``n`` times; of booleans, whether they differ.

    Args:
        x: At least one axis.
        n: How often, from 0 on; 0 gives ``x`` as it is, without what stands beside it, as in NumPy.
        axis: Along which axis.
        prepend: What stands before the first, of a shape like that of ``x`` but for the axis; a number is one entry.
        append: What stands after the last.

    Returns:
        ``n`` entries less along the axis than ``x`` has with what stands before and after it; none, if there are not so many.

    Raises:
        ShapeError: If ``n`` is no such number, there is no such axis, or the shapes do not fit.

    >>> from nestgrad import tensor
    >>> diff(tensor([1.0, 4.0, 9.0])).tolist(), diff(tensor([1.0, 4.0, 9.0]), prepend=0.0).tolist()
    ([3.0, 5.0], [1.0, 3.0, 5.0])
    """
    values = as_tensor(x)
    k = one_axis(values, axis, "diff")
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ShapeError(f"diff: got n={n!r}; expected how often to take differences, an int from 0 on")
    if n == 0:
        return values
    before, after = ([] if p is None else [_beside(values, p, k)] for p in (prepend, append))
    if before or after:
        values = concat([*before, values, *after], axis=k)
    return apply("diff", values, n=min(n, values.shape[k]), axis=k)  # of which nothing is left from there on


def _beside(x: "Tensor", p: Operand, axis: int) -> "Tensor":
    """What stands beside ``x`` along ``axis``: a number as one entry, in each line."""
    beside = constant_of(p, x.b)
    if is_scalar(p) and (is_floating(x) or not is_floating(beside)):
        beside = beside.astype(x.dtype)  # numbers are weakly typed
    return beside.broadcast_to(tuple(1 if k == axis else n for k, n in enumerate(x.shape))) if beside.ndim == 0 else beside
