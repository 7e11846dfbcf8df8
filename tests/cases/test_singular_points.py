"""Cases B: singular and saturated points, where the right answer is finite. The right values come from sympy or mpmath."""

import math

import numpy as np
import pytest
from orders import check

import nestgrad as ng

SQUARES = {
    "int power": lambda x: x**2,
    "float power": lambda x: x**2.0,
    "array power": lambda x: x ** np.array(2.0),
    "product": lambda x: x * x,
    "square": lambda x: x.square(),
}


@pytest.mark.parametrize("square", SQUARES.values(), ids=SQUARES)
def test_15_a_bell_curve_has_six_derivatives_at_its_top(orders, square):
    check(orders(lambda x: (-square(x)).exp(), 0.0, 6), [0.0, -2.0, 0.0, 12.0, 0.0, -120.0])


def _falling(p, k):
    """p (p-1) ... (p-k+1): the k-th derivative of x^p at 1, and at 0 if p = k."""
    return math.prod(p - j for j in range(k))


@pytest.mark.parametrize("exponents", [[1.0, 2.0, 3.0, 4.0], [0.0], [5.0, 0.0, 1.0], [2.0, 2.0]], ids=str)
@pytest.mark.parametrize("kind", ["array", "tensor", "integers", "variable"])
def test_16_powers_with_an_array_of_whole_exponents_are_exact_at_zero(orders, base, stack, exponents, kind):
    p = {
        "array": lambda: np.array(exponents),
        "tensor": lambda: base.tensor(exponents),
        "integers": lambda: base.tensor([int(q) for q in exponents]),
        "variable": lambda: stack(2).tensor(exponents, requires_grad=True),
    }[kind]()
    right = [sum(_falling(q, k) for q in exponents if q == k) for k in range(1, 6)]
    if exponents == [1.0, 2.0, 3.0, 4.0]:
        assert right == [1, 2, 6, 24, 0]
    check(orders(lambda x: (x**p).sum(), 0.0, 5), right)


@pytest.mark.parametrize("exponent", range(6))
@pytest.mark.parametrize("x", [0.0, -1.5, 2.0])
def test_16_integer_powers_are_exact_at_zero_and_for_negative_bases(orders, exponent, x):
    right = [_falling(exponent, k) * (x ** (exponent - k) if exponent >= k else 0.0) for k in range(1, 6)]
    for p in (exponent, float(exponent), np.array(float(exponent))):
        check(orders(lambda v, p=p: v**p, x, 5), right, rtol=1e-12)


def test_17_the_sum_form_of_a_squared_norm_is_exact_at_the_origin(hessian):
    check(hessian(lambda x: (x * x).sum(), np.zeros(2)), 2.0 * np.eye(2))
    check(hessian(lambda x: (1.0 + (x * x).sum()) ** -0.5, np.zeros(2)), -np.eye(2))


@pytest.mark.parametrize("f", [lambda x: x.norm() ** 2, lambda x: (1.0 + x.norm() ** 2) ** -0.5], ids=["square", "softened"])
def test_17_the_norm_form_has_no_second_derivative_at_the_origin_and_says_so(hessian, base, f):
    """Documented with ``norm``: the first derivative at the origin is given as 0, beyond it NaN comes out, never a number."""
    assert np.array_equal(ng.func.grad(f)(base.tensor([0.0, 0.0])).numpy(), np.zeros(2))
    assert np.isnan(hessian(f, np.zeros(2))).all()


BAD = {
    "sqrt": lambda x: x.sqrt(),
    "log": lambda x: x.log(),
    "reciprocal": lambda x: 1.0 / x,
    "power": lambda x: x**-1.5,
    "rsqrt": lambda x: x.rsqrt(),
    "asin": lambda x: (x + 1.0).asin(),
    "acosh": lambda x: (x + 1.0).acosh(),
    "atanh": lambda x: (x + 1.0).atanh(),
    "reciprocal square": lambda x: x**-2,
    "chain": lambda x: (x.sqrt().log() + 2.0).reciprocal(),
    "array power": lambda x: x ** np.array(0.5),
    "power of zero": lambda x: 0.0 ** (x - 1.0),
    "tower": lambda x: x**x,
}

UNSEEN = {"product": lambda x: x.log() * x.sqrt(), "norm": lambda x: x.reshape(1).norm()}
"""What the rules cannot see: a product whose factors are infinite, and the norm, whose NaN beyond order one is meant."""


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_18_the_branch_that_where_does_not_take_leaves_no_nan(orders, bad):
    check(orders(lambda x: ng.where(x < 1.0, x, bad(x)), 0.0, 4), [1.0, 0.0, 0.0, 0.0])
    check(orders(lambda x: ng.where(x >= 1.0, bad(x), x * x), 0.0, 4), [0.0, 2.0, 0.0, 0.0])


@pytest.mark.parametrize("bad", (BAD | UNSEEN).values(), ids=BAD | UNSEEN)
def test_18_safe_where_never_shows_a_branch_what_it_is_not_for(orders, bad):
    safe = -0.5 if bad in (BAD["asin"], BAD["atanh"]) else 2.0
    check(orders(lambda x: ng.safe_where(x < 1.0, lambda v: v * v, bad, x, safe=safe), 0.0, 4), [0.0, 2.0, 0.0, 0.0])


def _sinc(x):
    """sin(pi x) / (pi x), by its series where that is 0/0."""
    series = lambda v: 1.0 - (math.pi * v) ** 2 / 6.0 + (math.pi * v) ** 4 / 120.0
    return ng.safe_where(x == 0.0, series, lambda v: ng.sin(math.pi * v) / (math.pi * v), x)


@pytest.mark.parametrize("sinc", [_sinc, ng.sinc], ids=["written", "the function"])
def test_19_sinc_has_its_curvature_at_zero(orders, sinc):
    check(orders(sinc, 0.0, 4), [0.0, -3.289868133696453, 0.0, math.pi**4 / 5.0])


@pytest.mark.parametrize("sinc", [_sinc, ng.sinc], ids=["written", "the function"])
def test_19_sinc_beside_zero_is_not_the_series(orders, sinc):
    u = math.pi * 0.3
    second = math.pi**2 * (-math.sin(u) / u - 2.0 * math.cos(u) / u**2 + 2.0 * math.sin(u) / u**3)
    check(orders(sinc, 0.3, 2)[1], second)


@pytest.mark.parametrize("x", [40.0, -40.0])
def test_20_the_tails_of_log_sigmoid_keep_their_digits(orders, x):
    check(orders(lambda v: -(-v).softplus(), x, 2)[1], -4.248354255291589e-18, rtol=1e-10)


@pytest.mark.parametrize("x", [40.0, -40.0])
def test_20_the_tails_of_a_sigmoid_and_its_logarithm_keep_their_digits(orders, x):
    """s'' = s (1 - s) (1 - 2 s), which is the tail itself, with the sign of -x; (log s)' = 1 - s."""
    check(orders(lambda v: v.sigmoid(), x, 2)[1], math.copysign(4.248354255291589e-18, -x), rtol=1e-10)
    check(orders(lambda v: v.sigmoid().log(), x, 1)[0], 4.248354255291589e-18 if x > 0 else 1.0, rtol=1e-10)


@pytest.mark.parametrize("x", [40.0, -40.0])
def test_21_the_tails_of_silu_keep_their_digits(orders, x):
    check(orders(lambda v: v * v.sigmoid(), x, 2)[1], -1.6143746170108038e-16)


def test_22_a_saturated_tanh_does_not_overflow(hessian):
    assert np.array_equal(hessian(lambda p: (p[0] / (2.0 * p[1])).tanh() + p[0], [1600.0, 1.0]), np.zeros((2, 2)))


@pytest.mark.parametrize("x", [800.0, -800.0, 1e300])
@pytest.mark.parametrize("f", ["tanh", "sigmoid", "softplus", "erf", "atan"])
def test_22_no_saturated_function_overflows(orders, f, x):
    second, third = orders(lambda v: getattr(v, f)(), x, 3)[1:]
    assert abs(second) < 1e-8 and abs(third) < 1e-8
