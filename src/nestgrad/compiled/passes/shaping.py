"""Moves that lead nowhere, and moves that can wait. Bit-equal, but for one.

    reshape(reshape(v0))                            ->  reshape(v0)            and so permute, broadcast_to; none, if it is where it was
    product(permute(v0, (1, 0)), v1)                ->  product(v0, v1, tx=True)
    mul(broadcast_to(v0), v1)                       ->  mul(v0, v1)            and so if all operands are
    exp(broadcast_to(v0))                           ->  broadcast_to(exp(v0))  so that each number is computed once
    getitem(stack(v0, v1, axis=0), (1,))            ->  v1                     and so of concat
    sum(broadcast_to(v0, (3,)), axes=(0,))          ->  scale(v0, c=3.0)       to rounding: the sum would round more often

A product with a column of ones is left as it is, though it is a sum, or repeats a row: a matrix product is the faster way to either.
"""

from math import prod
from typing import Any

from nestgrad.compiled.passes.rewriting import Rules, Walk, broadcast, number
from nestgrad.levels.traced.program import Instruction, Variable
from nestgrad.ops.shapes import swap_last
from nestgrad.ops.table import ELEMENTWISE, TABLE

SHAPING = Rules()

EACH = tuple(op.name for op in TABLE.values() if op.kind is ELEMENTWISE and len(op.arguments) == 1) + ("neg", "scale", "per", "cast")
TOGETHER = tuple(op.name for op in TABLE.values() if op.broadcasts and len(op.arguments) > 1)
"""Ops of which each entry of the answer is made of one entry of each operand: of one operand, and of several. Comparisons are, too."""


@SHAPING.on("reshape", "broadcast_to")
def the_same_move_twice(w: Walk, step: Instruction) -> Any:
    """Only the last one counts."""
    (x,) = step.operands
    if x.shape == step.out.shape:
        return x
    inner = w.source(x, step.op.name)
    return inner and w.instead(step, step.op.name, inner.operands, step.params)


@SHAPING.on("permute")
def permutations(w: Walk, step: Instruction) -> Any:
    """One after the other is one."""
    (x,), (axes,) = step.operands, step.params
    if axes == tuple(range(len(axes))):
        return x
    inner = w.source(x, "permute")
    return inner and w.instead(step, "permute", inner.operands, (tuple([inner.params[0][k] for k in axes]),))


@SHAPING.on("cast")
def cast_to_what_it_is(w: Walk, step: Instruction) -> Any:
    """Nothing to do."""
    (x,) = step.operands
    return x if not number(x) and x.dtype == step.out.dtype else None


@SHAPING.on("sum")
def sum_of_what_was_repeated(w: Walk, step: Instruction) -> Any:
    """A multiple. Over no axes it is the operand."""
    (x,), (axes, keepdims) = step.operands, step.params
    if not w.plain(step):
        return None
    if not axes:
        return x
    inner = w.source(x, "broadcast_to")
    if not inner:
        return None
    (y,) = inner.operands
    sizes = (1,) * (len(x.shape) - len(y.shape)) + y.shape
    count = prod(x.shape[k] for k in axes)
    if not count or any(sizes[k] != 1 for k in axes):
        return None
    left = tuple(n for k, n in enumerate(sizes) if keepdims or k not in axes)
    scaled = w.emit("scale", (y,), (float(count),), y)
    return w.instead(step, "broadcast_to", (w.emit("reshape", (scaled,), (left,), y, left),), (step.out.shape,))


@SHAPING.on(*EACH)
def each_number_once(w: Walk, step: Instruction) -> Any:
    """A function of numbers before they are repeated."""
    inner = w.source(step.operands[0], "broadcast_to")
    if not inner:
        return None
    (x,) = inner.operands
    return w.instead(step, "broadcast_to", (w.emit(step.op.name, (x,), step.params, step.out, x.shape),), (step.out.shape,))


@SHAPING.on(*TOGETHER)
def repeated_by_itself(w: Walk, step: Instruction) -> Any:
    """What the op repeats itself need not be repeated before; and what is repeated altogether can be after it."""
    sources = [w.source(a, "broadcast_to") for a in step.operands]
    if not any(sources):
        return None
    operands = [s.operands[0] if s else a for s, a in zip(sources, step.operands, strict=True)]
    shape = broadcast([a.shape for a in operands if a.__class__ is Variable])
    if shape == step.out.shape:
        return w.instead(step, step.op.name, operands, step.params)
    return w.instead(step, "broadcast_to", (w.emit(step.op.name, operands, step.params, step.out, shape),), (step.out.shape,))


@SHAPING.on("matmul", "product")
def transposes_as_flags(w: Walk, step: Instruction) -> Any:
    """A product knows how to read a matrix by columns."""
    flags: list[bool] = list(step.params or (False, False))
    operands = list(step.operands)
    for i, a in enumerate(operands):
        inner = w.source(a, "permute")
        if inner and inner.params[0] == swap_last(len(a.shape)):
            operands[i], flags[i] = inner.operands[0], not flags[i]
    if operands != list(step.operands) or (step.params and not any(flags)):
        return w.instead(step, "product", operands, flags) if any(flags) else w.instead(step, "matmul", operands)
    return None


@SHAPING.on("getitem")
def part_of_what_was_put_together(w: Walk, step: Instruction) -> Any:
    """One of the arrays that were stacked, or laid one after the other."""
    (x,), (index,) = step.operands, step.params
    if all(isinstance(k, slice) and k == slice(None) for k in index):
        return x
    inner = w.source(x, "stack", "concat")
    axis = len(index) - 1
    if not inner or inner.params[0] != axis or any(not isinstance(k, slice) or k != slice(None) for k in index[:-1]):
        return None
    k, start = index[-1], 0
    if inner.op.name == "stack":
        return inner.operands[k] if k.__class__ is int and 0 <= k and inner.operands[k].dtype == x.dtype else None
    for part in inner.operands:
        if k == slice(start, start + part.shape[axis]) if isinstance(k, slice) else False:
            return part if part.dtype == x.dtype else None
        start += part.shape[axis]
    return None
