"""Elementwise operations against mpmath's numbers and NumPy's rules, on every backend."""

import warnings

import numpy as np
import pytest
from mpmath.ctx_mp import MPContext

oracle = MPContext()
oracle.dps = 80

LINE = [0.0, 1e-30, -1e-30, 1e-9, -1e-9, 3e-4, -3e-4, 0.3, -0.3, 0.75, -0.75, 1.0, -1.0, 2.5, -2.5, 3.5, 19.0, -19.0, 45.0, -45.0]
HALF = [x for x in LINE if x > 0] + [1e30, 1e-20]
BALL = [x for x in LINE if abs(x) <= 1] + [0.9999, -0.9999]
mp = oracle
UNARY = {
    "neg": (lambda x: -x, LINE),
    "abs": (abs, LINE),
    "square": (lambda x: x * x, LINE),
    "reciprocal": (lambda x: 1 / x, HALF + [-0.3]),
    "sqrt": (mp.sqrt, [0.0, *HALF]),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), HALF),
    "exp": (mp.exp, [*LINE, 80.0, -80.0]),
    "expm1": (mp.expm1, [*LINE, 80.0, -80.0]),
    "log": (mp.log, HALF),
    "log1p": (mp.log1p, [*HALF, 0.0, -0.3, -1e-9, -1e-30, -0.999]),
    "sin": (mp.sin, LINE),
    "cos": (mp.cos, LINE),
    "tan": (mp.tan, LINE),
    "asin": (mp.asin, BALL),
    "acos": (mp.acos, BALL),
    "atan": (mp.atan, [*LINE, 1e30, -1e30]),
    "sinh": (mp.sinh, LINE),
    "cosh": (mp.cosh, LINE),
    "tanh": (mp.tanh, LINE),
    "asinh": (mp.asinh, [*LINE, 1e30, -1e30]),
    "acosh": (mp.acosh, [1.0, 1.0001, 1.5, 2.5, 45.0, 1e30]),
    "atanh": (mp.atanh, [x for x in BALL if abs(x) < 1]),
    "erf": (mp.erf, LINE),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), [*LINE, 80.0, -80.0, 1e30, -1e30]),
    "softplus": (lambda x: mp.log1p(mp.exp(x)) if x < 100 else x, [*LINE, 80.0, -80.0, 1e30, -1e30]),
    "relu": (lambda x: max(x, mp.mpf(0)), LINE),
    "floor": (mp.floor, LINE),
    "ceil": (mp.ceil, LINE),
    "round": (lambda x: mp.mpf(round(float(x))), [*LINE, 0.5, 1.5, -0.5, -1.5, -3.5, 0.49999997]),
    "sign": (mp.sign, LINE),
}


def pointwise(b, got, function, points):
    """The relative error of ``got`` against ``function`` at the points as the backend holds them."""
    for y, x in zip(np.ravel(got), points, strict=True):
        want = function(oracle.mpf(float(x)))
        y = oracle.mpf(y if b.exact else float(y))
        tiny = 0 if b.exact else float(np.finfo(b.float).tiny)
        yield float(abs(y - want) / (abs(want) * b.eps + tiny) if y != want else 0)


@pytest.mark.parametrize("name", UNARY)
def test_unary_is_accurate_near_zero_and_in_the_tails(b, name):
    function, points = UNARY[name]
    points = np.array(points, b.float)
    got = getattr(b, name)(b.array(points))
    got = got if b.exact else b.to_numpy(got)
    # A few roundings of the dtype: the defaults combine up to five operations, each right to about one.
    errors = list(pointwise(b, got, function, points))
    assert max(errors) < (100 if b.exact else 7), dict(zip(points.tolist(), errors, strict=True))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3), (2, 0, 3), (2, 1, 2)])
def test_unary_keeps_shape_and_dtype(b, name, shape):
    x = b.array(np.full(shape, 1.0 if name == "acosh" else 0.5))
    y = getattr(b, name)(x)
    assert tuple(b.shape(y)) == shape
    assert b.dtype(y) == b.dtype(x)


@pytest.mark.parametrize("name", ["neg", "abs", "square", "relu", "sign", "floor", "ceil", "round"])
def test_unary_keeps_integers(b, name):
    expected = {"neg": [2, 0, -3], "abs": [2, 0, 3], "square": [4, 0, 9], "relu": [0, 0, 3], "sign": [-1, 0, 1]}
    b.check(getattr(b, name)(b.array([-2, 0, 3])), expected.get(name, [-2, 0, 3]))


SHAPES = [((), ()), ((3,), ()), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0, 3), (1,)), ((2, 3), (2, 3))]
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power, "maximum": np.maximum,
    "minimum": np.minimum, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or, "mul0": np.multiply,
    "div0": np.divide, "tanh_vjp": lambda g, y: g * (1 - y * y),
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_binary_broadcasts(b, rng, name, shapes):
    x, y = (rng.integers(1, 9, shape) / 4 for shape in shapes)
    b.check(getattr(b, name)(b.array(x), b.array(y)), BINARY[name](x, y))
    x, y = y, x
    b.check(getattr(b, name)(b.array(x), b.array(y)), BINARY[name](x, y))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("scalar", [2.0, 2, 0.5])
def test_python_numbers_are_weakly_typed(b, name, scalar):
    x = np.array([0.5, 1.5, 2.0])
    b.check(getattr(b, name)(b.array(x), scalar), BINARY[name](x, scalar))
    b.check(getattr(b, name)(scalar, b.array(x)), BINARY[name](scalar, x))
    b.check(getattr(b, name)(b.array(x[2]), scalar), BINARY[name](x[2], scalar))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum", "minimum"])
def test_binary_keeps_integers(b, name):
    x, y = np.array([[1, -2], [3, 4]]), np.array([5, 6])
    b.check(getattr(b, name)(b.array(x), b.array(y)), BINARY[name](x, y))
    b.check(getattr(b, name)(b.array(x), 2), BINARY[name](x, 2))
    b.check(getattr(b, name)(2, b.array(x)), BINARY[name](2, x))


def test_nan_goes_through_and_compares_with_nothing(b):
    nan = b.array([np.nan, 1.0, np.nan])
    one = b.array([1.0, np.nan, np.nan])
    for name in ("maximum", "minimum", "add", "mul"):
        b.check(getattr(b, name)(nan, one), np.full(3, np.nan))
    for name in ("relu", "sign", "floor", "ceil", "round", "sigmoid", "softplus", "tanh", "expm1", "log1p", "asinh"):
        b.check(getattr(b, name)(nan), [np.nan, float(UNARY[name][0](oracle.mpf(1))), np.nan])
    b.check(b.clamp(nan, 2.0, 3.0), [np.nan, 2.0, np.nan])
    for name in ("eq", "lt", "le", "gt", "ge"):
        b.check(getattr(b, name)(nan, one), [False, False, False])
    b.check(b.ne(nan, nan), [True, False, True])
    b.check(b.isnan(nan), [True, False, True])
    b.check(b.isfinite(b.array([np.nan, np.inf, -np.inf, 0.0])), [False, False, False, True])


def test_infinities_are_limits(b):
    x = b.array([np.inf, -np.inf])
    limits = {"exp": [np.inf, 0], "expm1": [np.inf, -1], "tanh": [1, -1], "sigmoid": [1, 0], "softplus": [np.inf, 0],
              "atan": [np.pi / 2, -np.pi / 2], "erf": [1, -1], "relu": [np.inf, 0], "asinh": [np.inf, -np.inf],
              "sinh": [np.inf, -np.inf], "cosh": [np.inf, np.inf], "sign": [1, -1], "round": [np.inf, -np.inf],
              "floor": [np.inf, -np.inf], "ceil": [np.inf, -np.inf]}  # fmt: skip
    for name, limit in limits.items():
        b.check(getattr(b, name)(x), np.array(limit, float))
    b.check(b.log(b.array([0.0, np.inf])), [-np.inf, np.inf])
    b.check(b.log1p(b.array([-1.0, np.inf])), [-np.inf, np.inf])
    b.check(b.acosh(b.array([np.inf])), [np.inf])
    b.check(b.atanh(b.array([1.0, -1.0])), [np.inf, -np.inf])
    b.check(b.div(b.array([1.0, -1.0, 0.0]), b.array([0.0, 0.0, 0.0])), [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("name, outside", [("sqrt", -1.0), ("log", -1.0), ("asin", 1.5), ("acos", -1.5), ("acosh", 0.5), ("atanh", 2.0)])
def test_outside_of_the_domain_is_nan(b, name, outside):
    b.check(getattr(b, name)(b.array([outside])), [np.nan])


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 9, 13, -1, -2, -7])
def test_integer_powers(b, n):
    x = np.array([-1.5, -1.0, 0.5, 2.0, 3.0])
    b.check(b.powi(b.array(x), n), x**n)
    b.check(b.powi(b.array(np.array(2.0)), n), np.array(2.0**n))
    b.check(b.powi(b.array([0.0]), n), [1.0 if n == 0 else 0.0 if n > 0 else np.inf])
    if n >= 0:
        b.check(b.powi(b.array(np.array([-2, 3])), n), np.array([-2, 3]) ** n)


def test_float_powers(b):
    x = np.array([0.0, 0.25, 4.0])
    b.check(b.powf(b.array(x), 0.5), x**0.5)
    b.check(b.powf(b.array(x), 0.0), np.ones(3))
    b.check(b.pow(b.array([0.0, -1.0]), 0.5), [0.0, np.nan])
    b.check(b.pow(2.0, b.array([-1.0, 3.0])), [0.5, 8.0])


def test_mul0_and_div0_let_zero_win(b):
    x = np.array([0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 1e30])
    y = np.array([np.inf, np.inf, np.nan, -np.inf, 0.0, 0.0, 1e30])
    with warnings.catch_warnings():
        if b.backend.name in ("numpy", "torch"):
            warnings.simplefilter("error")
        product, ratio = b.mul0(b.array(x), b.array(y)), b.div0(b.array(x), b.array(y))
        b.check(b.mul0(0.0, b.array(y)), np.zeros(7))
        b.check(b.div0(0.0, b.array(y)), np.zeros(7))
        b.check(b.mul0(b.array(x), np.inf), np.where(x == 0, 0, np.inf))
        b.check(b.div0(b.array(x), 0.0), np.where(x == 0, 0, np.inf))
        b.check(b.mul0(b.array([0.0]), b.array([[np.nan], [1.0]])), np.zeros((2, 1)))
        b.check(b.mul0(b.array(0.0), b.array(np.nan)), np.array(0.0))
        either = [b.mul00(b.array(left), b.array(right)) for left, right in ((x, y), (y, x))]
        for number, right in ((0.0, np.zeros(7)), (np.inf, np.where(x == 0, 0, np.inf))):
            b.check(b.mul00(b.array(x), number), right)
            b.check(b.mul00(number, b.array(x)), right)
    b.check(product, np.array([0, np.inf, 0, 0, 0, 0, np.array(1e30, b.float) * np.array(1e30, b.float)]))
    b.check(ratio, np.array([0, 0, 0, 0, np.inf, 0, 1.0]))
    for product in either:
        b.check(product, np.array([0, np.inf, 0, 0, 0, 0, np.array(1e30, b.float) * np.array(1e30, b.float)]))


def test_where_and_clamp(b):
    c, x = np.array([[True], [False]]), np.array([1.0, -2.0, 3.0])
    b.check(b.where(b.array(c), b.array(x), 0.0), np.where(c, x, 0.0))
    b.check(b.where(b.array(c), 7, b.array(x)), np.where(c, 7.0, x))
    b.check(b.where(b.array(c), b.array(-x), b.array(x)), np.where(c, -x, x))
    b.check(b.clamp(b.array(x), -1.0, 2.0), np.clip(x, -1, 2))
    b.check(b.clamp(b.array(x), None, 2.0), np.minimum(x, 2))
    b.check(b.clamp(b.array(x), -1.0, None), np.maximum(x, -1))
    b.check(b.clamp(b.array(x), None, None), x)
    b.check(b.logical_not(b.array([0.0, 2.0])), [True, False])
    b.check(b.logical_and(b.array([True, False]), b.array([[True], [False]])), [[True, False], [False, False]])
