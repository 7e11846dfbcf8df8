"""Constants: what depends on nothing else is computed once, when the program is compiled. Bit-equal.

A result bigger than what it is made of is left to the run, unless it is small: a constant takes memory for as long as the program lives.

    v1 = constant 2.0
    v2 = exp(v1)          ->     v2 = constant 7.38905609893065
    v3 = mul(v0, v2)             v3 = mul(v0, v2)
"""

from math import prod
from typing import Any

from nestgrad.compiled.passes.rewriting import Code, swept
from nestgrad.levels.base import Coat
from nestgrad.levels.explain import NATIVE
from nestgrad.levels.traced.program import Instruction, Variable
from nestgrad.ops.table import TABLE

_SMALL = 1 << 12
"""How many numbers a result may hold in any case."""


def folded(code: Code) -> Code:
    """The code, with what it computes of constants alone as constants."""
    found: dict[Any, Any] = {v: array for v, array in code.constants.items() if not isinstance(array, Coat)}
    if not found or not any(_constant(step, found) for step in code.steps):
        return code
    last = {a: k for k, step in enumerate(code.steps) for a in step.operands}
    wanted: set[Any] = set(code.outputs)
    late = []
    for k, step in enumerate(code.steps):
        if _constant(step, found):
            try:
                found[step.out] = step.run(code.base, [found[a] if a.__class__ is Variable else a for a in step.operands])
            except NATIVE:  # it raises when the program runs, as it did
                late.append(step)
                wanted.update(step.operands)
        else:
            late.append(step)
            wanted.update(step.operands)
        for a in step.operands:
            if last[a] == k and a not in wanted:
                found.pop(a, None)
    return swept(Code(code.base, code.inputs, code.constants | found, late, code.outputs))


def _constant(step: Instruction, found: dict[Any, Any]) -> bool:
    """Whether an instruction can be run on constants, and is worth it."""
    for a in step.operands:
        if a.__class__ is Variable and a not in found:
            return False
    variables = [a for a in step.operands if a.__class__ is Variable]
    if not variables or TABLE.get(step.op.name) is not step.op or step.op.results:
        return False
    most = max(_SMALL, *(prod(a.shape) for a in variables))
    return bool(prod(step.out.shape) <= most)
