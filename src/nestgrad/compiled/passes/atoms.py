"""The values of a code as atoms of polynomials: between variables, what is known of them, and what is written."""

from math import isfinite, prod
from typing import Any

from nestgrad.compiled.passes import ranges
from nestgrad.compiled.passes.polynomials import ATOMS, BITS, EXPONENT, Polynomial, Writer, content, factors, plain
from nestgrad.compiled.passes.ranges import Range
from nestgrad.compiled.passes.rewriting import MOST, Code, Walk, number
from nestgrad.compiled.passes.sharing import key
from nestgrad.compiled.passes.units import UNITS
from nestgrad.levels.base import Coat
from nestgrad.levels.traced.program import Instruction, Variable

_FACTORS = 6
"""The most factors of a product that is there, and is taken apart again."""


class Atoms:
    """Which polynomial each variable of a code is, and in what.

    Args:
        code: The code.
        deep: Whether products of sums are expanded. ``several`` tells how many there were.
        terms: The most terms of a polynomial.

    Attributes:
        walk: The new code.
        polynomials: Of variables of the old code.
        atoms: Values, by their numbers; and ``ranges`` of what is known of them.
        functions: Instructions of one operand, by their results.
        infinite: Values that may be infinite though what they are made of is not.
        exact, wild: The bits of atoms that are inputs, constants or sums of such; and of those that may be infinite.
        twice: For atoms that have a double, which it is.
        shape: Of the answer that is being expanded.
    """

    def __init__(self, code: Code, deep: bool, terms: int) -> None:
        self.walk = Walk(code, UNITS, key)
        self.deep, self.terms, self.several = deep, terms, 0
        self.polynomials: dict[Variable, Polynomial] = {}
        self.atoms: list[Variable] = []
        self.ranges: list[Range] = []
        self.functions: dict[Variable, Instruction] = {}
        self.infinite: set[Any] = set()
        self.exact = self.wild = 0
        self.twice: dict[int, int] = {}
        self.shape: tuple[int, ...] = ()
        self.writer = Writer(lambda k: self.atoms[k], lambda v: prod(v.shape), self.op)
        self._numbers: dict[Variable, int] = {}
        self._inputs = set(code.inputs)

    @property
    def full_up(self) -> bool:
        """Whether there are as many atoms as there may be."""
        return len(self.atoms) >= ATOMS

    def constant(self, a: Any) -> float | None:
        """The finite number that an operand is, or is full of."""
        c = self.walk.uniform(a)
        return float(c) if c is not None and isfinite(c) else None

    def value(self, a: Any) -> Any:
        """What stands for an operand in the new code."""
        if a.__class__ is not Variable:
            return a
        p = self.named(a)
        return self.walk.new.get(a, a) if p is None else self.full(p, a)

    def named(self, a: Any) -> Polynomial | None:
        """The polynomial of an operand that is to be written: what is there is not expanded again."""
        p = self.polynomials.get(a)
        if p is None or self.full_up:
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
        c = self.constant(a)
        if c is not None:
            return {0: c}
        found = self.polynomials.get(a)
        if found is None:
            v: Any = self.walk.new.get(a, a)
            m = self.atom(v)
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
        """The monomial of a value. What is known of it may be given; of a sum or a product it is."""
        if v not in self._numbers:
            step = self.functions.get(v)
            inside = step and ranges.polynomial(self.polynomial(step.operands[0]), self.ranges)
            k = self._numbers[v] = len(self.atoms)
            self.atoms.append(v)
            given = v in self._inputs or v in self.walk.code.constants
            if given:
                self.exact |= 1 << BITS * k
            found = known or (inside and step and ranges.function(step.op.name, inside, k)) or ranges.free(k, given)
            self.ranges.append(found)
            if (v in self.infinite and not (isfinite(found.low) and isfinite(found.high))) or not self._finite(v):
                self.wild |= EXPONENT << BITS * k
        return 1 << BITS * self._numbers[v]

    def _finite(self, v: Variable) -> bool:
        """Whether a value, if it is a constant, is finite everywhere."""
        array, base = self.walk.code.constants.get(v), self.walk.base
        if array is None:
            return True
        return not isinstance(array, Coat) and prod(v.shape) <= MOST and bool(base.to_numpy(base.isfinite(array)).all())

    def part(self, p: Polynomial) -> int:
        """The monomial of what a polynomial is, written."""
        v = self.writer.write(p)[1]
        if any(m & self.wild for m in p):
            self.infinite.add(v)
        return self.atom(v, ranges.polynomial(p, self.ranges))

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
        return c, m if plain(m) or not m else self.part({m: 1.0})
