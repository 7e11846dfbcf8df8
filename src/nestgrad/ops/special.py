"""Special functions: those of the error function and of the normal distribution, of the gamma function, and sinc.

Where a rule made of the answer would cancel (sinc at 0, the logarithm of the normal distribution far left), all derivatives are one op
with the order as its parameter, so that each order has its own digits.
"""

import math

from nestgrad.ops.samples import INFINITE, REAL, Sample, calls, filled, unary
from nestgrad.ops.table import ELEMENTWISE, define

_LINE = Sample((filled((3,), *REAL),))
_PI, _ROOT = math.pi, math.sqrt(math.pi)
_BELL, _MILLS = 1 / math.sqrt(2 * math.pi), math.sqrt(2 / math.pi)
_EULER, _ZETA3, _ZETA5 = 0.5772156649015329, 1.2020569031595943, 1.0369277551433699

# the n-th derivative of sin(pi x) / (pi x)
define("sinc(x)", ELEMENTWISE, lambda b, x: b.sinc_slope(x, 1), samples=unary(*REAL, special={
    0.0: (0.0, -(_PI**2) / 3, 0.0), 1.0: (-1.0, 2.0, _PI**2 - 6.0)}))
define("sinc_slope(x, n)", ELEMENTWISE, lambda b, x, n: b.sinc_slope(x, n + 1), samples=calls(
    Sample(_LINE.arrays, {"n": 1}), Sample(_LINE.arrays, {"n": 2}), special={(0.0, 3): (_PI**4 / 5, 0.0, -(_PI**6) / 7)}))

# the error function and the normal distribution
define("erfc(x)", ELEMENTWISE, lambda b, x: b.neg(b.gauss(x)), samples=unary(*REAL, special={0.0: (-2 / _ROOT, 0.0, 4 / _ROOT)}))
# exp(x^2) erfc(x), which overflows to the left
define("erfcx(x)", ELEMENTWISE, lambda b, g, x: b.mul0(g, b.erfcx_slope(x, 1)), samples=calls(
    Sample(([-1.1, 0.4, 2.3],)), special={0.0: (-2 / _ROOT, 2.0, -8 / _ROOT)}))
define("erfcx_slope(x, n)", ELEMENTWISE, lambda b, g, x, n: b.mul0(g, b.erfcx_slope(x, n + 1)), samples=calls(
    Sample(([-1.1, 0.4, 2.3],), {"n": 1}), Sample(([-1.1, 0.4, 2.3],), {"n": 2})))
define("erfinv(x)", ELEMENTWISE, lambda b, g, out: b.mul0(g, b.widening(out)), samples=unary(-0.9, 0.9, special={
    0.0: (_ROOT / 2, 0.0, _PI * _ROOT / 4), 1.0: INFINITE, -1.0: INFINITE}))
# sqrt(pi)/2 exp(x^2), the slope of erfinv
define("widening(x)", ELEMENTWISE, lambda b, g, x, out: b.scale(b.mul0(b.mul0(g, out), x), 2.0), samples=calls(_LINE))
define("ndtr(x)", ELEMENTWISE, lambda b, x: b.bell(x), samples=unary(*REAL, special={0.0: (_BELL, 0.0, -_BELL)}))
# exp(-x^2/2) / sqrt(2 pi)
define("bell(x)", ELEMENTWISE, lambda b, x, out: b.neg(b.mul(x, out)), samples=calls(_LINE, special={0.0: (0.0, -_BELL, 0.0)}))
define("log_ndtr(x)", ELEMENTWISE, lambda b, x: b.log_ndtr_slope(x, 1), samples=calls(
    Sample(([-4.2, -1.1, 0.4, 2.3],)), special={0.0: (_MILLS, -2 / _PI, _MILLS * (4 / _PI - 1))}))
define("log_ndtr_slope(x, n)", ELEMENTWISE, lambda b, x, n: b.log_ndtr_slope(x, n + 1), samples=calls(
    Sample(([-4.2, -1.1, 0.4, 2.3],), {"n": 1}), Sample(([-4.2, -1.1, 0.4, 2.3],), {"n": 2})))

# the gamma function
define("lgamma(x)", ELEMENTWISE, lambda b, g, x: b.mul0(g, b.digamma(x)), samples=calls(
    Sample(([-1.4, 0.3, 2.2],)), special={1.0: (-_EULER, _PI**2 / 6, -2 * _ZETA3), 0.0: INFINITE, -1.0: INFINITE}))
define("digamma(x)", ELEMENTWISE, lambda b, g, x: b.mul0(g, b.polygamma(x, 1)), samples=calls(
    Sample(([-1.4, 0.3, 2.2],)), special={1.0: (_PI**2 / 6, -2 * _ZETA3, _PI**4 / 15), 0.0: INFINITE}))
define("polygamma(x, n)", ELEMENTWISE, lambda b, g, x, n: b.mul0(g, b.polygamma(x, n + 1)), samples=calls(
    Sample(([-1.4, 0.3, 2.2],), {"n": 1}), Sample(([-1.4, 0.3, 2.2],), {"n": 2}),
    special={(1.0, 1): (-2 * _ZETA3, _PI**4 / 15, -24 * _ZETA5)}))
