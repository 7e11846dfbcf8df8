"""Elementwise ops: arithmetic, powers, exponentials, circular and hyperbolic functions.

Where a partial derivative can be infinite or NaN at a finite point, the rule multiplies with ``mul0`` or divides with ``div0``, which
are 0 where the cotangent is 0. That is what keeps the NaN of a branch that ``where`` did not take out of the gradient. For this to hold
at every order, nothing infinite is multiplied by anything else either: the rule of the product would have no ``mul0``.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

from nestgrad.ops import lanes
from nestgrad.ops.samples import INFINITE, POSITIVE, REAL, UNIT, Sample, binary, calls, filled, unary
from nestgrad.ops.table import BILINEAR, ELEMENTWISE, LINEAR, define


def _sum(b: Any, shares: Iterable[Any]) -> Any:
    """The sum of some coefficients; ``None`` of none."""
    total = None
    for share in shares:
        total = share if total is None else b.add(total, share)
    return total


def _products(b: Any, pairs: Iterable[tuple[Any, Any]]) -> Any:
    """The sum of some products; ``None`` of none."""
    total = None
    for p, q in pairs:
        if p is not None and q is not None:
            total = b.mul(p, q) if total is None else b.mul_add(p, q, total)
    return total


def _product_series(b: Any, k: int, x: Any, y: Any, top: Callable[[Any, Any], Any]) -> Any:
    """Cauchy's product, with ``top`` for the term of the highest coefficient of ``x``, and 0 where either is 0 in the others."""
    pairs = [(j, x[j], y[k - j]) for j in range(k + 1)]
    return _sum(b, (top(p, q) if j == k else b.mul00(p, q) for j, p, q in pairs if p is not None and q is not None))


def _square_series(b: Any, k: int, x: Any, out: Any) -> Any:
    """Cauchy's product with itself: each pair once."""
    twice = _products(b, [(x[j], x[k - j]) for j in range((k + 1) // 2)])
    middle = [b.square(x[k // 2])] if k % 2 == 0 and x[k // 2] is not None else []
    return _sum(b, [*([] if twice is None else [b.scale(twice, 2.0)]), *middle])


def _quotient_series(b: Any, k: int, x: Any, y: Any, out: Any) -> Any:
    """``x = out y``, solved for the highest coefficient of ``out``."""
    pairs = [(out[j], y[k - j]) for j in range(k)]
    known = _sum(b, (b.mul00(p, q) for p, q in pairs if p is not None and q is not None))
    rest = x[k] if known is None else b.neg(known) if x[k] is None else b.sub(x[k], known)
    return None if rest is None else b.div0(rest, y[0])


# arithmetic
define("add(x, y)", LINEAR, lambda b, g: g, lambda b, g: g, broadcasts=True, samples=binary(REAL, REAL))
define("sub(x, y)", LINEAR, lambda b, g: g, lambda b, g: b.neg(g), broadcasts=True, samples=binary(REAL, REAL))
define("neg(x)", LINEAR, lambda b, g: b.neg(g), lanes=lanes.each, samples=unary(*REAL))
define("mul(x, y)", BILINEAR, lambda b, g, y: b.mul(g, y), lambda b, g, x: b.mul(g, x), broadcasts=True,
       plus="mul_add", series=lambda b, k, x, y, out: _products(b, [(x[j], y[k - j]) for j in range(k + 1)]),
       samples=binary(REAL, REAL))
define("div(x, y)", ELEMENTWISE, lambda b, g, y: b.div0(g, y),
       lambda b, g, y, out: b.quotient00(g, out, y), series=_quotient_series, samples=binary(REAL, POSITIVE))
# a product with a Python number; its own op, since a number costs some array libraries more than an array does
define("scale(x, c)", LINEAR, lambda b, g, c: b.scale(g, c), lanes=lanes.each, samples=unary(*REAL, c=-1.5))
# for sums of products, in one pass over the memory
define("mul_add(x, y, z)", ELEMENTWISE, lambda b, g, y: b.mul(g, y), lambda b, g, x: b.mul(g, x), lambda b, g: g, by_parts=True,
       samples=calls(Sample((filled((3,), *REAL), filled((3,), *REAL, 1), filled((3,), *REAL, 2))),
                     Sample((filled((2, 1), *REAL), filled((3,), *REAL, 1), filled((), *REAL, 2)))))
# divided by a Python int, so that a mean is as exact as the backend's division
define("per(x, n)", LINEAR, lambda b, g, n: b.per(g, n), lanes=lanes.each, samples=unary(*REAL, n=3))
define("mul0(x, y)", ELEMENTWISE, lambda b, g, y: b.mul0(g, y), lambda b, g, x: b.mul00(x, g),
       series=lambda b, k, x, y, out: _product_series(b, k, x, y, b.mul0), samples=binary(POSITIVE, REAL))
# where x is 0, these are constant in y; where the cotangent is 0, so is what goes on, whatever x is
define("mul00(x, y)", ELEMENTWISE, lambda b, g, y: b.mul00(g, y), lambda b, g, x: b.mul00(x, g),
       series=lambda b, k, x, y, out: _product_series(b, k, x, y, b.mul00), samples=binary(POSITIVE, POSITIVE))
define("div0(x, y)", ELEMENTWISE, lambda b, g, y: b.div0(g, y),
       lambda b, g, y, out: b.neg(b.div0(b.mul00(out, g), y)), series=_quotient_series, samples=binary(POSITIVE, POSITIVE))
# -x y / z, the rule of a divisor: closed under differentiation
define("quotient00(x, y, z)", ELEMENTWISE, lambda b, g, y, z: b.quotient00(g, y, z), lambda b, g, x, z: b.quotient00(x, g, z),
       lambda b, g, z, out: b.quotient00(out, g, z), by_parts=True,
       samples=calls(Sample((filled((3,), *REAL), filled((3,), *REAL, 1), filled((3,), *POSITIVE, 2))),
                     Sample((filled((2, 1), *REAL), filled((3,), *REAL, 1), filled((), *POSITIVE, 2)))))
# c x y^n: closed under differentiation, so the higher derivatives of roots and reciprocals stay short
define("power0(x, y, n, c)", ELEMENTWISE, lambda b, g, y, n, c: b.power0(g, y, n, c),
       lambda b, g, x, y, n, c: b.power0(b.mul00(x, g), y, n - 1, c * n) if n else b.scale(b.mul00(x, g), 0.0), by_parts=True,
       samples=calls(*(Sample(s.arrays, {"n": n, "c": 1.5}) for n in (2, 1, -1) for s in binary(REAL, POSITIVE).calls[abs(n)::3])))
define("reciprocal(x)", ELEMENTWISE, lambda b, g, out: b.power0(g, out, 2, -1.0),
       samples=unary(*POSITIVE, special={0.0: INFINITE}))
define("square(x)", ELEMENTWISE, lambda b, x: b.scale(x, 2.0), series=_square_series, samples=unary(*REAL, special={0.0: (0.0, 2.0, 0.0)}))
define("abs(x)", ELEMENTWISE, lambda b, x: b.sign(x), samples=unary(*REAL, special={0.0: (0.0, 0.0, 0.0)}))


# powers
def _powi(b, g, x, n):  # type: ignore[no-untyped-def]
    """``n x^(n-1)``. Exact at 0: no power of x is formed that the derivative does not have."""
    if n == 0:
        return b.scale(g, 0.0)
    if n == 1:
        return g
    if n == 2:
        return b.mul(g, b.scale(x, 2.0))
    partial = b.scale(b.powi(x, n - 1), float(n))
    return b.mul(g, partial) if n > 0 else b.mul0(g, partial)


define("powi(x, n)", ELEMENTWISE, _powi, samples=calls(
    *(Sample((filled((3,), -1.8, -0.2, n),), {"n": n}) for n in (-2, -1, 0, 1, 2, 3, 5)),
    *(Sample((filled((2, 2), 0.3, 1.8, n),), {"n": n}) for n in (-3, 4)),
    special={(0.0, 0): (0.0, 0.0, 0.0), (0.0, 1): (1.0, 0.0, 0.0), (0.0, 2): (0.0, 2.0, 0.0), (0.0, 3): (0.0, 0.0, 6.0),
             (-2.0, 3): (12.0, -12.0, 6.0), (0.0, -1): INFINITE}))
define("powf(x, n)", ELEMENTWISE, lambda b, g, x, n: b.mul0(g, b.scale(b.powf(x, n - 1.0), n)), samples=calls(
    *(Sample((filled((3,), 0.2, 2.5, k),), {"n": n}) for k, n in enumerate((0.5, 2.5, -1.5, 0.4))),
    special={(0.0, 2.5): (0.0, 0.0, None), (0.0, 0.5): INFINITE}))


define("pow(x, y)", ELEMENTWISE, lambda b, g, x, y: b.mul0(g, b.mul0(y, b.pow(x, b.sub(y, 1.0)))),
       lambda b, g, x, y: b.mul0(g, b.powlog(x, y, 1)), samples=binary(POSITIVE, REAL))


def _powlog(b: Any, g: Any, x: Any, y: Any, n: int) -> Any:
    """``x^(y-1) (y log^n x + n log^(n-1) x)``."""
    less = b.sub(y, 1.0)
    first = b.mul0(y, b.powlog(x, less, n))
    # there is no second term at n = 0: 0 log^(-1) x would be NaN at x = 1
    return b.mul0(g, b.add(first, b.scale(b.powlog(x, less, n - 1), float(n))) if n else first)


# x^y log^n x: an op, so that all derivatives by the exponent are 0 where x^y is, as they are at x = 0
define("powlog(x, y, n)", ELEMENTWISE, _powlog, lambda b, g, x, y, n: b.mul0(g, b.powlog(x, y, n + 1)), samples=calls(
    *(Sample(sample.arrays, {"n": n}) for n in (1, 2) for sample in binary(POSITIVE, REAL).calls[n::3])))
define("sqrt(x)", ELEMENTWISE, lambda b, g, out: b.power0(g, out, -1, 0.5), samples=unary(*POSITIVE, special={0.0: INFINITE}))
define("rsqrt(x)", ELEMENTWISE, lambda b, g, out: b.power0(g, out, 3, -0.5),
       samples=unary(*POSITIVE, special={0.0: INFINITE}))

# exponentials and logarithms; mul0, since they overflow to infinity
define("exp(x)", ELEMENTWISE, lambda b, g, out: b.mul0(g, out), samples=unary(*REAL, special={0.0: (1.0, 1.0, 1.0)}))
define("expm1(x)", ELEMENTWISE, lambda b, g, x: b.mul0(g, b.exp(x)), samples=unary(*REAL, special={0.0: (1.0, 1.0, 1.0)}))
define("log(x)", ELEMENTWISE, lambda b, g, x: b.div0(g, x), samples=unary(*POSITIVE, special={0.0: INFINITE}))
define("log1p(x)", ELEMENTWISE, lambda b, g, x: b.div0(g, b.add(x, 1.0)),
       samples=unary(*UNIT, special={0.0: (1.0, -1.0, 2.0), -1.0: INFINITE}))

# circular and hyperbolic functions
define("sin(x)", ELEMENTWISE, lambda b, x: b.cos(x), samples=unary(*REAL, special={0.0: (1.0, 0.0, -1.0)}))
define("cos(x)", ELEMENTWISE, lambda b, x: b.neg(b.sin(x)), samples=unary(*REAL, special={0.0: (0.0, -1.0, 0.0)}))
define("tan(x)", ELEMENTWISE, lambda b, out: b.add(b.square(out), 1.0), samples=unary(-1.2, 1.2, special={0.0: (1.0, 0.0, 2.0)}))
# 1 / cos(asin x): an op, since the rule of the product under the root is long
define("secant(x)", ELEMENTWISE, lambda b, g, x, out: b.power0(b.mul0(g, x), out, 3, 1.0),
       samples=unary(*UNIT, special={0.0: (0.0, 1.0, 0.0), 1.0: INFINITE, -1.0: INFINITE}))
define("asin(x)", ELEMENTWISE, lambda b, g, x: b.mul0(g, b.secant(x)),
       samples=unary(*UNIT, special={0.0: (1.0, 0.0, 1.0), 1.0: INFINITE, -1.0: INFINITE}))
define("acos(x)", ELEMENTWISE, lambda b, g, x: b.neg(b.mul0(g, b.secant(x))),
       samples=unary(*UNIT, special={0.0: (-1.0, 0.0, -1.0), 1.0: INFINITE, -1.0: INFINITE}))
define("atan(x)", ELEMENTWISE, lambda b, g, x: b.div(g, b.add(b.square(x), 1.0)),
       samples=unary(*REAL, special={0.0: (1.0, 0.0, -2.0)}))
define("sinh(x)", ELEMENTWISE, lambda b, g, x: b.mul0(g, b.cosh(x)), samples=unary(*REAL, special={0.0: (1.0, 0.0, 1.0)}))
define("cosh(x)", ELEMENTWISE, lambda b, g, x: b.mul0(g, b.sinh(x)), samples=unary(*REAL, special={0.0: (0.0, 1.0, 0.0)}))
define("tanh(x)", ELEMENTWISE, lambda b, g, out: b.tanh_vjp(g, out), samples=unary(*REAL, special={0.0: (1.0, 0.0, -2.0)}))
define("tanh_vjp(x, y)", ELEMENTWISE, lambda b, g, y: b.tanh_vjp(g, y), lambda b, g, x, y: b.triple(g, x, y, -2.0),
       by_parts=True, samples=binary(REAL, UNIT))
# c x y z in one op: closed under differentiation, so the higher derivatives of tanh stay short
define("triple(x, y, z, c)", BILINEAR, lambda b, g, y, z, c: b.triple(g, y, z, c), lambda b, g, x, z, c: b.triple(g, x, z, c),
       lambda b, g, x, y, c: b.triple(g, x, y, c), broadcasts=True, by_parts=True, samples=calls(
    Sample((filled((3,), *REAL), filled((3,), *REAL, 1), filled((3,), *REAL, 2)), {"c": -2.0}),
    Sample((filled((2, 1), *REAL), filled((3,), *REAL, 1), filled((), *REAL, 2)), {"c": 0.5})))
define("asinh(x)", ELEMENTWISE, lambda b, g, x: b.div(g, b.sqrt(b.add(b.square(x), 1.0))),
       samples=unary(*REAL, special={0.0: (1.0, 0.0, -1.0)}))
define("acosh(x)", ELEMENTWISE, lambda b, g, x: b.div0(g, b.sqrt(b.mul(b.sub(x, 1.0), b.add(x, 1.0)))),
       samples=unary(1.2, 3.0, special={1.0: INFINITE}))
define("atanh(x)", ELEMENTWISE, lambda b, g, x: b.div0(g, b.mul(b.sub(1.0, x), b.add(x, 1.0))),
       samples=unary(*UNIT, special={0.0: (1.0, 0.0, 2.0), 1.0: INFINITE, -1.0: INFINITE}))

# special functions
define("erf(x)", ELEMENTWISE, lambda b, x: b.gauss(x),
       samples=unary(*REAL, special={0.0: (2 / math.sqrt(math.pi), 0.0, -4 / math.sqrt(math.pi))}))
# 2/sqrt(pi) exp(-x^2): an op, so that the constant has the backend's own precision
define("gauss(x)", ELEMENTWISE, lambda b, x, out: b.scale(b.mul(x, out), -2.0), samples=unary(*REAL))

# choosing
define("maximum(x, y)", ELEMENTWISE,
       lambda b, g, x, y: b.where(b.eq(x, y), b.scale(g, 0.5), b.where(b.gt(x, y), g, 0.0)),
       lambda b, g, x, y: b.where(b.eq(x, y), b.scale(g, 0.5), b.where(b.gt(y, x), g, 0.0)),
       samples=binary(REAL, REAL))
define("minimum(x, y)", ELEMENTWISE,
       lambda b, g, x, y: b.where(b.eq(x, y), b.scale(g, 0.5), b.where(b.lt(x, y), g, 0.0)),
       lambda b, g, x, y: b.where(b.eq(x, y), b.scale(g, 0.5), b.where(b.lt(y, x), g, 0.0)),
       samples=binary(REAL, REAL))
define("where(x, y, z)", LINEAR, None, lambda b, g, x: b.where(x, g, 0.0), lambda b, g, x: b.where(x, 0.0, g), broadcasts=True,
       samples=calls(Sample(([True, False, True], filled((3,), *REAL), filled((3,), *REAL, 1)), exact=(0,)),
                     Sample(([[True], [False]], filled((3,), *REAL), filled((2, 3), *REAL, 1)), exact=(0,)),
                     Sample((True, filled((), *REAL), filled((), *REAL, 1)), exact=(0,))))


def _clamp(b, g, x, lo, hi):  # type: ignore[no-untyped-def]
    """The cotangent where ``lo <= x <= hi``: a bound passes it on, as in torch."""
    if lo is not None:
        g = b.where(b.ge(x, lo), g, 0.0)
    return g if hi is None else b.where(b.le(x, hi), g, 0.0)


define("clamp(x, lo, hi)", ELEMENTWISE, _clamp, samples=calls(
    Sample((filled((4,), *REAL, 1),), {"lo": -1.0, "hi": 0.5}), Sample((filled((2, 3), *REAL),), {"lo": None, "hi": 0.5}),
    Sample((filled((), *REAL),), {"lo": -0.5, "hi": None}),
    special={(0.5, -1.0, 0.5): (1.0, 0.0, 0.0), (2.0, -1.0, 0.5): (0.0, 0.0, 0.0)}))
define("cast(x, dtype)", LINEAR, lambda b, g, x_dtype: b.cast(g, x_dtype), lanes=lanes.each,
       samples=calls(Sample((filled((3,), *REAL),), {"dtype": "float64"})))
