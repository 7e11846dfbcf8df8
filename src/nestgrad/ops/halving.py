"""Products of the two halves of an axis: the step of a product of many, closed under differentiation."""

from collections.abc import Sequence
from typing import Any

from nestgrad.ops.batching import repeated
from nestgrad.ops.samples import Sample, calls, filled, shaped
from nestgrad.ops.table import BILINEAR, SPECIAL, define


def _both(name: str) -> Any:
    """The op of that name where all samples have arguments of their own."""

    def batched(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], axis: int) -> Any:
        x, y = (x if here else repeated(b, x, n) for x, here in zip(xs, on, strict=True))
        return getattr(b, name)(x, y, axis + 1)

    return batched


# x is the first half of an even number of entries along the axis, times the second
define("halves(x, axis)", SPECIAL, lambda b, g, x, axis: b.halves_spread(g, x, axis),
       forward=(lambda b, t, x, axis: b.halves_dot(t, x, axis),), samples=shaped((2, 4), {"axis": 0}, {"axis": 1}))
# the first half of each with the second of the other, added
define("halves_dot(x, y, axis)", BILINEAR, lambda b, g, y, axis: b.halves_spread(g, y, axis),
       lambda b, g, x, axis: b.halves_spread(g, x, axis), batched=_both("halves_dot"), samples=calls(
    Sample((filled((2, 4), -1, 1), filled((2, 4), -1, 1, 1)), {"axis": 1}),
    Sample((filled((2, 2), -1, 1), filled((2, 2), -1, 1, 1)), {"axis": 0})))
# x times the second half of y, and then x times the first
define("halves_spread(x, y, axis)", BILINEAR, lambda b, g, y, axis: b.halves_dot(g, y, axis),
       lambda b, g, x, axis: b.halves_spread(x, g, axis), batched=_both("halves_spread"), samples=calls(
    Sample((filled((2, 2), -1, 1), filled((2, 4), -1, 1, 1)), {"axis": 1}),
    Sample((filled((1, 2), -1, 1), filled((2, 2), -1, 1, 1)), {"axis": 0})))
