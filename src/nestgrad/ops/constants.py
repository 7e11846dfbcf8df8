"""Ops without derivatives: comparisons, logic, rounding, positions. Their results wear no coats and carry no marks."""

from nestgrad.ops import lanes
from nestgrad.ops.samples import Sample, binary, calls, shaped, unary
from nestgrad.ops.table import CONSTANT, define

_REAL = (-2.5, 2.5)

for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    define(f"{_name}(x, y)", CONSTANT, samples=binary(_REAL, _REAL))
for _name in ("sign", "floor", "ceil", "round", "isfinite", "isnan"):
    define(f"{_name}(x)", CONSTANT, lanes=lanes.each, samples=unary(*_REAL))
define("logical_not(x)", CONSTANT, lanes=lanes.each, samples=calls(Sample(([True, False],))))
for _name in ("logical_and", "logical_or"):
    define(f"{_name}(x, y)", CONSTANT, samples=calls(Sample(([True, False, True], [[True], [False]]))))
for _name in ("argmax", "argmin"):
    define(f"{_name}(x, axis, keepdims)", CONSTANT, defaults=(False,), samples=shaped((2, 3), {"axis": 0}, {"axis": 1, "keepdims": True}))
