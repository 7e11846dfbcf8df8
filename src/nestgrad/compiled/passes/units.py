"""Zeros, ones and signs: the algebra that changes no bit.

    mul(v0, ones)        ->  v0                        a constant that is full of one number is that number,
    mul(v0, twos)        ->  scale(v0, c=2.0)          and takes no memory to read
    mul0(ones, v0)       ->  v0
    neg(neg(v0))         ->  v0
    add(v0, neg(v1))     ->  sub(v0, v1)
    mul(v0, neg(v1))     ->  neg(mul(v0, v1))          signs go outwards, where sums and factors take them up
    scale(neg(v0), c)    ->  scale(v0, -c)

Not done, since values may change: ``0 * x -> 0`` and ``x - x -> 0``, which are NaN where ``x`` is not finite, and ``x + 0.0 -> x``, which
is 0.0 where ``x`` is -0.0, so that ``1 / (x + 0.0)`` would have another sign. ``x - 0.0`` and ``x + -0.0`` are ``x``, though.
"""

from math import copysign, isfinite
from typing import Any

from nestgrad.compiled.passes.rewriting import Rules, Walk, number
from nestgrad.levels.traced.program import Instruction

UNITS = Rules()


@UNITS.on("mul")
def product_with_a_number(w: Walk, step: Instruction) -> Any:
    """A factor that is one number everywhere is a parameter."""
    if not w.plain(step):
        return None
    x, y = step.operands
    for c, p in ((w.uniform(x), y), (w.uniform(y), x)):
        if c is not None and not number(p):
            if p.shape == step.out.shape:
                return w.instead(step, "scale", (p,), (float(c),))
            scaled = w.emit("scale", (p,), (float(c),), p)
            return w.instead(step, "broadcast_to", (scaled,), (step.out.shape,))
    return None


@UNITS.on("mul0")
def product_with_a_number_that_is_not_zero(w: Walk, step: Instruction) -> Any:
    """``mul0(c, y)`` for a number ``c`` that is not 0, and ``mul0(x, c)`` for a finite one, are products."""
    x, y = step.operands
    c, d = w.uniform(x), w.uniform(y)
    if w.plain(step) and (c or (d is not None and isfinite(d))):
        return w.instead(step, "mul", (x, y))
    return None


@UNITS.on("scale")
def scale(w: Walk, step: Instruction) -> Any:
    """By 1 and -1, and of what is scaled already by a sign or a power of 2."""
    (x,), (c,) = step.operands, step.params
    if not w.plain(step) or number(x):
        return None
    if c == 1.0:
        return x
    if c == -1.0:
        return w.instead(step, "neg", (x,))
    if inner := w.source(x, "neg"):
        return w.instead(step, "scale", inner.operands, (-c,))
    return None


@UNITS.on("neg")
def minus(w: Walk, step: Instruction) -> Any:
    """``-(-x)``, and a sign that a factor takes up."""
    if not w.plain(step):
        return None
    if inner := w.source(step.operands[0], "neg"):
        return inner.operands[0]
    if inner := w.source(step.operands[0], "scale"):
        return w.instead(step, "scale", inner.operands, (-inner.params[0],))
    if inner := w.source(step.operands[0], "triple"):
        return w.instead(step, "triple", inner.operands, (-inner.params[0],))
    return None


@UNITS.on("add")
def plus(w: Walk, step: Instruction) -> Any:
    """``x + (-y)``, and ``x + -0.0``."""
    x, y = step.operands
    if not w.plain(step):
        return None
    if _is(w, y, -0.0, x, step):
        return x
    if _is(w, x, -0.0, y, step):
        return y
    if inner := w.source(y, "neg"):
        return w.instead(step, "sub", (x, inner.operands[0]))
    if inner := w.source(x, "neg"):
        return w.instead(step, "sub", (y, inner.operands[0]))
    return None


@UNITS.on("sub")
def less(w: Walk, step: Instruction) -> Any:
    """``x - (-y)``, and ``x - 0.0``."""
    x, y = step.operands
    if not w.plain(step):
        return None
    if _is(w, y, 0.0, x, step):
        return x
    if inner := w.source(y, "neg"):
        return w.instead(step, "add", (x, inner.operands[0]))
    return None


def _is(w: Walk, v: Any, zero: float, other: Any, step: Instruction) -> bool:
    """Whether ``v`` is that zero everywhere, and ``other`` has the shape of the answer."""
    if number(other) or other.shape != step.out.shape:
        return False
    c = w.uniform(v)
    return c == 0 and copysign(1.0, c) == copysign(1.0, zero)


@UNITS.on("mul", "div", "mul0", "div0")
def signs_outwards(w: Walk, step: Instruction) -> Any:
    """The sign of a factor is the sign of the product, to the bit."""
    if not w.plain(step):
        return None
    x, y = step.operands
    one, other = w.source(x, "neg"), w.source(y, "neg")
    if not one and not other:
        return None
    inner = w.instead(step, step.op.name, (one.operands[0] if one else x, other.operands[0] if other else y))
    return inner if one and other else w.instead(step, "neg", (inner,))


@UNITS.on("triple")
def signs_of_three(w: Walk, step: Instruction) -> Any:
    """The same of ``c x y z``, where the number takes the sign up."""
    if not w.plain(step):
        return None
    sources = [w.source(a, "neg") for a in step.operands]
    if not any(sources):
        return None
    c = step.params[0]
    for s in sources:
        c = -c if s else c
    return w.instead(step, "triple", [s.operands[0] if s else a for s, a in zip(sources, step.operands, strict=True)], (c,))


@UNITS.on("tanh_vjp")
def sign_of_a_cotangent(w: Walk, step: Instruction) -> Any:
    """``g (1 - y y)`` has the sign of ``g``, and is the same for ``-y``."""
    if not w.plain(step):
        return None
    g, y = step.operands
    if inner := w.source(y, "neg"):
        return w.instead(step, "tanh_vjp", (g, inner.operands[0]))
    if inner := w.source(g, "neg"):
        return w.instead(step, "neg", (w.instead(step, "tanh_vjp", (inner.operands[0], y)),))
    return None
