"""``Entry``: one trace of a function, for calls of one signature, and how a call runs its program."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nestgrad.compiled.call import Call
from nestgrad.compiled.guards import Guards
from nestgrad.compiled.signature import Pattern, pattern, ranks
from nestgrad.func.trees import LEAF, Structure, unflatten
from nestgrad.levels.base import Tape, now, running
from nestgrad.levels.coats import on, without
from nestgrad.levels.marks import NONE, Marks, Moment, join
from nestgrad.levels.mixing import fitted
from nestgrad.levels.reverse.node import Node
from nestgrad.levels.traced.call import invoke
from nestgrad.levels.traced.program import Program
from nestgrad.levels.traced.standing import seen_inside
from nestgrad.tensor.handle import make

Removed = tuple[frozenset[Tape], ...]
"""For each input the tapes that are taken off it for one output."""


@dataclass(frozen=True, slots=True)
class Output:
    """How one output lives on levels.

    Attributes:
        number: Which output of the program it is.
        reached: By tape (as it was when the function was traced), the numbers of the inputs that it depends on there.
        marks: By tape likewise: the moment, if the function itself has marked it, and else where the mark comes from.
    """

    number: int
    reached: dict[Tape, frozenset[int]]
    marks: dict[Tape, "Moment | Source"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a mark comes from that is older than the run.

    Attributes:
        ages: The inputs whose own age it is.
        marks: The arguments, and after them the ``noted``, that are marked so.
    """

    ages: frozenset[int]
    marks: frozenset[int]


@dataclass(frozen=True, slots=True)
class Entry:
    """A traced function.

    Attributes:
        program: What it computes.
        outputs: How its outputs live.
        structure: What the function returned, with leaves for outputs and for ``plain``.
        plain: The leaves that are no arrays, by position.
        guards: What the function closes over, as it was.
        pattern: Of the arguments and of what is closed over.
        variants: The inputs, numbered without these, that are inputs a second time, for levels on which they are constants.
        context: What the function closes over on levels.
        history: Nodes that what it closes over was made of, where that mattered.
        met: Which of them the arguments are.
        noted: Marks of what is closed over.
        asked: The stacks that the function used, with the tapes that they had.
        order: The ranks of births of all these tapes.
        plainly: Whether a call has nothing to do with levels, if no argument has, but for marks of the function's own.
        marked: Whether there are such marks.
        mixed: Whether there are floating dtypes beside that of Python numbers.
    """

    program: Program
    outputs: tuple[Output, ...]
    structure: Structure
    plain: dict[int, Any]
    guards: Guards
    pattern: Pattern
    variants: tuple[int, ...]
    context: tuple[Any, ...]
    history: frozenset[Node]
    met: tuple[bool, ...]
    noted: tuple[Marks, ...]
    asked: dict[tuple[Tape, ...], tuple[Tape, ...]]
    order: tuple[int, ...]
    plainly: bool
    marked: bool
    mixed: bool

    def fits(self, call: Call) -> bool:
        """Whether the trace is for a call with this key: what it closes over stands to the arguments' levels as it did."""
        found = call.pattern
        if self.history and met(call.values, self.history) != self.met:
            return False
        if self.context or self.noted:
            found = self._whole(call)
            if found.key != self.pattern.key:
                return False
        return not self.asked or not found.tapes or births(found, map(_current, self.asked)) == self.order

    def _whole(self, call: Call) -> Pattern:
        return pattern([*call.values, *self.context], [*call.marks, *self.noted])

    def run(self, call: Call) -> Any:
        """What the function returns for a call that it fits."""
        b, program = call.b, self.program
        if self.plainly and call.flat:
            raw = program.evaluate(b, call.values)
            outs = [make(b, p, m) for p, m in zip(raw, self._own_marks(), strict=True)] if self.marked else [make(b, p, NONE) for p in raw]
            return outs[0] if self.structure is LEAF and outs else self._unflatten(outs)
        captured = [tensor.value for tensor in program.captured]
        given = [*call.values, *captured]
        given = [*call.values, *(given[k] for k in self.variants), *captured]
        found = self._whole(call) if self.context or self.noted else call.pattern
        tapes = dict(zip(self.pattern.tapes, found.tapes, strict=True))
        for then, here in zip(self.asked.values(), map(_current, self.asked), strict=True):
            tapes.update(zip(then, here, strict=True))
        answers: dict[Removed, Sequence[Any]] = {}
        outs = []
        for out in self.outputs:
            removed = self._removed(out, given, tapes)
            if removed not in answers:
                undressed = [without(p, off) if off else p for p, off in zip(given, removed, strict=True)]
                answers[removed] = invoke(b, program, undressed)
            value = answers[removed][out.number]
            outs.append(make(b, *fitted(value, self._marks(out, given, call.marks, tapes))))
        return self._unflatten(outs)

    def _own_marks(self) -> list[Marks]:
        """For each output, its marks where all of them are the function's own; the same for those with the same tapes."""
        here: dict[Tape, Tape] = {}
        if running.get() is not None:
            for then, current in zip(self.asked.values(), map(_current, self.asked), strict=True):
                here.update(zip(then, current, strict=True))
        made: dict[tuple[Tape, ...], Marks] = {(): NONE}
        found = []
        for out in self.outputs:
            tapes = tuple(out.marks)
            if tapes not in made:
                age = now()
                made[tapes] = {here.get(tape, tape): Moment(age, *getattr(mark, "words", ())) for tape, mark in out.marks.items()}
            found.append(made[tapes])
        return found

    def _removed(self, out: Output, given: Sequence[Any], tapes: dict[Tape, Tape]) -> Removed:
        kept = {tapes[tape]: numbers for tape, numbers in out.reached.items()}
        return tuple(
            frozenset(coat.tape for coat in seen_inside(p) if i not in kept.get(coat.tape, ()))
            for i, p in enumerate(given)
        )

    def _marks(self, out: Output, values: Sequence[Any], given: Sequence[Marks], tapes: dict[Tape, Tape]) -> Marks:
        marks = NONE
        for tape, mark in out.marks.items():
            here = tapes.get(tape, tape)  # of what is closed over it is always the same
            if isinstance(mark, Moment):
                marks = join(marks, {here: Moment(now(), *mark.words)})
                continue
            known = (*given, *self.noted)
            for k in mark.marks:
                marks = join(marks, {here: known[k][here]})
            for i in mark.ages:
                if (coat := on(values[i], here)) is not None:
                    marks = join(marks, {here: Moment(coat.moment, "inside of a jitted function")})
        return marks

    def _unflatten(self, outs: list[Any]) -> Any:
        if self.plain:
            rest = iter(outs)
            outs = [self.plain[k] if k in self.plain else next(rest) for k in range(len(outs) + len(self.plain))]
        return unflatten(self.structure, outs)


def _current(tapes: tuple[Tape, ...]) -> tuple[Tape, ...]:
    """What the tapes of a stack are where a function is called."""
    outer = running.get()
    return tapes if outer is None or tapes[0].birth > outer.birth else outer.above(tapes)


def met(values: Sequence[Any], history: frozenset[Node]) -> tuple[bool, ...]:
    """Which nodes of the arguments are among others."""
    return tuple(coat.node in history for p in values for coat in seen_inside(p))


def births(found: Pattern, asked: Iterable[tuple[Tape, ...]]) -> tuple[int, ...]:
    """The ranks of births of the tapes of arguments and of stacks."""
    return ranks(tape.birth for tapes in (found.tapes, *asked) for tape in tapes)
