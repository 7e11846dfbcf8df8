"""Roots, logarithms and powers of other bases, angles, and the parts of numbers: elementwise ops that need no function beyond these."""

import math

from nestgrad.ops import lanes
from nestgrad.ops.samples import INFINITE, POSITIVE, REAL, UNIT, Sample, calls, filled, unary
from nestgrad.ops.table import CONSTANT, ELEMENTWISE, LINEAR, define

STEPS = (0.0, 0.0, 0.0)  # constant on both sides, or linear: no curvature sits in a jump
_LN2, _LN10, _INF = math.log(2.0), math.log(10.0), math.inf
_TWO = (Sample((filled((3,), *REAL), filled((3,), *REAL, 1))), Sample((filled((2, 1), *REAL), filled((3,), *REAL, 2))))
_LINE = (Sample((filled((3,), *REAL),)),)
_SIGNS = (Sample(([5.3, -5.3, 5.3, -5.3], [1.7, 1.7, -1.7, -1.7])), Sample(([[0.4], [7.1]], [0.9, -2.2, 3.3])))

# roots, exponentials and logarithms; mul0 and div0 as in ops/elementwise.py
define("cbrt(x)", ELEMENTWISE, lambda b, g, out: b.power0(g, out, -2, 1 / 3), samples=calls(
    Sample(([-1.7, 0.3, 2.0],)), special={0.0: INFINITE, -8.0: (1 / 12, 1 / 144, 10 / 6912)}))
define("exp2(x)", ELEMENTWISE, lambda b, g, out: b.mul0(b.times_log(g, 2, 1), out),
       samples=calls(*_LINE, special={0.0: (_LN2, _LN2**2, _LN2**3)}))
define("log2(x)", ELEMENTWISE, lambda b, g, x: b.div0(b.times_log(g, 2, -1), x), samples=calls(
    Sample((filled((3,), *POSITIVE),)), special={1.0: (1 / _LN2, -1 / _LN2, 2 / _LN2), 0.0: INFINITE}))
define("log10(x)", ELEMENTWISE, lambda b, g, x: b.div0(b.times_log(g, 10, -1), x), samples=calls(
    Sample((filled((3,), *POSITIVE),)), special={1.0: (1 / _LN10, -1 / _LN10, 2 / _LN10), 0.0: INFINITE}))
# x log(n)^k for whole n and k: an op, so that the constant has the backend's own precision
define("times_log(x, n, k)", LINEAR, lambda b, g, n, k: b.times_log(g, n, k), lanes=lanes.each, samples=calls(
    Sample((filled((3,), *REAL),), {"n": 2, "k": 1}), Sample((filled((2, 2), *REAL),), {"n": 10, "k": -1})))

# x - y, and 0 where they are equal, infinite ones too; its derivatives are those of x - y everywhere
define("apart(x, y)", LINEAR, lambda b, g: g, lambda b, g: b.neg(g), broadcasts=True, samples=calls(*_TWO))
define("logaddexp(x, y)", ELEMENTWISE, lambda b, g, x, y: b.gated(g, b.apart(x, y), 1), lambda b, g, x, y: b.gated(g, b.apart(x, y), -1),
       samples=calls(*_TWO, special={(0.3, 0.3): (0.5, 0.25, 0.0), (-_INF, 0.3): (0.0, 0.0, 0.0), (0.3, -_INF): (1.0, 0.0, 0.0),
                             (-_INF, -_INF): (0.5, 0.25, 0.0)}))
define("logaddexp2(x, y)", ELEMENTWISE, lambda b, g, x, y: b.gated(g, b.times_log(b.apart(x, y), 2, 1), 1),
       lambda b, g, x, y: b.gated(g, b.times_log(b.apart(x, y), 2, 1), -1), samples=calls(
    *_TWO, special={(0.3, 0.3): (0.5, 0.25 * _LN2, 0.0), (-_INF, 0.3): (0.0, 0.0, 0.0), (-_INF, -_INF): (0.5, 0.25 * _LN2, 0.0)}))
# linear in x; where x is 0 nothing changes with y
define("xlogy(x, y)", ELEMENTWISE, lambda b, g, y: b.xlogy(g, y), lambda b, g, x, y: b.div0(b.mul0(g, x), y), samples=calls(
    Sample((filled((3,), *REAL), filled((3,), *POSITIVE))), Sample((filled((2, 1), *REAL), filled((3,), *POSITIVE))),
    special={(0.0, 2.0): (_LN2, 0.0, 0.0)}))
define("xlog1py(x, y)", ELEMENTWISE, lambda b, g, y: b.xlog1py(g, y), lambda b, g, x, y: b.div0(b.mul0(g, x), b.add(y, 1.0)), samples=calls(
    Sample((filled((3,), *REAL), filled((3,), -0.8, 1.8))), Sample((filled((2, 1), *REAL), filled((3,), -0.8, 1.8))),
    special={(0.0, 1.0): (_LN2, 0.0, 0.0)}))

# the plane: the distance from the origin has derivative 0 there, and no finite one beyond; the angle has none at all
define("hypot(x, y)", ELEMENTWISE, lambda b, g, x, out: b.mul0(g, b.direction(x, out)),
       lambda b, g, y, out: b.mul0(g, b.direction(y, out)),
       samples=calls(*_TWO, special={(0.0, 0.0): (0.0, None, None), (0.0, 2.0): (0.0, 0.5, 0.0), (2.0, 0.0): (1.0, 0.0, 0.0)}))
# x / y for the length y of a vector with the component x, and 0 at the origin, where no derivative of it is finite
define("direction(x, y)", ELEMENTWISE, lambda b, g, y: b.div0(g, y), lambda b, g, y, out: b.neg(b.mul0(g, b.div(out, y))),
       samples=calls(Sample((filled((3,), *UNIT), filled((3,), 1.2, 2.0))), Sample((filled((2, 1), *UNIT), filled((3,), 1.2, 2.0)))))
define("atan2(x, y)", ELEMENTWISE, lambda b, g, x, y: b.mul0(g, b.pole(x, y, 1, 0)), lambda b, g, x, y: b.mul0(g, b.pole(x, y, 1, 1)),
       samples=calls(*_TWO, special={
    (0.0, 1.0): (1.0, 0.0, -2.0), (0.0, -1.0): (-1.0, 0.0, 2.0), (1.0, 0.0): (0.0, 0.0, 0.0), (0.0, 0.0): INFINITE}))
# the real part (0) or the imaginary one (1) of 1 / (y + i x)^n: all derivatives of the angle, and NaN at the origin
define("pole(x, y, n, part)", ELEMENTWISE,
       lambda b, g, x, y, n, part: b.mul0(b.scale(g, float(n if part == 0 else -n)), b.pole(x, y, n + 1, 1 - part)),
       lambda b, g, x, y, n, part: b.mul0(b.scale(g, float(-n)), b.pole(x, y, n + 1, part)), samples=calls(
    Sample(_TWO[0].arrays, {"n": 1, "part": 0}), Sample(_TWO[1].arrays, {"n": 2, "part": 1})))
for _name in ("deg2rad", "rad2deg"):
    define(f"{_name}(x)", LINEAR, (lambda name: lambda b, g: getattr(b, name)(g))(_name), lanes=lanes.each, samples=unary(*REAL))

# parts of numbers: jumps have no derivative, and what is given is that of the pieces
define("frac(x)", ELEMENTWISE, lambda b, g: g, samples=calls(*_LINE, special={0.0: (1.0, 0.0, 0.0), 2.0: (1.0, 0.0, 0.0)}))
define("remainder(x, y)", ELEMENTWISE, lambda b, g: g, lambda b, g, x, y: b.neg(b.mul0(g, b.floor_divide(x, y))), samples=calls(
    *_SIGNS, special={(3.0, 1.5): (1.0, 0.0, 0.0)}))
# the quotient is whole: rounding takes away what the division added to it
define("fmod(x, y)", ELEMENTWISE, lambda b, g: g, lambda b, g, x, y, out: b.neg(b.mul0(g, b.round(b.div(b.sub(x, out), y)))), samples=calls(
    *_SIGNS, special={(3.0, 1.5): (1.0, 0.0, 0.0)}))
define("copysign(x, y)", ELEMENTWISE, lambda b, x, out: b.mul(b.sign(x), b.sign(out)), None,
       samples=calls(*_TWO, special={(0.0, -1.0): STEPS, (2.0, -1.0): (-1.0, 0.0, 0.0), (-2.0, -1.0): (1.0, 0.0, 0.0)}))
define("heaviside(x, y)", ELEMENTWISE, None, lambda b, g, x: b.where(b.eq(x, 0.0), g, 0.0), samples=calls(
    Sample(([-0.4, 0.8, 1.1], filled((3,), *REAL))), Sample(([[-1.3], [1.2]], filled((2,), *REAL)))))
define("nan_to_num(x, nan, posinf, neginf)", ELEMENTWISE, lambda b, g, x: b.where(b.isfinite(x), g, 0.0),
       defaults=(0.0, None, None), samples=calls(Sample((filled((2, 2), *REAL),)), special={
    (math.nan, 0.5, 2.0, -2.0): STEPS, (_INF, 0.5, 2.0, -2.0): STEPS, (0.3, 0.5, 2.0, -2.0): (1.0, 0.0, 0.0)}))

for _name in ("trunc", "isinf", "isposinf", "isneginf", "signbit"):
    define(f"{_name}(x)", CONSTANT, lanes=lanes.each, samples=unary(*REAL))
define("floor_divide(x, y)", CONSTANT, samples=calls(*_SIGNS))
define("logical_xor(x, y)", CONSTANT, samples=calls(Sample(([True, False, True], [[True], [False]]))))


