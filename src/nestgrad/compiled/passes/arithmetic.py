"""Arithmetic on polynomials: what each op of the table, from sums to guarded products, makes of its operands. ``w`` are the atoms."""

from collections.abc import Callable, Sequence
from math import inf, isfinite, prod
from typing import Any

from nestgrad.compiled.passes import ranges
from nestgrad.compiled.passes.atoms import Atoms
from nestgrad.compiled.passes.polynomials import EXPONENT, HIGH, Polynomial, content, factors, multiplied, plain, plus
from nestgrad.ops.table import TABLE


def _add(w: Atoms, x: Any, y: Any, sign: float = 1.0) -> Polynomial | None:
    """A sum. That of inputs or constants alone is an atom."""
    p, q = w.operand(x), w.operand(y)
    if _near(w, p) and _near(w, q) and set(p) != set(q):
        v = w.op("add" if sign > 0 else "sub", *(w.writer.scaled(*w.writer.write(t)) for t in (p, q)))
        m = w.atom(v, ranges.polynomial(plus(p, q, sign), w.ranges))
        w.exact |= m
        return {m: 1.0}
    return plus(p, q, sign)


def _near(w: Atoms, p: Polynomial) -> bool:
    """Whether a polynomial is a number or, but for its sign, an input, a constant, or a sum of such."""
    ((m, c),) = p.items() if len(p) == 1 else ((0, 0.0),)
    return len(p) == 1 and (m == 0 or (abs(c) == 1.0 and plain(m) and m & w.exact != 0))


def _product(w: Atoms, *ps: Polynomial, c: float = 1.0) -> Polynomial | None:
    """A product."""
    found = {0: c}
    for p in _factors(w, ps) if any(len(p) > 1 for p in ps) and len(ps) > 1 else ps:
        found = multiplied(found, p)
        if any(m & HIGH for m in found):
            return None
    return _finite(found)


def _factors(w: Atoms, ps: Sequence[Polynomial]) -> list[Polynomial]:
    """The factors of a product as they are to be expanded: which of them as sums, and which as atoms."""
    kept = [
        i for i, p in enumerate(ps) if len(p) > 1 and not _low(p) and not any(w.wild & m for j, q in enumerate(ps) if j != i for m in q)
    ]
    if len(kept) > 1:
        w.several += 1
        if not w.deep or prod(len(ps[i]) for i in kept) > w.terms:
            kept = [max(kept, key=lambda i: len(ps[i]))]
    return [p if i in kept else w.single(p) for i, p in enumerate(ps)]


def _power(w: Atoms, p: Polynomial, n: int) -> Polynomial | None:
    """A power with a whole exponent that is not 0, of an array. A sum is an atom."""
    if abs(n) > 16 or not any(p):
        return None
    if n > 0:
        ((m, c),) = w.single(p).items()
        return None if m * n & HIGH else _finite({m * n: _to(c, n)})
    c, m = w.whole(p)
    if not c:
        return None
    ((k, _),) = factors(m)
    v = w.op("reciprocal", w.atoms[k])
    w.infinite.add(v)
    return _finite({w.atom(v, ranges.function("reciprocal", w.ranges[k], len(w.atoms))) * -n: _to(c, n)})


def _to(c: float, n: int) -> float:
    """A power of a number."""
    try:
        return c**n
    except OverflowError:
        return inf


def _finite(p: Polynomial) -> Polynomial | None:
    """A polynomial, if its coefficients have not overflowed, nor all vanished."""
    return p if all(map(isfinite, p.values())) and any(p.values()) else None


def _guarded(w: Atoms, guards: int, *ps: Polynomial | None, c: float = 1.0) -> Polynomial | None:
    """A product that is 0 where one of the first few factors is 0, if no other factor can be infinite or NaN there."""
    known = [p for p in ps if p is not None]
    if len(known) < len(ps):
        return None
    reasons = [ranges.reasons(p, w.ranges) for p in known]
    for i in range(guards):
        if known[i] == {0: 0.0} or (any(known[i]) and any(bad & ~reasons[i][1] for j, (bad, _) in enumerate(reasons) if j != i)):
            return None
    return _product(w, *known, c=c)


def _slope(w: Atoms, y: Any) -> Polynomial | None:
    """``1 - y y``, as an atom."""
    p = w.polynomial(y)
    c, m = w.whole(p) if any(p) else (0.0, 0)
    c, m = next(((2 * c, single) for single, double in w.twice.items() if double == m), (c, m))
    if abs(c) != 1.0:
        return None
    ((k, _),) = factors(m)
    v = w.op("sub", 1.0, w.op("square", w.atoms[k]))
    if m not in w.twice:
        double = w.op("scale", w.atoms[k], params=(2.0,))
        w.twice[m] = w.atom(double, ranges.polynomial({m: 2.0}, w.ranges))
        if m & w.wild:
            w.wild |= EXPONENT * w.twice[m]
            w.infinite.add(v)
    return {w.atom(v, ranges.polynomial({0: 1.0, 2 * m: -1.0}, w.ranges)): 1.0}


def _low(p: Polynomial) -> bool:
    """Whether two terms of a sum are plain values, or a plain value and a number, but for what all terms have in common."""
    return sum(not m or plain(m) for m in content(p)[2]) > 1


def _mul(w: Atoms, x: Any, y: Any) -> Polynomial | None:
    return _power(w, w.operand(x), 2) if x is y else _product(w, w.operand(x), w.operand(y))


def _scale(w: Atoms, x: Any, c: float) -> Polynomial | None:
    """Scaled. A number of many digits would give each term of a sum another one."""
    p, c = w.operand(x), float(c)
    return _product(w, p if (c * 2**30).is_integer() else w.single(p), c=c)


def _tanh_vjp(w: Atoms, g: Any, y: Any) -> Polynomial | None:
    slope = _slope(w, y)
    return slope and _product(w, w.operand(g), slope)


def _mul_add(w: Atoms, x: Any, y: Any, z: Any) -> Polynomial | None:
    p = _mul(w, x, y)
    return p and plus(p, w.operand(z))


def _power0(w: Atoms, x: Any, y: Any, n: int, c: float) -> Polynomial | None:
    if n == 0:
        return _product(w, w.operand(x), c=c)
    return _guarded(w, 1, w.operand(x), _power(w, w.operand(y), n), c=c)


def _quotient00(w: Atoms, x: Any, y: Any, z: Any) -> Polynomial | None:
    return _guarded(w, 2, w.operand(x), w.operand(y), _power(w, w.operand(z), -1), c=-1.0)


def _div(w: Atoms, x: Any, y: Any) -> Polynomial | None:
    return _guarded(w, 0, w.operand(x), _power(w, w.operand(y), -1))


_EXPANDED: dict[str, Callable[..., Polynomial | None]] = {
    "add": _add,
    "sub": lambda w, x, y: _add(w, x, y, -1.0),
    "neg": lambda w, x: _product(w, w.operand(x), c=-1.0),
    "scale": _scale,
    "mul": _mul,
    "mul_add": _mul_add,
    "triple": lambda w, x, y, z, c: _product(w, *map(w.operand, (x, y, z)), c=c),
    "square": lambda w, x: _power(w, w.operand(x), 2),
    "powi": lambda w, x, n: _power(w, w.operand(x), n) if n else None,
    "reciprocal": lambda w, x: _power(w, w.operand(x), -1),
    "div": _div,
    "tanh_vjp": _tanh_vjp,
    "mul0": lambda w, x, y: _guarded(w, 1, w.operand(x), w.operand(y)),
    "mul00": lambda w, x, y: _guarded(w, 2, w.operand(x), w.operand(y)),
    "div0": lambda w, x, y: _guarded(w, 1, w.operand(x), _power(w, w.operand(y), -1)),
    "quotient00": _quotient00,
    "power0": _power0,
}
ARITHMETIC = {TABLE[name]: rule for name, rule in _EXPANDED.items()}
"""By ops, functions of the atoms, operands and parameters: the answer as a polynomial, or ``None`` if the op is to be left as it is."""
