"""Entries along an axis by an array of positions, which may be on levels itself: at each sample of a batch another one.

The positions have the shape of the answer, which is that of the array but for the axis. They are whole numbers from 0 on.
"""

from nestgrad.ops import lanes
from nestgrad.ops.batching import both
from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.table import SPECIAL, define

define("take_along(x, y, axis)", SPECIAL, lambda b, g, x_shape, y, axis: b.add_along(g, y, axis, x_shape[axis]), None,
       forward=(lambda b, t, y, axis: b.take_along(t, y, axis), None),
       series=lambda b, k, x, y, out, axis: None if x[k] is None else b.take_along(x[k], y[0], axis),
       batched=lambda b, n, xs, on, axis: b.take_along(*both(b, n, xs, on), axis + 1), lanes=lanes.take_along, samples=calls(
    Sample((filled((4, 2), -1, 1), [[2, 0], [2, 1]]), {"axis": 0}, exact=(1,)),
    Sample((filled((2, 4), -1, 1), [[1, 1, 0], [0, 2, 3]]), {"axis": 1}, exact=(1,))))
define("add_along(x, y, axis, n)", SPECIAL, lambda b, g, y, axis: b.take_along(g, y, axis), None,
       forward=(lambda b, t, y, axis, n: b.add_along(t, y, axis, n), None),
       series=lambda b, k, x, y, out, axis, n: None if x[k] is None else b.add_along(x[k], y[0], axis, n),
       batched=lambda b, size, xs, on, axis, n: b.add_along(*both(b, size, xs, on), axis + 1, n), lanes=lanes.add_along, samples=calls(
    Sample((filled((2, 2), -1, 1), [[2, 0], [2, 1]]), {"axis": 0, "n": 4}, exact=(1,)),
    Sample((filled((2, 3), -1, 1), [[1, 1, 0], [0, 2, 3]]), {"axis": 1, "n": 4}, exact=(1,))))
