"""Spread, norms of any power, medians and quantiles.

``axes`` is a tuple of non-negative ints. Medians and quantiles are entries of some ranks, or lie between two of them; these get the
derivative. Equal entries are told apart by their order, and one NaN makes NaN of the answer.
"""

import math
from collections.abc import Callable
from typing import Any

from nestgrad.ops import lanes
from nestgrad.ops.samples import INFINITE, Sample, calls, filled, shaped
from nestgrad.ops.shapes import Shape, kept
from nestgrad.ops.table import COMPOSITE, ELEMENTWISE, SPECIAL, define


def _deviations(b: Any, x: Any, axes: Shape) -> Any:
    """How far each entry is from the mean."""
    return b.sub(x, b.mean(x, axes, True))


def _inverse(b: Any, x: Any, out: Any, axes: Shape) -> Any:
    """``1 / out``, with the axes; 0 where that is 0, and no finite derivative there, which a product with 0 does not hide."""
    shape = kept(tuple(b.shape(x)), axes)
    return b.unit(b.base.full(shape, 1.0, b.dtype(x)), b.reshape(out, shape))


def _rate(b: Any, g: Any, x: Any, out: Any, axes: Shape, correction: float) -> Any:
    """``g / ((n - correction) out)``."""
    shape = tuple(b.shape(x))
    share = b.mul(b.reshape(g, kept(shape, axes)), _inverse(b, x, out, axes))
    return b.per(share, math.prod(shape[k] for k in axes) - correction)


def _std_tangent(b: Any, t: Any, x: Any, out: Any, axes: Shape, correction: float, keepdims: bool) -> Any:
    total = b.sum(b.mul(t, _deviations(b, x, axes)), axes, True)
    return b.reshape(_rate(b, total, x, out, axes, correction), tuple(b.shape(out)))


define("std(x, axes, correction, keepdims)", SPECIAL, lambda b, g, x, out, axes, correction: b.mul(
    _deviations(b, x, axes), _rate(b, g, x, out, axes, correction)), defaults=(False,), forward=(_std_tangent,), samples=shaped(
    (4, 2), {"axes": (0,), "correction": 0}, {"axes": (0, 1), "correction": 1, "keepdims": True}))


def _abspow(b: Any, g: Any, x: Any, p: float, odd: bool) -> Any:
    """``p |x|^(p - 1)``, with the other sign; exact at 0, since no power is formed that the derivative does not have."""
    if p == 0:
        return b.scale(g, 0.0)
    partial = b.scale(b.abspow(x, p - 1.0, not odd), p)
    return b.mul(g, partial) if p >= 1 else b.mul0(g, partial)


# |x|^p, with the sign of x if odd: each is the derivative of the other, and whole powers of either kind are exact at 0
define("abspow(x, p, odd)", ELEMENTWISE, _abspow, samples=calls(
    Sample((filled((4,), -1.5, 1.5),), {"p": 2.5, "odd": False}), Sample((filled((3,), -1.5, 1.5, 1),), {"p": 2.0, "odd": True}),
    special={(0.0, 2.0, False): (0.0, 2.0, 0.0), (0.0, 3.0, False): (0.0, 0.0, 0.0), (0.0, 2.0, True): (0.0, 0.0, 0.0),
             (0.0, 1.0, True): (1.0, 0.0, 0.0), (0.0, 3.0, True): (0.0, 0.0, 6.0), (0.0, 0.5, True): INFINITE}))


def _slope(b: Any, x: Any, out: Any, p: float, axes: Shape) -> Any:
    """``sign(x) |x / norm|^(p - 1)``; 0 at the origin to first order, and no finite derivative there above it."""
    return b.abspow(b.mul(x, _inverse(b, x, out, axes)), p - 1.0, True)


define("pnorm(x, p, axes, keepdims)", SPECIAL, lambda b, g, x, out, p, axes: b.mul(
    b.reshape(g, kept(tuple(b.shape(x)), axes)), _slope(b, x, out, p, axes)), defaults=(False,),
    forward=(lambda b, t, x, out, p, axes, keepdims: b.sum(b.mul(t, _slope(b, x, out, p, axes)), axes, keepdims),),
    samples=shaped((2, 3), {"p": 3.0, "axes": (1,)}, {"p": 2.5, "axes": (0, 1), "keepdims": True}, {"p": 4.0, "axes": (0,)}))


def _lines(b: Any, x: Any, axes: Shape) -> tuple[Any, int, Shape]:
    """``x`` with the entries of ``axes`` along a last axis; how many axes are before that; and the shape that it had."""
    shape = tuple(b.shape(x))
    rest = tuple(k for k in range(len(shape)) if k not in axes)
    if axes != (len(shape) - 1,):
        x = b.reshape(b.permute(x, (*rest, *axes)), (*(shape[k] for k in rest), math.prod(shape[k] for k in axes)))
    return x, len(rest), shape


def _nan_if_any(b: Any, x: Any, y: Any, axis: int, keepdims: bool) -> Any:
    """``y``, or NaN where ``x`` holds one along ``axis``."""
    return b.where(b.isnan(b.amax(x, (axis,), keepdims)), math.nan, y)


def _median(b: Any, x: Any, axes: Shape, keepdims: bool = False) -> Any:
    """The middle entry, or the mean of the two in the middle."""
    x, axis, shape = _lines(b, x, axes)
    n = b.shape(x)[axis]
    if n:
        ranks = tuple(range((n - 1) // 2, n // 2 + 1))
        out = _nan_if_any(b, x, b.mean(b.ranked(x, ranks, axis)[0], (axis,)), axis, False)
    else:
        out = b.scale(b.sum(x, (axis,)), math.nan)
    return b.reshape(out, kept(shape, axes)) if keepdims else out


define("median(x, axes, keepdims)", COMPOSITE, _median, defaults=(False,), samples=shaped(
    (2, 3), {"axes": (1,), "keepdims": True}, {"axes": (0, 1)}))

METHODS: dict[str, Callable[[float], tuple[int, int, float]]] = {
    "linear": lambda place: (math.floor(place), math.ceil(place), place - math.floor(place)),
    "lower": lambda place: (math.floor(place), math.floor(place), 0.0),
    "higher": lambda place: (math.ceil(place), math.ceil(place), 0.0),
    "midpoint": lambda place: (math.floor(place), math.ceil(place), 0.5),
    "nearest": lambda place: (round(place), round(place), 0.0),
}
"""What a quantile is that falls between two ranks: the lower rank, the higher one, and how far between their entries it lies."""


def _quantile(b: Any, x: Any, q: tuple[float, ...], axes: Shape, method: str, keepdims: bool = False) -> Any:
    """Quantiles ``q`` along a new first axis."""
    x, axis, shape = _lines(b, x, axes)
    n = b.shape(x)[axis]
    if n and q:
        found = [METHODS[method](p * (n - 1)) for p in q]
        ranks = tuple(sorted({rank for low, high, _ in found for rank in (low, high)}))
        values = b.ranked(x, ranks, axis)[0]
        lows, highs = (tuple(ranks.index(place[side]) for place in found) for side in (0, 1))
        out = _places(b, values, lows, axis)
        if lows != highs:
            between = b.base.reshape(b.base.asarray([part for _, _, part in found], b.dtype(x)), (len(q),))
            out = b.add(out, b.mul0(between, b.sub(_places(b, values, highs, axis), out)))
        out = _nan_if_any(b, x, out, axis, True)
    else:
        out = b.broadcast_to(b.scale(b.sum(x, (axis,), True), math.nan), (*b.shape(x)[:axis], len(q)))
    out = b.permute(out, (axis, *range(axis)))
    return b.reshape(out, (len(q), *kept(shape, axes))) if keepdims else out


def _places(b: Any, values: Any, places: tuple[int, ...], axis: int) -> Any:
    """Entries along the last axis."""
    if places == tuple(range(b.shape(values)[axis])):
        return values
    at = slice(places[0], places[0] + 1) if len(places) == 1 else b.base.asarray(list(places))
    return b.getitem(values, (*(slice(None),) * axis, at))


define("quantile(x, q, axes, method, keepdims)", COMPOSITE, _quantile, defaults=(False,), lanes=lanes.quantile, samples=calls(
    Sample((filled((2, 3), -1, 1),), {"q": (0.3, 0.85), "axes": (1,), "method": "linear"}),
    Sample((filled((2, 2), -1, 1),), {"q": (0.4,), "axes": (0, 1), "method": "midpoint", "keepdims": True}),
    Sample((filled((5,), -1, 1),), {"q": (0.4, 0.1), "axes": (0,), "method": "nearest"})))
