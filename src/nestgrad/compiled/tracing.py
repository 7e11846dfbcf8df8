"""Tracing a function with the levels of its arguments, into an ``Entry``."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from nestgrad.compiled.entry import Entry, Output, Source, births, met
from nestgrad.compiled.guards import Guards
from nestgrad.compiled.signature import pattern
from nestgrad.diagnostics.places import raised_at
from nestgrad.errors import LevelError, TraceError
from nestgrad.func.trees import flatten
from nestgrad.levels.base import Tape, running, tracing
from nestgrad.levels.coats import worn
from nestgrad.levels.marks import NONE, Marks, Moment, opened
from nestgrad.levels.traced.inside import Inside, Left
from nestgrad.levels.traced.program import Compiler, Program, Variable
from nestgrad.tensor.handle import Handle, is_scalar, make, named


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
        inside = [make(b, *recording.argument(p, m)) for p, m in zip(*given, strict=True)]
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
    return Entry(
        program=program,
        outputs=outputs,
        structure=structure,
        plain=plain,
        guards=guards,
        pattern=found,
        variants=variants,
        context=context,
        history=recording.history,
        met=met(given[0], recording.history),
        noted=noted,
        asked=asked,
        order=births(found, asked.values()),
        plainly=not (variants or context or noted),
        marked=any(out.marks for out in outputs),
        mixed=mixed,
    )


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
