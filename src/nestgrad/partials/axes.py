"""The axes of all variables of a program, in classes that go entry by entry together; and where the entries of a class meet.

Every op tells along which axes it goes entry by entry (``nestgrad.ops.lanes``); entries along all others meet. Sums are told apart: what
they are used for decides.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

from nestgrad.levels.base import Coat
from nestgrad.levels.traced.program import FIXED, ITEM, STOP, Instruction, Program, Variable
from nestgrad.ops import lanes
from nestgrad.ops.table import TABLE, Kind, Op
from nestgrad.partials.classes import Classes

_RESHAPE = TABLE["reshape"]

Carried = dict[Variable, list[tuple[int, int, int]]]
"""Of variables, for each atom the axis, the root, and how many entries of the axis lie within one of the atom; -1: it is the axis."""


class Axes:
    """The classes of the axes of a program.

    Attributes:
        program: The program.
        classes: The classes.
        axes: By variable, the numbers of its axes there; -1: of size 1 or 0, or of several results, and not the same in all.
        sums: By the result of a sum, the axes that are summed.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.classes = Classes()
        self.axes: dict[Variable, tuple[int, ...]] = {}
        self.sums: dict[Variable, list[int]] = {}
        for v in program.inputs:
            self._enter(v)
        for v, _ in program.constants:
            self._enter(v)
        for step in program.instructions:
            self._enter(step.out)
            self._step(step)
        for v, array in program.constants:
            self._fixed(v, array)

    def _enter(self, v: Variable) -> None:
        shape = v.shape
        if isinstance(v.dtype, tuple):
            first, *others = shape
            alike = all(len(s) == len(first) for s in others)
            shape = tuple([n if alike and all(s[k] == n for s in others) else 1 for k, n in enumerate(first)])
        self.axes[v] = tuple([self.classes.axis(n) if n > 1 else -1 for n in shape])

    def _step(self, step: Instruction) -> None:
        op, operands = step.op, step.operands
        axes = [self.axes[a] if a.__class__ is Variable else () for a in operands]
        out = self.axes[step.out]
        if op is ITEM or op is FIXED:
            self._taken(axes[0], out)
            return
        way = lanes.each if op is STOP else lanes.of(op)
        if way is lanes.each:
            arrays = [own for own in axes if own]
            if all(len(own) == len(out) for own in arrays):
                self._joined(zip(*arrays, out, strict=True))
                return
        if op is _RESHAPE:
            self._reshaped(operands[0], step.out)
            return
        free = {axis for own in (*axes, out) for axis in own if axis >= 0}
        if way is not None and free:
            shapes = [a.shape if a.__class__ is Variable else () for a in operands]
            whole = step.out.shape[0] if isinstance(step.out.dtype, tuple) else step.out.shape
            for lane in way(shapes, whole, *step.params):
                met = [axes[i][k] for i, k in lane.places if axes[i] and axes[i][k] >= 0]
                if lane.out is None:
                    self.sums.setdefault(step.out, []).extend(met[:1])
                elif out[lane.out] >= 0:
                    met.append(out[lane.out])
                else:
                    continue  # what goes into an axis of several results that have no such axis in common
                self._joined([met])
                free.difference_update(met)
        for axis in free:
            self.classes.kill(axis)

    def _taken(self, several: tuple[int, ...], out: tuple[int, ...]) -> None:
        """One of several results."""
        for own, axis in zip(several, out, strict=True):
            if own >= 0:
                self.classes.join(own, axis)
            elif axis >= 0:
                self.classes.kill(axis)

    def _joined(self, lines: Iterable[Sequence[int]]) -> None:
        classes = self.classes
        for line in lines:
            first = -1
            for axis in line:
                if axis >= 0:
                    if first < 0:
                        first = axis
                    elif classes.sizes[axis] == classes.sizes[first]:
                        classes.join(first, axis)
                    else:
                        classes.kill(first)
                        classes.kill(axis)

    def _reshaped(self, x: Variable, out: Variable) -> None:
        if prod(out.shape):
            self.classes.match([k for k in self.axes[x] if k >= 0], [k for k in self.axes[out] if k >= 0])
        else:
            for axis in (*self.axes[x], *self.axes[out]):
                if axis >= 0:
                    self.classes.kill(axis)

    def _fixed(self, v: Variable, array: Any) -> None:
        """A constant of the program has no entries that can be told apart: those of a class must be equal."""
        for k, axis in enumerate(self.axes[v]):
            if axis < 0 or all(map(self.classes.dead, self.classes.atoms(axis))):
                continue
            if isinstance(array, Coat) or len(self.classes.atoms(axis)) > 1 or not alike(self.program.base, array, k):
                self.classes.kill(axis)

    def whole(self, variables: Iterable[Variable]) -> list[int]:
        """The classes that these variables carry, in their order: those that are whole axes of all of them which carry them."""
        rows = [self.classes.atoms(axis) for v in variables for axis in self.axes[v] if axis >= 0]
        parts = {root for row in rows if len(row) > 1 for root in row}
        return [*dict.fromkeys(row[0] for row in rows if row[0] not in parts and not self.classes.dead(row[0]))]

    def carried(self, roots: Iterable[int]) -> Carried:
        """What variables carry of some classes. What one of them carries twice dies."""
        classes, found, asked = self.classes, Carried(), {*roots}
        for v, axes in self.axes.items():
            places: list[tuple[int, int, int]] = []
            for k, axis in enumerate(axes):
                if axis >= 0:
                    atoms = classes.atoms(axis)
                    places += [(k, root, classes.stride(axis, root) if len(atoms) > 1 else -1) for root in atoms if root in asked]
            if places:
                found[v] = places
                if len(places) > 1:
                    for j, (_, root, _) in enumerate(places):
                        if any(root == other for _, other, _ in places[:j]):
                            classes.kill(root)
        return found

    def entangled(self, roots: Iterable[int], carried: Carried) -> set[int]:
        """Those of the classes ``roots`` of which a sum is used in another way than by a linear function without the class."""
        bits = {root: 1 << k for k, root in enumerate(roots)}
        classes = self.classes
        started = {v: _bits(bits, [root for axis in axes for root in classes.atoms(axis)]) for v, axes in self.sums.items()}
        if not any(started.values()):
            return set()
        lost, holds = 0, dict[Variable, int]()
        for step in self.program.instructions:
            here = started.get(step.out, 0)
            summed = [holds.get(a, 0) if a.__class__ is Variable else 0 for a in step.operands]
            if any(summed):
                links = _links(step.op)
                for i, own in enumerate(summed):
                    if own:
                        others = None if links is None else links[0 if step.op.variadic else i]
                        if others is None:
                            lost |= own
                        else:
                            for j in others if not step.op.variadic else [j for j in range(len(summed)) if j != i and others]:
                                lost |= own & summed[j]
                        here |= own
            if here:
                lost |= here & _bits(bits, [root for _, root, _ in carried.get(step.out, ())])
                if here & ~lost:
                    holds[step.out] = here & ~lost
        return {root for root, bit in bits.items() if lost & bit}


def alike(base: Any, array: Any, axis: int) -> bool:
    """Whether all entries along an axis are the same."""
    first = base.getitem(array, (*(slice(None),) * axis, slice(0, 1)))
    return bool(base.to_numpy(base.eq(array, first)).all())


def _bits(bits: Mapping[int, int], roots: Iterable[int]) -> int:
    total = 0
    for root in roots:
        total |= bits.get(root, 0)
    return total


@cache
def _links(op: Op) -> tuple[tuple[int, ...] | None, ...] | None:
    """For each argument, which others the derivative by it depends on; ``None`` where it depends on the argument itself, or is none.

    So a rule that reads neither its own argument nor the answer tells that the op is a linear function of that argument, and something.
    """
    if op.kind in (Kind.COMPOSITE, Kind.CONSTANT) or op.on is not None:
        return None
    if op.variadic:
        (rule,) = op.rules
        read = () if rule is None else rule.reads
        return None if rule is None or {"out", "xs", *op.results} & {*read} else ((1,) if "others" in read else ()),
    found = list[tuple[int, ...] | None]()
    for name, rule in zip(op.arguments, op.rules, strict=True):
        if rule is None or {name, "out", *op.results} & {*rule.reads}:
            found.append(None)
        else:
            found.append(tuple([j for j, other in enumerate(op.arguments) if other in rule.reads]))
    return tuple(found)
