"""An array cut into parts along an axis, or into its slices: ops with as many results as there are parts. And their transposes.

There is one such op for each number of parts, so they are in no table.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from nestgrad.ops import lanes
from nestgrad.ops.batching import both
from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.shapes import Shape
from nestgrad.ops.table import LINEAR, SPECIAL, Op, define

MOST = 32
"""How many parts one op makes. Each cotangent of a part is handled with all of them, so many parts are made of parts of parts."""

# arrays of one shape along a new axis
define("stack(*xs, axis)", LINEAR, lambda b, g, i, axis: b.getitem(g, (*(slice(None),) * axis, i)),
       batched=lambda b, n, xs, on, axis: b.stack(*both(b, n, xs, on), axis=axis + 1), lanes=lanes.stack,
       samples=calls(Sample((filled((2, 3), -1, 1), filled((2, 3), -1, 1, 1)), {"axis": 1}),
                     Sample((filled((), -1, 1), filled((), -1, 1, 1), filled((), -1, 1, 2)), {"axis": 0})))  # fmt: skip


@cache
def splitting(count: int) -> Op:
    """``split(x, sizes, axis)``: ``count`` slices one after the other."""
    return _several("split(x, sizes, axis)", count, _parts, _joined, {"sizes": tuple(k % 2 + 1 for k in range(count)), "axis": 1},
                    filled((2, count + count // 2), -1, 1))  # fmt: skip


@cache
def unstacking(count: int) -> Op:
    """``unstack(x, axis)``: the ``count`` slices along an axis, without it."""
    return _several("unstack(x, axis)", count, _slices, _stacked, {"axis": 1}, filled((2, count), -1, 1))


def _several(signature: str, count: int, parts: Callable[..., Any], rule: Callable[..., Any], params: dict[str, Any], sample: Any) -> Op:
    """A linear op that takes its results, ``parts``, out of an array."""
    stated = define(signature, SPECIAL, rule, forward=(parts,), results=[f"part{k}" for k in range(count)], listed=False,
                    samples=calls(Sample((sample,), params)))  # fmt: skip

    def batched(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], *given: Any) -> Any:
        return made.of(b)(xs[0], *given[:-1], given[-1] + 1)

    made = replace(stated, batched=batched, lanes=lanes.last_param, native=lambda b: lambda x, *given: parts(b, x, *given))
    return made


def _parts(b: Any, t: Any, sizes: Shape, axis: int) -> tuple[Any, ...]:
    found, start, before = [], 0, (slice(None),) * axis
    for n in sizes:
        found.append(b.getitem(t, (*before, slice(start, start + n))))
        start += n
    return tuple(found)


def _joined(b: Any, g: Sequence[Any], x_shape: Shape, x_dtype: Any, sizes: Shape, axis: int) -> Any:
    """The cotangents one after the other, zeros where there is none."""
    shapes = [(*x_shape[:axis], n, *x_shape[axis + 1 :]) for n in sizes]
    return b.concat(*(b.base.full(s, 0.0, x_dtype) if v is None else v for v, s in zip(g, shapes, strict=True)), axis=axis)


def _slices(b: Any, t: Any, axis: int) -> tuple[Any, ...]:
    before = (slice(None),) * axis
    return tuple([b.getitem(t, (*before, k)) for k in range(b.shape(t)[axis])])


def _stacked(b: Any, g: Sequence[Any], x_shape: Shape, x_dtype: Any, axis: int) -> Any:
    """The cotangents side by side, zeros where there is none."""
    shape = (*x_shape[:axis], *x_shape[axis + 1 :])
    return b.stack(*(b.base.full(shape, 0.0, x_dtype) if v is None else v for v in g), axis=axis)
