"""Singular points: ``where`` keeps infinities of the branch not taken out of all derivatives; powers and products at 0 are exact."""

from itertools import product

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.tensor.handle import apply

ORDER = 4

# name: (function, points at which its value or a derivative is infinite or NaN)
SINGULAR = {
    "sqrt": (lambda x: x.sqrt(), (0.0, -1.0)),
    "rsqrt": (lambda x: x.rsqrt(), (0.0, -1.0)),
    "log": (lambda x: x.log(), (0.0, -1.0)),
    "log1p": (lambda x: x.log1p(), (-1.0, -2.0)),
    "1 / x": (lambda x: 1.0 / x, (0.0,)),
    "reciprocal": (lambda x: x.reciprocal(), (0.0,)),
    "x / x": (lambda x: x / x, (0.0,)),
    "x / x**2": (lambda x: x / (x * x), (0.0,)),
    "sin(x) / x": (lambda x: x.sin() / x, (0.0,)),
    "asin": (lambda x: x.asin(), (1.0, -1.0, 2.0)),
    "acos": (lambda x: x.acos(), (1.0, -1.0, 2.0)),
    "acosh": (lambda x: x.acosh(), (1.0, 0.0)),
    "atanh": (lambda x: x.atanh(), (1.0, -1.0, 2.0)),
    "x**0.5": (lambda x: x**0.5, (0.0, -1.0)),
    "x**1.5": (lambda x: x**1.5, (0.0, -1.0)),
    "x**-1": (lambda x: x**-1, (0.0,)),
    "x**-2.5": (lambda x: x**-2.5, (0.0, -1.0)),
    "x**x": (lambda x: x**x, (0.0, -1.0)),
    "x**y": (lambda x: x ** (x * 0.0 + 0.5), (0.0, -1.0)),
    "exp": (lambda x: (1000.0 * x).exp(), (1.0, 2.0)),
    "expm1": (lambda x: (1000.0 * x).expm1(), (1.0, 2.0)),
    "sinh": (lambda x: (1000.0 * x).sinh(), (1.0, -2.0)),
    "cosh": (lambda x: (1000.0 * x).cosh(), (1.0, -2.0)),
    "log(log(x))": (lambda x: x.log().log(), (1.0, 0.0)),
    "sqrt(sin(x))": (lambda x: x.sin().sqrt(), (0.0, -1.0)),
    "exp(1 / x)": (lambda x: (1.0 / x).exp(), (0.0,)),
    "exp(-1 / x**2)": (lambda x: (-1.0 / (x * x)).exp(), (0.0,)),
    "cbrt": (lambda x: ng.cbrt(x), (0.0,)),
    "log2": (lambda x: ng.log2(x), (0.0, -1.0)),
    "log10": (lambda x: ng.log10(x), (0.0, -1.0)),
    "exp2": (lambda x: ng.exp2(2000.0 * x), (1.0, 2.0)),
    "erfinv": (lambda x: ng.erfinv(x), (1.0, -1.0, 2.0)),
    "lgamma": (lambda x: ng.lgamma(x), (0.0, -1.0)),
    "digamma": (lambda x: ng.digamma(x), (0.0, -1.0)),
    "polygamma": (lambda x: ng.polygamma(1, x), (0.0, -1.0)),
    "xlogy by y": (lambda x: ng.xlogy(2.0, x), (0.0, -1.0)),
    "xlogy": (lambda x: ng.xlogy(x, x), (0.0, -1.0)),
    "xlog1py": (lambda x: ng.xlog1py(x + 1.0, x), (-1.0, -2.0)),
    "atan2": (lambda x: ng.atan2(x, x * x), (0.0,)),
    "x / hypot": (lambda x: 1.0 / ng.hypot(x, 0.0 * x), (0.0,)),
    "remainder": (lambda x: ng.remainder(1.0, x), (0.0,)),
    "fmod": (lambda x: ng.fmod(1.0, x), (0.0,)),
    "elu": (lambda x: ng.nn.elu(-1000.0 * x, 1e300) * 1e300, (1.0, -1e10)),
    "log(sqrt(x))": (lambda x: x.sqrt().log(), (0.0, -1.0)),
}


def derivatives(y, x, order=ORDER):
    for _ in range(order):
        y = y.wrt(x)
        yield y.numpy()


@pytest.mark.parametrize("swapped", [False, True], ids=["taken where true", "taken where false"])
@pytest.mark.parametrize("name", SINGULAR)
def test_where_keeps_the_branch_not_taken_out(double, nest, name, swapped):
    """``where(cond, x**3, singular(x))`` has the derivatives of ``x**3`` wherever it is taken, and of the other elsewhere."""
    f, points = SINGULAR[name]
    ordinary = 0.4 if "log(log" not in name else 1.7
    values = np.array([*points, ordinary])
    taken = np.array([True] * len(points) + [False])
    alone = nest(double, ORDER).tensor(ordinary, requires_grad=True)
    right = [float(d) for d in derivatives(f(alone), alone)]
    x = nest(double, ORDER).tensor(values, requires_grad=True)
    with np.errstate(all="ignore"):
        y = ng.where(~double.tensor(taken), f(x), x**3) if swapped else ng.where(double.tensor(taken), x**3, f(x))
        cubes = [3 * values**2, 6 * values, np.full_like(values, 6.0), np.zeros_like(values)]
        for k, got in enumerate(derivatives(y, x)):
            np.testing.assert_allclose(got[:-1], cubes[k][:-1], rtol=1e-13, atol=0, err_msg=f"order {k + 1}")
            np.testing.assert_allclose(got[-1], right[k], rtol=1e-13, err_msg=f"order {k + 1}")


def test_where_on_a_quotient_of_two_variables(double, nest):
    """All mixed partials to order 4 of ``where(y > 0, x / y, x y)`` at ``y = 0`` are those of ``x y``."""
    for n, m in product(range(ORDER + 1), repeat=2):
        if not 0 < n + m <= ORDER:
            continue
        stack = nest(double, ORDER)
        x, y = stack.tensor([0.0, 2.0], requires_grad=True), stack.tensor([0.0, 0.0], requires_grad=True)
        with np.errstate(all="ignore"):
            z = ng.where(y > 0.0, x / y, x * y)
            for variable, times in ((x, n), (y, m)):
                for _ in range(times):
                    z = z.wrt(variable)
        want = {(1, 0): [0.0, 0.0], (0, 1): [0.0, 2.0], (1, 1): [1.0, 1.0]}.get((n, m), [0.0, 0.0])
        assert z.tolist() == want, (n, m)


def test_the_case_that_is_known_from_elsewhere(double, nest):
    """``where(x < 1, x, sqrt(x))`` at 0 has derivatives 1 and 0."""
    x = nest(double, 4).tensor(0.0, requires_grad=True)
    assert [float(d) for d in derivatives(ng.where(x < 1.0, x, x.sqrt()), x)] == [1.0, 0.0, 0.0, 0.0]


# What mul0 cannot see: a product of the user's own that has an infinite factor. The cotangent is 0, and 0 times infinity is formed by
# the plain mul of the user's product. safe_where is the way out, at every order.
BEYOND = {
    "x log x": (lambda x: x * x.log(), 0.0),
    "sqrt x log x": (lambda x: x.sqrt() * x.log(), 0.0),
    "norm": (lambda x: x.expand_dims(-1).norm(axis=-1), 0.0),
}


@pytest.mark.parametrize("name", BEYOND)
def test_safe_where_covers_what_where_cannot(double, nest, name):
    f, point = BEYOND[name]
    with np.errstate(all="ignore"):
        x = nest(double, ORDER).tensor([point, 0.4], requires_grad=True)
        safe = list(derivatives(ng.safe_where(x > 0.2, f, lambda v: v**2, x), x))
        alone = nest(double, ORDER).tensor(0.4, requires_grad=True)
        right = [float(d) for d in derivatives(f(alone), alone)]
        for got, square, other in zip(safe, (0.0, 2.0, 0.0, 0.0), right, strict=True):
            np.testing.assert_allclose(got, [square, other], rtol=1e-13)
        x = nest(double, ORDER).tensor([point, 0.4], requires_grad=True)
        plain = list(derivatives(ng.where(x > 0.2, f(x), x**2), x))
    assert any(np.isnan(d[0]) for d in plain), f"where alone is enough for {name} now: say so in its docstring"
    assert all(np.isnan(d[0]) or d[0] == s for d, s in zip(plain, (0.0, 2.0, 0.0, 0.0), strict=True)), "NaN or right, never another number"


# powers


@pytest.mark.parametrize("n", range(7))
def test_whole_powers_at_zero_and_below(double, nest, n):
    x = nest(double, 6).tensor([0.0, -2.0], requires_grad=True)
    want = np.array([0.0, -2.0]) ** n
    y = x**n
    assert y.tolist() == want.tolist()
    for k in range(6):
        y = y.wrt(x)
        factor = np.prod([float(n - j) for j in range(k + 1)])
        want = factor * np.array([0.0, -2.0]) ** max(n - k - 1, 0)
        assert y.tolist() == want.tolist(), f"order {k + 1}"


def test_an_array_of_exponents_at_base_zero(double, nest):
    """``sum(x ** [1, 2, 3, 4])`` at 0 has derivatives 1, 2, 6, 24, 0."""
    x = nest(double, 5).tensor(0.0, requires_grad=True)
    y = (x ** double.tensor([1.0, 2.0, 3.0, 4.0])).sum()
    assert [float(d) for d in derivatives(y, x, 5)] == [1.0, 2.0, 6.0, 24.0, 0.0]
    x = nest(double, 5).tensor(np.zeros(4), requires_grad=True)
    y = x ** double.tensor([1.0, 2.0, 3.0, 4.0])
    rows = [d.tolist() for d in derivatives(y, x, 5)]
    assert rows == [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 6, 0], [0, 0, 0, 24], [0, 0, 0, 0]]


def test_a_tracked_exponent_at_base_zero(double, nest):
    """``0**y`` is 0 for all ``y > 0``, so its derivatives by ``y`` are 0; by the base they are those of the power, mixed ones too."""
    stack = nest(double, 4)
    x, y = stack.tensor(0.0, requires_grad=True), stack.tensor(3.0, requires_grad=True)
    with np.errstate(all="ignore"):
        z = x**y
        assert [z.wrt(v).item() for v in (x, y)] == [0.0, 0.0]
        assert [z.wrt(v).wrt(w).item() for v, w in ((x, x), (y, y), (y, x), (x, y))] == [0.0, 0.0, 0.0, 0.0]
        assert [float(d) for d in derivatives(z, y)] == [0.0, 0.0, 0.0, 0.0]
        assert [z.wrt(y).wrt(y).wrt(x).item(), z.wrt(x).wrt(y).wrt(y).item()] == [0.0, 0.0]
        # x log x has no derivative at 0
        one = stack.tensor(1.0, requires_grad=True)
        assert (x**one).wrt(one).wrt(x).item() == -np.inf


def test_even_functions_have_exact_derivatives_at_zero(double, nest):
    x = nest(double, 6).tensor(0.0, requires_grad=True)
    assert [float(d) for d in derivatives((-(x**2)).exp(), x, 6)] == [0.0, -2.0, 0.0, 12.0, 0.0, -120.0]
    x = nest(double, 4).tensor(np.zeros(2), requires_grad=True)
    assert (x * x).sum().wrt(x).tolist() == [0.0, 0.0]
    g = (1.0 / (1.0 + (x * x).sum()).sqrt()).wrt(x)
    assert [g[k].wrt(x).tolist() for k in range(2)] == [[-1.0, 0.0], [0.0, -1.0]]


# products with zeros


def test_the_product_of_numbers_with_two_zeros(double, nest):
    x = nest(double, 4).tensor([2.0, 3.0, 0.0, 0.0], requires_grad=True)
    y = x.prod()
    g = y.wrt(x)
    assert g.tolist() == [0.0, 0.0, 0.0, 0.0]
    hessian = np.array([g[k].wrt(x).numpy() for k in range(4)])
    want = np.zeros((4, 4))
    want[2, 3] = want[3, 2] = 6.0
    assert np.array_equal(hessian, want)
    third = g[2].wrt(x)[3].wrt(x)
    assert third.tolist() == [3.0, 2.0, 0.0, 0.0]
    assert third[0].wrt(x).tolist() == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("zeros", range(5))
def test_products_with_any_number_of_zeros(double, nest, zeros):
    values = np.array([2.0, -3.0, 0.5, 4.0])
    values[:zeros] = 0.0
    x = nest(double, 2).tensor(values, requires_grad=True)
    g = x.prod().wrt(x)
    others = [np.prod(np.delete(values, k)) for k in range(4)]
    np.testing.assert_array_equal(g.numpy(), others)
    hessian = np.array([g[k].wrt(x).numpy() for k in range(4)])
    want = [[0.0 if j == k else np.prod(np.delete(values, [j, k])) for j in range(4)] for k in range(4)]
    np.testing.assert_array_equal(hessian, want)


# conventions at kinks


@pytest.mark.parametrize("name, sign", [("amax", 1.0), ("amin", -1.0)])
def test_equal_extrema_share_evenly_at_every_order(double, nest, name, sign):
    x = nest(double, 3).tensor(sign * np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), requires_grad=True)
    y = apply(name, x, axes=(1,), keepdims=False)
    orders = list(derivatives((y**2).sum(), x, 2))
    np.testing.assert_allclose(orders[0], sign * np.array([[0.0, 3.0, 3.0], [4 / 3] * 3]), rtol=1e-15)
    np.testing.assert_allclose(orders[1], [[0.0, 1.0, 1.0], [2 / 3] * 3], rtol=1e-15)


def test_equal_operands_share_evenly(double, nest):
    for name in ("maximum", "minimum"):
        stack = nest(double, 2)
        x, y = (stack.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
        z = apply(name, x, y)
        assert z.wrt(x).tolist() == z.wrt(y).tolist() == [0.5, 0.5]
        assert z.wrt(x).wrt(y).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("k, second", [(1, [0.0, 0.0, 0.0]), (2, [0.0, 0.0, 2.0]), (3, [0.0, 0.0, 12.0])])
def test_relu_has_no_slope_at_zero_and_no_curvature(double, nest, k, second):
    x = nest(double, 2).tensor([-1.0, 0.0, 2.0], requires_grad=True)
    assert (x.relu() ** k).wrt(x).wrt(x).tolist() == second


def test_the_norm_at_the_origin_is_zero_once_and_then_not_silent(double, nest):
    x = nest(double, 2).tensor(np.zeros(2), requires_grad=True)
    with np.errstate(all="ignore"):
        g = x.norm().wrt(x)
        assert g.tolist() == [0.0, 0.0]
        assert np.isnan(g.wrt(x).numpy()).all()
