"""Polynomials are written as they are, with few ops; and what is said of the range of a value holds."""

import math
from typing import Any

import numpy as np
import pytest

from nestgrad.compiled.passes import ranges
from nestgrad.compiled.passes.polynomials import BITS, Polynomial, Writer, content, factors, multiplied, plus


class Values:
    """Atoms as numbers, and the ops on them, counted."""

    def __init__(self, numbers: list[float]) -> None:
        self.numbers, self.count = numbers, 0
        self.writer = Writer(lambda k: self.numbers[k], lambda value: 1, self.op)

    def op(self, name: str, *operands: Any, params: tuple[Any, ...] = ()) -> Any:
        self.count += 1
        ops = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "neg": lambda x: -x,
               "square": lambda x: x * x, "scale": lambda x: x * params[0]}  # fmt: skip
        return ops[name](*operands)

    def of(self, p: Polynomial) -> float:
        return sum(c * math.prod(self.numbers[k] ** e for k, e in factors(m)) for m, c in p.items())

    def written(self, p: Polynomial) -> float:
        c, v = self.writer.write(p)
        return c if v is None else self.writer.scaled(c, v)


def random_polynomial(rng: Any, terms: int = 8, atoms: int = 4) -> Polynomial:
    """With whole coefficients, and now and then others."""
    exact = rng.random() < 0.7
    out: Polynomial = {}
    for _ in range(rng.integers(1, terms)):
        monomial = sum(int(e) << BITS * k for k, e in enumerate(rng.integers(0, 4, atoms)))
        out[monomial] = float(rng.integers(1, 9) * rng.choice([-1, 1])) if exact else float(rng.normal())
    return out


@pytest.mark.parametrize("seed", range(200))
def test_what_is_written_is_the_polynomial(seed: int):
    rng = np.random.default_rng(seed)
    values = Values(list(rng.uniform(-1.5, 1.5, 4)))
    p, q = random_polynomial(rng), random_polynomial(rng)
    for r in (p, q, plus(p, q), plus(p, q, -1.0), multiplied(p, q)):
        size = sum(abs(c) * math.prod(abs(values.numbers[k]) ** e for k, e in factors(m)) for m, c in r.items())
        assert abs(values.written(r) - values.of(r)) <= 1e-13 * max(size, 1.0)
    assert math.isclose(values.of(multiplied(p, q)), values.of(p) * values.of(q), rel_tol=1e-9, abs_tol=1e-9)
    c, common, rest = content(p)
    assert math.isclose(c * values.of({common: 1.0}) * values.of(rest), values.of(p), rel_tol=1e-12, abs_tol=1e-12)


def test_horners_rule_takes_few_ops():
    values = Values([0.7])
    values.written({k: float(k + 2) for k in range(10)})
    assert values.count <= 19  # a product and a sum for each degree


def test_a_common_part_is_written_once():
    values = Values([0.7, 1.1, 0.3])
    a, b, c = 1, 1 << BITS, 1 << 2 * BITS
    values.written({a: 1.0, b: 2.0})
    before = values.count
    values.written({a + c: -3.0, b + c: -6.0})
    assert values.count == before + 2  # by c, and by -3


def test_terms_that_cancel_leave_a_zero_for_an_atom_that_would_be_gone():
    a, b = 1, 1 << BITS
    assert plus({a + b: 1.0, a: 2.0}, {a + b: -1.0}) == {a: 2.0, a + b: 0.0}
    assert plus({a + b: 1.0, a: 2.0, b: 1.0}, {a + b: -1.0}) == {a: 2.0, b: 1.0}


FUNCTIONS = {
    "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "erf": math.erf, "atan": math.atan, "exp": math.exp, "sqrt": math.sqrt,
    "log": math.log, "reciprocal": lambda x: 1 / x, "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_stays_in_its_range(name: str):
    """Of polynomials in atoms that are bounded."""
    rng = np.random.default_rng(0)
    known = [ranges.Range(low, high, 0, 0, 0, 0) for low, high in ((-1.0, 1.0), (0.0, 2.0), (0.5, 3.0))]
    tried = 0
    for _ in range(300):
        p = plus(random_polynomial(rng, 4, 3), {0: float(rng.choice([0.0, 3.0, 40.0]))})
        inside = ranges.polynomial(p, known)
        found = ranges.function(name, inside, 3)
        assert found is not None
        for _ in range(5):
            values = Values([rng.uniform(r.low, r.high) for r in known])
            x = values.of(p)
            assert inside.low <= x <= inside.high
            try:
                y = FUNCTIONS[name](x)
            except (ValueError, ZeroDivisionError, OverflowError):
                assert found.bad, "not finite, and no reason is given"
                continue
            tried += 1
            assert found.low <= y <= found.high
    assert tried > 100


def test_reasons_go_from_atoms_to_what_is_made_of_them():
    x, y = ranges.free(0, given=True), ranges.free(1, given=True)
    nan, infinite = 1, 2
    square = ranges.polynomial({2: -1.0}, [x])
    assert square.high == 0.0 and square.nan == nan and square.bad == nan | infinite
    bell = ranges.function("exp", square, 1)
    assert bell is not None and (bell.low, bell.high) == (0.0, 1.0) and bell.bad == nan
    both = ranges.polynomial({1: 1.0, 1 << BITS: 1.0}, [x, y])
    assert both.nan == x.bad | y.bad  # infinity less infinity
    assert both.makes_nan == x.makes_nan | y.makes_nan
