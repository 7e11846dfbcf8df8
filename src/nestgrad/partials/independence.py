"""Which axes of a program's inputs and output are independent, and the program for one entry of them.

Axes that ops connect entry by entry are one class, from the inputs to the output. It is a *label* if its entries meet nowhere but in sums
of which the rest of the program is a linear function. To find them takes some microseconds for each op.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from nestgrad.func.trees import LEAF
from nestgrad.levels.traced.program import Instruction, Program, Variable
from nestgrad.ops import lanes
from nestgrad.ops.table import TABLE
from nestgrad.partials.axes import Axes

_PER = TABLE["per"]


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """Axes that go together, entry by entry.

    Entry i of the output depends on entry i of each input that carries the label, and on inputs that do not. If the output does not carry
    it, it is a sum over i of what entry i of these inputs contributes, and of terms that do not depend on any of them.

    Attributes:
        size: How many entries.
        axes: Each variable that carries it, and which of its axes does.
        out: The axis of the output that does. ``None``: the output is a sum over the label.
        inner: Variables of which the axis holds more than the label, as after a reshape; and how many entries of the axis lie within one
            of the label. The inputs that one differentiates by, and the output, are never among them.
    """

    size: int
    axes: Mapping[Variable, int]
    out: int | None
    inner: Mapping[Variable, int]


def labels(program: Program, wanted: Sequence[int]) -> tuple[Label, ...]:
    """The labels of a program with one output.

    Derivatives in which an input that carries a label takes part are zero but for one entry of the label in all that carry it, and there
    they are those of the program for that entry alone (``shrunk``). Where a label is summed, nothing is said of other derivatives.

    Args:
        program: Any, with one output.
        wanted: Numbers of the inputs that one differentiates by. Others are data.

    Returns:
        Labels that the output carries, by its axes, and then those that are summed, by the first input that carries them. An axis of size 1
        carries none.
    """
    (output,) = program.outputs
    found = Axes(program)
    roots = found.whole([output, *(program.inputs[i] for i in wanted)])
    carried = found.carried(roots)
    lost = found.entangled(roots, carried)
    axes: dict[int, dict[Variable, int]] = {root: {} for root in roots if root not in lost and not found.classes.dead(root)}
    inner: dict[int, dict[Variable, int]] = {root: {} for root in axes}
    for v, places in carried.items():
        for k, root, stride in places:
            if root in axes:
                axes[root][v] = k
                if stride >= 0:
                    inner[root][v] = stride
    return tuple([Label(found.classes.sizes[root], axes[root], axes[root].get(output), inner[root]) for root in axes])


def shrunk(program: Program, cut: Sequence[Label]) -> Program:
    """The program for one entry of each label: every axis that carries one has size 1, or is shorter by the label's size.

    Of entry i of its inputs it gives entry i of the output, or, of a label that the output does not carry, what that entry contributes.

    Args:
        program: The program of which these are ``labels``.
        cut: Those that are cut. What others there are stays as it is.

    Returns:
        A program of the same inputs, with other shapes. Captured tensors are arguments like the others, the last.
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
    arguments = (*program.arguments, *(LEAF for _ in program.captured))
    made = replace(program, inputs=tuple([of(v) for v in program.inputs]), captured=(), arguments=arguments, derived={})
    return made.rewritten(steps, [of(v) for v in program.outputs], constants)


def spread(base: Any, v: Variable, array: Any, cut: Sequence[Label]) -> Any:
    """The array of an input, entry by entry: an axis for each label in front, of size 1 where it carries none, then the ``shrunk`` shape.

    Args:
        base: What reshapes and permutes: a base backend, or the ops over one.
        v: The input.
        array: Its value.
        cut: The labels.
    """
    if not cut:
        return array
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
    times: dict[int, int] = {}
    for axis, _, k in carried:
        times[axis] = times.get(axis, 1) * cut[k].size
    return base.reshape(array, (*(label.size if v in label.axes else 1 for label in cut), *_shorter(v, times)))


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
    """By how much less a mean divides than before."""
    if lanes.of(step.op) is not lanes.mean:
        return 1
    times = shapes.get(step.operands[0], {})
    return prod([times.get(k, 1) for k in dict(zip(step.op.params, step.params, strict=True))["axes"]])
