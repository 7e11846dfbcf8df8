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

from collections.abc import Callable, Sequence
from functools import cache
from math import isfinite, prod
from typing import Any

from nestgrad.compiled.passes import ranges
from nestgrad.compiled.passes.polynomials import ATOMS, BITS, EXPONENT, HIGH, ONES, Polynomial, Writer, content, factors, multiplied, plus
from nestgrad.compiled.passes.ranges import Range
from nestgrad.compiled.passes.rewriting import Code, Walk, number, swept
from nestgrad.compiled.passes.sharing import key
from nestgrad.compiled.passes.units import UNITS
from nestgrad.levels.traced.program import Instruction, Variable
from nestgrad.ops.table import TABLE, Kind

_TERMS = 200
"""The most terms of a polynomial."""

_FACTORS = 6
"""The most factors of a product that is there, and is taken apart again."""

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

_NUMBERS = ("float16", "bfloat16", "float32", "float64")
"""Dtypes of which a coefficient, a Python float, has all digits."""


def collected(code: Code) -> Code:
    """The code with like terms collected, if that makes it cheaper."""
    if sum(step.op in _ARITHMETIC for step in code.steps) < _FEW:
        return code
    before = _cost(code)
    collecting = Collecting(code, deep=False)
    found = collecting.run()
    if collecting.several:
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
        deep: Whether to expand products of sums, too. ``several`` tells how many there were.
    """

    def __init__(self, code: Code, deep: bool) -> None:
        self.code = code
        self.deep = deep
        self.several = 0
        self.terms = _TERMS if deep else _TERMS // 4
        self.walk = Walk(code, UNITS, key)
        self.polynomials: dict[Variable, Polynomial] = {}
        self.atoms: list[Variable] = []
        self.ranges: list[Range] = []
        self.exact = 0  # the bits of atoms that are inputs, constants, or sums of such
        self.numbers: dict[Variable, int] = {}
        self.given = set(code.inputs) | set(code.constants)
        self.infinite: set[Any] = set()  # values that may be infinite though what they are made of is not
        self.wild = 0  # the bits of the atoms that may be
        self.twice: dict[int, int] = {}
        self.rows: dict[Any, Variable] = {}  # products of a uniform column and a row
        self.shape: tuple[int, ...] = ()  # of the answer that is being expanded
        self.functions: dict[Variable, Instruction] = {}
        self.writer = Writer(lambda k: self.atoms[k], lambda v: prod(v.shape), self.op)

    def run(self) -> Code | None:
        """The code, rewritten; ``None`` if it gets longer, or takes too much time."""
        work = _WORK * (_TERMS + len(self.code.steps))
        for i, step in enumerate(self.code.steps):
            p = self.expanded(step) if self.known(step) else None
            if p is None or len(p) > self.terms or not any(p):
                self.left(step)
            else:
                self.polynomials[step.out] = p
                work -= len(p)
            if work < 0 or len(self.walk.steps) > _TERMS // 2 + i * (0.5 if self.deep else 1.25):
                return None
        outputs = [self.value(v) for v in self.code.outputs]
        return swept(Code(self.code.base, self.code.inputs, self.code.constants, self.walk.steps, outputs))

    def known(self, step: Instruction) -> bool:
        """Whether an instruction is arithmetic on numbers and arrays of one shape, and these have no more digits than a coefficient."""
        shape = step.out.shape
        return (
            step.op in _ARITHMETIC
            and _digits(step.out.dtype)
            and self.walk.plain(step)
            and len(self.atoms) < ATOMS
            and all(number(a) or a.shape in (shape, shape[:-1] + (1,)) or self.walk.uniform(a) is not None for a in step.operands)
        )

    def expanded(self, step: Instruction) -> Polynomial | None:
        """The answer of an instruction as a polynomial; ``None`` if it is to be left as it is."""
        if not all(isfinite(c) for c in step.params):
            return None
        self.shape = step.out.shape
        return _ARITHMETIC[step.op](self, *step.operands, *step.params)

    def left(self, step: Instruction) -> None:
        """Keep an instruction, on values. What scales an operand, and what the op is linear in, scales its result instead."""
        if step.op in _PRODUCTS and (p := self.outer(step)):
            self.polynomials[step.out] = p
            return
        found = {i: p for i, a in enumerate(step.operands) if (p := self.named(a)) is not None and self.linear(step, i)}
        monomial = self.moved(step, found) if step.op in _PRODUCTS else 0
        operands, c = [], 1.0
        for i, a in enumerate(step.operands):
            if i not in found:
                operands.append(self.value(a))
                continue
            d, v = self.writer.write(found[i])
            if not d or v is None or v.shape != a.shape:
                operands.append(self.full(found[i], a))
            else:
                operands.append(v)
                c *= d
        out = self.walk.place(Instruction(step.op, tuple(operands), step.params, step.out))
        if out is not step.out:
            self.walk.new[step.out] = out
        if step.op not in _FINITE or any(a in self.infinite for a in operands):
            self.infinite.add(out)
        if step.op in _PRODUCTS and self.walk.uniform(step.operands[0]):
            self.rows.setdefault((step.operands[1], step.params, out.shape), out)
        if c != 1.0 or monomial:
            self.polynomials[step.out] = {self.atom(out) + monomial: c}
        elif len(operands) == 1 and not step.params and step.operands[0].shape == out.shape:
            self.functions.setdefault(out, step)

    def outer(self, step: Instruction) -> Polynomial | None:
        """A column times a row, of which the product with a column that is one number everywhere is there already."""
        x, y = step.operands
        row = self.rows.get((y, step.params, step.out.shape))
        if row is None or x.shape != step.out.shape[:-1] + (1,) or self.walk.uniform(x) or not any(self.polynomial(x)):
            return None
        number = self.walk.uniform(self.walk.made[row].operands[0])
        c, m = self.whole(self.polynomial(x))
        return {m + self.atom(row): c / number}

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
                found[j] = {m + columns: c for m, c in self.polynomial(step.operands[j]).items()}
        return 0

    def taken(self, found: dict[int, Polynomial], i: int, a: Variable) -> int:
        """Take the columns that all terms of an operand have in common out of it."""
        columns = 0
        if a.shape[-1] != 1:
            for k, e in factors(content(found[i])[1]):
                if self.atoms[k].shape == a.shape[:-1] + (1,):
                    columns += e << BITS * k
            rest = {m - columns: c for m, c in found[i].items()}
            if columns and any(rest):
                found[i] = rest
                return columns
        return 0

    def linear(self, step: Instruction, i: int) -> bool:
        """Whether an op is linear in an operand that is no smaller than the result."""
        op, a = step.op, step.operands[i]
        if op.kind is not Kind.BILINEAR and (op.kind is not Kind.LINEAR or sum(rule is not None for rule in op.rules) > 1 or op.variadic):
            return False
        followed = op.variadic or op.rules[i] is not None
        return followed and prod(step.out.shape) <= prod(a.shape) and len(self.atoms) < ATOMS and self.walk.plain(step)

    # between variables, values and polynomials

    def value(self, a: Any) -> Any:
        """What stands for an operand in the new code."""
        if a.__class__ is not Variable:
            return a
        p = self.named(a)
        return self.walk.new.get(a, a) if p is None else self.full(p, a)

    def named(self, a: Any) -> Polynomial | None:
        """The polynomial of an operand that is to be written: what is there is not expanded again."""
        p = self.polynomials.get(a)
        if p is None or len(self.atoms) >= ATOMS:
            return p
        if len(p) > 1:
            p = self.polynomials[a] = self.single(p)
        if len(factors(next(iter(p)))) > _FACTORS:
            c, m = self.whole(p)
            p = self.polynomials[a] = {m: c}
        return p

    def full(self, p: Polynomial, like: Variable) -> Any:
        """A polynomial written, in the shape of ``like``."""
        v = self.writer.scaled(*self.writer.write(p))
        return v if v.shape == like.shape else self.walk.emit("broadcast_to", (v,), (like.shape,), like)

    def polynomial(self, a: Any) -> Polynomial:
        """An operand as a polynomial."""
        c = self.walk.uniform(a)
        if c is not None:
            return {0: float(c)}
        found = self.polynomials.get(a)
        if found is None:
            m = self.atom(self.walk.new.get(a, a))
            found = {self.twice[m]: 0.5} if m in self.twice else {m: 1.0}
        return found

    def operand(self, a: Any) -> Polynomial:
        """An operand as a polynomial of the shape of the answer. A column, which is smaller, is one atom."""
        p = self.polynomial(a)
        if number(a) or a.shape == self.shape or not any(p):
            return p
        c, m = self.whole(p)
        return {m: c}

    def atom(self, v: Variable, known: Range | None = None) -> int:
        """The monomial of a value."""
        if v not in self.numbers:
            step = self.functions.get(v)
            inside = step and ranges.polynomial(self.polynomial(step.operands[0]), self.ranges)
            k = self.numbers[v] = len(self.atoms)
            self.atoms.append(v)
            if v in self.given:
                self.exact |= 1 << BITS * k
            found = known or (inside and step and ranges.function(step.op.name, inside, k)) or ranges.free(k)
            self.ranges.append(found)
            if v in self.infinite and not (isfinite(found.low) and isfinite(found.high)):
                self.wild |= EXPONENT << BITS * k
        return 1 << BITS * self.numbers[v]

    def part(self, p: Polynomial) -> int:
        """The monomial of what a polynomial is, written."""
        v = self.writer.write(p)[1]
        if v not in self.numbers and any(m & self.wild for m in p):
            self.infinite.add(v)
        return self.atom(v) if v in self.numbers else self.atom(v, ranges.polynomial(p, self.ranges))

    def op(self, name: str, *operands: Any, params: tuple[Any, ...] = ()) -> Any:
        """One more instruction."""
        return self.walk.each(name, operands, params, next(a for a in operands if a.__class__ is Variable))

    def single(self, p: Polynomial) -> Polynomial:
        """A polynomial of one term: of several terms, what they do not have in common is an atom."""
        if len(p) == 1:
            return p
        c, common, rest = content(p)
        return {common + self.part(rest): c}

    def whole(self, p: Polynomial) -> tuple[float, int]:
        """``(c, monomial)`` with a monomial of one atom, ``c`` times which is the polynomial."""
        ((m, c),) = self.single(p).items()
        return c, self.part({m: 1.0}) if len(factors(m)) > 1 else m

    # arithmetic

    def add(self, x: Any, y: Any, sign: float = 1.0) -> Polynomial | None:
        """A sum. That of inputs or constants alone is an atom."""
        p, q = self.operand(x), self.operand(y)
        if self.near(p) and self.near(q) and set(p) != set(q):
            v = self.op("add" if sign > 0 else "sub", *(self.writer.scaled(*self.writer.write(t)) for t in (p, q)))
            m = self.atom(v, ranges.polynomial(plus(p, q, sign), self.ranges))
            self.exact |= m
            return {m: 1.0}
        return plus(p, q, sign)

    def near(self, p: Polynomial) -> bool:
        """Whether a polynomial is a number or, but for its sign, an input, a constant, or a sum of such."""
        ((m, c),) = p.items() if len(p) == 1 else ((0, 0.0),)
        return len(p) == 1 and (m == 0 or (abs(c) == 1.0 and m & (m - 1) == 0 and m & self.exact != 0))

    def product(self, *ps: Polynomial, c: float = 1.0) -> Polynomial | None:
        """A product."""
        found = {0: c}
        for p in self.factors(ps) if any(len(p) > 1 for p in ps) and len(ps) > 1 else ps:
            found = multiplied(found, p)
            if any(m & HIGH for m in found):
                return None
        return found if any(found.values()) else None

    def factors(self, ps: Sequence[Polynomial]) -> list[Polynomial]:
        """The factors of a product as they are to be expanded: which of them as sums, and which as atoms."""
        kept = [p for p in ps if len(p) > 1 and not _low(p) and not any(self.wild & m for q in ps if q is not p for m in q)]
        if len(kept) > 1:
            self.several += 1
            if not self.deep or prod(map(len, kept)) > self.terms:
                kept = [max(kept, key=len)]
        return [p if any(p is q for q in kept) else self.single(p) for p in ps]

    def power(self, p: Polynomial, n: int) -> Polynomial | None:
        """A power with a whole exponent that is not 0, of an array. A sum is an atom."""
        if abs(n) > 16 or not any(p):
            return None
        if n > 0:
            ((m, c),) = self.single(p).items()
            return None if m * n & HIGH else {m * n: c**n}
        c, m = self.whole(p)
        ((k, _),) = factors(m)
        v = self.op("reciprocal", self.atoms[k])
        self.infinite.add(v)
        found = self.atom(v) if v in self.numbers else self.atom(v, ranges.function("reciprocal", self.ranges[k], len(self.atoms)))
        return {found * -n: c**n}

    def guarded(self, guards: int, *ps: Polynomial | None, c: float = 1.0) -> Polynomial | None:
        """A product that is 0 where one of the first few factors is 0, if no other factor can be infinite or NaN there."""
        known = [p for p in ps if p is not None]
        if len(known) < len(ps):
            return None
        reasons = [ranges.reasons(p, self.ranges) for p in known]
        for i in range(guards):
            if known[i] == {0: 0.0} or (any(known[i]) and any(bad & ~reasons[i][1] for j, (bad, _) in enumerate(reasons) if j != i)):
                return None
        return self.product(*known, c=c)

    def slope(self, y: Any) -> Polynomial | None:
        """``1 - y y``, as an atom."""
        p = self.polynomial(y)
        c, m = self.whole(p) if any(p) else (0.0, 0)
        c, m = next(((2 * c, single) for single, double in self.twice.items() if double == m), (c, m))
        if abs(c) != 1.0:
            return None
        ((k, _),) = factors(m)
        v = self.op("sub", 1.0, self.op("square", self.atoms[k]))
        if m not in self.twice:
            double = self.op("scale", self.atoms[k], params=(2.0,))
            self.twice[m] = self.atom(double, ranges.polynomial({m: 2.0}, self.ranges))
            if m & self.wild:
                self.wild |= EXPONENT * self.twice[m]
                self.infinite.add(v)
        return {self.atom(v) if v in self.numbers else self.atom(v, ranges.polynomial({0: 1.0, 2 * m: -1.0}, self.ranges)): 1.0}


def _product(w: Collecting, x: Any, y: Any) -> Polynomial | None:
    return w.power(w.operand(x), 2) if x is y else w.product(w.operand(x), w.operand(y))


def _scale(w: Collecting, x: Any, c: float) -> Polynomial | None:
    """Scaled. A number of many digits would give each term of a sum another one."""
    p, c = w.operand(x), float(c)
    return w.product(p if (c * 2**30).is_integer() else w.single(p), c=c)


def _tanh_vjp(w: Collecting, g: Any, y: Any) -> Polynomial | None:
    slope = w.slope(y)
    return slope and w.product(w.operand(g), slope)


def _mul_add(w: Collecting, x: Any, y: Any, z: Any) -> Polynomial | None:
    p = _product(w, x, y)
    return p and plus(p, w.operand(z))


def _power0(w: Collecting, x: Any, y: Any, n: int, c: float) -> Polynomial | None:
    if n == 0:
        return w.product(w.operand(x), c=c)
    return w.guarded(1, w.operand(x), w.power(w.operand(y), n), c=c)


def _quotient00(w: Collecting, x: Any, y: Any, z: Any) -> Polynomial | None:
    return w.guarded(2, w.operand(x), w.operand(y), w.power(w.operand(z), -1), c=-1.0)


def _div(w: Collecting, x: Any, y: Any) -> Polynomial | None:
    return w.guarded(0, w.operand(x), w.power(w.operand(y), -1))


_EXPANDED: dict[str, Callable[..., Polynomial | None]] = {
    "add": Collecting.add,
    "sub": lambda w, x, y: w.add(x, y, -1.0),
    "neg": lambda w, x: w.product(w.operand(x), c=-1.0),
    "scale": _scale,
    "mul": _product,
    "mul_add": _mul_add,
    "triple": lambda w, x, y, z, c: w.product(*map(w.operand, (x, y, z)), c=c),
    "square": lambda w, x: w.power(w.operand(x), 2),
    "powi": lambda w, x, n: w.power(w.operand(x), n) if n else None,
    "reciprocal": lambda w, x: w.power(w.operand(x), -1),
    "div": _div,
    "tanh_vjp": _tanh_vjp,
    "mul0": lambda w, x, y: w.guarded(1, w.operand(x), w.operand(y)),
    "mul00": lambda w, x, y: w.guarded(2, w.operand(x), w.operand(y)),
    "div0": lambda w, x, y: w.guarded(1, w.operand(x), w.power(w.operand(y), -1)),
    "quotient00": _quotient00,
    "power0": _power0,
}
_FINITE = frozenset(op for op in TABLE.values() if op.kind in (Kind.LINEAR, Kind.BILINEAR) or op.name == "linear")
"""Ops that make nothing infinite of what is finite."""

_PRODUCTS = (TABLE["matmul"], TABLE["product"])
_ARITHMETIC = {TABLE[name]: rule for name, rule in _EXPANDED.items()}
"""By ops, from operands and parameters to polynomials."""


def _low(p: Polynomial) -> bool:
    """Whether two terms of a sum are plain values, or a plain value and a number, but for what all terms have in common."""
    return sum(not m or (m & (m - 1) == 0 and m & ONES != 0) for m in content(p)[2]) > 1


@cache
def _digits(dtype: Any) -> bool:
    return not isinstance(dtype, tuple) and str(dtype).removeprefix("torch.") in _NUMBERS
