"""Products of vectors along an axis."""

from collections.abc import Sequence
from typing import Any

from nestgrad.ops import lanes
from nestgrad.ops.batching import both
from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.shapes import Shape, kept, sum_to
from nestgrad.ops.table import BILINEAR, define


def _cross(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], axis: int) -> Any:
    """What is not on gets an axis of size 1 in front, so that all have as many axes again."""
    return b.cross(*(x if here else b.reshape(x, (1, *b.shape(x))) for x, here in zip(xs, on, strict=True)), axis + 1)


# of vectors with three entries along an axis; x and y have as many axes, and others broadcast
define("cross(x, y, axis)", BILINEAR, lambda b, g, y, x_shape, axis: sum_to(b, b.cross(y, g, axis), x_shape),
       lambda b, g, x, y_shape, axis: sum_to(b, b.cross(g, x, axis), y_shape), batched=_cross, samples=calls(
    Sample((filled((3,), -1, 1), filled((3,), -1, 1, 1)), {"axis": 0}),
    Sample((filled((2, 3), -1, 1), filled((1, 3), -1, 1, 1)), {"axis": 1}),
    Sample((filled((3, 1), -1, 1), filled((3, 2), -1, 1, 1)), {"axis": 0})))


def _along(b: Any, g: Any, x: Any, shape: Shape, axis: int) -> Any:
    """Vectors, times the cotangent of their sums of products."""
    return b.mul(b.reshape(g, kept(shape, (axis,))), x)


# sums of products along an axis, x and y of one shape: a sum of squares makes no array of squares
define("vecdot(x, y, axis)", BILINEAR, lambda b, g, y, x_shape, axis: _along(b, g, y, x_shape, axis),
       lambda b, g, x, x_shape, axis: _along(b, g, x, x_shape, axis),
       batched=lambda b, n, xs, on, axis: b.vecdot(*both(b, n, xs, on), axis + 1), lanes=lanes.vecdot, samples=calls(
    Sample((filled((3,), -1, 1), filled((3,), -1, 1, 1)), {"axis": 0}),
    Sample((filled((2, 3, 2), -1, 1), filled((2, 3, 2), -1, 1, 1)), {"axis": 1}),
    Sample((filled((2, 0), -1, 1), filled((2, 0), -1, 1, 1)), {"axis": 1})))
