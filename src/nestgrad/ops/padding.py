"""Entries of an array repeated around it, and the transpose, which adds what stands around to what it repeats."""

from nestgrad.ops.samples import shaped
from nestgrad.ops.table import LINEAR, define

_AROUND = ({"widths": ((1, 2), (0, 1)), "mode": "reflect"}, {"widths": ((0, 2), (3, 1)), "mode": "symmetric"},
           {"widths": ((2, 1), (0, 0)), "mode": "edge"}, {"widths": ((1, 1), (2, 0)), "mode": "wrap"})

define("extend(x, widths, mode)", LINEAR, lambda b, g, widths, mode: b.gather_in(g, widths, mode), samples=shaped((3, 2), *_AROUND))
define("gather_in(x, widths, mode)", LINEAR, lambda b, g, widths, mode: b.extend(g, widths, mode), samples=shaped((6, 6), *_AROUND))
