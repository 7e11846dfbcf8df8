"""Calling an op of any kind, as a function with one answer."""

from math import prod
from typing import Any

from nestgrad.levels.marks import NONE
from nestgrad.ops import Kind, Op
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import apply, make, results, test


def called(op: Op, *xs: Any, **params: Any) -> Tensor:
    """An op of the table on Tensors. Several results are laid one after the other, as numbers of one dtype."""
    if not op.results:
        return (test if op.kind is Kind.CONSTANT else apply)(op.name, *xs, **params)
    outs = results(op.name, *xs, **params)
    b, dtype = outs[0].b, next(out.dtype for name, out in zip(op.results, outs, strict=True) if name not in op.fixed)
    flat = [b.reshape(out.value, (prod(out.shape),)) for out in outs]
    flat = [v if b.dtype(v) == dtype else b.cast(v, dtype) for v in flat]
    marks = next((out.marks for out in outs if out.marks), NONE)
    return make(b, b.concat(*flat, axis=0), marks)
