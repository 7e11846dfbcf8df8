"""Sums, extrema and what is made of them. ``axes`` is a tuple of non-negative ints; a front function turns ``axis=None`` into all axes."""

import math
from typing import Any

from nestgrad.ops import lanes
from nestgrad.ops.batching import both
from nestgrad.ops.samples import Sample, calls, filled, shaped
from nestgrad.ops.shapes import kept, spread
from nestgrad.ops.table import COMPOSITE, ELEMENTWISE, LINEAR, SPECIAL, define

_OVER = ({"axes": (0,)}, {"axes": (0, 2), "keepdims": True}, {"axes": (0, 1, 2)}, {"axes": (1,), "keepdims": True})

define("sum(x, axes, keepdims)", LINEAR, lambda b, g, x_shape, axes, keepdims: spread(b, g, x_shape, axes, keepdims),
       defaults=(False,), lanes=lanes.total, samples=shaped((2, 3, 2), *_OVER, {"axes": ()}))


def _mean(b: Any, g: Any, x_shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    count = math.prod([x_shape[k] for k in axes])
    return spread(b, b.per(g, count), x_shape, axes, keepdims) if count else spread(b, g, x_shape, axes, keepdims)


define("mean(x, axes, keepdims)", LINEAR, _mean, defaults=(False,), lanes=lanes.mean, samples=shaped((2, 3, 2), *_OVER))


def _share(b: Any, x: Any, out: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """1 where the extremum is taken, divided among equal entries."""
    here = b.cast(b.eq(x, spread(b, out, tuple(b.shape(x)), axes, keepdims)), b.dtype(x))
    return b.div(here, b.sum(here, axes, True))


for _name in ("amax", "amin"):
    define(f"{_name}(x, axes, keepdims)", SPECIAL, lambda b, g, x, out, axes, keepdims: b.mul(
        spread(b, g, tuple(b.shape(x)), axes, keepdims), _share(b, x, out, axes, keepdims)), defaults=(False,),
        forward=(lambda b, t, x, out, axes, keepdims: b.sum(b.mul(t, _share(b, x, out, axes, keepdims)), axes, keepdims),),
        samples=shaped((2, 3, 2), *_OVER))


def _prod(b: Any, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
    """A pairwise tree of products: exact with zeros at every order, and depth log n."""
    shape = tuple(b.shape(x))
    rest = tuple(k for k in range(len(shape)) if k not in axes)
    sizes = tuple(shape[k] for k in rest)
    n = math.prod(shape[k] for k in axes)
    axis = 0
    if len(axes) == 1:
        (axis,) = axes
    else:
        x = b.reshape(b.permute(x, (*axes, *rest)), (n, *sizes))
    while n != 1:
        if n % 2 == 1 or n == 0:  # a factor of 1 more
            x, n = b.concat(x, b.full((*sizes[:axis], 1, *sizes[axis:]), 1.0, b.dtype(x)), axis=axis), n + 1
        if n > 1:
            x, n = b.halves(x, axis), n // 2
    return b.reshape(x, kept(shape, axes) if keepdims else sizes)


define("prod(x, axes, keepdims)", COMPOSITE, _prod, defaults=(False,), samples=calls(
    *shaped((2, 3, 2), *_OVER).calls, Sample(([2.0, 3.0, 0.0, 0.0],), {"axes": (0,)}), Sample(([0.0, -3.0, 2.0],), {"axes": (0,)})))


def _var(b: Any, x: Any, axes: tuple[int, ...], correction: int, keepdims: bool = False) -> Any:
    count = math.prod(b.shape(x)[k] for k in axes)
    far = b.sub(x, b.mean(x, axes, True))
    total = b.sum(b.square(far), axes, keepdims)
    return b.per(total, count - correction) if count > correction else b.scale(total, math.nan)


define("var(x, axes, correction, keepdims)", COMPOSITE, _var, defaults=(False,), samples=shaped(
    (2, 3, 2), {"axes": (0,), "correction": 0}, {"axes": (1, 2), "correction": 1, "keepdims": True}, {"axes": (0, 1, 2), "correction": 1}))


def _thin(b: Any, g: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """What was reduced, with axes of size 1, which broadcast."""
    return g if keepdims or not axes else b.reshape(g, kept(tuple(b.shape(x)), axes))


def _direction(b: Any, x: Any, out: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """``x / norm``; 0 at the origin to first order, and no finite derivative there above it."""
    return b.unit(x, _thin(b, out, x, axes, keepdims))


define("norm(x, axes, keepdims)", SPECIAL, lambda b, g, x, out, axes, keepdims: b.mul(
    _thin(b, g, x, axes, keepdims), _direction(b, x, out, axes, keepdims)), defaults=(False,),
    forward=(lambda b, t, x, out, axes, keepdims: b.sum(b.mul(t, _direction(b, x, out, axes, keepdims)), axes, keepdims),),
    samples=shaped((2, 3, 2), *_OVER))
# Plain products in the rules: beyond first order the norm has no derivative at 0, and NaN says so.
define("unit(x, y)", ELEMENTWISE, lambda b, g, y: b.div(g, y), lambda b, g, y, out: b.triple(g, out, b.reciprocal(y), -1.0),
       samples=calls(Sample((filled((3,), -1.0, 1.0), filled((3,), 0.5, 2.0, 1))),
                     Sample((filled((2, 3), -1.0, 1.0), filled((2, 1), 0.5, 2.0, 1)))))


def _weights(b: Any, x: Any, out: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """``softmax``, from the logarithm of the sum."""
    return b.exp(b.sub(x, spread(b, out, tuple(b.shape(x)), axes, keepdims)))


def _softmax(b: Any, g: Any, out: Any, axis: int) -> Any:
    """A symmetric matrix, so the cotangent's rule is the tangent's. A backend may have it in one kernel; on levels it is its parts."""
    return b.mul(out, b.sub(g, b.sum(b.mul(g, out), (axis,), True)))


_AXIS = shaped((2, 3, 2), {"axis": 0}, {"axis": 1}, {"axis": 2})
define("logsumexp(x, axes, keepdims)", SPECIAL, lambda b, g, x, out, axes, keepdims: b.mul(
    spread(b, g, tuple(b.shape(x)), axes, keepdims), _weights(b, x, out, axes, keepdims)), defaults=(False,),
    forward=(lambda b, t, x, out, axes, keepdims: b.sum(b.mul(t, _weights(b, x, out, axes, keepdims)), axes, keepdims),),
    samples=shaped((2, 3, 2), *_OVER))
_RULE = calls(Sample((filled((2, 3), -1, 1), filled((2, 3), 0.1, 0.9, 1)), {"axis": 1}))
define("softmax_vjp(x, y, axis)", COMPOSITE, _softmax, samples=_RULE)
define("softmax(x, axis)", SPECIAL, lambda b, g, out, axis: b.softmax_vjp(g, out, axis),
       forward=(lambda b, t, out, axis: b.softmax_vjp(t, out, axis),), samples=_AXIS)
define("log_softmax(x, axis)", SPECIAL, lambda b, g, out, axis: b.log_softmax_vjp(g, out, axis),
       forward=(lambda b, t, out, axis: b.log_softmax_jvp(t, out, axis),), samples=_AXIS)


def _total(b: Any, x: Any, axis: int) -> Any:
    return b.sum(x, (axis,), True)


# x - p sum(x) and x - sum(p x), where p = exp(y) sums to 1: ops, transposes of each other, so that 1 - p has its digits on every level
define("log_softmax_vjp(x, y, axis)", SPECIAL, lambda b, g, y, axis: b.log_softmax_jvp(g, y, axis),
       lambda b, g, x, y, axis: b.triple(g, b.exp(y), _total(b, x, axis), -1.0),
       forward=(lambda b, t, y, axis: b.log_softmax_vjp(t, y, axis),
                lambda b, t, x, y, axis: b.triple(t, b.exp(y), _total(b, x, axis), -1.0)),
       batched=lambda b, n, xs, on, axis: b.log_softmax_vjp(*both(b, n, xs, on), axis + 1), samples=_RULE)
define("log_softmax_jvp(x, y, axis)", SPECIAL, lambda b, g, y, axis: b.log_softmax_vjp(g, y, axis),
       lambda b, g, x, y, axis: b.triple(x, b.exp(y), _total(b, g, axis), -1.0),
       forward=(lambda b, t, y, axis: b.log_softmax_jvp(t, y, axis),
                lambda b, t, x, y, axis: b.broadcast_to(_total(b, b.triple(t, b.exp(y), x, -1.0), axis), tuple(b.shape(x)))),
       batched=lambda b, n, xs, on, axis: b.log_softmax_jvp(*both(b, n, xs, on), axis + 1), samples=_RULE)
