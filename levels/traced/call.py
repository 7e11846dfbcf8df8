"""A program as an op: what it is on the coat of each kind of level.

On a level that has a rule here a call is one step, and what the level adds is a call as well, of a program that was made of this one by
running the level over its replay. On other levels the program is replayed op by op, which is right on every level.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nestgrad.levels.base import Coat, Tape, tracing
from nestgrad.levels.batched import Batch, batched
from nestgrad.levels.forward import Dual, dual, split
from nestgrad.levels.reverse.backward import Pass
from nestgrad.levels.reverse.node import Tracked, leaves, make
from nestgrad.levels.reverse.several import several
from nestgrad.levels.taylor import Series, coefficients, series
from nestgrad.levels.traced.program import Program
from nestgrad.levels.traced.recording import recorded
from nestgrad.levels.watching import called, watched
from nestgrad.ops.samples import Samples
from nestgrad.ops.table import SPECIAL, Op


def invoke(b: Any, program: Program, values: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs of a program for values of all its inputs, the captured ones too, in coats of any levels."""
    coats = [p for p in values if isinstance(p, Coat)]
    if coats and (trace := tracing.get()) is not None and any(map(trace.holds, coats)):
        values = [trace.bring(p) for p in values]
        coats = [p for p in values if isinstance(p, Coat)]
    if not coats:
        return program.evaluate(b, values)
    youngest = max(coats, key=lambda coat: coat.tape.birth)
    rule = _RULES.get(type(youngest))
    if watched(b.base):
        return tuple(called(b, values, lambda: program.run(b, values) if rule is None else rule(b, program, youngest.tape, values)))
    return program.run(b, values) if rule is None else rule(b, program, youngest.tape, values)


def _reverse(b: Any, program: Program, tape: Tape, values: Sequence[Any]) -> tuple[Any, ...]:
    """One node. Its rule is a program of the inputs and of the cotangents of the outputs."""
    inner = [p.value if _on(p, tape) else p for p in values]
    outs = invoke(b, program, inner)
    tracked = tuple(i for i, p in enumerate(values) if _on(p, tape) and any(i in numbers for numbers in program.connected))
    depending = tuple(j for j, numbers in enumerate(program.connected) if not numbers.isdisjoint(tracked))
    if not depending:
        return outs

    def pull(b: Any, cotangents: tuple[Any, ...]) -> list[Any]:
        given = [(j, g) for j, g in zip(depending, cotangents, strict=True) if g is not None]
        seeded = tuple(j for j, _ in given)
        both = [*inner, *(g for _, g in given)]
        pullback, reached = pulled_back(program, tracked, seeded, both)
        found = dict(zip(reached, invoke(b, pullback, both), strict=True))
        return [found.get(i) for i in tracked]

    parents = [values[i].node for i in tracked]
    shapes = [program.outputs[j].shape for j in depending]
    dressed = several("call", tape, [outs[j] for j in depending], shapes, parents, pull, (program, inner, tracked, depending))
    found = dict(zip(depending, dressed, strict=True))
    return tuple(found.get(j, out) for j, out in enumerate(outs))


def pulled_back(
    program: Program, wanted: tuple[int, ...], seeded: tuple[int, ...], examples: Sequence[Any]
) -> tuple[Program, tuple[int, ...]]:
    """What ``_pullback`` makes, once for each choice of inputs and outputs."""
    made: tuple[Program, tuple[int, ...]] = program.derive(
        ("reverse", wanted, seeded), lambda: _pullback(program, wanted, seeded, examples)
    )
    return made


def _pullback(
    program: Program, wanted: tuple[int, ...], seeded: tuple[int, ...], examples: Sequence[Any]
) -> tuple[Program, tuple[int, ...]]:
    """The program from all inputs and the cotangents of the outputs ``seeded`` to the cotangents of those inputs ``wanted`` that are
    reached; and which these are."""
    b, count = program.base.dressed, len(program.inputs)
    reached: list[int] = []

    def f(given: list[Any]) -> list[Any]:
        tape = Tape("reverse", 0)
        xs = [leaves((tape,), p, v.shape) if i in wanted else p for i, (p, v) in enumerate(zip(given, program.inputs, strict=False))]
        outs = program.run(b, xs)
        edges = [(outs[j].node, _given, (g,)) for j, g in zip(seeded, given[count:], strict=True) if _on(outs[j], tape)]
        if not edges:
            return []
        passing = Pass(b, make(_OUTPUTS, (), tuple(edges), raw=False), 1.0, tape)
        nodes = {i: xs[i].node for i in wanted if passing.reaches(xs[i].node)}
        passing.run(nodes.values())
        found = {i: passing.cotangents.get(node) for i, node in nodes.items()}
        reached[:] = [i for i, g in found.items() if g is not None]
        return [_cast(b, found[i], program.inputs[i].dtype) for i in reached]

    made = recorded(program.base, "reverse", examples, f, program.compiler)
    return made, tuple(reached)


def _forward(b: Any, program: Program, tape: Tape, values: Sequence[Any]) -> tuple[Any, ...]:
    """One call of the program of values and tangents."""
    xs, ts = zip(*[split(p, tape) for p in values], strict=True)
    moving = tuple(i for i, t in enumerate(ts) if t is not None)
    given = [*xs, *(ts[i] for i in moving)]
    pushforward, moved = program.derive(("forward", moving), lambda: _pushforward(program, moving, given))
    outs = invoke(b, pushforward, given)
    tangents = dict(zip(moved, outs[len(program.outputs) :], strict=True))
    return tuple(dual(tape, out, tangents[j]) if j in tangents else out for j, out in enumerate(outs[: len(program.outputs)]))


def _pushforward(program: Program, moving: tuple[int, ...], examples: Sequence[Any]) -> tuple[Program, tuple[int, ...]]:
    """The program from all inputs and the tangents of those ``moving`` to the outputs, and the tangents of those that have one; and which
    these are."""
    b, count = program.base.dressed, len(program.inputs)
    moved: list[int] = []

    def f(given: list[Any]) -> list[Any]:
        tape = Tape("forward", 0, records=False)
        tangents = dict(zip(moving, given[count:], strict=True))
        outs = program.run(b, [dual(tape, p, tangents[i]) if i in tangents else p for i, p in enumerate(given[:count])])
        pairs = [split(out, tape) for out in outs]
        moved[:] = [j for j, (_, t) in enumerate(pairs) if t is not None]
        return [*(out for out, _ in pairs), *(pairs[j][1] for j in moved)]

    made = recorded(program.base, "forward", examples, f, program.compiler)
    return made, tuple(moved)


def _taylor(b: Any, program: Program, tape: Tape, values: Sequence[Any]) -> tuple[Any, ...]:
    """One call of the program of coefficients."""
    order = next(p.order for p in values if isinstance(p, Series) and p.tape is tape)
    found = [coefficients(p, tape) for p in values]
    have = tuple(tuple(k for k, term in enumerate(terms) if k and term is not None) for terms in found)
    given = [*(terms[0] for terms in found), *(terms[k] for terms, ks in zip(found, have, strict=True) for k in ks)]
    expansion, kept = program.derive(("taylor", order, have), lambda: _expansion(program, order, have, given))
    outs = iter(invoke(b, expansion, given))
    return tuple(_series(tape, next(outs), ks, outs, order) for ks in kept)


def _expansion(
    program: Program, order: int, have: Sequence[tuple[int, ...]], examples: Sequence[Any]
) -> tuple[Program, tuple[tuple[int, ...], ...]]:
    """The program from all inputs and those of their coefficients that they ``have`` to the outputs, each followed by its coefficients;
    and which of these there are."""
    b, count = program.base.dressed, len(program.inputs)
    kept: list[tuple[int, ...]] = []

    def f(given: list[Any]) -> list[Any]:
        tape = Tape("taylor", 0, records=False)
        rest = iter(given[count:])
        outs = program.run(b, [_series(tape, p, ks, rest, order) for p, ks in zip(given, have, strict=False)])
        found = [coefficients(out, tape) for out in outs]
        kept[:] = [tuple(k for k, term in enumerate(terms) if k and term is not None) for terms in found]
        return [terms[k] for terms, ks in zip(found, kept, strict=True) for k in (0, *ks)]

    made = recorded(program.base, "taylor", examples, f, program.compiler)
    return made, tuple(kept)


def _series(tape: Tape, value: Any, ks: tuple[int, ...], terms: Iterator[Any], order: int) -> Any:
    """``value`` with the coefficients ``ks``, which are the next of ``terms``."""
    given = {k: next(terms) for k in ks}
    return series(tape, value, [given.get(k) for k in range(1, max(ks) + 1)], order) if ks else value


def _batched(b: Any, program: Program, tape: Tape, values: Sequence[Any]) -> tuple[Any, ...]:
    """One call of the program of all samples at once."""
    n = next(p.size for p in values if isinstance(p, Batch) and p.tape is tape)
    here = tuple(isinstance(p, Batch) and p.tape is tape for p in values)
    if any(p.size != n for p, mine in zip(values, here, strict=True) if mine):
        return program.run(b, values)  # which says where they meet
    given = [p.value if mine else p for p, mine in zip(values, here, strict=True)]
    together, kept = program.derive(("batched", n, here), lambda: _together(program, n, here, given))
    outs = invoke(b, together, given)
    return tuple(batched(tape, out, n) if mine else out for out, mine in zip(outs, kept, strict=True))


def _together(program: Program, n: int, here: Sequence[bool], examples: Sequence[Any]) -> tuple[Program, tuple[bool, ...]]:
    """The program for ``n`` samples of the inputs that are ``here``, along an axis in front; and which outputs have it."""
    kept: list[bool] = []

    def f(given: list[Any]) -> list[Any]:
        tape = Tape("batched", 0, records=False)
        outs = program.run(program.base.dressed, [batched(tape, p, n) if mine else p for p, mine in zip(given, here, strict=True)])
        kept[:] = [isinstance(out, Batch) and out.tape is tape for out in outs]
        return [out.value if mine else out for out, mine in zip(outs, kept, strict=True)]

    made = recorded(program.base, "batched", examples, f, program.compiler)
    return made, tuple(kept)


_RULES: dict[type[Coat], Callable[[Any, Program, Tape, Sequence[Any]], tuple[Any, ...]]] = {
    Tracked: _reverse,
    Dual: _forward,
    Series: _taylor,
    Batch: _batched,
}
"""By the kind of the youngest coat, ``(b, program, its tape, values)``."""

_OUTPUTS = Op("outputs", SPECIAL, ("xs",), (), (), (None,), None, False, Samples(()))
"""What joins the outputs of a program under one root."""


def _given(b: Any, g: Any, cotangent: Any) -> Any:
    return cotangent


def _on(p: Any, tape: Tape) -> bool:
    return isinstance(p, Tracked) and p.tape is tape


def _cast(b: Any, g: Any, dtype: Any) -> Any:
    return g if b.dtype(g) == dtype else b.cast(g, dtype)
