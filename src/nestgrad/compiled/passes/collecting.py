"""Elementwise arithmetic as polynomials: like terms are collected, and what is left is written with few ops. Equal to rounding.

Nested derivatives are sums over paths. Most paths give a product that other paths give, too, in another order and in other brackets; no
local rule finds it. Here sums and products are expanded into polynomials, in the values of all other ops as atoms, and these written by
Horner's rule.

    (a + b) c + a c + b c     ->     scale(mul(add(a, b), c), c=2.0)

Expanding costs digits where a sum that is nearly 0 multiplies another that is nearly 0. So what is expanded is a product of a sum and of
something that is no sum: the terms of a sum are rounded, and cancel as much as they did. A sum of inputs or constants, which is nearly
exact, is an atom, and so is a sum that is squared, as a residual is. Products of different sums are expanded only if that leaves a quarter
of the program, as it does in derivatives of high order; and even then no sum of which two terms are plain values, as ``x - mean``.

Values: what is finite stays finite, unless something overflows or an input is infinite, and differs in rounding. So no sum is expanded by
what may be infinite, as a logarithm: where ``p - q`` multiplies it, ``p`` and ``q`` would give infinity minus infinity. What is NaN or
infinite stays so, but one may become the other, and what saturates makes a number of infinity. ``mul0`` and its like, which are 0 where a
factor is 0 whatever the other factor is, become products where the other factor cannot be infinite or NaN unless the first is, as
``exp(sin(x))`` cannot; elsewhere they stay.
"""

from functools import cache
from math import isfinite, prod
from typing import Any

from nestgrad.compiled.passes.arithmetic import ARITHMETIC
from nestgrad.compiled.passes.atoms import Atoms
from nestgrad.compiled.passes.polynomials import BITS, Polynomial, content, factors
from nestgrad.compiled.passes.rewriting import Code, swept
from nestgrad.levels.traced.program import Instruction, Variable
from nestgrad.ops.table import TABLE, Kind

_TERMS = 200
"""The most terms of a polynomial."""

_WORK = 30
"""The most terms that are expanded for each instruction."""

_FEW = 4
"""How much arithmetic there must be for this to pay."""

_DEEP = 4
"""How many times cheaper the code must get for products of sums to be expanded."""

_CALL = 4096
"""How many numbers are added in the time that it takes to call an op."""

_PASSES = {"triple": 3, "tanh_vjp": 3, "mul_add": 2, "mul0": 2, "mul00": 2, "div0": 2, "power0": 3, "quotient00": 3}
"""How often an op goes over the memory, if more than once."""

_NUMBERS = ("float32", "float64")
"""Dtypes that coefficients fit: they have the digits of a Python float at most, and do not overflow at a million."""


def collected(code: Code) -> Code:
    """The code with like terms collected, if that makes it cheaper."""
    if sum(step.op in ARITHMETIC for step in code.steps) < _FEW:
        return code
    before = _cost(code)
    collecting = Collecting(code, deep=False)
    found = collecting.run()
    if collecting.atoms.several:
        deeper = Collecting(code, deep=True).run()
        if deeper and _cost(deeper) * _DEEP <= before:
            return deeper
    return found if found and _cost(found) < before else code


def _cost(code: Code) -> int:
    """About how long the arithmetic of a code takes: by how often it goes over how much memory."""
    return sum(_PASSES.get(step.op.name, 1) * (_CALL + prod(step.out.shape)) for step in code.steps if not step.op.results)


class Collecting:
    """One walk that expands arithmetic into polynomials, and writes those that other ops read, or the outputs.

    Args:
        code: What to rewrite.
        deep: Whether to expand products of sums, too.
    """

    def __init__(self, code: Code, deep: bool) -> None:
        self.code = code
        self.deep = deep
        self.atoms = Atoms(code, deep, _TERMS if deep else _TERMS // 4)
        self.walk = self.atoms.walk
        self.rows: dict[Any, Variable] = {}  # products of a uniform column and a row

    def run(self) -> Code | None:
        """The code, rewritten; ``None`` if it gets longer, or takes too much time."""
        work = _WORK * (_TERMS + len(self.code.steps))
        for i, step in enumerate(self.code.steps):
            p = self.expanded(step) if self.known(step) else None
            if p is None or len(p) > self.atoms.terms or not any(p):
                self.left(step)
            else:
                self.atoms.polynomials[step.out] = p
                work -= len(p)
            if work < 0 or len(self.walk.steps) > _TERMS // 2 + i * (0.5 if self.deep else 1.25):
                return None
        outputs = [self.atoms.value(v) for v in self.code.outputs]
        return swept(Code(self.code.base, self.code.inputs, self.code.constants, self.walk.steps, outputs))

    def known(self, step: Instruction) -> bool:
        """Whether an instruction is arithmetic on finite numbers and on arrays that a coefficient fits, of one shape or columns of it."""
        if step.op not in ARITHMETIC or not _digits(step.out.dtype) or not self.walk.plain(step) or self.atoms.full_up:
            return False
        shape = step.out.shape
        shapes = (shape, (*shape[:-1], 1), ())
        for a in step.operands:
            if self.walk.uniform(a) is None:
                if a.shape not in shapes:
                    return False
            elif self.atoms.constant(a) is None:
                return False
        return True

    def expanded(self, step: Instruction) -> Polynomial | None:
        """The answer of an instruction as a polynomial; ``None`` if it is to be left as it is."""
        if not all(isfinite(c) for c in step.params):
            return None
        self.atoms.shape = step.out.shape
        return ARITHMETIC[step.op](self.atoms, *step.operands, *step.params)

    def left(self, step: Instruction) -> None:
        """Keep an instruction, on values. What scales an operand, and what the op is linear in, scales its result instead."""
        if step.op in _PRODUCTS and (p := self.outer(step)):
            self.atoms.polynomials[step.out] = p
            return
        found = {i: p for i, a in enumerate(step.operands) if (p := self.atoms.named(a)) is not None and self.linear(step, i)}
        monomial = self.moved(step, found) if step.op in _PRODUCTS else 0
        operands, c = [], 1.0
        for i, a in enumerate(step.operands):
            if i not in found:
                operands.append(self.atoms.value(a))
                continue
            d, v = self.atoms.writer.write(found[i])
            if not d or v is None or v.shape != a.shape:
                operands.append(self.atoms.full(found[i], a))
            else:
                operands.append(v)
                c *= d
        out = self.walk.place(Instruction(step.op, tuple(operands), step.params, step.out))
        if out is not step.out:
            self.walk.new[step.out] = out
        if step.op not in _FINITE or any(a in self.atoms.infinite for a in operands):
            self.atoms.infinite.add(out)
        if step.op in _PRODUCTS and self.atoms.constant(step.operands[0]):
            self.rows.setdefault((step.operands[1], step.params, out.shape), out)
        if c != 1.0 or monomial:
            self.atoms.polynomials[step.out] = {self.atoms.atom(out) + monomial: c}
        elif len(operands) == 1 and not step.params and step.operands[0].shape == out.shape:
            self.atoms.functions.setdefault(out, step)

    def outer(self, step: Instruction) -> Polynomial | None:
        """A column times a row, of which the product with a column that is one number everywhere is there already."""
        x, y = step.operands
        row = self.rows.get((y, step.params, step.out.shape))
        p = self.atoms.polynomial(x) if row is not None and x.shape == (*step.out.shape[:-1], 1) else {}
        number = self.atoms.constant(self.walk.made[row].operands[0]) if row is not None and any(p) else None
        if row is None or not number:
            return None
        c, m = self.atoms.whole(p)
        return {m + self.atoms.atom(row): c / number}

    def moved(self, step: Instruction, found: dict[int, Polynomial]) -> int:
        """Take columns out of the operands of a matrix product, or to where they cost less; the columns by which to multiply the answer.

        With a column ``d`` for the diagonal matrix of its entries, ``(d x) y = d (x y)`` and ``(d x)' y = x' (d y)``.
        """
        x, y = step.operands
        across = bool(step.params) and step.params[0]
        if not across:
            if 0 in found and step.out.shape[:-1] == x.shape[:-1]:
                return self.taken(found, 0, x)
        elif not step.params[1] and x.shape[:-1] == y.shape[:-1]:
            i, j = (1, 0) if x.shape[-1] == 1 else (0, 1)
            if i in found and self.linear(step, j) and (columns := self.taken(found, i, step.operands[i])):
                found[j] = {m + columns: c for m, c in self.atoms.polynomial(step.operands[j]).items()}
        return 0

    def taken(self, found: dict[int, Polynomial], i: int, a: Variable) -> int:
        """Take the columns that all terms of an operand have in common out of it."""
        columns = 0
        if a.shape[-1] != 1:
            for k, e in factors(content(found[i])[1]):
                if self.atoms.atoms[k].shape in ((*a.shape[:-1], 1), ()):
                    columns += e << BITS * k
            rest = {m - columns: c for m, c in found[i].items()}
            if columns and any(rest):
                found[i] = rest
                return columns
        return 0

    def linear(self, step: Instruction, i: int) -> bool:
        """Whether an op is linear in an operand that is no smaller than the result."""
        op, a = step.op, step.operands[i]
        if TABLE.get(op.name) is not op:
            return False
        if op.kind is not Kind.BILINEAR and (op.kind is not Kind.LINEAR or sum(rule is not None for rule in op.rules) > 1 or op.variadic):
            return False
        followed = op.variadic or op.rules[i] is not None
        return followed and prod(step.out.shape) <= prod(a.shape) and not self.atoms.full_up and self.walk.plain(step)


_FINITE = frozenset(op for op in TABLE.values() if op.kind in (Kind.LINEAR, Kind.BILINEAR) or op.name == "linear")
"""Ops that make nothing infinite of what is finite."""

_PRODUCTS = (TABLE["matmul"], TABLE["product"])


@cache
def _digits(dtype: Any) -> bool:
    return not isinstance(dtype, tuple) and str(dtype).removeprefix("torch.") in _NUMBERS
