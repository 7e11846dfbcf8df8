"""Ops that stand in a program for what its graph saw: answers that are known, and changes of variables; and programs without them.

They have the derivatives of the ops that they stand for, at the numbers that the graph kept. Once nothing is to be differentiated any more,
``unpinned`` puts these numbers in their place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from nestgrad.levels.traced.program import Instruction, Program, Variable
from nestgrad.ops.batching import aligned, repeated
from nestgrad.ops.samples import Samples
from nestgrad.ops.table import ARGUMENTS, ELEMENTWISE, TABLE, Kind, Op, Rule


@dataclass(frozen=True)
class Known:
    """What an op is of which the answer is known: it is the argument at a place, the last, after which come parameters."""

    place: int

    def __call__(self, b: Any) -> Callable[..., Any]:
        return lambda *given, **params: given[self.place]


def _each(op: Callable[[], Op], b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], *params: Any) -> Any:
    """An op of which the answer is known, on samples: what is known is known of each."""
    *arguments, known = aligned(b, xs, on)
    return op().of(b)(*arguments, known if on[-1] else repeated(b, known, n), *params)


GIVEN: Op = Op(
    "given", ELEMENTWISE, ("x", "y"), (), (), (Rule(lambda b, g: g, (), lambda b: 1.0), None), None, True, Samples(()),
    native=Known(1), batched=partial(_each, lambda: GIVEN),
)  # fmt: skip
"""``x``, of which the value is known."""

MOVED = Op(
    "moved", ELEMENTWISE, ("x", "y"), (), (), (None, Rule(lambda b, g: g, (), lambda b: 1.0)), None, True, Samples(()),
    native=lambda b: b.add,
)  # fmt: skip
"""``x + y``, as a function of ``y`` alone."""

CHANGE = Op(
    "change", ELEMENTWISE, ("x",), (), (), (Rule(lambda b, g: g, (), lambda b: 1.0),), None, False, Samples(()),
    native=lambda b: lambda x: b.base.full(tuple(b.shape(x)), 0.0, b.dtype(x)),
)  # fmt: skip
"""``x`` minus what it is: zero, with derivative one."""


@cache
def answered(op: Op) -> Op:
    """An elementwise op of which the answer is known: it is one more argument, the last."""
    return replace(
        op, arguments=(*ARGUMENTS, "known")[: len(op.arguments) + 1], rules=(*op.rules, None), broadcasts=True, series=None, by_parts=False,
        batched=partial(_each, lambda: answered(op)), native=Known(len(op.arguments)),
    )  # fmt: skip


def unpinned(program: Program) -> Program:
    """A program that no level runs over any more, with the known values in place of ops of which the answer is known.

    What is zero because a change is, is left out.
    """
    new: dict[Any, Any] = {}
    steps = []
    zeros: set[Any] = set()
    for step in program.instructions:
        operands = tuple([new.get(a, a) for a in step.operands])
        if isinstance(step.op.native, Known):
            new[step.out] = operands[-1]
        elif step.op is CHANGE or _vanishes(step.op, operands, zeros):
            zeros.add(step.out)
        elif (same := _same(step, operands, zeros)) is not None:
            new[step.out] = same
        else:
            steps.append(Instruction(TABLE["add"] if step.op is MOVED else step.op, operands, step.params, step.out))
    made = [(v, program.base.full(tuple(v.shape), 0.0, v.dtype)) for v in zeros]
    return program.rewritten(steps, [new.get(v, v) for v in program.outputs], [*program.constants, *made])


def _vanishes(op: Op, operands: Sequence[Any], zeros: set[Any]) -> bool:
    """Whether an op is zero since operands are."""
    if not zeros or op.kind not in (Kind.LINEAR, Kind.BILINEAR):
        return False
    rules = op.rules * len(operands) if op.variadic else op.rules
    found = [x in zeros for x, rule in zip(operands, rules, strict=False) if rule is not None]
    return any(found) if op.kind is Kind.BILINEAR else all(found)


def _same(step: Instruction, operands: Sequence[Any], zeros: set[Any]) -> Any:
    """What a sum is, where zero is added to it; ``None`` where none is."""
    if zeros and step.op is TABLE["add"]:
        for x, y in (operands, operands[::-1]):
            if y in zeros and isinstance(x, Variable) and x.shape == step.out.shape and x.dtype == step.out.dtype:
                return x
    return None
