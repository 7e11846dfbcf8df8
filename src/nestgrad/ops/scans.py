"""Running sums, products and extrema along an axis.

They rest on one linear recurrence, ``s_i = y_i s_(i-1) + x_i``. Its derivatives are recurrences of the same kind, so running products are
exact with zeros at every order: nothing is divided.
"""

import math
from typing import Any

from nestgrad.ops.batching import both
from nestgrad.ops.samples import Sample, calls, filled, shaped
from nestgrad.ops.table import LINEAR, SPECIAL, define

_LINES = ({"axis": 0}, {"axis": 1})

define("cumsum(x, axis, reverse)", LINEAR, lambda b, g, axis, reverse: b.cumsum(g, axis, not reverse), defaults=(False,),
       samples=shaped((3, 2), {"axis": 0}, {"axis": 1, "reverse": True}))

# entries moved on by n along the axis; what comes in is a number
define("shift(x, n, axis, fill)", SPECIAL, lambda b, g, n, axis: b.shift(g, -n, axis, 0.0),
       forward=(lambda b, t, n, axis: b.shift(t, n, axis, 0.0),), defaults=(0.0,), samples=shaped(
    (3, 2), {"n": 1, "axis": 0}, {"n": -1, "axis": 1, "fill": 1.0}, {"n": 4, "axis": 0}))


def _before(b: Any, p: Any, axis: int, reverse: bool) -> Any:
    """For each step of a recurrence the value that it starts from; in reverse its transpose."""
    return b.shift(p, -1 if reverse else 1, axis)


def _recur_series(b: Any, k: int, x: Any, y: Any, out: Any, axis: int, reverse: bool) -> Any:
    """``s = x + y before(s)``, and in reverse ``s = x + before(y s)``, solved for the highest coefficient of ``s``."""
    terms = [] if x[k] is None else [x[k]]
    for j in range(1, k + 1):
        if y[j] is not None and out[k - j] is not None:
            past = out[k - j]
            terms.append(_before(b, b.mul0(past, y[j]), axis, True) if reverse else b.mul0(_before(b, past, axis, False), y[j]))
    if not terms:
        return None
    total = terms[0]
    for term in terms[1:]:
        total = b.add(total, term)
    return b.recur(total, y[0], axis, reverse)


def _factors(b: Any, g: Any, y: Any, out: Any, axis: int, reverse: bool) -> Any:
    """What the factors of a recurrence get: each stands between the state before it and the cotangent after it."""
    after = b.recur(g, y, axis, not reverse)
    return b.mul0(_before(b, after, axis, False), out) if reverse else b.mul0(after, _before(b, out, axis, False))


def _changed(b: Any, t: Any, y: Any, out: Any, axis: int, reverse: bool) -> Any:
    """The tangent of a recurrence from that of its factors."""
    force = _before(b, b.mul0(t, out), axis, True) if reverse else b.mul0(t, _before(b, out, axis, False))
    return b.recur(force, y, axis, reverse)


# s_i = y_i s_(i-1) + x_i, and in reverse its transpose s_i = y_(i+1) s_(i+1) + x_i; the first of y is not read, and 0 stays 0 whatever y is
define("recur(x, y, axis, reverse)", SPECIAL, lambda b, g, y, axis, reverse: b.recur(g, y, axis, not reverse), _factors,
       forward=(lambda b, t, y, axis, reverse: b.recur(t, y, axis, reverse), _changed), series=_recur_series,
       batched=lambda b, n, xs, on, axis, reverse: b.recur(*both(b, n, xs, on), axis + 1, reverse), samples=calls(
    Sample((filled((4,), -1, 1), filled((4,), 0.5, 1.5, 1)), {"axis": 0, "reverse": False}),
    Sample((filled((2, 3), -1, 1), [[0.5, -0.7, 1.2], [0.3, 0.0, 2.0]]), {"axis": 1, "reverse": True})))


def _cumprod(b: Any, g: Any, x: Any, out: Any, axis: int) -> Any:
    """The product before each factor, times the sum of what comes after it."""
    return b.mul0(b.recur(g, x, axis, True), b.shift(out, 1, axis, 1.0))


def _cumprod_series(b: Any, k: int, x: Any, out: Any, axis: int) -> Any:
    """``p = x before(p)``, solved for the highest coefficient of ``p``; before the first stands 1."""
    total = None
    for j in range(1, k + 1):
        if x[j] is not None and out[k - j] is not None:
            term = b.mul0(x[j], b.shift(out[k - j], 1, axis, 1.0 if j == k else 0.0))
            total = term if total is None else b.add(total, term)
    return None if total is None else b.recur(total, x[0], axis, False)


define("cumprod(x, axis)", SPECIAL, _cumprod,
       forward=(lambda b, t, x, out, axis: b.recur(b.mul0(t, b.shift(out, 1, axis, 1.0)), x, axis, False),), series=_cumprod_series,
       samples=calls(*shaped((3, 2), *_LINES, low=0.4, high=1.6).calls,
                     Sample(([[1.5, 0.0, -0.8, 1.2, 0.0, 0.7]],), {"axis": 1})))


def _weights(b: Any, x: Any, out: Any, axis: int) -> tuple[Any, Any]:
    """Of the running sum of exponentials, the share of the newest term and that of all before it. Nothing has no share of nothing."""
    some = b.where(b.eq(out, -math.inf), 0.0, out)
    return b.exp(b.sub(x, some)), b.exp(b.sub(b.shift(out, 1, axis, -math.inf), some))


def _logcumsumexp(b: Any, g: Any, x: Any, out: Any, axis: int) -> Any:
    newest, rest = _weights(b, x, out, axis)
    return b.mul0(b.recur(g, rest, axis, True), newest)


def _logcumsumexp_tangent(b: Any, t: Any, x: Any, out: Any, axis: int) -> Any:
    newest, rest = _weights(b, x, out, axis)
    return b.recur(b.mul0(t, newest), rest, axis, False)


define("logcumsumexp(x, axis)", SPECIAL, _logcumsumexp, forward=(_logcumsumexp_tangent,), samples=shaped((3, 2), *_LINES))

for _name in ("cummax", "cummin"):
    define(f"{_name}(x, axis)", SPECIAL, lambda b, g, positions, x_shape, axis: b.add_along(g[0], positions, axis, x_shape[axis]),
           forward=(lambda b, t, positions, axis: (b.take_along(t, positions, axis), None),),
           results=("values", "positions"), fixed=("positions",), samples=shaped((3, 2), *_LINES))


def _diff(b: Any, g: Any, x_shape: tuple[int, ...], n: int, axis: int) -> Any:
    """Differences of the cotangent among zeros, with the sign that each difference turns."""
    size, lead, rest = x_shape[axis], ((0, 0),) * axis, ((0, 0),) * (len(x_shape) - axis - 1)
    if size <= n:
        return b.pad(g, (*lead, (size, 0), *rest))
    out = b.diff(b.pad(g, (*lead, (n, n), *rest)), n, axis)
    return b.neg(out) if n % 2 else out


define("diff(x, n, axis)", LINEAR, _diff, samples=shaped((4, 2), {"n": 1, "axis": 0}, {"n": 2, "axis": 0}, {"n": 2, "axis": 1}))
