"""What the outputs do not need is left out, and so is what means something on levels only. Bit-equal.

``stop`` keeps derivatives out, and ``item`` has two forms, of which one has no derivative: where arrays are raw, the first is its operand,
and the second the same as the other.
"""

from typing import Any

from nestgrad.compiled.passes.rewriting import Code, swept
from nestgrad.levels.traced.program import FIXED, ITEM, STOP, Instruction, Variable


def pruned(code: Code) -> Code:
    """The code without what it does not need on raw arrays."""
    new: dict[Variable, Any] = {}
    steps = []
    for step in code.steps:
        operands = step.operands
        if new:
            operands = tuple([new.get(a, a) if a.__class__ is Variable else a for a in operands])
        if step.op is STOP:
            new[step.out] = operands[0]
        elif step.op is FIXED:
            steps.append(Instruction(ITEM, operands, step.params, step.out))
        else:
            steps.append(step if operands == step.operands else Instruction(step.op, operands, step.params, step.out))
    return swept(Code(code.base, code.inputs, code.constants, steps, [new.get(v, v) for v in code.outputs]))
