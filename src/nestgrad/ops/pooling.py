"""Extrema and means of windows that slide over the last axes. Axes before these are as many as there may be.

The greatest of a window is the entry at its position, and its derivative goes there whole: of equal ones, to the first. Positions count the
entries of the pooled axes together.
"""

from math import prod
from typing import Any

from nestgrad.ops import lanes
from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.table import LINEAR, SPECIAL, define

Ints = tuple[int, ...]


def _flat(b: Any, x: Any, rank: int) -> Any:
    """The last axes as one."""
    shape = tuple(b.shape(x))
    lead = len(shape) - rank
    return b.reshape(x, (*shape[:lead], prod(shape[lead:])))


def _at(b: Any, t: Any, positions: Any, sizes: Ints) -> Any:
    """The entries at ``positions``."""
    rank = len(sizes)
    lead = len(b.shape(t)) - rank
    return b.reshape(b.take_along(_flat(b, t, rank), _flat(b, positions, rank), lead), tuple(b.shape(positions)))


def _back(b: Any, g: Any, positions: Any, x_shape: Ints, sizes: Ints) -> Any:
    """The transpose of ``_at``."""
    rank = len(sizes)
    lead = len(x_shape) - rank
    return b.reshape(b.add_along(_flat(b, g, rank), _flat(b, positions, rank), lead, prod(x_shape[lead:])), tuple(x_shape))


define("max_pool(x, sizes, strides, padding, dilations, ceil)", SPECIAL,
       lambda b, g, positions, x_shape, sizes: _back(b, g[0], positions, x_shape, sizes),
       forward=(lambda b, t, positions, sizes: (_at(b, t, positions, sizes), None),), batched=lambda b, n, xs, on, *params:
       b.max_pool(xs[0], *params), lanes=lanes.before_spaces, results=("values", "positions"), fixed=("positions",), samples=calls(
    Sample((filled((2, 5), -1, 1),), {"sizes": (3,), "strides": (2,), "padding": (1,), "dilations": (1,), "ceil": False}),
    Sample((filled((3, 4), -1, 1),), {"sizes": (2, 2), "strides": (2, 1), "padding": (0, 1), "dilations": (1, 2), "ceil": True})))
# the greatest of each of ``sizes`` windows that divide an axis
define("adaptive_max_pool(x, sizes)", SPECIAL, lambda b, g, positions, x_shape, sizes: _back(b, g[0], positions, x_shape, sizes),
       forward=(lambda b, t, positions, sizes: (_at(b, t, positions, sizes), None),), batched=lambda b, n, xs, on, sizes:
       b.adaptive_max_pool(xs[0], sizes), lanes=lanes.before_spaces, results=("values", "positions"), fixed=("positions",), samples=calls(
    Sample((filled((5,), -1, 1),), {"sizes": (3,)}), Sample((filled((2, 3, 4), -1, 1),), {"sizes": (2, 3)})))

# sums of windows, over the number of their entries in the array (with ``padded``, in its padding too), or over ``divisor``
_LINE = {"sizes": (3,), "strides": (2,), "padding": (1,), "ceil": False, "padded": False, "divisor": None}
_PLANE = {"sizes": (2, 2), "strides": (2, 1), "padding": (0, 1), "ceil": True, "padded": True, "divisor": None}
define("avg_pool(x, sizes, strides, padding, ceil, padded, divisor)", LINEAR,
       lambda b, g, x_shape, sizes, strides, padding, ceil, padded, divisor: b.from_avg_pool(
           g, tuple(x_shape[-len(sizes):]), sizes, strides, padding, ceil, padded, divisor),
       lanes=lanes.before_spaces, samples=calls(Sample((filled((2, 6), -1, 1),), _LINE), Sample((filled((3, 3), -1, 1),), _PLANE)))
define("from_avg_pool(x, spaces, sizes, strides, padding, ceil, padded, divisor)", LINEAR,
       lambda b, g, sizes, strides, padding, ceil, padded, divisor: b.avg_pool(g, sizes, strides, padding, ceil, padded, divisor),
       lanes=lanes.before_spaces, samples=calls(Sample((filled((2, 3), -1, 1),), {"spaces": (6,), **_LINE}),
                     Sample((filled((2, 4), -1, 1),), {"spaces": (3, 3), **_PLANE, "divisor": 3})))
