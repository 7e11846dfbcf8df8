"""Running sums, products and extrema: NumPy's values, exact derivatives with zeros, nothing lost in tails, samples in their own order."""

from itertools import product

import mpmath
import numpy as np
import pytest
import scipy.integrate
import sympy
import torch
from hypothesis import given, settings, strategies as st

import nestgrad as ng
from nestgrad.errors import ShapeError
from nestgrad.tensor.handle import apply

RUN = settings(max_examples=40, deadline=None, derandomize=True)
INF, NAN = float("inf"), float("nan")

X = np.array([[[0.5, -1.5], [2.5, 0.7], [1.1, -0.2]], [[3.0, 1.25], [-0.75, 0.1], [0.9, 2.2]]])
NUMPYS = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": lambda x, axis: np.maximum.accumulate(x.ravel() if axis is None else x, axis or 0),
    "cummin": lambda x, axis: np.minimum.accumulate(x.ravel() if axis is None else x, axis or 0),
    "logcumsumexp": lambda x, axis: np.log(np.cumsum(np.exp(x), axis)),
}


def run(name, x, axis=None):
    """The values of a running function."""
    out = getattr(ng, name)(x, axis)
    return out[0] if isinstance(out, tuple) else out


def derivatives(f, x, order, base):
    """``f`` and the gradients of its sum, of the sum of these, and so on."""
    stack = base
    for _ in range(order):
        stack = ng.Autodiff(stack)
    x = stack.tensor(x, requires_grad=True)
    found = [f(x)]
    for _ in range(order):
        found.append(found[-1].wrt(x))
    return [y.numpy() for y in found]


# values


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
@pytest.mark.parametrize("name", NUMPYS)
def test_along_every_axis(name, axis, double):
    got = run(name, double.tensor(X), axis)
    want = NUMPYS[name](X, axis)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", NUMPYS)
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2), (1,), (2, 1), (1, 3)])
def test_of_nothing_and_of_one(name, shape, backend):
    x = np.full(shape, 0.75)
    for axis in range(len(shape)):
        f = lambda v, k=axis: run(name, v, k)
        value, slope, curvature = derivatives(f, x, 2, backend)
        assert value.shape == slope.shape == curvature.shape == shape
        np.testing.assert_allclose(value.astype(float), NUMPYS[name](x, axis), rtol=1e-14)
        if shape[axis] == 1:
            np.testing.assert_array_equal(slope, np.ones(shape))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_integers_and_booleans_give_int64(name, double):
    for data in (np.array([[1, 2], [3, 0]], np.int32), np.array([True, True, False, True])):
        got = run(name, double.tensor(data), 0)
        assert "int64" in str(got.dtype)
        np.testing.assert_array_equal(got.numpy(), NUMPYS[name](data, 0))


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extrema_of_integers_keep_their_dtype(name, double):
    values, positions = getattr(ng, name)(double.tensor(np.array([3, 5, 5, 4])))
    assert "int64" in str(values.dtype) and "int64" in str(positions.dtype)
    want = {"cummax": ([3, 5, 5, 5], [0, 1, 2, 2]), "cummin": ([3, 3, 3, 3], [0, 0, 0, 0])}[name]
    assert (values.tolist(), positions.tolist()) == want


def test_logcumsumexp_of_integers_is_floating(double):
    assert ng.logcumsumexp(double.tensor(np.array([0, 0]))).tolist() == [0.0, pytest.approx(np.log(2.0), rel=1e-15)]


@pytest.mark.parametrize("name, data", [(name, data) for name in ("cummax", "cummin") for data in (
    [1.0, NAN, 3.0, NAN, 5.0], [INF, -INF, NAN], [2.0, 2.0, 1.0, 2.0, 2.0], [0.0, -0.0, 0.0])])  # fmt: skip
def test_extrema_and_their_positions_are_torchs(name, data, backend):
    """Of equals the latest; NaN from where it stands on."""
    values, positions = getattr(ng, name)(backend.tensor(data))
    want = getattr(torch, name)(torch.tensor(data, dtype=torch.float64), 0)
    np.testing.assert_array_equal(values.numpy(), want.values.numpy())
    assert positions.tolist() == want.indices.tolist() and not positions.marks


@RUN
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9), st.sampled_from(["cummax", "cummin"]))
def test_positions_point_at_the_values(data, name):
    for base in (ng.NumpyBackend(), ng.TorchBackend(dtype="float64")):
        x = base.tensor([float(v) for v in data])
        values, positions = getattr(ng, name)(x)
        assert [data[k] for k in positions.tolist()] == values.tolist()
        np.testing.assert_array_equal(positions.numpy(), getattr(torch, name)(torch.tensor(data), 0).indices.numpy())


# sums


@RUN
@given(st.lists(st.integers(-50, 50), max_size=12), st.booleans(), st.data())
def test_the_reversed_sum_is_the_transpose(data, reverse, draw):
    """``<cumsum x, y> == <x, reversed cumsum y>``, exactly in whole numbers."""
    other = draw.draw(st.lists(st.integers(-50, 50), min_size=len(data), max_size=len(data)))
    for base in (ng.NumpyBackend(), ng.TorchBackend(dtype="float64")):
        x, y = base.tensor(np.array(data, float)), base.tensor(np.array(other, float))
        there = (ng.cumsum(x, 0, reverse) * y).sum().item()
        assert there == (x * ng.cumsum(y, 0, not reverse)).sum().item()
        assert ng.cumsum(x, 0, True).tolist() == ng.cumsum(x[::-1], 0).tolist()[::-1]


def test_the_sum_couples_its_entries(double):
    """The Jacobian of ``cumsum(x)**2`` at [1, 2, 3]."""
    jacobian = ng.func.jacrev(lambda x: ng.cumsum(x) ** 2)(double.tensor([1.0, 2.0, 3.0]))
    assert jacobian.tolist() == [[2, 0, 0], [6, 6, 0], [12, 12, 12]]


def test_long_sums_in_single_precision_keep_their_digits():
    """Torch and we add in double precision; a plain running sum would lose three digits."""
    x = np.random.default_rng(0).uniform(0, 1, 300_000).astype("float32")
    right = np.cumsum(x.astype("float64"))
    for base in (ng.NumpyBackend("float32"), ng.TorchBackend()):
        for reverse in (False, True):
            want = right if not reverse else np.cumsum(x.astype("float64")[::-1])[::-1]
            np.testing.assert_allclose(ng.cumsum(base.tensor(x), reverse=reverse).numpy(), want, rtol=3e-7)


# products

POINTS = [
    [1.5, -0.5, 0.7, 2.0],
    [1.5, 0.0, 0.7, 2.0],
    [0.0, 2.0, -1.0],
    [1.5, 0.0, 0.7, 0.0, 2.0],
    [0.0, 0.0, 0.0, 3.0],
    [2.0, 0.0],
]


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_products_with_zeros_are_exact_to_third_order(point, backend):
    """All derivatives of each running product by sympy, contracted with a weight for each."""
    n = len(point)
    symbols = sympy.symbols(f"x:{n}")
    weights = [1.0, -2.0, 0.5, 3.0, 1.25][:n]
    energy = sum((w * sympy.prod(symbols[: k + 1]) for k, w in enumerate(weights)), sympy.Integer(0))
    stack = ng.Autodiff(ng.Autodiff(ng.Autodiff(backend)))
    x = stack.tensor(point, requires_grad=True)
    at = dict(zip(symbols, point, strict=True))
    y = (ng.cumprod(x) * backend.tensor(weights)).sum()

    def follow(y, expression, depth):
        if depth == 3:
            return
        gradient = y.wrt(x)
        right = [float(sympy.diff(expression, s).subs(at)) for s in symbols]
        np.testing.assert_allclose(gradient.numpy(), right, rtol=1e-14, atol=1e-14)
        for k in range(n):
            follow(gradient[k], sympy.diff(expression, symbols[k]), depth + 1)

    follow(y, energy, 0)


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_products_over_many_lines_are_torchs(zeros, double):
    """Gradient and second gradient, with zeros in some lines and not in others."""
    rng = np.random.default_rng(zeros)
    x, v, w = rng.uniform(0.3, 1.7, (3, 4, 7, 6))
    for line in range(zeros):
        x[1, rng.integers(0, 6)] = x[line, rng.integers(0, 6)] = 0.0
    for axis in (0, 1):
        t = torch.tensor(x, requires_grad=True)
        first = torch.autograd.grad((torch.cumprod(t, axis) * torch.tensor(v)).sum(), t, create_graph=True)[0]
        stack = ng.Autodiff(ng.Autodiff(double))
        u = stack.tensor(x, requires_grad=True)
        g = (ng.cumprod(u, axis) * double.tensor(v)).sum().wrt(u)
        np.testing.assert_allclose(g.numpy(), first.detach().numpy(), rtol=1e-12, atol=1e-13)
        second = torch.autograd.grad((first * torch.tensor(w)).sum(), t)[0]
        h = (g * double.tensor(w)).sum().wrt(u)
        np.testing.assert_allclose(h.numpy(), second.numpy(), rtol=1e-11, atol=1e-12)


def test_products_that_leave_the_range_have_their_derivatives(double):
    """The product of all is too small, or too large, while that of all others is not: nothing may be got by a quotient."""
    x = [3.0, 1e-200, 1e-200]
    stack = ng.Autodiff(double)
    u = stack.tensor(x, requires_grad=True)
    got = ng.cumprod(u)[2].wrt(u).numpy()
    np.testing.assert_allclose(got, [0.0, 3e-200, 3e-200], rtol=1e-15)
    big = stack.tensor([1e200, 1e200, 1e-300, 2.0], requires_grad=True)
    first = ng.cumprod(big)[0]
    assert first.wrt(big).tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("factors", ["ordinary", "with zeros", "with infinity", "of all sizes"])
def test_a_recurrence_is_its_loop(factors, reverse, backend):
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(2, 9, 2))
    y[0] = NAN  # the first is not read
    if factors == "with zeros":
        y[[3, 4]] = 0.0
    elif factors == "with infinity":
        y[5] = INF
        x[:5] = 0.0 if not reverse else x[:5]
        x[5:] = 0.0 if reverse else x[5:]
    elif factors == "of all sizes":
        y[1:] *= 10.0 ** rng.integers(-60, 60, (8, 2))
    want = np.array(x)
    for i in range(1, 9) if not reverse else range(7, -1, -1):
        past, factor = (want[i - 1], y[i]) if not reverse else (want[i + 1], y[i + 1])
        want[i] += np.where(past == 0, 0, past * np.where(past == 0, 1, factor))
    got = backend.to_numpy(backend.recur(backend.asarray(x), backend.asarray(y), 0, reverse)).astype(float)
    np.testing.assert_allclose(got, want, rtol=1e-11)


# logarithms of sums of exponentials


@pytest.mark.parametrize("point", [[0.3, -1.0, 2.0, 0.1], [-400.0, 400.0, 399.0], [800.0, 1.0, 800.0]])
def test_logcumsumexp_has_its_derivatives_in_every_tail(point, backend):
    """First and second derivatives are products of shares ``exp(x - y)``, here in sixty digits."""
    mp = mpmath.mp.clone()
    mp.dps = 60
    n = len(point)
    xs = [mp.mpf(v) for v in point]
    totals = [mp.log(mp.fsum([mp.exp(x) for x in xs[: k + 1]])) for k in range(n)]
    share = [[mp.exp(x - total) if j <= k else mp.mpf(0) for j, x in enumerate(xs)] for k, total in enumerate(totals)]
    weights = [1.0, -2.0, 0.5, 3.0][:n]
    stack = ng.Autodiff(ng.Autodiff(backend))
    x = stack.tensor(point, requires_grad=True)
    y = ng.logcumsumexp(x)
    np.testing.assert_allclose(y.numpy().astype(float), [float(t) for t in totals], rtol=1e-15)
    g = (y * backend.tensor(weights)).sum().wrt(x)
    first = [float(mp.fsum([w * row[j] for w, row in zip(weights, share, strict=True)])) for j in range(n)]
    np.testing.assert_allclose(g.numpy().astype(float), first, rtol=1e-12, atol=1e-300)
    for i in range(n):
        second = [float(mp.fsum([w * row[i] * ((i == j) - row[j]) for w, row in zip(weights, share, strict=True)])) for j in range(n)]
        # shares of 1 cancel to rounding
        np.testing.assert_allclose(g[i].wrt(x).numpy().astype(float), second, rtol=1e-11, atol=1e-14)


def test_logcumsumexp_of_nothing_yet_is_minus_infinity(backend):
    """And has derivative 0 there, at every order, while what comes after is as if it began later."""
    f = lambda x: (lambda y: ng.where(y > -INF, y, 0.0) ** 2)(ng.logcumsumexp(x))
    data = [-INF, -INF, 0.5, -INF, 1.5]
    assert ng.logcumsumexp(backend.tensor(data)).numpy()[:2].tolist() == [-INF, -INF]
    found = derivatives(f, data, 3, backend)
    right = derivatives(f, [0.5, 0.5 - 1e6, 1.5], 3, backend)
    for got, want in zip(found, right, strict=True):
        np.testing.assert_allclose(got.astype(float), [0, 0, *want.astype(float)], rtol=1e-13, atol=1e-300)


def test_logcumsumexp_of_infinity_and_nan(double):
    data = [1.0, INF, 2.0, NAN, 3.0]
    np.testing.assert_array_equal(ng.logcumsumexp(double.tensor(data)).numpy(), [1.0, INF, INF, NAN, NAN])


# differences


@pytest.mark.parametrize("n, axis", [*product([0, 1, 2, 3, 4], [0, 1, -1])])
def test_differences_are_numpys_and_their_transpose_is(n, axis, double):
    x = X[0].T  # (2, 3)
    got = ng.diff(double.tensor(x), n, axis)
    want = np.diff(x, n, axis)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)
    v = ng.Autodiff(double).tensor(x, requires_grad=True)
    weights = np.cos(np.arange(want.size)).reshape(want.shape)
    y = ng.diff(v, n, axis)
    g = y.backward(double.tensor(weights)).wrt(v).numpy()
    units = np.eye(x.size).reshape(x.size, *x.shape)
    np.testing.assert_allclose(g.ravel(), [(np.diff(u, n, axis) * weights).sum() for u in units], rtol=1e-14, atol=1e-14)


def test_differences_with_something_before_and_after(double):
    x = np.array([[1.0, 4.0], [9.0, 7.0]])
    t = double.tensor(x)
    for before, after in ((0.0, None), (None, 2), ([[3.0], [5.0]], 1.5), (np.ones((2, 2)), np.zeros((2, 1)))):
        beside = {k: v for k, v in (("prepend", before), ("append", after)) if v is not None}
        np.testing.assert_array_equal(ng.diff(t, **beside).numpy(), np.diff(x, **beside))
    assert str(ng.diff(ng.tensor([1.0, 2.0], dtype="float32"), prepend=0.5).dtype) == "float32"
    first = ng.Autodiff(double).tensor([[2.0], [3.0]], requires_grad=True)
    assert ng.diff(t, prepend=first).wrt(first).tolist() == [[-1.0], [-1.0]]


def test_differences_of_integers_and_booleans(double):
    assert ng.diff(double.tensor([5, 3, 9])).tolist() == [-2, 6]
    assert ng.diff(double.tensor([True, True, False])).tolist() == [False, True]
    assert ng.diff(double.tensor([True, False, False]), 2).tolist() == [True]


# integrals


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_trapezoids_are_scipys(axis, check_integral):
    y = X[:, :, 0]
    n = y.shape[axis]
    places = np.array([0.3, 0.9, 2.4])[:n]
    gaps = np.diff(places)
    for gives in ({}, {"dx": 0.25}, {"x": places}, {"x": np.cumsum(1 + y**2, axis)}, {"dx": gaps.reshape((-1, 1) if axis == 0 else -1)}):
        check_integral(ng.trapezoid, scipy.integrate.trapezoid, y, gives, axis)
        if not isinstance(gives.get("dx"), np.ndarray):
            check_integral(ng.cumulative_trapezoid, scipy.integrate.cumulative_trapezoid, y, gives, axis)
            check_integral(ng.cumulative_trapezoid, scipy.integrate.cumulative_trapezoid, y, {**gives, "initial": 0}, axis)


@pytest.fixture
def check_integral(double):
    def check(ours, scipys, y, given, axis):
        want = scipys(y, axis=axis, **given)
        x = ng.Autodiff(double).tensor(y, requires_grad=True)
        got = ours(x, axis=axis, **given)
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-13, atol=1e-14)
        units = np.eye(y.size).reshape(y.size, *y.shape)  # linear in the samples
        np.testing.assert_allclose(got.wrt(x).numpy().ravel(), [scipys(u, axis=axis, **given).sum() for u in units], rtol=1e-13)

    return check


def test_integrals_have_derivatives_by_places_and_gaps(double):
    S = ng.Autodiff(ng.Autodiff(double))
    y, x, dx = (S.tensor(v, requires_grad=True) for v in ([1.0, 4.0, 2.0], [0.0, 0.5, 2.0], 0.3))
    area = ng.trapezoid(y, x)
    # sum of (y_i + y_(i+1)) (x_(i+1) - x_i) / 2
    assert area.wrt(x).tolist() == [-2.5, -0.5, 3.0] and area.wrt(x)[1].wrt(y).tolist() == [0.5, 0.0, -0.5]
    assert ng.trapezoid(y, dx=dx).wrt(dx).item() == 5.5
    assert ng.trapezoid(y, dx=dx).wrt(dx).wrt(y).tolist() == [0.5, 1.0, 0.5]


def test_integrals_of_one_sample_or_none_are_0(double):
    for y in ([2.0], [INF], np.zeros(0)):
        assert ng.trapezoid(double.tensor(y)).item() == 0.0 and ng.cumulative_trapezoid(double.tensor(y)).shape == (0,)


# batches


@pytest.mark.parametrize("name", ["cumprod", "cummax", "cummin", "logcumsumexp", "diff", "cumsum"])
def test_samples_are_run_through_each_by_itself(name, double):
    """Their extrema stand at different positions; derivatives to second order."""
    many = np.random.default_rng(3).normal(size=(5, 4, 3))
    f = (lambda x: ng.diff(x, axis=0)) if name == "diff" else lambda x: run(name, x, 0)
    energy = lambda x: (f(x) ** 3).sum()
    for g in (f, ng.func.grad(energy), lambda x: ng.func.grad(lambda v: (ng.func.grad(energy)(v) ** 2).sum())(x)):
        together = ng.func.vmap(g)(double.tensor(many)).numpy()
        np.testing.assert_allclose(together, [g(double.tensor(x)).numpy() for x in many], rtol=1e-12, atol=1e-13)


# bad input


@pytest.mark.parametrize("name", [*NUMPYS, "diff"])
def test_an_axis_that_is_not_there(name):
    with pytest.raises(ShapeError, match=rf"{name}: got axis 2 of an array with 1 axes; expected an int from -1 to 0"):
        getattr(ng, name)(ng.tensor([1.0]), axis=2)
    with pytest.raises(ShapeError, match=rf"{name}: got axis \(0, 1\); expected one axis"):
        getattr(ng, name)(ng.tensor([[1.0]]), axis=(0, 1))


@pytest.mark.parametrize("n", [-1, 1.0, True, "2"])
def test_differences_are_taken_so_and_so_often(n):
    with pytest.raises(ShapeError, match=r"diff: got n=.*; expected how often to take differences, an int from 0 on"):
        ng.diff(ng.tensor([1.0, 2.0]), n)


def test_what_does_not_fit_beside():
    with pytest.raises(ShapeError, match="concat: got shapes"):
        ng.diff(ng.tensor([[1.0, 2.0]]), prepend=[[1.0], [2.0]])
    with pytest.raises(ShapeError, match="trapezoid: got 2 places for 3 samples along axis 0; expected as many"):
        ng.trapezoid(ng.tensor([1.0, 2.0, 3.0]), [0.0, 1.0])


def test_a_recurrence_of_two_dtypes(double):
    single = double.tensor(np.array([1.0, 3.0], np.float32))
    y = apply("recur", double.tensor([1.0, 2.0]), single, axis=0, reverse=False)
    assert y.tolist() == [1.0, 5.0] and "float64" in str(y.dtype)
