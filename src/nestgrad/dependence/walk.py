"""Patterns through a program, op by op."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nestgrad.dependence import parts
from nestgrad.dependence.flows import Found, all_of, copied, each, lined, multiplied, scanned
from nestgrad.dependence.pattern import Pattern, identity
from nestgrad.errors import NestgradError
from nestgrad.levels.base import Coat
from nestgrad.levels.traced.program import FIXED, ITEM, Instruction, Program, Variable
from nestgrad.ops.shapes import NUMBERS
from nestgrad.ops.table import Kind, Op

_WAYS = (each, multiplied, scanned, copied)
"""What is tried first: each gives the patterns of the results, or ``None`` where it does not apply."""


def jacobian_pattern(program: Program, wanted: Collection[int], limit: int | None = None) -> list[Pattern | None]:
    """Which entries of each output depend on which entries of the inputs ``wanted``, all end to end; ``None``: none on any.

    Args:
        program: From ``trace``.
        wanted: Numbers of inputs, in their order.
        limit: How many entries a pattern may have on the way.

    Raises:
        TooDense: If one has more.
    """
    sizes = [_size(program.inputs[i]) for i in wanted]
    starts = dict(zip(wanted, (sum(sizes[:k]) for k in range(len(sizes))), strict=True))
    n = sum(sizes)
    patterns = [identity(_size(v), n, starts[i], limit) if i in starts else None for i, v in enumerate(program.inputs)]
    return Walk(program.base).run(program, patterns, [None] * len(patterns))


@dataclass(frozen=True, slots=True)
class Walk:
    """The way through a program.

    Attributes:
        base: The base backend, on which maps with known coefficients run.
        busy: The ops of which this program is a part: they are not taken apart again.
    """

    base: Any
    busy: frozenset[Op] = frozenset()

    def run(self, program: Program, given: Sequence[Pattern | None], known: Sequence[Any]) -> list[Pattern | None]:
        """The patterns of the outputs.

        Args:
            program: A program.
            given: The pattern of each input.
            known: The value of each input, or ``None`` where it may be any.
        """
        patterns: dict[int, Any] = {v.number: p for v, p in zip(program.inputs, given, strict=True) if p is not None}
        values: dict[int, Any] = {v.number: x for v, x in zip(program.inputs, known, strict=True) if x is not None}
        values |= {v.number: x for v, x in program.constants if not isinstance(x, Coat)}
        for step in program.instructions:
            place = step.out.number
            moving = _moving(step, patterns)
            found = self._step(step, moving, [_value(a, values) for a in step.operands]) if moving else None
            if found is not None:
                patterns[place] = found
            elif all(a.__class__ in NUMBERS or a.number in values for a in step.operands):
                values[place] = step.run(self.base, [_value(a, values) for a in step.operands])
            for number in step.last:
                patterns.pop(number, None)
                values.pop(number, None)
        return [patterns.get(v.number) for v in program.outputs]

    def _step(self, step: Instruction, moving: dict[int, Any], known: Sequence[Any]) -> Any:
        """The pattern of the answer; of several results a tuple of them."""
        if step.op is ITEM:
            return moving[0][step.params[0]]
        if step.op is FIXED:
            return None
        found = next((p for way in _WAYS if (p := way(self.base, step, moving, known)) is not None), None)
        if found is None:
            found = self._taken_apart(step, moving, known)
        if found is None:
            found = lined(self.base, step, moving, known)
        if found is None:
            found = all_of(self.base, step, moving, known)
        found = [None if p is None or p.empty else p for p in found]
        if step.op.results:
            return tuple(None if name in step.op.fixed else p for name, p in zip(step.op.results, found, strict=True))
        return found[0]

    def _taken_apart(self, step: Instruction, moving: dict[int, Any], known: Sequence[Any]) -> Found:
        """By the ops of which it, or its tangent, is made."""
        if step.op in self.busy:
            return None
        inner = Walk(self.base, self.busy | {step.op})
        fixed: list[Pattern | None] = [None] * sum(a.__class__ not in NUMBERS for a in step.operands)
        arrays = [x for a, x in zip(step.operands, known, strict=True) if a.__class__ not in NUMBERS]
        numbers = [i for i, a in enumerate(step.operands) if a.__class__ not in NUMBERS]
        if step.op.kind is not Kind.SPECIAL or step.op.fixed:  # a tangent would ask for positions, which are not known
            made = _tried(lambda: parts.function(self.base, step, known))
            if made is not None:
                return inner.run(made, [moving.get(i) for i in numbers], arrays)
        made = _tried(lambda: parts.tangent(self.base, step, known, tuple(moving))) if step.op.kind is Kind.SPECIAL else None
        return None if made is None else inner.run(made, [*fixed, *moving.values()], [*arrays, *[None] * len(moving)])


def _tried(make: Callable[[], Program | None]) -> Program | None:
    """A program; ``None`` where examples cannot be run on, or numbers would have to be known."""
    try:
        return make()
    except NestgradError:
        return None


def _moving(step: Instruction, patterns: dict[int, Any]) -> dict[int, Any]:
    """The patterns of those operands that have one, and by which the op has a derivative."""
    op = step.op
    rules: Iterable[Any] = [True] * len(step.operands) if op.kind is Kind.COMPOSITE else op.rules
    if op.variadic and op.kind is not Kind.COMPOSITE:
        rules = op.rules * len(step.operands)
    found = {}
    for i, (a, rule) in enumerate(zip(step.operands, rules, strict=False)):
        if rule is not None and isinstance(a, Variable) and patterns.get(a.number) is not None:
            found[i] = patterns[a.number]
    return found


def _value(operand: Any, values: dict[int, Any]) -> Any:
    return operand if operand.__class__ in NUMBERS else values.get(operand.number)


def _size(variable: Variable) -> int:
    total = 1
    for n in variable.shape:
        total *= n
    return total
