"""Which values of a program share memory: a plan made once, from shapes, dtypes and last reads.

A value gets a *place* if its op can write there and nobody outside the program may ever hold it. The memory of a place is free again when
the value, and whatever may be a view of it, has been read for the last time. Whether an op's answer may be a view is for the backend to
rule out; where it does not, the answer is taken for a view of all that the op has read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from nestgrad.backends.memory import Layout, Memory, Writer
from nestgrad.levels.traced.program import FIXED, ITEM, STOP, Instruction, Program, Variable
from nestgrad.ops.table import TABLE

GRAIN, GAP = 64, 192
"""Rooms begin at lines of the cache, and not all at the same place of a page, where they would be in each other's way."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is written, and as what.

    Attributes:
        room: The number of a piece of memory, at whose beginning it is.
        shape, dtype, layout: Those of the value.
    """

    room: int
    shape: tuple[int, ...]
    dtype: Any
    layout: Layout


@dataclass(frozen=True, slots=True)
class Plan:
    """The places of a program's values.

    Attributes:
        places: By the numbers of variables.
        writers: How the ops write there, by the same.
        starts: Where each room begins.
        nbytes: The size of all rooms together.
    """

    places: Mapping[int, Place]
    writers: Mapping[int, Writer]
    starts: Sequence[int]
    nbytes: int


def planned(program: Program, memory: Memory, layouts: Mapping[int, Layout | None]) -> Plan:
    """The plan of a program.

    Args:
        program: Whose ops are those of the backend that the memory is of.
        memory: Of its base backend.
        layouts: For the numbers of variables, how the ops lay out their answers.
    """
    writers = {}
    for step in program.instructions:
        writer = _writer(step, memory)
        if writer is not None and layouts.get(step.out.number) is not None:
            writers[step.out.number] = writer
    behind = _behind(program, memory, writers)
    while held := writers.keys() & _held(program, behind):
        for number in held:
            del writers[number]
        behind = _behind(program, memory, writers)  # an op that makes its answer anew may give back what it read
    places, sizes = _Rooms(memory, layouts, behind, _ends(program, behind)).placed(program.instructions, writers)
    *starts, nbytes = accumulate((-(-size // GRAIN) * GRAIN + GAP for size in sizes), initial=0)
    return Plan(places, writers, starts, nbytes)


def _writer(step: Instruction, memory: Memory) -> Writer | None:
    """How an instruction can write, if it can."""
    if not _common(step) or step.op.variadic or step.op.results:
        return None
    writer = memory.writer(step.op.name)
    if writer is not None and writer.uniform:
        return writer if all(isinstance(a, Variable) and a.dtype == step.out.dtype for a in step.operands) else None
    return writer


def _common(step: Instruction) -> bool:
    """Whether the op is one of the table: others run functions of users, which may keep what they are given."""
    return TABLE.get(step.op.name) is step.op


def _behind(program: Program, memory: Memory, writers: Mapping[int, Writer]) -> dict[int, frozenset[int]]:
    """For each variable those that are written and whose memory it may share."""
    found: dict[int, frozenset[int]] = {v.number: frozenset() for v in (*program.inputs, *(v for v, _ in program.constants))}
    for step in program.instructions:
        number = step.out.number
        if number in writers:
            found[number] = frozenset((number,))
        elif _common(step) and memory.fresh(step.op.name):
            found[number] = frozenset()
        else:
            found[number] = frozenset[int]().union(*(found[a.number] for a in step.operands if isinstance(a, Variable)))
    return found


def _held(program: Program, behind: Mapping[int, frozenset[int]]) -> frozenset[int]:
    """What somebody may hold after the program has run."""
    held = [behind[v.number] for v in program.outputs]
    for step in program.instructions:
        if not _common(step) and step.op not in (STOP, ITEM, FIXED):
            held += [behind[a.number] for a in step.operands if isinstance(a, Variable)]
    return frozenset[int]().union(*held)


def _ends(program: Program, behind: Mapping[int, frozenset[int]]) -> dict[int, int]:
    """For what is written the position of the instruction that reads it, or a view of it, for the last time."""
    ends: dict[int, int] = {}
    for k, step in enumerate(program.instructions):
        for v in (step.out, *step.operands):
            if isinstance(v, Variable):
                ends |= dict.fromkeys(behind[v.number], k)
    return ends


class _Rooms:
    """Memory that is taken and given back, while one goes through a program."""

    def __init__(
        self, memory: Memory, layouts: Mapping[int, Layout | None], behind: Mapping[int, frozenset[int]], ends: Mapping[int, int]
    ) -> None:
        self._memory, self._layouts, self._behind, self._ends = memory, layouts, behind, ends
        self._sizes: list[int] = []
        self._free: list[int] = []
        self._places: dict[int, Place] = {}

    def placed(self, instructions: Sequence[Instruction], writers: Mapping[int, Writer]) -> tuple[dict[int, Place], list[int]]:
        """The places of what is written, and the sizes of all rooms."""
        for k, step in enumerate(instructions):
            number = step.out.number
            taken = None
            if number in writers:
                layout = self._layouts[number]
                assert layout is not None
                taken = self._overwritten(step, writers[number], k)
                room = self._places[taken].room if taken is not None else self._take(self._memory.nbytes(step.out.shape, step.out.dtype))
                self._places[number] = Place(room, step.out.shape, step.out.dtype, layout)
            over = {n for v in (step.out, *step.operands) if isinstance(v, Variable) for n in self._behind[v.number]}
            self._free += [self._places[n].room for n in sorted(over) if n in writers and n != taken and self._ends[n] == k]
        return self._places, self._sizes

    def _overwritten(self, step: Instruction, writer: Writer, k: int) -> int | None:
        """The variable whose place the answer may have because it is read here for the last time."""
        for a in step.operands:
            if not isinstance(a, Variable) or a.number not in self._places or self._ends[a.number] != k:
                continue
            place = self._places[a.number]
            if (place.shape, place.dtype, place.layout) != (step.out.shape, step.out.dtype, self._layouts[step.out.number]):
                continue
            reads = [i for i, v in enumerate(step.operands) if isinstance(v, Variable) and a.number in self._behind[v.number]]
            if all(step.operands[i] is a and i in writer.overwrites for i in reads):
                return a.number
        return None

    def _take(self, nbytes: int) -> int:
        """The smallest free room that is large enough, of several the last that was left; else the largest, made larger; or a new one."""
        if not self._free:
            self._sizes.append(nbytes)
            return len(self._sizes) - 1
        large = [r for r in self._free if self._sizes[r] >= nbytes]
        best = min(self._sizes[r] for r in large) if large else max(self._sizes[r] for r in self._free)
        room = next(r for r in reversed(self._free) if self._sizes[r] == best)
        self._free.remove(room)
        self._sizes[room] = max(best, nbytes)
        return room
