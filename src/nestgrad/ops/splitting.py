"""An array cut into parts along an axis: one op with as many results as there are parts. Its transpose is a concatenation."""

from dataclasses import replace
from functools import cache
from typing import Any

from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.table import SPECIAL, Op, define

MOST = 32
"""How many parts one op makes. Each cotangent of a part is handled with all of them, so many parts are made of parts of parts."""

Shape = tuple[int, ...]


def _parts(b: Any, x: Any, sizes: Shape, axis: int) -> tuple[Any, ...]:
    """Slices one after the other."""
    before, starts = (slice(None),) * axis, [sum(sizes[:k]) for k in range(len(sizes))]
    return tuple(b.getitem(x, (*before, slice(start, start + n))) for start, n in zip(starts, sizes, strict=True))


def _joined(b: Any, g: tuple[Any, ...], x_shape: Shape, x_dtype: Any, sizes: Shape, axis: int) -> Any:
    """The cotangents one after the other, zeros where there is none."""
    shapes = [(*x_shape[:axis], n, *x_shape[axis + 1 :]) for n in sizes]
    return b.concat(*(b.base.full(s, 0.0, x_dtype) if v is None else v for v, s in zip(g, shapes, strict=True)), axis=axis)


@cache
def splitting(count: int) -> Op:
    """The op that cuts an array into ``count`` parts: ``split(x, sizes, axis)``. It is in no table, since there is one for each count."""
    sizes = tuple(k % 2 + 1 for k in range(count))
    made = define(
        "split(x, sizes, axis)", SPECIAL, _joined, forward=(lambda b, t, sizes, axis: _parts(b, t, sizes, axis),),
        results=[f"part{k}" for k in range(count)], listed=False,
        batched=lambda b, n, xs, on, sizes, axis: splitting(count).of(b)(xs[0], sizes, axis + 1),
        samples=calls(Sample((filled((2, sum(sizes)), -1, 1),), {"sizes": sizes, "axis": 1})))  # fmt: skip
    return replace(made, native=lambda b: lambda x, sizes, axis: _parts(b, x, sizes, axis))
