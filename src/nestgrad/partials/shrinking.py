"""A program for one entry of some of its labels, and arrays laid out for it: entry by entry in front."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from nestgrad.levels.traced.program import Instruction, Program, Variable
from nestgrad.ops import lanes
from nestgrad.ops.table import TABLE
from nestgrad.partials.independence import Label

_PER = TABLE["per"]


def shrunk(program: Program, cut: Sequence[Label]) -> Program:
    """The program for one entry of each label: every axis that carries one has size 1, or is shorter by the label's size.

    Of entry i of its inputs it gives entry i of the output, or, of a label that the output does not carry, what that entry contributes.

    Args:
        program: The program of which these are ``labels``.
        cut: Those that are cut. What others there are stays as it is.

    Returns:
        A program of the same inputs, with other shapes. Captured tensors are inputs like the others.
    """
    shapes = _shapes(cut)
    new: dict[Variable, Variable] = {}

    def of(v: Variable) -> Variable:
        found = new.get(v)
        if found is None:
            found = new[v] = Variable(v.number, _shorter(v, shapes[v]), v.dtype) if v in shapes else v
        return found

    base = program.base
    constants = [(of(v), _first(base, array, shapes.get(v, {}))) for v, array in program.constants]
    steps: list[Instruction] = []
    for step in program.instructions:
        params, out = step.params, of(step.out)
        if out is not step.out and "shape" in step.op.params:
            params = tuple([out.shape if name == "shape" else p for name, p in zip(step.op.params, params, strict=True)])
        operands = tuple([of(a) if a.__class__ is Variable else a for a in step.operands])
        count = _averaged(step, shapes) if operands != step.operands else 1
        if count > 1:
            total = Variable(-1, out.shape, out.dtype)
            steps.append(Instruction(step.op, operands, params, total))
            steps.append(Instruction(_PER, (total,), (count,), out))
        else:
            steps.append(Instruction(step.op, operands, params, out))
    made = replace(program, inputs=tuple([of(v) for v in program.inputs]), captured=(), arguments=(), structure=None, derived={})
    return made.rewritten(steps, [of(v) for v in program.outputs], constants)


def spread(base: Any, v: Variable, array: Any, cut: Sequence[Label]) -> Any:
    """The array of an input, entry by entry: an axis for each label in front, of size 1 where it carries none, then the ``shrunk`` shape.

    Args:
        base: What reshapes and permutes: a base backend, or the ops over one.
        v: The input.
        array: Its value.
        cut: The labels.
    """
    carried = sorted((label.axes[v], -label.inner.get(v, 0), k) for k, label in enumerate(cut) if v in label.axes)
    split: list[int] = []
    place: dict[int, int] = {}
    for axis, n in enumerate(v.shape):
        for at, inner, k in carried:
            if at == axis:
                within = max(1, -inner)
                split += [n // (cut[k].size * within), cut[k].size]
                place[k] = len(split) - 1
                n = within
        split.append(n)
    rest = [j for j in range(len(split)) if j not in place.values()]
    if split != [*v.shape]:
        array = base.reshape(array, tuple(split))
    front = [place[k] for k in range(len(cut)) if k in place]
    if front and (*front, *rest) != tuple(range(len(split))):
        array = base.permute(array, (*front, *rest))
    return base.reshape(array, (*(label.size if v in label.axes else 1 for label in cut), *_shorter(v, _shapes(cut).get(v, {}))))


def _shapes(cut: Sequence[Label]) -> dict[Variable, dict[int, int]]:
    """Of each variable that carries some of the labels, by the axis, how many times shorter it becomes."""
    found: dict[Variable, dict[int, int]] = {}
    for label in cut:
        for v, axis in label.axes.items():
            times = found.setdefault(v, {})
            times[axis] = times.get(axis, 1) * label.size
    return found


def _shorter(v: Variable, times: dict[int, int]) -> tuple[Any, ...]:
    if isinstance(v.dtype, tuple):
        return tuple([tuple([n // times.get(k, 1) for k, n in enumerate(shape)]) for shape in v.shape])
    return tuple([n // times.get(k, 1) for k, n in enumerate(v.shape)])


def _first(base: Any, array: Any, axes: dict[int, int]) -> Any:
    """The first entry of a constant along axes on which all entries are the same."""
    return base.getitem(array, tuple([slice(0, 1) if k in axes else slice(None) for k in range(max(axes) + 1)])) if axes else array


def _averaged(step: Instruction, shapes: dict[Variable, dict[int, int]]) -> int:
    """By how much less a mean would divide than before."""
    way = lanes.of(step.op)
    if way is None:
        return 1
    given = [a.shape if a.__class__ is Variable else () for a in step.operands]
    out = step.out.shape[0] if isinstance(step.out.dtype, tuple) else step.out.shape
    means = (lane.places for lane in way(given, out, *step.params) if lane.mean)
    return prod([shapes.get(step.operands[i], {}).get(k, 1) for places in means for i, k in places])
