"""``Entry``: one trace of a function, for calls of one signature, and how a call runs its program."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nestgrad.compiled.call import Call
from nestgrad.compiled.guards import Guards
from nestgrad.compiled.signature import Pattern, pattern, ranks
from nestgrad.diagnostics.places import raised_at
from nestgrad.errors import LevelError, TraceError
from nestgrad.func.trees import LEAF, Structure, flatten, unflatten
from nestgrad.levels.base import Tape, now, running, tracing
from nestgrad.levels.coats import on, without, worn
from nestgrad.levels.marks import NONE, Marks, Moment, join, opened
from nestgrad.levels.mixing import fitted
from nestgrad.levels.traced.call import invoke
from nestgrad.levels.traced.inside import Inside, Left, seen_inside
from nestgrad.levels.traced.program import Compiler, Program, Variable
from nestgrad.tensor.handle import Handle, is_scalar, make, named

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
        noted: Marks of what is closed over.
        asked: The stacks that the function used, with the tapes that they had.
        order: The ranks of births of all these tapes.
        plainly: Whether it has nothing to do with levels, if no argument has.
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
    noted: tuple[Marks, ...]
    asked: dict[tuple[Tape, ...], tuple[Tape, ...]]
    order: tuple[int, ...]
    plainly: bool
    mixed: bool

    def fits(self, call: Call) -> bool:
        """Whether the trace is for a call with this key: what it closes over stands to the arguments' levels as it did."""
        found = call.pattern
        if self.context or self.noted:
            found = self._whole(call)
            if found.key != self.pattern.key:
                return False
        return not self.asked or not found.tapes or _births(found, map(_current, self.asked)) == self.order

    def _whole(self, call: Call) -> Pattern:
        return pattern([*call.values, *self.context], [*call.marks, *self.noted])

    def run(self, call: Call) -> Any:
        """What the function returns for a call that it fits."""
        b, program = call.b, self.program
        if self.plainly and call.flat:
            outs = [make(b, p, NONE) for p in program.evaluate(b, call.values)]
            return outs[0] if self.structure is LEAF else self._unflatten(outs)
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


def traced(
    f: Callable[..., Any],
    b: Any,
    given: tuple[Sequence[Any], Sequence[Marks]],
    arguments: Callable[[Sequence[Any]], Any],
    compiler: Compiler,
    guards: Callable[[], Guards],
    scalar: Any,
) -> Entry:
    """Trace a function.

    Args:
        f: Of what ``arguments`` makes of Tensors: positional and named ones.
        b: The backend over dressed values.
        given: The values of the inputs, and their marks.
        arguments: From inputs to the function's arguments.
        compiler: The program's.
        guards: Makes the guards.
        scalar: The dtype that Python numbers have become, if there are any.

    Raises:
        TraceError: If the function returns what is no array, writes into what it closes over, or asks for numbers.
        LevelError: If what it returns lives on a level that was made inside.
    """
    before = guards()
    number = max((coat.tape.number for p in given[0] for coat in worn(p)), default=0) + 1
    recording = Inside(b.base, "jit", number, compiler)
    recording.begin()
    tokens = running.set(recording.tape), tracing.set(recording)
    try:
        inside = [make(b, recording.argument(p), recording.moved(m)) for p, m in zip(*given, strict=True)]
        args, kwargs = arguments(inside)
        try:
            result = f(*args, **kwargs)
        except TraceError as error:
            error.args = (f"{error}. The line is {raised_at(error)}", *error.args[1:])
            raise
        if (name := before.written()) is not None:
            raise TraceError(
                f"jit: the function wrote into an array that it closes over ({name}); expected it to return what it computes, because a "
                "program that runs again has no such effect. Try to return the new values, and write them outside"
            )
        before.settle()
        return _entry(b, recording, result, before, given, scalar)
    finally:
        running.reset(tokens[0])
        tracing.reset(tokens[1])
        recording.abandon()


def _entry(b: Any, recording: Inside, result: Any, guards: Guards, given: tuple[Sequence[Any], Sequence[Marks]], scalar: Any) -> Entry:
    leaves, structure = flatten(result)
    plain = {k: x for k, x in enumerate(leaves) if is_scalar(x)}
    left = [_leave(b, recording, k, x) for k, x in enumerate(leaves) if k not in plain]
    reached = [frozenset[Variable]().union(*out.reached.values()) for out in left]
    program = recording.program([(out.value, NONE) for out in left], partial(make, b, marks=NONE), reached=reached)
    noted = tuple(recording.noted.values())
    numbers = {v: k for k, v in enumerate(recording.order)}
    places = {v: k for k, v in enumerate(v for v in recording.order if not any(v is made for made, _, _ in recording.variants))}
    variants = tuple(places[of] for _, of, _ in recording.variants)
    more: dict[int, list[tuple[int, frozenset[Tape]]]] = {}
    for made, of, tapes in recording.variants:
        more.setdefault(numbers[of], []).append((numbers[made], frozenset(map(recording.outside, tapes))))
    outputs = tuple(
        Output(
            k,
            {tape: _with_variants(tape, frozenset(numbers[v] for v in vs), more) for tape, vs in out.reached.items()},
            {
                tape: moment if moment > recording.started else _source(tape, moment, out, numbers, [*given[1], *noted])
                for tape, moment in out.marks.items()
            },
        )
        for k, out in enumerate(left)
    )
    context = tuple(recording.context)
    found = pattern([*given[0], *context], [*given[1], *noted])
    asked = dict(recording.asked)
    mixed = scalar is not None and any(program.floating(v) and v.dtype != scalar for v in _variables(program))
    order = _births(found, asked.values())
    plainly = not (context or noted or asked or any(out.marks for out in outputs))
    return Entry(program, outputs, structure, plain, guards, found, variants, context, noted, asked, order, plainly, mixed)


def _with_variants(tape: Tape, numbers: frozenset[int], more: dict[int, list[tuple[int, frozenset[Tape]]]]) -> frozenset[int]:
    """The inputs that an output depends on by a level: also in those variants that are no constants there."""
    return numbers | {made for k in numbers for made, off in more.get(k, ()) if tape not in off}


def _source(tape: Tape, moment: Moment, out: Left, numbers: dict[Variable, int], marks: Sequence[Marks]) -> "Source | Moment":
    ages = frozenset(numbers[v] for v in out.sources[tape] if v in numbers)
    known = frozenset(k for k, m in enumerate(marks) if m.get(tape) == moment)
    return Source(ages, known) if ages or known else moment  # as if it were marked now, which is on the safe side


def _leave(b: Any, recording: Inside, k: int, x: Any) -> Left:
    if not isinstance(x, Handle) and b.base.accepts(x):
        x = make(b, b.base.asarray(x), NONE)
    if not isinstance(x, Handle) or x.b.base != b.base:
        what = f"a Tensor over {x.b.base!r}" if isinstance(x, Handle) else named(x)
        kind = LevelError if isinstance(x, Handle) else TraceError
        raise kind(f"jit: the function returned {what} as output {k}; expected Tensors over {b.base!r}, one base backend, or numbers")
    return recording.leave(*opened(x.value, x.marks))


def _variables(program: Program) -> Iterator[Variable]:
    """All of them, but those that hold several results."""
    yield from program.inputs
    yield from (v for v, _ in program.constants)
    yield from (step.out for step in program.instructions if not isinstance(step.out.dtype, tuple))


def _current(tapes: tuple[Tape, ...]) -> tuple[Tape, ...]:
    """What the tapes of a stack are where a function is called."""
    outer = running.get()
    return tapes if outer is None or tapes[0].birth > outer.birth else outer.above(tapes)


def _births(found: Pattern, asked: Iterable[tuple[Tape, ...]]) -> tuple[int, ...]:
    return ranks(tape.birth for tapes in (found.tapes, *asked) for tape in tapes)
