"""An op as a program of simpler ones: by the rule for its tangent, as the function that a composite is, or by the default of backends."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from nestgrad.backends.base import REQUIRED
from nestgrad.backends.derived import Derived
from nestgrad.levels.base import Tape
from nestgrad.levels.forward import dual, split
from nestgrad.levels.traced.program import Instruction, Program, Variable
from nestgrad.levels.traced.recording import recorded
from nestgrad.ops.shapes import NUMBERS
from nestgrad.ops.table import TABLE, Kind


def tangent(base: Any, step: Instruction, known: Sequence[Any], moving: Sequence[int]) -> Program:
    """The program of an op's tangent. Its inputs are the operands that are no Python numbers, and tangents of those that are ``moving``.

    Args:
        base: The base backend.
        step: The op.
        known: For each operand its value, or ``None``, if it may have any.
        moving: Numbers of the operands by which the tangent is asked for.
    """
    examples = _examples(base, step, known)
    arrays = [x for x in examples if x.__class__ not in NUMBERS]

    def f(given: list[Any]) -> list[Any]:
        tape = Tape("forward", 0, records=False)
        xs, along = _operands(examples, given), dict(zip(moving, given[len(arrays) :], strict=True))
        out = base.dressed.run(step.op, [dual(tape, x, along[i]) if i in along else x for i, x in enumerate(xs)], step.params)
        return _results(base, step, tuple(split(v, tape)[1] for v in out) if step.op.results else split(out, tape)[1])

    return recorded(base, "dependence", [*arrays, *(examples[i] for i in moving)], f)


def function(base: Any, step: Instruction, known: Sequence[Any]) -> Program | None:
    """The program of an op that is a composite, or that backends have a default for; ``None`` if it is neither."""
    run = step.op.function
    if run is None and step.op.native is None:  # one of a user's own may have any name
        run = _by_default(step.op.name)
    if run is None:
        return None

    examples = _examples(base, step, known)

    def f(given: list[Any]) -> list[Any]:
        b = base.dressed if step.op.function is not None else _Parts(base)
        named = dict(zip(step.op.params, step.params, strict=True))
        return _results(base, step, run(b, *_operands(examples, given), **named))

    return recorded(base, "dependence", [x for x in examples if x.__class__ not in NUMBERS], f)


_POSITIONAL = tuple(name for name, op in TABLE.items() if op.kind is Kind.SPECIAL and None in op.rules)
"""Ops that take positions, which may be in coats: their defaults would look at them."""


class _Parts(Derived):
    """The defaults of backends over values in coats: all that is derived comes down to what is required."""

    def __init__(self, base: Any) -> None:
        self.base = base
        for name in (*REQUIRED, *_POSITIONAL):
            if name != "to_numpy":
                setattr(self, name, getattr(base.dressed, name))

    def to_numpy(self, x: Any) -> Any:
        """Refused for values in coats of a trace."""
        return self.base.to_numpy(self.base.dressed.read(x))

    def __getattr__(self, name: str) -> Any:  # what is no op: full, arange, index, ...
        return getattr(self.base, name)


@cache
def _by_default(name: str) -> Callable[..., Any] | None:
    found: Callable[..., Any] | None = None if name in REQUIRED else getattr(Derived, name, None)
    return found


def _examples(base: Any, step: Instruction, known: Sequence[Any]) -> list[Any]:
    """A value for each operand: its own, or one that any op takes."""
    return [_example(base, a) if value is None else value for a, value in zip(step.operands, known, strict=True)]


def _operands(examples: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """All operands: the next of those ``given``, where there is no Python number."""
    arrays = iter(given)
    return [x if x.__class__ in NUMBERS else next(arrays) for x in examples]


def _example(base: Any, operand: Any) -> Any:
    if operand.__class__ in NUMBERS:
        return operand
    assert isinstance(operand, Variable)
    if isinstance(operand.dtype, tuple):
        return tuple(base.full(shape, 0, dtype) for shape, dtype in zip(operand.shape, operand.dtype, strict=True))
    floating = base.is_floating(base.full((), 0, operand.dtype))
    return base.full(operand.shape, 0.5 if floating else 0, operand.dtype)


def _results(base: Any, step: Instruction, found: Any) -> list[Any]:
    """The results; zeros where there is none."""
    shapes, dtypes = step.out.shape, step.out.dtype
    if not step.op.results:
        found, shapes, dtypes = (found,), (shapes,), (dtypes,)
    return [base.full(s, 0, d) if v is None else v for v, s, d in zip(found, shapes, dtypes, strict=True)]
