"""Groups of ops that the table has as one op, which a backend may serve with one kernel. On NumPy bit-equal, elsewhere to rounding.

    mul(v0, v0)                              ->  square(v0)
    add(mul(v0, v1), v2)                     ->  mul_add(v0, v1, v2)
    scale(mul(mul(v0, v1), v2), c)           ->  triple(v0, v1, v2, c)
    mul(v0, sub(1.0, square(v1)))            ->  tanh_vjp(v0, v1)
    add(matmul(v0, v1), v2)                  ->  linear(v0, v1, v2)          where v2 is a row

Only where nobody else reads what is in between.
"""

from typing import Any

from nestgrad.compiled.passes.rewriting import Code, Rules, Walk, number, only
from nestgrad.compiled.passes.sharing import key
from nestgrad.levels.traced.program import Instruction

FUSING = Rules()


def fused(code: Code) -> Code:
    """The code with groups as one op."""
    return Walk(code, FUSING, key, counted=True).run()


@FUSING.on("mul")
def product_with_the_slope_of_tanh(w: Walk, step: Instruction) -> Any:
    """``g (1 - y y)``."""
    if not w.plain(step):
        return None
    for g, s in (step.operands, step.operands[::-1]):
        slope = only(w, s, "sub")
        if slope and slope.operands[0].__class__ is float and slope.operands[0] == 1.0:
            inside = only(w, slope.operands[1], "square")
            if inside:
                return w.instead(step, "tanh_vjp", (g, inside.operands[0]))
    return None


@FUSING.on("mul")
def product_with_itself(w: Walk, step: Instruction) -> Any:
    """``x x``."""
    x, y = step.operands
    return w.instead(step, "square", (x,)) if x is y and not number(x) else None


@FUSING.on("scale")
def product_of_three(w: Walk, step: Instruction) -> Any:
    """``c x y z``."""
    outer = only(w, step.operands[0], "mul")
    if not outer or any(number(a) for a in outer.operands):
        return None
    for pair, z in (outer.operands, outer.operands[::-1]):
        inner = only(w, pair, "mul")
        if inner and not any(number(a) for a in inner.operands):
            return w.instead(step, "triple", (*inner.operands, z), step.params)
    return None


@FUSING.on("add")
def sum_with_a_product(w: Walk, step: Instruction) -> Any:
    """``x y + z``, of numbers, or of matrices and a row."""
    if not w.plain(step):
        return None
    for p, z in (step.operands, step.operands[::-1]):
        if number(z):
            continue
        product = only(w, p, "mul")
        if product and not any(number(a) for a in product.operands):
            return w.instead(step, "mul_add", (*product.operands, z))
        product = only(w, p, "matmul", "product")
        if product and _layer(product) and z.shape == product.out.shape[-1:]:
            return w.instead(step, "linear", (*product.operands, z))
    return None


def _layer(product: Instruction) -> bool:
    """Whether a product is what ``linear`` makes: of rows, by one matrix as it stands, and not by one for each of a stack."""
    return not any(product.params) and len(product.operands[1].shape) == 2 and len(product.out.shape) > 1
