"""Sums of matrix products with an operand in common: one product of a sum. Equal to rounding.

    add(product(v0, w), product(v1, w))     ->     product(add(v0, v1), w)
    sub(matmul(w, v0), matmul(w, v1))       ->     matmul(w, sub(v0, v1))

Only where nobody else reads the products. What is finite stays finite, unless something overflows; what is NaN or infinite stays not
finite, but one may become the other. Products of numbers are factored where like terms are collected.
"""

from typing import Any

from nestgrad.compiled.passes.rewriting import Code, Rules, Walk, only
from nestgrad.compiled.passes.sharing import key
from nestgrad.levels.traced.program import Instruction

FACTORING = Rules()
_PRODUCTS = ("matmul", "product", "vecmat")


def factored(code: Code) -> Code:
    """The code with fewer products."""
    return Walk(code, FACTORING, key, counted=True).run()


@FACTORING.on("add", "sub")
def common_operand(w: Walk, step: Instruction) -> Any:
    """``x y + z y``, or ``x y + x z``."""
    one, other = (only(w, a, *_PRODUCTS) for a in step.operands)
    if not one or not other or one is other or one.op is not other.op or one.params != other.params or not w.plain(step):
        return None
    for i in (0, 1):
        x, z = one.operands[i], other.operands[i]
        if one.operands[1 - i] is other.operands[1 - i] and x.shape == z.shape:
            total = w.emit(step.op.name, (x, z), (), x)
            return w.instead(step, one.op.name, (total, one.operands[1]) if i == 0 else (one.operands[0], total), one.params)
    return None
