"""Ops that order entries. Their results are entries of the array at positions, and these are what the rules read.

Equal entries keep their order, which says who gets the derivative. NaN counts as greater than every number.
"""

from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.table import SPECIAL, define

define("sort(x, axis, descending)", SPECIAL, lambda b, g, positions, x_shape, axis: b.add_along(g[0], positions, axis, x_shape[axis]),
       forward=(lambda b, t, positions, axis: (b.take_along(t, positions, axis), None),), defaults=(False,),
       results=("values", "positions"), fixed=("positions",), samples=calls(
    Sample((filled((4,), -1, 1),), {"axis": 0}), Sample((filled((2, 3), -1, 1),), {"axis": 1, "descending": True})))
