"""Ops that move entries about: linear, each one the transpose of another."""

from typing import Any

from nestgrad.ops import batching, lanes
from nestgrad.ops.samples import Sample, calls, filled, shaped
from nestgrad.ops.shapes import sum_to
from nestgrad.ops.table import LINEAR, SPECIAL, define


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axes.index(k) for k in range(len(axes)))


def _part(b: Any, g: Any, shapes: tuple[tuple[int, ...], ...], i: int, axis: int) -> Any:
    """The slice of ``g`` that came from argument ``i`` of a concatenation."""
    start = sum(s[axis] for s in shapes[:i])
    return b.getitem(g, (*(slice(None),) * axis, slice(start, start + shapes[i][axis])))


_ROWS = ([0, 2, 0],)
_AT = ({"index": (1,)}, {"index": (slice(None), slice(2, 0, -1))}, {"index": (slice(0, 3, 2), 1)}, {"index": _ROWS},
       {"index": ([0, 1, 2], [1, 0, 1])}, {"index": (slice(0, 0),)})

define("reshape(x, shape)", LINEAR, lambda b, g, x_shape: b.reshape(g, x_shape),
       samples=shaped((2, 3), {"shape": (3, 2)}, {"shape": (6,)}, {"shape": (1, 2, 3, 1)}))
define("permute(x, axes)", LINEAR, lambda b, g, axes: b.permute(g, _inverse(axes)), batched=batching.permute, lanes=lanes.permute,
       samples=shaped((2, 3, 4), {"axes": (2, 0, 1)}, {"axes": (0, 2, 1)}))
define("broadcast_to(x, shape)", LINEAR, lambda b, g, x_shape: sum_to(b, g, x_shape), batched=batching.broadcast_to, lanes=lanes.each,
       samples=shaped((3, 1), {"shape": (3, 4)}, {"shape": (2, 3, 4)}, {"shape": (3, 1)}, {"shape": (0, 3, 1)}))
define("concat(*xs, axis)", LINEAR, _part, batched=batching.concat, lanes=lanes.concat, samples=calls(
    Sample((filled((2, 3), -1, 1), filled((1, 3), -1, 1, 1), filled((0, 3), -1, 1, 2)), {"axis": 0}),
    Sample((filled((2, 1), -1, 1), filled((2, 2), -1, 1, 1)), {"axis": 1})))
define("getitem(x, index)", LINEAR, lambda b, g, x_shape, index: b.put(g, index, x_shape), batched=batching.getitem, lanes=lanes.getitem,
       samples=shaped((3, 3), *_AT))
define("put(x, index, shape)", LINEAR, lambda b, g, index: b.getitem(g, index), batched=batching.put, lanes=lanes.put, samples=calls(
    Sample((filled((3,), -1, 1),), {"index": (1,), "shape": (3, 3)}),
    Sample((filled((3, 3), -1, 1),), {"index": _ROWS, "shape": (3, 3)})))
define("index_set(x, y, index)", LINEAR, lambda b, g, index: b.index_set(g, 0.0, index),
       lambda b, g, y_shape, index: sum_to(b, b.getitem(g, index), y_shape), batched=batching.index_set, lanes=lanes.change, samples=calls(
    Sample((filled((3, 3), -1, 1), filled((3,), -1, 1, 1)), {"index": (1,)}),
    Sample((filled((3, 3), -1, 1), filled((), -1, 1, 1)), {"index": (slice(0, 2), slice(None, None, -2))}),
    Sample((filled((3, 3), -1, 1), filled((2, 3), -1, 1, 1)), {"index": ([2, 0],)})))
define("index_add(x, y, index)", LINEAR, lambda b, g: g, lambda b, g, y_shape, index: sum_to(b, b.getitem(g, index), y_shape),
       batched=batching.index_add, lanes=lanes.change, samples=calls(
    Sample((filled((3, 3), -1, 1), filled((3,), -1, 1, 1)), {"index": (1,)}),
    Sample((filled((3, 3), -1, 1), filled((3, 3), -1, 1, 1)), {"index": _ROWS})))
define("pad(x, widths)", LINEAR, lambda b, g, x_shape, widths: b.getitem(
    g, tuple(slice(before, before + n) for (before, _), n in zip(widths, x_shape, strict=True))),
    samples=shaped((2, 3), {"widths": ((1, 0), (0, 2))}, {"widths": ((0, 0), (1, 1))}))
# entries along the first axis by an array of positions, which may be on levels itself: at each sample of a batch another one
define("rows(x, y)", SPECIAL, lambda b, g, x_shape, y: b.to_rows(g, y, x_shape[0]), None, forward=(lambda b, t, y: b.rows(t, y), None),
       series=lambda b, k, x, y, out: None if x[k] is None else b.rows(x[k], y[0]), batched=batching.rows, lanes=lanes.rows, samples=calls(
    Sample((filled((4, 2), -1, 1), [2, 0, 2]), exact=(1,)), Sample((filled((4,), -1, 1), [[3, 0], [1, 1]]), exact=(1,)),
    Sample((filled((4, 2), -1, 1), 1), exact=(1,))))
define("to_rows(x, y, count)", SPECIAL, lambda b, g, y: b.rows(g, y), None,
       forward=(lambda b, t, y, count: b.to_rows(t, y, count), None),
       series=lambda b, k, x, y, out, count: None if x[k] is None else b.to_rows(x[k], y[0], count),
       batched=batching.to_rows, lanes=lanes.to_rows, samples=calls(
    Sample((filled((3, 2), -1, 1), [2, 0, 2]), {"count": 4}, exact=(1,)),
    Sample((filled((2, 2), -1, 1), [[3, 0], [1, 1]]), {"count": 4}, exact=(1,)),
    Sample((filled((2,), -1, 1), 1), {"count": 4}, exact=(1,))))
