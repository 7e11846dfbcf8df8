"""Integrals of sampled functions, by the trapezoidal rule.

The samples lie along one axis. Their places are ``x``, sorted in either direction, or ``dx`` apart.
"""

from typing import TYPE_CHECKING

from nestgrad.errors import ShapeError
from nestgrad.functions.scans import diff
from nestgrad.functions.shaping import concat
from nestgrad.tensor.axes import one_axis
from nestgrad.tensor.handle import Operand, as_tensor, constant_of, first_beside, is_scalar, real

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["trapezoid", "cumulative_trapezoid"]


def trapezoid(y: Operand, x: Operand = None, dx: Operand = 1.0, axis: int = -1) -> "Tensor":
    """The integral of ``y`` along an axis.

    Args:
        y: At least one axis.
        x: Where the samples are: one number for each along the axis, or an array that broadcasts to ``y``.
        dx: How far apart they are, if ``x`` is not given; or one number for each gap, in the last place of its shape.
        axis: Along which axis.

    Returns:
        The shape of ``y`` without the axis; 0 of one sample, or none.

    Raises:
        ShapeError: If the shapes do not fit.

    >>> from nestgrad import tensor
    >>> trapezoid(tensor([1.0, 2.0, 4.0]), dx=0.5).item(), trapezoid(tensor([1.0, 2.0, 4.0]), x=[0.0, 1.0, 3.0]).item()
    (2.25, 7.5)
    """
    samples = first_beside(y, x, dx)
    k = one_axis(samples, axis, "trapezoid")
    n = samples.shape[k]
    even = x is None and (is_scalar(dx) or getattr(dx, "shape", None) == ())
    places = None if x is None else constant_of(x, samples.b)
    if n < 2 or not (even or (places is not None and places.shape == (n,))):
        return _pieces("trapezoid", samples, places, dx, k).sum(k)
    gaps = as_tensor(samples.b.base.full((n - 1,), 1.0, samples.b.dtype(real(samples))), samples.b) if places is None else diff(places)
    shares = (gaps.pad(((1, 0),)) + gaps.pad(((0, 1),))) / 2  # half the gaps beside each sample: one pass over the samples, not four
    area = (samples * shares.reshape((n, *(1,) * (samples.ndim - k - 1)))).sum(k)
    return area if places is not None else area * dx


def cumulative_trapezoid(
    y: Operand, x: Operand = None, dx: Operand = 1.0, axis: int = -1, initial: float | None = None
) -> "Tensor":
    """The integral of ``y`` along an axis, up to each sample but the first; see ``trapezoid``.

    Args:
        y: At least one axis.
        x: Where the samples are.
        dx: How far apart they are, if ``x`` is not given.
        axis: Along which axis.
        initial: What stands in the first place, for as many entries as ``y`` has; by default there is one less.

    Raises:
        ShapeError: If the shapes do not fit.

    >>> from nestgrad import tensor
    >>> cumulative_trapezoid(tensor([1.0, 2.0, 4.0]), initial=0.0).tolist()
    [0.0, 1.5, 4.5]
    """
    samples = first_beside(y, x, dx)
    k = one_axis(samples, axis, "cumulative_trapezoid")
    out = _pieces("cumulative_trapezoid", samples, None if x is None else constant_of(x, samples.b), dx, k).cumsum(k)
    if initial is None:
        return out
    first = as_tensor(initial, out.b).astype(out.dtype)
    return concat([first.broadcast_to(tuple(1 if i == k else n for i, n in enumerate(out.shape))), out], axis=k)


def _pieces(name: str, samples: "Tensor", places: "Tensor | None", dx: Operand, k: int) -> "Tensor":
    """What lies under each piece between samples along axis ``k``."""
    n = samples.shape[k]
    lead = (slice(None),) * k
    heights = samples[(*lead, slice(1, None))] + samples[(*lead, slice(0, max(n - 1, 0)))]
    if places is None:
        if is_scalar(dx):
            return heights * (float(dx) / 2)
        return heights * constant_of(dx, samples.b) / 2
    if places.ndim != 1:
        if places.ndim < samples.ndim - k or places.shape[k - samples.ndim] != n:
            raise ShapeError(f"{name}: got places of shape {places.shape} for shape {samples.shape}; expected {n} along axis {k}")
        return heights * diff(places, axis=k - samples.ndim) / 2
    if places.shape[0] != n:
        raise ShapeError(f"{name}: got {places.shape[0]} places for {n} samples along axis {k}; expected as many")
    return heights * diff(places).reshape((max(n - 1, 0), *(1,) * (samples.ndim - k - 1))) / 2
