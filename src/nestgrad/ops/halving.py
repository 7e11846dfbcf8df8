"""Products of the two halves of an axis: the step of a product of many, closed under differentiation."""

from nestgrad.ops.batching import both
from nestgrad.ops.samples import Sample, calls, filled, shaped
from nestgrad.ops.table import BILINEAR, SPECIAL, define

# x is the first half of an even number of entries along the axis, times the second
define("halves(x, axis)", SPECIAL, lambda b, g, x, axis: b.halves_spread(g, x, axis),
       forward=(lambda b, t, x, axis: b.halves_dot(t, x, axis),), samples=shaped((2, 4), {"axis": 0}, {"axis": 1}))
# the first half of each with the second of the other, added
define("halves_dot(x, y, axis)", BILINEAR, lambda b, g, y, axis: b.halves_spread(g, y, axis),
       lambda b, g, x, axis: b.halves_spread(g, x, axis),
       batched=lambda b, n, xs, on, axis: b.halves_dot(*both(b, n, xs, on), axis + 1), samples=calls(
    Sample((filled((2, 4), -1, 1), filled((2, 4), -1, 1, 1)), {"axis": 1}),
    Sample((filled((2, 2), -1, 1), filled((2, 2), -1, 1, 1)), {"axis": 0})))
# x times the second half of y, and then x times the first
define("halves_spread(x, y, axis)", BILINEAR, lambda b, g, y, axis: b.halves_dot(g, y, axis),
       lambda b, g, x, axis: b.halves_spread(x, g, axis),
       batched=lambda b, n, xs, on, axis: b.halves_spread(*both(b, n, xs, on), axis + 1), samples=calls(
    Sample((filled((2, 2), -1, 1), filled((2, 4), -1, 1, 1)), {"axis": 1}),
    Sample((filled((1, 2), -1, 1), filled((2, 2), -1, 1, 1)), {"axis": 0})))
