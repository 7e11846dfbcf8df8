"""Images of another size."""

from collections.abc import Sequence
from math import floor
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.nn.averaging import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, along
from nestgrad.nn.sizes import Sizes, for_each
from nestgrad.tensor.handle import Operand, as_tensor, make, real

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["interpolate"]

_RANKS = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "area": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,),
          "trilinear": (3,)}  # fmt: skip
"""The modes, and the numbers of spatial axes that they are for."""

_SHARPNESS = -0.75
"""The parameter of the cubic kernel (Keys, "Cubic convolution interpolation for digital image processing", 1981)."""

Taps = list[tuple[int, float]]
"""Entries, and their weights."""


def interpolate(
    x: Operand,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> "Tensor":
    """Images of another size, as ``torch.nn.functional.interpolate``. Linear in ``x``.

    Args:
        x: Shape (samples, channels, *spatial axes), one to three of these.
        size: Of the result; an int, or one for each axis.
        scale_factor: By what to multiply the size instead; the result is rounded down, and positions are those of the factor. An axis that
            keeps its size all the same is left as it is in modes ``"nearest"`` and ``"linear"``.
        mode: ``"nearest"``: entry ``floor(k * n / m)``. ``"nearest-exact"``: ``floor((k + 1/2) * n / m)``. ``"linear"``, ``"bilinear"``,
            ``"trilinear"``: between neighbours, for one, two, three axes. ``"bicubic"``: by cubic polynomials. ``"area"``: the mean, as
            ``adaptive_avg_pool2d``.
        align_corners: Whether the first and last entries stay where they are (for linear and cubic modes); else entries are areas, which
            are scaled.

    Returns:
        Shape (samples, channels, *size). Integers become floats, but by the nearest entry.

    Raises:
        ShapeError: Another number of axes; no size, or an empty one.
        ArgumentError: An unknown mode, or one for another number of axes; both a size and a factor, or neither.

    >>> from nestgrad import tensor
    >>> interpolate(tensor([[[0.0, 1.0]]]), 4).tolist(), interpolate(tensor([[[0.0, 1.0]]]), 3, mode="linear", align_corners=True).tolist()
    ([[[0.0, 0.0, 1.0, 1.0]]], [[[0.0, 0.5, 1.0]]])
    """
    x = as_tensor(x)
    shape = tuple(x.b.shape(x.value))
    n = len(shape) - 2
    if n not in (1, 2, 3) or 0 in shape[2:]:
        raise ShapeError(
            f"interpolate: got shape {shape}; expected (samples, channels, *spatial axes) with one to three of these, none of them empty. "
            "Try x[None] for an axis of size 1"
        )
    if mode not in _RANKS or n not in _RANKS[mode]:
        fitting = ", ".join(repr(m) for m, ranks in _RANKS.items() if n in ranks)
        raise ArgumentError(f"interpolate: got mode {mode!r} for {n} spatial axes; expected one of {fitting}")
    linear = mode in ("linear", "bilinear", "trilinear", "bicubic")
    if align_corners is not None and not linear:
        raise ArgumentError(f"interpolate: got align_corners={align_corners} in mode {mode!r}; expected it in linear and cubic modes only")
    sizes, scales = _target(shape[2:], size, scale_factor)
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[n - 1](x, sizes)
    value = real(x) if linear else x.value
    for k, (before, after, scale) in enumerate(zip(shape[2:], sizes, scales, strict=True)):
        if linear:
            if before != after or (mode == "bicubic" and scale != 1.0):
                step = scale if not align_corners else (before - 1) / (after - 1) if after > 1 else 0.0
                taps = (_cubic if mode == "bicubic" else _linear)(before, after, step, bool(align_corners))
                value = along(x.b, value, k - n, _matrix(x.b.base, x.b.dtype(value), before, taps))
        else:
            value = _nearest(x.b, value, k + 2, _positions(before, after, scale, mode == "nearest-exact", scale_factor is None))
    return make(x.b, value, x.marks)


def _target(shape: tuple[int, ...], size: Any, scale_factor: Any) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The sizes of the result, and how far apart its entries are in the original."""
    n = len(shape)
    if (size is None) == (scale_factor is None):
        raise ArgumentError(f"interpolate: got size={size} and scale_factor={scale_factor}; expected one of them")
    if size is not None:
        sizes = for_each("interpolate", "size", size, n, 1)
        return sizes, tuple(a / b for a, b in zip(shape, sizes, strict=True))
    try:
        factors = tuple(float(f) for f in scale_factor) if hasattr(scale_factor, "__iter__") else (float(scale_factor),) * n
    except (TypeError, ValueError):
        factors = ()
    if len(factors) != n or not all(0.0 < f < float("inf") for f in factors):
        raise ArgumentError(f"interpolate: got scale_factor {scale_factor!r:.60}; expected a positive number, or {n} of them")
    sizes = tuple(floor(a * f) for a, f in zip(shape, factors, strict=True))
    if min(sizes) < 1:
        raise ShapeError(f"interpolate: got scale_factor {scale_factor} for sizes {shape}, which gives {sizes}; expected at least one")
    return sizes, tuple(1.0 / f for f in factors)


def _positions(n: int, m: int, scale: float, middle: bool, sized: bool) -> list[int]:
    """The nearest entries; in whole numbers where the size is given."""
    if sized or (n == m and not middle):
        return [(2 * k + 1) * n // (2 * m) if middle else k * n // m for k in range(m)]
    shift = 0.5 if middle else 0.0
    return [min(floor((k + shift) * scale), n - 1) for k in range(m)]


def _nearest(b: Any, value: Any, axis: int, positions: list[int]) -> Any:
    """Entries along an axis: by repetition or by a slice where that gives them, since their transposes are quick."""
    shape, m = tuple(b.shape(value)), len(positions)
    n = shape[axis]
    if m % n == 0 and positions == [k // (m // n) for k in range(m)]:
        lead, rest = shape[: axis + 1], shape[axis + 1 :]
        spread = b.broadcast_to(b.reshape(value, (*lead, 1, *rest)), (*lead, m // n, *rest))
        return b.reshape(spread, (*shape[:axis], m, *shape[axis + 1 :]))
    before = (slice(None),) * axis
    step = positions[1] - positions[0] if m > 1 else 1
    if step and positions == list(range(positions[0], positions[0] + m * step, step)):
        return b.getitem(value, (*before, slice(positions[0], positions[-1] + 1, step)))
    return b.getitem(value, (*before, b.base.index(positions)))


def _linear(n: int, m: int, step: float, corners: bool) -> list[Taps]:
    """Two neighbours of each entry of the result."""
    rows = []
    for k in range(m):
        at = k * step if corners else max((k + 0.5) * step - 0.5, 0.0)
        first = min(floor(at), n - 1)
        rows.append([(first, 1.0 - (at - first)), (min(first + 1, n - 1), at - first)])
    return rows


def _cubic(n: int, m: int, step: float, corners: bool) -> list[Taps]:
    """Four neighbours of each entry of the result; beyond the edge stands the entry at the edge."""
    rows = []
    for k in range(m):
        at = k * step if corners else (k + 0.5) * step - 0.5
        first = floor(at)
        rows.append([(min(max(first + j, 0), n - 1), _kernel(abs(at - first - j))) for j in range(-1, 3)])
    return rows


def _kernel(d: float) -> float:
    """The weight of an entry at distance ``d``, from 0 to 2."""
    a = _SHARPNESS
    return ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def _matrix(base: Any, dtype: Any, n: int, rows: list[Taps]) -> Any:
    """Weights as a matrix of shape (before, after). An entry that is a neighbour twice counts twice."""
    flat = [(i, k, w) for k, row in enumerate(rows) for i, w in row]
    weights = base.asarray([w for _, _, w in flat], dtype)
    return base.put(weights, (base.index([i for i, _, _ in flat]), base.index([k for _, k, _ in flat])), (n, len(rows)))
