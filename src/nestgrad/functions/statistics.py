"""Averages, spread, medians, quantiles, covariances.

``axis`` is an int, a tuple of ints, or ``None`` for all axes. One NaN among the entries makes NaN of the answer, but for ``nansum`` and
``nanmean``. Medians and quantiles are made of entries of certain ranks, and these get the derivative; equal entries are told apart by
their order.
"""

from collections.abc import Sequence
from math import nan, prod
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.functions.choose import where
from nestgrad.functions.joining import vstack
from nestgrad.ops.statistics import METHODS
from nestgrad.tensor.axes import axes_of, one_axis
from nestgrad.tensor.handle import Operand, as_tensor, constant_of, floating, make, real
from nestgrad.tensor.reductions import Axis

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["std", "average", "nansum", "nanmean", "median", "quantile", "percentile", "cov", "corrcoef"]


def std(x: Operand, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> "Tensor":
    """Standard deviation: the root of ``var``. 0 is the population's, as in NumPy; 1 the sample's, as torch has it by default.

    A spread of 0 is a kink: the first derivative is given as 0 there, higher ones come out as NaN, as those of ``norm`` at the origin.

    >>> from nestgrad import tensor
    >>> std(tensor([1.0, 3.0])).item()
    1.0
    """
    return as_tensor(x).std(axis, correction, keepdims)


def average(x: Operand, axis: Axis = None, weights: Operand = None, keepdims: bool = False) -> "Tensor":
    """Mean, or with ``weights`` the sum of ``weights * x`` over the sum of ``weights``.

    Args:
        x: Any shape.
        axis: Over which axes.
        weights: Of the shape of ``x``; or one number for each entry along ``axis``, which is one axis then.
        keepdims: Whether the axes stay, with size 1.

    Raises:
        ShapeError: If the weights have another shape.

    >>> from nestgrad import tensor
    >>> average(tensor([1.0, 2.0]), weights=[3.0, 1.0]).item()
    1.25
    """
    values = as_tensor(x)
    if weights is None:
        return values.mean(axis, keepdims)
    w = constant_of(weights, values.b)
    if w.shape != values.shape:
        if w.ndim != 1 or axis is None:
            raise ShapeError(
                f"average: got weights of shape {w.shape} for an array of shape {values.shape}; expected the same, "
                "or with axis=k as many numbers as there are entries along that axis"
            )
        k = one_axis(values, axis, "average")  # type: ignore[arg-type]
        size = values.shape[k]
        if w.shape[0] != size:
            raise ShapeError(f"average: got {w.shape[0]} weights for {size} entries along axis {k}; expected as many")
        w = w.reshape(tuple(size if i == k else 1 for i in range(values.ndim))).broadcast_to(values.shape)
    return (values * w).sum(axis, keepdims) / w.sum(axis, keepdims)


def nansum(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """Sum of the entries that are not NaN; 0 over none. The derivative at a NaN is 0.

    >>> from nestgrad import tensor
    >>> nansum(tensor([1.0, float("nan"), 2.0])).item()
    3.0
    """
    values = as_tensor(x)
    return where(values.isnan(), 0, values).sum(axis, keepdims)


def nanmean(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """Mean of the entries that are not NaN; NaN over none. The derivative at a NaN is 0.

    >>> from nestgrad import tensor
    >>> nanmean(tensor([1.0, float("nan"), 2.0])).item()
    1.5
    """
    values = floating(x)
    return nansum(values, axis, keepdims) / (~values.isnan()).sum(axis, keepdims)


def median(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """The middle entry; of an even count the mean of the two in the middle, as in NumPy (torch takes the lower one). NaN over none.

    >>> from nestgrad import tensor
    >>> median(tensor([3.0, 1.0, 2.0])).item(), median(tensor([1.0, 4.0, 2.0, 9.0])).item()
    (2.0, 3.0)
    """
    x = as_tensor(x)
    return make(x.b, x.b.median(real(x), axes_of(x.ndim, axis, "median"), keepdims), x.marks)


def quantile(
    x: Operand, q: float | Sequence[float], axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> "Tensor":
    """What a share ``q`` of the entries is not above.

    Args:
        x: Any shape.
        q: From 0 to 1: a number, or several, for which there is a new first axis. They are constants.
        axis: Over which axes.
        method: What a quantile between two entries is: ``"linear"`` between them, the ``"lower"``, the ``"higher"``, the ``"nearest"``,
            or the ``"midpoint"``.
        keepdims: Whether the axes stay, with size 1.

    Returns:
        NaN over no entries, and where there is a NaN.

    Raises:
        ArgumentError: If ``q`` is not from 0 to 1, or the method not one of these.

    >>> from nestgrad import tensor
    >>> quantile(tensor([1.0, 2.0, 4.0, 8.0, 16.0]), [0.5, 0.875]).tolist()
    [4.0, 12.0]
    """
    return _quantile("quantile", x, q, 1.0, axis, method, keepdims)


def percentile(
    x: Operand, q: float | Sequence[float], axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> "Tensor":
    """``quantile`` with ``q`` from 0 to 100.

    >>> from nestgrad import tensor
    >>> percentile(tensor([1.0, 2.0, 4.0]), 50).item()
    2.0
    """
    return _quantile("percentile", x, q, 100.0, axis, method, keepdims)


def _quantile(name: str, x: Operand, q: Any, whole: float, axis: Axis, method: str, keepdims: bool) -> "Tensor":
    x = as_tensor(x)
    if method not in METHODS:
        raise ArgumentError(f"{name}: got method {method!r}; expected one of {', '.join(map(repr, METHODS))}")
    given = constant_of(q, x.b)
    if given.tracked_on() or given.marks:
        raise ArgumentError(f"{name}: got a q that is on levels; expected plain numbers, by which there is no derivative. Try q.detach()")
    places = [float(p) / whole for p in given.flatten().tolist()]
    if not all(0.0 <= p <= 1.0 for p in places):
        raise ArgumentError(f"{name}: got q={given.tolist()!r:.80}; expected numbers from 0 to {whole:g}")
    value = x.b.quantile(real(x), tuple(places), axes_of(x.ndim, axis, name), method, keepdims)
    return make(x.b, x.b.reshape(value, (*given.shape, *x.b.shape(value)[1:])), x.marks)


def cov(
    x: Operand, y: Operand = None, rowvar: bool = True, correction: float = 1, fweights: Operand = None, aweights: Operand = None
) -> "Tensor":
    """The covariances of variables.

    Args:
        x: Shape ``(n,)``, one variable; or ``(k, n)``, k of them with n observations each.
        y: More variables, in the same form.
        rowvar: Whether rows are the variables; else columns are.
        correction: The sum is divided by the number of observations less this.
        fweights: How often each observation is counted, shape ``(n,)``.
        aweights: How much each observation weighs, shape ``(n,)``; both may be given.

    Returns:
        Shape ``(k, k)``, or ``()`` of one variable.

    Raises:
        ShapeError: If there are more axes, or the numbers of observations differ.

    >>> from nestgrad import tensor
    >>> cov(tensor([[1.0, 2.0, 3.0], [1.0, 0.0, 5.0]])).tolist()
    [[1.0, 2.0], [2.0, 7.0]]
    """
    rows = _observations("cov", x, rowvar)
    count = rows.shape[1]
    if y is not None:
        more = _observations("cov", y, rowvar)
        if more.shape[1] != count:
            raise ShapeError(f"cov: got {count} and {more.shape[1]} observations; expected as many of both")
        rows = vstack([rows, more])
    w: Any = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            weight = constant_of(given, rows.b)
            if weight.shape != (count,):
                raise ShapeError(f"cov: got {name} of shape {weight.shape} for {count} observations; expected shape ({count},)")
            w = weight if w is None else w * weight
    if w is None:
        far = rows - rows.mean(1, keepdims=True)
        out = far @ far.mT / (count - correction if count > correction else nan)
    else:
        total = w.sum()
        far = rows - (rows * w).sum(1, keepdims=True) / total
        # NumPy's and torch's: weights that only tell how much an observation counts do not tell how many there are
        lost = correction if aweights is None else (w * constant_of(aweights, rows.b)).sum() / total * correction
        out = (far * w) @ far.mT / (total - lost)
    return out.reshape(()) if out.shape == (1, 1) else out


def _observations(name: str, x: Operand, rowvar: bool) -> "Tensor":
    """Variables in rows."""
    given = as_tensor(x)
    if given.ndim > 2:
        raise ShapeError(f"{name}: got shape {given.shape}; expected at most two axes: variables and observations")
    rows = floating(given)
    if rows.ndim < 2:
        return rows.reshape((1, prod(rows.shape)))
    return rows if rowvar else rows.mT


def corrcoef(x: Operand, y: Operand = None, rowvar: bool = True) -> "Tensor":
    """The correlations of variables: ``cov`` over the product of their standard deviations; NaN for one that does not vary.

    >>> from nestgrad import tensor
    >>> round(corrcoef(tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]))[0, 1].item(), 12)
    1.0
    """
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    scale = c.diagonal().sqrt()
    return c / scale.reshape((scale.shape[0], 1)) / scale
