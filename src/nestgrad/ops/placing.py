"""Ops that put entries at positions along an axis, and ops that find positions. What is an array of positions may be on levels itself.

The positions, ``y``, are whole numbers from 0 on; their shape is that of ``x`` but for the axis, and that of ``z``.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from nestgrad.ops.batching import both
from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.table import CONSTANT, SPECIAL, define

_INTO = (Sample((filled((4, 2), -1, 1), [[2, 0], [0, 3]], filled((2, 2), -1, 1, 1)), {"axis": 0}, exact=(1,)),
         Sample((filled((2, 4), -1, 1), [[1, 3], [2, 0]], filled((2, 2), -1, 1, 1)), {"axis": 1}, exact=(1,)))

# x with z at positions y. Once: each is named once along the axis, which is checked
define("set_along(x, y, z, axis, once)", SPECIAL, lambda b, g, y, axis: b.set_along(g, y, 0.0, axis, False), None,
       lambda b, g, y, axis: b.take_along(g, y, axis),
       forward=(lambda b, t, y, axis: b.set_along(t, y, 0.0, axis, False), None,
                lambda b, t, x_shape, y, axis: b.add_along(t, y, axis, x_shape[axis])),
       batched=lambda b, n, xs, on, axis, once: b.set_along(*both(b, n, xs, on), axis + 1, once), samples=calls(
    *(Sample(s.arrays, {**s.params, "once": True}, s.exact) for s in _INTO)))


def _shares(b: Any, x: Any, y: Any, z: Any, out: Any, axis: int) -> tuple[Any, Any, Any]:
    """1 where an entry of ``x`` is the extremum, the same of ``z``, and among how many it is shared."""
    dtype = b.dtype(out)
    base, given = b.cast(b.eq(x, out), dtype), b.cast(b.eq(z, b.take_along(out, y, axis)), dtype)
    return base, given, b.add(base, b.add_along(given, y, axis, b.shape(out)[axis]))


def _in_base(b: Any, g: Any, x: Any, y: Any, z: Any, out: Any, axis: int) -> Any:
    """What of ``g`` belongs to ``x``; equal entries share it evenly."""
    base, _, count = _shares(b, x, y, z, out, axis)
    return b.mul(g, b.div(base, count))


def _to_given(b: Any, g: Any, x: Any, y: Any, z: Any, out: Any, axis: int) -> Any:
    """What of ``g`` belongs to ``z``; equal entries share it evenly."""
    _, given, count = _shares(b, x, y, z, out, axis)
    return b.mul(b.take_along(b.div(g, count), y, axis), given)


def _from_given(b: Any, t: Any, x: Any, y: Any, z: Any, out: Any, axis: int) -> Any:
    """The transpose of ``_to_given``."""
    _, given, count = _shares(b, x, y, z, out, axis)
    return b.div(b.add_along(b.mul(t, given), y, axis, b.shape(out)[axis]), count)


# the extremum of an entry of x and of all entries of z that are put there
for _name in ("max_along", "min_along"):
    define(f"{_name}(x, y, z, axis)", SPECIAL, _in_base, None, _to_given,
           forward=(lambda b, t, x, y, z, out, axis: _in_base(b, t, x, y, z, out, axis), None, _from_given),
           batched=lambda b, n, xs, on, axis, _name=_name: getattr(b, _name)(*both(b, n, xs, on), axis + 1), samples=calls(
        Sample((filled((4,), -1, 1), [2, 0, 2], filled((3,), -1, 1, 1)), {"axis": 0}, exact=(1,)), _INTO[1]))


def _search(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], right: bool) -> Any:
    """Where there are many lists for many arrays of numbers, the numbers of each are laid along one axis."""
    x, y = xs
    if not on[0] and len(b.shape(x)) == 1:
        return b.searchsorted(x, y, right)
    x, y = both(b, n, xs, on)
    if len(b.shape(x)) > 2:
        return b.searchsorted(x, y, right)
    shape = tuple(b.shape(y))
    return b.reshape(b.searchsorted(x, b.reshape(y, (n, prod(shape[1:]))), right), shape)


# how many numbers of the sorted list x come before those of y. A list for each: x has the leading axes of y; or one, for y of any shape
define("searchsorted(x, y, right)", CONSTANT, batched=_search, samples=calls(
    Sample(([-1.0, 0.0, 0.5, 0.75], [[0.6, 2.0], [-3.0, 0.25]]), {"right": True}),
    Sample(([[-1.0, 0.5], [0.1, 0.2]], [[0.3, -2.0, 2.0], [0.15, -1.0, 3.0]]), {"right": False})))
