"""Activations of networks: elementwise ops whose rules are ops of their own, which a backend may serve with one kernel.

At a kink the printed convention holds: the piecewise linear ones have the slope of the flat side, and ``elu`` is its exponential there.
"""

import math
from typing import Any

from nestgrad.ops import lanes
from nestgrad.ops.samples import REAL, Sample, binary, calls, filled, unary
from nestgrad.ops.splitting import splitting
from nestgrad.ops.table import COMPOSITE, ELEMENTWISE, LINEAR, define

_BELL = 1 / math.sqrt(2 * math.pi)
WIDE = filled((7,), -4.0, 4.0)  # all pieces, no kink

_PAIR = binary(REAL, (-4.0, 4.0)).calls[1:4]

# Rules of what is linear in pieces: x by the piece in which y is, in which nothing changes with y.
_GATE = ([0.3, -1.2, 0.9, 1.4], [0.5, -0.7, 2.0, -3.5])


def _gate(**params: float) -> Any:
    return calls(Sample(_GATE, params, exact=(1,)), Sample((filled((2, 2), *REAL), filled((2, 2), *REAL, 1)), params, exact=(1,)))


define("above(x, y, c)", LINEAR, lambda b, g, y, c: b.above(g, y, c), None, broadcasts=True, samples=_gate(c=-1.0))
define("inside(x, y, lo, hi, n)", LINEAR, lambda b, g, y, lo, hi, n: b.inside(g, y, lo, hi, n), None, broadcasts=True, defaults=(1,),
       samples=_gate(lo=-1.0, hi=1.0, n=6))
define("outside(x, y, c)", LINEAR, lambda b, g, y, c: b.outside(g, y, c), None, broadcasts=True, samples=_gate(c=1.0))
define("leaky(x, y, slope)", LINEAR, lambda b, g, y, slope: b.leaky(g, y, slope), None, broadcasts=True, samples=_gate(slope=0.1))

# linear in pieces
FLAT = (0.0, 0.0, 0.0)
define("relu(x)", ELEMENTWISE, lambda b, g, x: b.above(g, x, 0.0), samples=unary(*REAL, special={0.0: FLAT}))
define("leaky_relu(x, slope)", ELEMENTWISE, lambda b, g, x, slope: b.leaky(g, x, slope),
       samples=calls(Sample((WIDE,), {"slope": 0.1}), special={(0.0, 0.1): (0.1, 0.0, 0.0)}))
define("prelu(x, y)", ELEMENTWISE, lambda b, g, x, y: b.where(b.gt(x, 0.0), g, b.mul(g, y)),
       lambda b, g, x: b.where(b.gt(x, 0.0), 0.0, b.mul(g, x)), samples=calls(
    *binary(REAL, REAL).calls[1:4], special={(0.0, 0.25): (0.25, 0.0, 0.0)}))
define("hardtanh(x, lo, hi)", ELEMENTWISE, lambda b, g, x, lo, hi: b.inside(g, x, lo, hi), samples=calls(
    Sample((WIDE,), {"lo": -1.0, "hi": 2.0}), special={(-1.0, -1.0, 2.0): FLAT, (2.0, -1.0, 2.0): FLAT}))
define("hardsigmoid(x)", ELEMENTWISE, lambda b, g, x: b.inside(g, x, -3.0, 3.0, 6),
       samples=calls(Sample((WIDE,)), special={-3.0: FLAT, 3.0: FLAT}))
define("threshold(x, c, value)", ELEMENTWISE, lambda b, g, x, c: b.above(g, x, c),
       samples=calls(Sample((WIDE,), {"c": 0.3, "value": 2.0}), special={(0.3, 0.3, 2.0): FLAT}))
for _name in ("hardshrink", "softshrink"):
    define(f"{_name}(x, c)", ELEMENTWISE, lambda b, g, x, c: b.outside(g, x, c),
           samples=calls(Sample((WIDE,), {"c": 0.5}), special={(-0.5, 0.5): FLAT, (0.5, 0.5): FLAT}))

# quadratic in one piece
define("huber(x, delta)", ELEMENTWISE, lambda b, x, delta: b.hardtanh(x, -delta, delta),
       samples=calls(Sample((WIDE,), {"delta": 1.5}),
                     special={(1.5, 1.5): (1.5, 0.0, 0.0), (-1.5, 1.5): (-1.5, 0.0, 0.0), (0.0, 1.5): (0.0, 1.0, 0.0)}))
define("hardswish(x)", ELEMENTWISE, lambda b, g, x: b.hardswish_vjp(g, x),
       samples=calls(Sample((WIDE,)), special={-3.0: FLAT, 3.0: (1.0, 0.0, 0.0), 0.0: (0.5, 1 / 3, 0.0)}))
define("hardswish_vjp(x, y)", ELEMENTWISE, lambda b, g, y: b.hardswish_vjp(g, y),
       lambda b, g, x, y: b.inside(b.mul(g, x), y, -3.0, 3.0, 3), samples=binary(REAL, (-4.0, 4.0)))

# exponential in one piece; elu, celu and selu are one op, with three parameters
_ELU = {"alpha": 1.5, "scale": 1.2, "rate": 0.8}
_SLOPE = 1.5 * 1.2 * 0.8
define("elu(x, alpha, scale, rate)", ELEMENTWISE, lambda b, g, x, alpha, scale, rate: b.elu_vjp(g, x, alpha, scale, rate),
       defaults=(1.0, 1.0), samples=calls(
    Sample((WIDE,), _ELU), special={(0.0, 1.5, 1.2, 0.8): (_SLOPE, _SLOPE * 0.8, _SLOPE * 0.8**2)}))
define("elu_vjp(x, y, alpha, scale, rate)", ELEMENTWISE, lambda b, g, y, alpha, scale, rate: b.elu_vjp(g, y, alpha, scale, rate),
       lambda b, g, x, y, alpha, scale, rate: b.exp_below(b.mul(g, x), y, alpha * scale * rate**2, rate), defaults=(1.0, 1.0),
       samples=calls(*(Sample(s.arrays, _ELU) for s in binary(REAL, REAL).calls[1:4])))
# c x exp(rate y), and 0 where y > 0
define("exp_below(x, y, c, rate)", ELEMENTWISE, lambda b, g, y, c, rate: b.exp_below(g, y, c, rate),
       lambda b, g, out, rate: b.scale(b.mul(g, out), rate),
       samples=calls(*(Sample(s.arrays, {"c": 1.2, "rate": 0.8}) for s in binary(REAL, REAL).calls[1:4])))

# made of the logistic function s, of which both tails keep their digits: s(-y), never 1 - s(y)
def _turned(b: Any, g: Any, sign: int) -> Any:
    return g if sign > 0 else b.neg(g)


# x s(sign y), the rule of softplus and of log_sigmoid
define("gated(x, y, sign)", ELEMENTWISE, lambda b, g, y, sign: b.gated(g, y, sign),
       lambda b, g, x, y, sign: _turned(b, b.sigmoid_vjp(b.mul(g, x), y), sign), by_parts=True,
       samples=calls(*(Sample(s.arrays, {"sign": sign}) for sign in (1, -1) for s in _PAIR[:2])))
define("sigmoid(x)", ELEMENTWISE, lambda b, g, x: b.sigmoid_vjp(g, x), samples=unary(*REAL, special={0.0: (0.25, 0.0, -0.125)}))
# x s'(y) and x s''(y): s' = s(y) s(-y), s'' = -s' tanh(y / 2), and the third is s' (1 - 6 s')
define("sigmoid_vjp(x, y)", ELEMENTWISE, lambda b, g, y: b.sigmoid_vjp(g, y), lambda b, g, x, y: b.sigmoid_curve(b.mul(g, x), y),
       by_parts=True, samples=calls(*_PAIR))
define("sigmoid_curve(x, y)", ELEMENTWISE, lambda b, g, y: b.sigmoid_curve(g, y), lambda b, g, x, y: b.mul(
    b.sigmoid_vjp(b.mul(g, x), y), b.sub(1.0, b.scale(b.mul(b.sigmoid(y), b.sigmoid(b.neg(y))), 6.0))), by_parts=True,
    samples=calls(*_PAIR))
define("softplus(x)", ELEMENTWISE, lambda b, g, x: b.gated(g, x, 1), samples=unary(*REAL, special={0.0: (0.5, 0.25, 0.0)}))
define("log_sigmoid(x)", ELEMENTWISE, lambda b, g, x: b.gated(g, x, -1), samples=calls(Sample((WIDE,)), special={0.0: (0.5, -0.25, 0.0)}))
define("glu(x, axis)", COMPOSITE, lambda b, x, axis: _glu(b, x, axis), samples=calls(
    Sample((filled((4,), *REAL),), {"axis": 0}), Sample((filled((2, 4, 2), *REAL),), {"axis": 1})))


def _glu(b: Any, x: Any, axis: int) -> Any:
    """The first half, by the logistic function of the second."""
    n = b.shape(x)[axis] // 2
    first, second = splitting(2).of(b)(x, (n, n), axis)
    return b.gated(first, second, 1)


def _silu_curve(b: Any, g: Any, x: Any, y: Any) -> Any:
    """``g x silu''(y)``, with ``silu'' = s'(y) (2 - y tanh(y / 2))``."""
    return b.mul(b.sigmoid_vjp(b.mul(g, x), y), b.sub(2.0, b.mul(y, b.tanh(b.scale(y, 0.5)))))


define("silu(x)", ELEMENTWISE, lambda b, g, x: b.silu_vjp(g, x), samples=calls(Sample((WIDE,)), special={0.0: (0.5, 0.5, 0.0)}))
define("silu_vjp(x, y)", ELEMENTWISE, lambda b, g, y: b.silu_vjp(g, y), _silu_curve, by_parts=True,
       samples=calls(*_PAIR))


def _mish_curve(b: Any, g: Any, x: Any, y: Any) -> Any:
    """``g x mish''(y)``. With ``s = s(y)``, ``q = s(-y)``, ``t = tanh(softplus(y))``, ``d = s (1 - t^2)``: ``d (2 + y (q - 2 s t))``."""
    s, q = b.sigmoid(y), b.sigmoid(b.neg(y))
    r = b.reciprocal(b.add(b.square(q), 1.0))
    t = b.mul(b.mul(s, b.add(q, 1.0)), r)
    d = b.mul(b.scale(s, 4.0), b.square(b.mul(q, r)))
    return b.mul(b.mul(b.mul(g, x), d), b.add(b.mul(y, b.sub(q, b.scale(b.mul(s, t), 2.0))), 2.0))


define("mish(x)", ELEMENTWISE, lambda b, g, x: b.mish_vjp(g, x), samples=calls(Sample((WIDE,)), special={0.0: (0.6, 0.64, -0.096)}))
define("mish_vjp(x, y)", ELEMENTWISE, lambda b, g, y: b.mish_vjp(g, y), _mish_curve, by_parts=True,
       samples=calls(*_PAIR))

# made of tanh and of quotients
define("tanhshrink(x)", COMPOSITE, lambda b, x: b.sub(x, b.tanh(x)), lanes=lanes.each,
       samples=calls(Sample((WIDE,)), special={0.0: (0.0, 0.0, 2.0)}))
define("softsign(x)", ELEMENTWISE, lambda b, g, x: b.div(g, b.square(b.add(b.abs(x), 1.0))),
       samples=calls(Sample((WIDE,)), special={0.0: (1.0, 0.0, 0.0)}))


# made of the normal distribution
define("gelu(x)", ELEMENTWISE, lambda b, g, x: b.gelu_vjp(g, x), samples=calls(Sample((WIDE,)), special={0.0: (0.5, 2 * _BELL, 0.0)}))
define("gelu_vjp(x, y)", ELEMENTWISE, lambda b, g, y: b.gelu_vjp(g, y), lambda b, g, x, y: b.gelu_curve(b.mul(g, x), y),
       by_parts=True, samples=calls(*_PAIR))
# x gelu''(y), with the density d: gelu'' = d (2 - y^2), and the third is d y (y^2 - 4)
define("gelu_curve(x, y)", ELEMENTWISE, lambda b, g, y: b.gelu_curve(g, y), lambda b, g, x, y: b.mul(
    b.mul(b.mul(g, x), b.bell(y)), b.mul(y, b.sub(b.square(y), 4.0))), by_parts=True, samples=calls(*_PAIR))


def _gelu_tanh_curve(b: Any, g: Any, x: Any, y: Any, k: float, a: float) -> Any:
    """``g x f''(y)`` of ``f(y) = y s(z)``, with ``z = 2 k (y + a y^3)``: ``s'(z) (2 z' + y z'' - y z'^2 tanh(z / 2))``."""
    square = b.square(y)
    half = b.mul(y, b.add(b.scale(square, k * a), k))
    rate = b.add(b.scale(square, 6 * k * a), 2 * k)
    twice = b.add(b.scale(square, 24 * k * a), 4 * k)
    return b.mul(b.sigmoid_vjp(b.mul(g, x), b.scale(half, 2.0)), b.sub(twice, b.mul(b.mul(y, b.tanh(half)), b.square(rate))))


# x s(2 k (x + a x^3)), with the numbers that come near gelu
_NEAR = {"k": 0.8, "a": 0.05}
define("gelu_tanh(x, k, a)", ELEMENTWISE, lambda b, g, x, k, a: b.gelu_tanh_vjp(g, x, k, a),
       samples=calls(Sample((WIDE,), _NEAR), special={(0.0, 0.8, 0.05): (0.5, 0.8, 0.0)}))
define("gelu_tanh_vjp(x, y, k, a)", ELEMENTWISE, lambda b, g, y, k, a: b.gelu_tanh_vjp(g, y, k, a), _gelu_tanh_curve, by_parts=True,
       samples=calls(*(Sample(s.arrays, _NEAR) for s in _PAIR)))

# the loss of the logistic function: -y log s(x) - (1 - y) log s(-x)
_PROBABLE = binary((-4.0, 4.0), (0.0, 1.0)).calls[1:4]
define("bce_logits(x, y)", ELEMENTWISE, lambda b, g, x, y: b.bce_logits_vjp(g, x, y), lambda b, g, x: b.neg(b.mul(g, x)),
       samples=calls(*_PROBABLE))
# x (s(y) - z)
define("bce_logits_vjp(x, y, z)", ELEMENTWISE, lambda b, g, y, z: b.bce_logits_vjp(g, y, z),
       lambda b, g, x, y: b.sigmoid_vjp(b.mul(g, x), y), lambda b, g, x: b.neg(b.mul(g, x)), by_parts=True,
       samples=calls(*(Sample((filled((3,), *REAL, 2), *s.arrays)) for s in _PROBABLE[:2])))

# -y log x - (1 - y) log(1 - x) of a probability x. A logarithm is at least -100, and where it is less than that nothing changes with x.
_SHARES = [Sample((filled((3,), 0.1, 0.9), filled((3,), 0.1, 0.9, 1))), Sample((filled((2, 1), 0.1, 0.9), filled((2, 3), 0.1, 0.9, 1)))]
define("bce(x, y)", ELEMENTWISE, lambda b, g, x, y: b.bce_vjp(g, x, y),
       lambda b, g, x: b.mul(g, b.sub(b.log_least(x, True), b.log_least(x, False))),
       samples=calls(*_SHARES, special={(0.0, 0.3): (0.7, 0.7), (1.0, 0.3): (-0.3, 0.3)}))
# x ((1 - z) / (1 - y) - z / y)
define("bce_vjp(x, y, z)", ELEMENTWISE, lambda b, g, y, z: b.bce_vjp(g, y, z), lambda b, g, x, y, z: _bce_curve(b, b.mul(g, x), y, z),
       lambda b, g, x, y: b.neg(b.add(b.over(b.mul(g, x), y, True), b.over(b.mul(g, x), y, False))),
       samples=calls(*(Sample((filled((3,), *REAL, 2), *s.arrays)) for s in _SHARES)))


def _bce_curve(b: Any, g: Any, y: Any, z: Any) -> Any:
    """``g ((1 - z) / (1 - y)^2 + z / y^2)``."""
    far = b.over(b.over(b.mul(g, b.sub(1.0, z)), y, True), y, True)
    return b.add(far, b.over(b.over(b.mul(g, z), y, False), y, False))


# log x, or log(1 - x): at least -100
define("log_least(x, rest)", ELEMENTWISE, lambda b, g, x, rest: b.neg(b.over(g, x, True)) if rest else b.over(g, x, False),
       samples=calls(*(Sample((filled((3,), 0.1, 0.9),), {"rest": rest}) for rest in (True, False))))
# x / y, or x / (1 - y), and 0 where that logarithm is -100
define("over(x, y, rest)", ELEMENTWISE, lambda b, g, y, rest: b.over(g, y, rest),
       lambda b, g, y, out, rest: b.over(b.mul(g, out), y, True) if rest else b.neg(b.over(b.mul(g, out), y, False)),
       samples=calls(*(Sample(s.arrays, {"rest": rest}) for rest, s in zip((True, False), _SHARES, strict=True))))
