"""The axes of all variables of a program, in classes that go entry by entry together; and where the entries of a class meet.

Every op tells along which axes it goes entry by entry (``nestgrad.ops.lanes``); entries along all others meet. Sums are told apart: what
they are used for decides.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from nestgrad.levels.base import Coat
from nestgrad.levels.traced.program import FIXED, ITEM, STOP, Instruction, Program, Variable
from nestgrad.ops import lanes
from nestgrad.ops.shapes import Shape
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
        axes: By variable, the numbers of its axes there; -1: of size 1 or 0.
        sums: By the result of a sum, the axes that are summed.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.classes = Classes()
        self.axes: dict[Variable, tuple[int, ...]] = {}
        self.sums: dict[Variable, list[int]] = {}
        self._known: dict[Any, Sequence[lanes.Lane]] = {}
        for v in (*program.inputs, *(v for v, _ in program.constants)):
            self.axes[v] = self._new(v.shape)
        for step in program.instructions:
            self.axes[step.out] = self._step(step)
        for v, array in program.constants:
            self._fixed(v, array)

    def _new(self, shape: Shape, dead: bool = False) -> tuple[int, ...]:
        return tuple([self.classes.axis(n, dead) if n > 1 else -1 for n in shape])

    def _step(self, step: Instruction) -> tuple[int, ...]:
        """The axes of the answer: where entries go on, those of an operand."""
        op, operands, shape = step.op, step.operands, step.out.shape
        axes = [self.axes[a] if a.__class__ is Variable else () for a in operands]
        if op is ITEM or op is FIXED:
            several = axes[0] if len(axes[0]) == len(shape) else (-1,) * len(shape)
            return tuple([own if own >= 0 else self._new((n,), True)[0] for own, n in zip(several, shape, strict=True)])
        if op is _RESHAPE and prod(shape):
            out = self._new(shape)
            self.classes.match([k for k in axes[0] if k >= 0], [k for k in out if k >= 0])
            return out
        way = lanes.each if op is STOP else lanes.of(op)
        if way is lanes.each:
            arrays = [own for own in axes if own]
            if len(arrays) == 1 and operands[0].__class__ is Variable and operands[0].shape == shape:
                return arrays[0]
            sizes = self.classes.sizes
            if all(len(own) == len(shape) and all(k < 0 or sizes[k] == n for k, n in zip(own, shape, strict=True)) for own in arrays):
                return tuple([self._joined(n, line) for n, *line in zip(shape, *arrays, strict=True)])
        return self._along(way, step, axes)

    def _joined(self, n: int, line: Iterable[int]) -> int:
        """One axis of ``n`` entries for all of a lane."""
        classes, first = self.classes, -1
        for axis in line:
            if axis >= 0:
                assert classes.sizes[axis] == n, f"axes of {classes.sizes[axis]} and of {n} entries go together"
                if first < 0:
                    first = axis
                elif axis != first:
                    classes.join(first, axis)
        return classes.axis(n) if first < 0 and n > 1 else first

    def _along(self, way: lanes.Way | None, step: Instruction, axes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """By the lanes of the op. What is in none meets."""
        sizes, classes = self.classes.sizes, self.classes
        shape, common = _common(step.out)
        out, used = [-1] * len(common), set[tuple[int, int]]()
        shapes = [a.shape if a.__class__ is Variable else () for a in step.operands]
        for lane in () if way is None else self._lanes(way, (*shapes, shape), step.params):
            places = [(i, k) for i, k in lane.places if axes[i] and axes[i][k] >= 0]
            line = [axes[i][k] for i, k in places]
            n = common[lane.out] if lane.out is not None else sizes[line[0]] if line else 1
            if n > 1 and all(sizes[axis] == n for axis in line):
                axis = self._joined(n, line)
                used.update(places)
                if lane.out is None:
                    self.sums.setdefault(step.out, []).append(axis)
                else:
                    out[lane.out] = axis
        for i, own in enumerate(axes):
            for k, axis in enumerate(own):
                if axis >= 0 and (i, k) not in used:
                    classes.kill(axis)
        return tuple([self._new((n,), True)[0] if axis < 0 else axis for n, axis in zip(common, out, strict=True)])

    def _lanes(self, way: lanes.Way, shapes: tuple[Shape, ...], params: tuple[Any, ...]) -> Sequence[lanes.Lane]:
        """The lanes of an op, found once for all of its calls of one kind."""
        try:
            found = self._known.get((way, shapes, params))
        except TypeError:  # parameters that are arrays, or slices
            return tuple(way(shapes[:-1], shapes[-1], *params))
        if found is None:
            found = self._known[way, shapes, params] = tuple(way(shapes[:-1], shapes[-1], *params))
        return found

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
        classes, asked = self.classes, {*roots}
        found, known = Carried(), dict[tuple[int, ...], list[tuple[int, int, int]]]()
        for v, axes in self.axes.items():
            places = known.get(axes)  # where entries go on, variables have axes in common
            if places is None:
                places = known[axes] = []
                for k, axis in enumerate(axes):
                    if axis >= 0:
                        atoms = classes.atoms(axis)
                        for root in atoms:
                            if root in asked:
                                places.append((k, root, classes.stride(axis, root) if len(atoms) > 1 else -1))
                if len({root for _, root, _ in places}) < len(places):
                    for j, (_, root, _) in enumerate(places):
                        if any(root == other for _, other, _ in places[:j]):
                            classes.kill(root)
            if places:
                found[v] = places
        return found

    def entangled(self, roots: Iterable[int], carried: Carried) -> set[int]:
        """Those of the classes ``roots`` of which a sum is used in another way than by a linear function without the class."""
        bits = {root: 1 << k for k, root in enumerate(roots)}
        classes = self.classes
        started = {v: _bits(bits, [root for axis in axes for root in classes.atoms(axis)]) for v, axes in self.sums.items()}
        if not any(started.values()):
            return set()
        lost, holds, known = 0, dict[Variable, int](), dict[Op, Any]()
        for step in self.program.instructions:
            here = started.get(step.out, 0)
            if not here and not holds:
                continue
            summed = [holds.get(a, 0) if a.__class__ is Variable else 0 for a in step.operands]
            if any(summed):
                if step.op not in known:
                    known[step.op] = _links(step.op)
                links = known[step.op]
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


def _common(v: Variable) -> tuple[Shape, Shape]:
    """The shape of a variable; of several results that of the first, and with 1 where it is not that of all."""
    if not isinstance(v.dtype, tuple):
        return v.shape, v.shape
    first, *others = v.shape
    same = all(len(shape) == len(first) for shape in others)
    return first, tuple([n if same and all(shape[k] == n for shape in others) else 1 for k, n in enumerate(first)])


def alike(base: Any, array: Any, axis: int) -> bool:
    """Whether all entries along an axis are the same."""
    first = base.getitem(array, (*(slice(None),) * axis, slice(0, 1)))
    return bool(base.to_numpy(base.eq(array, first)).all())


def _bits(bits: Mapping[int, int], roots: Iterable[int]) -> int:
    total = 0
    for root in roots:
        total |= bits.get(root, 0)
    return total


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
