"""The witness of an optimised program: one number more, from which it shows whether all results are finite.

The optimiser rearranges arithmetic. What is finite then is equal to rounding, but a product in another order may overflow where the
function's own does not: ``x**2 * exp(-x**2)`` at 1e300 is 0, or infinity times 0. So a program with rearranged arithmetic also gives the
sum of its results; if that is not finite, what was traced is run, and its values count.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from nestgrad.levels.traced.program import Compiler, Function, Instruction, Program, Variable
from nestgrad.ops.table import TABLE


def witnessed(rearranged: Program, plain: Program, executor: Compiler) -> Function:
    """The function that runs one program, and another one where results are not finite.

    Args:
        rearranged: Equal to rounding where nothing overflows.
        plain: The same arithmetic as was traced.
        executor: Runs both. The second is not compiled until it is needed.
    """
    program = _with_witness(rearranged)
    if program is None:
        return executor(rearranged)
    base, fallback = rearranged.base, list[Function]()
    run = base.quietly(executor(program))  # what overflows here is no news: the other program tells

    def function(*values: Any) -> tuple[Any, ...]:
        outs: Sequence[Any] = run(*values)
        if isfinite(base.to_numpy(outs[-1])):
            return tuple(outs[:-1])
        if not fallback:
            fallback.append(executor(plain))
        return fallback[0](*values)

    return function


def _with_witness(program: Program) -> Program | None:
    """The program with the sum of all that it computes and returns as its last output; ``None`` if there is nothing to add up."""
    steps = list(program.instructions)
    made = {step.out for step in steps}
    outputs = [v for v in dict.fromkeys(program.outputs) if v in made and program.floating(v) and 0 not in v.shape]
    if not outputs:
        return None
    total: Variable | None = None
    for v in outputs:
        if v.shape:
            one = Variable(-1, (), v.dtype)
            steps.append(Instruction(TABLE["sum"], (v,), (tuple(range(len(v.shape))), False), one))
            v = one
        if total is None:
            total = v
        else:
            both = Variable(-1, (), total.dtype)
            steps.append(Instruction(TABLE["add"], (total, v), (), both))
            total = both
    assert total is not None
    return program.rewritten(steps, [*program.outputs, total])
