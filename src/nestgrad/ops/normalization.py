"""Ops that bring entries to mean 0 and variance 1, or to mean square 1, and then scale and shift them.

The mean and the scale ``r`` are results, so rules read them on the levels and no derivative takes them for constants. With
``h = (x - mean) r``, the cotangent ``c`` of ``h`` goes to ``x`` as ``r project(c, h)``, where ``project`` takes the mean of ``c`` off and
its part along ``h``. Rules are composites, which backends may have in one kernel; on levels they are their parts.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from nestgrad.ops import lanes
from nestgrad.ops.batching import aligned, both, repeated
from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.shapes import Shape, sum_to
from nestgrad.ops.table import COMPOSITE, SPECIAL, define

Cotangents = tuple[Any, ...]


def _count(b: Any, x: Any, axes: Shape) -> int:
    """How many entries a mean is taken over; at least 1, so that no entries are no division by 0."""
    shape = b.shape(x)
    count: int = prod([shape[k] for k in axes])
    return max(count, 1)


def _added(b: Any, *shares: Any) -> Any:
    """The sum of those that are not ``None``."""
    total = None
    for share in shares:
        if share is not None:
            total = share if total is None else b.add(total, share)
    return total


def _zeros(b: Any, g: Cotangents, shape: Shape) -> Any:
    """A zero in the dtype of what arrived."""
    return b.base.full(shape, 0.0, b.dtype(next(c for c in g if c is not None)))


def _scaled(b: Any, g: Any, y: Any) -> Any:
    return g if y.__class__ is float and y == 1.0 else b.mul(g, y)


def _all_on(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool]) -> list[Any]:
    """The first array on, since the others are broadcast to it."""
    first = xs[0] if on[0] else repeated(b, xs[0], n)
    return aligned(b, (first, *xs[1:]), (True, *on[1:]))


# x - mean(x) - y mean(x y) over axes, or without mean(x): linear and symmetric in x


def _turned(b: Any, p: Any, q: Any, r: Any, s: Any, axes: Shape) -> Any:
    """``-(p mean(q) + r mean(s))``."""
    return b.neg(b.add(b.mul(p, b.mean(q, axes, True)), b.mul(r, b.mean(s, axes, True))))


define("project(x, y, axes, centred)", SPECIAL, lambda b, g, y, axes, centred: b.project(g, y, axes, centred),
       lambda b, g, x, y, axes: _turned(b, x, b.mul(g, y), g, b.mul(x, y), axes),
       forward=(lambda b, t, y, axes, centred: b.project(t, y, axes, centred),
                lambda b, t, x, y, axes: _turned(b, y, b.mul(x, t), t, b.mul(x, y), axes)),
       batched=lambda b, n, xs, on, axes, centred: b.project(
           *both(b, n, xs, on), tuple(k + 1 for k in axes), centred),
       samples=calls(*(Sample((filled((2, 3), -1, 1), filled((2, 3), -1, 1, 1)), {"axes": (k,), "centred": bool(k)}) for k in (0, 1))))


# (x - mean) r y + z over axes


def _vjp(b: Any, *xs: Any, axes: Shape) -> Any:
    """``g``'s share in ``x``, from ``g, x, mean, r, y``."""
    g, x, mean, r, y = xs
    return b.mul(b.project(_scaled(b, g, y), b.mul(b.sub(x, mean), r), axes, True), r)


def _scale_vjp(b: Any, *xs: Any, sizes: Shape) -> Any:
    """``g``'s share in the scale, of shape ``sizes``, from ``g, x, mean, r``."""
    g, x, mean, r = xs
    return sum_to(b, b.mul(g, b.mul(b.sub(x, mean), r)), sizes)


def _into_x(b: Any, g: Cotangents, x: Any, y: Any, mean: Any, r: Any, axes: Shape) -> Any:
    values, to_mean, to_r = g
    shares = []
    if values is not None:
        shares.append(b.standardise_vjp(values, x, mean, r, y, axes=axes))
    if to_mean is not None:
        shares.append(b.broadcast_to(b.per(to_mean, _count(b, x, axes)), tuple(b.shape(x))))
    if to_r is not None:  # dr = -r^3 mean((x - mean) dx)
        shares.append(b.mul(b.sub(mean, x), b.per(b.mul(to_r, b.powi(r, 3)), _count(b, x, axes))))
    return _added(b, *shares)


def _from_x(b: Any, t: Any, x: Any, y: Any, mean: Any, r: Any, axes: Shape) -> Cotangents:
    far = b.sub(x, mean)
    middle, turn = b.mean(t, axes, True), b.mul(b.mean(b.mul(t, far), axes, True), b.square(r))
    values = b.mul(r, b.sub(b.sub(t, middle), b.mul(far, turn)))
    return _scaled(b, values, y), middle, b.neg(b.mul(turn, r))


_UNIT = ({"axes": (1,), "eps": 0.1}, {"axes": (0, 2), "eps": 0.1}, {"axes": (1, 2), "eps": 0.1})

define("standardise_vjp(*xs, axes)", COMPOSITE, _vjp, samples=calls(Sample(
    (filled((2, 3), -1, 1), filled((2, 3), -1, 1, 1), filled((2, 1), -1, 1, 2), filled((2, 1), 0.5, 2.0), filled((3,), -1, 1, 3)),
    {"axes": (1,)})))
define("standardise_scale_vjp(*xs, sizes)", COMPOSITE, _scale_vjp, samples=calls(Sample(
    (filled((2, 3), -1, 1), filled((2, 3), -1, 1, 1), filled((2, 1), -1, 1, 2), filled((2, 1), 0.5, 2.0)), {"sizes": (3,)})))
# mean and r = 1 / sqrt(var + eps) have the axes, with size 1; the scale y and the shift z broadcast to the shape of x
define("standardise(x, y, z, axes, eps)", SPECIAL, _into_x,
       lambda b, g, x, mean, r, y_shape: (
           _zeros(b, g, y_shape) if g[0] is None else b.standardise_scale_vjp(g[0], x, mean, r, sizes=tuple(y_shape))),
       lambda b, g, z_shape: _zeros(b, g, z_shape) if g[0] is None else sum_to(b, g[0], z_shape),
       forward=(_from_x, lambda b, t, x, mean, r: (b.mul(t, b.mul(b.sub(x, mean), r)), None, None),
                lambda b, t, x: (b.broadcast_to(t, tuple(b.shape(x))), None, None)),
       results=("values", "mean", "r"), lanes=lanes.standardised,
       batched=lambda b, n, xs, on, axes, eps: b.standardise(*_all_on(b, n, xs, on), tuple(k + 1 for k in axes), eps),
       samples=calls(
    Sample((filled((2, 3), -1, 1), filled((3,), 0.5, 2.0, 1), filled((3,), -1, 1, 2)), _UNIT[0]),
    Sample((filled((2, 2, 2), -1, 1), filled((2, 1), 0.5, 2.0, 1), filled((2, 1), -1, 1, 2)), _UNIT[1]),
    Sample((filled((2, 1, 3), -1, 1), filled((), 0.5, 2.0, 1), filled((2, 1, 3), -1, 1, 2)), _UNIT[2])))


# x r y over axes, with r = 1 / sqrt(mean(x^2) + eps)


def _rms_vjp(b: Any, *xs: Any, axes: Shape) -> Any:
    """``g``'s share in ``x``, from ``g, x, r, y``."""
    g, x, r, y = xs
    return b.mul(b.project(_scaled(b, g, y), b.mul(x, r), axes, False), r)


def _rms_into_x(b: Any, g: Cotangents, x: Any, y: Any, r: Any, axes: Shape) -> Any:
    values = None if g[0] is None else b.rms_norm_vjp(g[0], x, r, y, axes=axes)
    scale = None if g[1] is None else b.neg(b.mul(x, b.per(b.mul(g[1], b.powi(r, 3)), _count(b, x, axes))))
    return _added(b, values, scale)


def _rms_from_x(b: Any, t: Any, x: Any, y: Any, r: Any, axes: Shape) -> Cotangents:
    turn = b.mul(b.mean(b.mul(t, x), axes, True), b.square(r))
    return _scaled(b, b.mul(r, b.sub(t, b.mul(x, turn))), y), b.neg(b.mul(turn, r))


define("rms_norm_vjp(*xs, axes)", COMPOSITE, _rms_vjp, samples=calls(Sample(
    (filled((2, 3), -1, 1), filled((2, 3), -1, 1, 1), filled((2, 1), 0.5, 2.0), filled((3,), -1, 1, 3)), {"axes": (1,)})))
define("rms_norm(x, y, axes, eps)", SPECIAL, _rms_into_x,
       lambda b, g, x, r, y_shape: _zeros(b, g, y_shape) if g[0] is None else sum_to(b, b.mul(g[0], b.mul(x, r)), y_shape),
       forward=(_rms_from_x, lambda b, t, x, r: (b.mul(t, b.mul(x, r)), None)), results=("values", "r"), lanes=lanes.standardised,
       batched=lambda b, n, xs, on, axes, eps: b.rms_norm(*_all_on(b, n, xs, on), tuple(k + 1 for k in axes), eps),
       samples=calls(Sample((filled((2, 3), -1, 1), filled((3,), 0.5, 2.0, 1)), _UNIT[0]),
                     Sample((filled((2, 1, 3), -1, 1), filled((), 0.5, 2.0, 1)), _UNIT[2])))
