"""Averages, spread, medians, quantiles, covariances, norms: NumPy's and torch's values, derivatives, and what happens at the edges."""

import itertools
import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import nestgrad as ng
from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.tensor.handle import apply

RUN = settings(max_examples=40, deadline=None, derandomize=True)
NAN, INF = float("nan"), float("inf")
X = np.array([[[0.5, -1.5], [2.5, 0.7], [1.1, -0.2]], [[3.0, 1.25], [-0.75, 0.1], [0.9, 2.2]]])
AXES = [None, 0, 1, -1, (0, 2), (2, 1, 0)]
METHODS = ["linear", "lower", "higher", "midpoint", "nearest"]


def second_order(double, ours, torchs, *arrays, rtol=1e-11):
    """Value, gradient and second gradient against torch's double backward, contracted with random numbers."""
    rng = np.random.default_rng(1)
    ts = [torch.tensor(a, requires_grad=True) for a in arrays]
    stack = ng.Autodiff(ng.Autodiff(double))
    xs = [stack.tensor(a, requires_grad=True) for a in arrays]
    y, t = ours(*xs), torchs(*ts)
    assert y.shape == tuple(t.shape)
    np.testing.assert_allclose(y.numpy(), t.detach().numpy(), rtol=rtol, atol=1e-13)
    weights = rng.normal(size=y.shape)
    first = torch.autograd.grad((t * torch.tensor(weights)).sum(), ts, create_graph=True)
    grads = (y * double.tensor(weights)).sum().backward()
    directions = [rng.normal(size=a.shape) for a in arrays]
    for x, want in zip(xs, first, strict=True):
        np.testing.assert_allclose(x.grad(grads).numpy(), want.detach().numpy(), rtol=rtol, atol=1e-12)
    total = sum((g * torch.tensor(v)).sum() for g, v in zip(first, directions, strict=True))
    second = torch.autograd.grad(total, ts, materialize_grads=True) if total.requires_grad else [torch.zeros_like(v) for v in ts]
    grads = sum((x.grad(grads) * double.tensor(v)).sum() for x, v in zip(xs, directions, strict=True)).backward()
    for x, want in zip(xs, second, strict=True):
        np.testing.assert_allclose(x.grad(grads).numpy(), want.numpy(force=True), rtol=rtol, atol=1e-11)  # zeros have a type of their own


# spread


@pytest.mark.parametrize("correction", [0, 1, 1.5])
@pytest.mark.parametrize("axis", AXES, ids=repr)
def test_the_standard_deviation_is_torchs(axis, correction, double):
    for keepdims in (False, True):
        ours = lambda x, k=keepdims: x.std(axis, correction, k)
        second_order(double, ours, lambda t, k=keepdims: torch.std(t, axis, correction=correction, keepdim=k), X)


def test_third_derivatives_of_the_standard_deviation(backend):
    """Along a line, by mpmath."""
    mp = mpmath.mp.clone()
    mp.dps = 50
    point, line = [0.3, -1.2, 2.0, 0.4], [1.0, 0.5, -0.25, 2.0]

    def along(t):
        values = [mp.mpf(p) + t * mp.mpf(v) for p, v in zip(point, line, strict=True)]
        mean = mp.fsum(values) / 4
        return mp.sqrt(mp.fsum([(v - mean) ** 2 for v in values]) / 3)

    T = ng.Taylor(backend, 3)
    terms = T.terms(ng.std(T.series(point, line), correction=1))
    for k in range(4):
        assert float(terms[k].numpy()) * math.factorial(k) == pytest.approx(float(mp.diff(along, 0, k)), rel=1e-12)


def test_no_spread_is_a_kink(backend):
    """The first derivative is given as 0, higher ones are not there."""
    x = ng.Autodiff(ng.Autodiff(backend)).tensor([[2.0, 2.0], [1.0, 3.0]], requires_grad=True)
    y = ng.std(x, axis=1)
    g = y.wrt(x)
    assert y.tolist() == [0.0, 1.0] and g.tolist() == [[0.0, 0.0], [-0.5, 0.5]]
    h = (g * backend.tensor([[1.0, 2.0], [1.0, 3.0]])).sum().wrt(x).numpy().astype(float)
    # of the line with a spread s = |a - b| / 2, which is linear there
    assert np.isnan(h[0]).all() and h[1].tolist() == [0.0, 0.0]
    F = ng.Forward(backend)
    assert F.tangent(ng.std(F.dual([2.0, 2.0], [1.0, 5.0]))).item() == 0.0


def test_too_few_have_no_spread(double):
    for data, correction in ((np.zeros(0), 0), ([1.0], 1), ([1.0, 2.0], 2)):
        x = ng.Autodiff(double).tensor(data, requires_grad=True)
        y = ng.std(x, correction=correction)
        assert np.isnan(y.item()) and np.isnan(y.wrt(x).numpy()).all()
    assert ng.std(double.tensor([1, 3])).item() == 1.0


# averages


def test_weighted_averages_are_numpys(double):
    rng = np.random.default_rng(2)
    w = rng.uniform(0.1, 1, X.shape)
    for axis in AXES:
        np.testing.assert_allclose(ng.average(double.tensor(X), axis, double.tensor(w)).numpy(), np.average(X, axis, w), rtol=1e-13)
        np.testing.assert_allclose(ng.average(double.tensor(X), axis).numpy(), np.average(X, axis), rtol=1e-13)
    for axis in (0, 1, -1):
        v = rng.uniform(0.1, 1, X.shape[axis])
        np.testing.assert_allclose(ng.average(double.tensor(X), axis, v).numpy(), np.average(X, axis, v), rtol=1e-13)
    second_order(double, lambda x, w: ng.average(x, 1, w), lambda t, w: (t * w).sum(1) / w.sum(1), X, w)


def test_what_is_not_a_number_is_left_out(double):
    data = X.copy()
    data[0, 1, 0] = data[1, 2, 1] = NAN
    data[:, 0, 1] = NAN
    for axis in AXES:
        x = ng.Autodiff(ng.Autodiff(double)).tensor(data, requires_grad=True)
        t = torch.tensor(data, requires_grad=True)
        for ours, torchs in ((ng.nansum, torch.nansum), (ng.nanmean, torch.nanmean)):
            y, want = ours(x, axis), torchs(t, axis) if axis is not None else torchs(t)
            np.testing.assert_allclose(y.numpy(), want.detach().numpy(), rtol=1e-13)
            g = (y**2).wrt(x)
            (first,) = torch.autograd.grad((want**2).sum(), t, create_graph=True)
            (second,) = torch.autograd.grad(first.nansum(), t)
            for got, right in ((g, first.detach().numpy()), (g.wrt(x), second.numpy())):
                # what is left out has derivative 0, which torch says but where there is nothing else
                np.testing.assert_allclose(got.numpy(), np.where(np.isnan(data), 0.0, right), rtol=1e-13)
    assert ng.nansum(double.tensor([NAN])).item() == 0.0 and np.isnan(ng.nanmean(double.tensor([NAN])).item())
    assert ng.nansum(double.tensor([1, 2])).item() == 3 and ng.nanmean(double.tensor([1, 2])).item() == 1.5


# medians and quantiles


@pytest.mark.parametrize("axis", AXES, ids=repr)
def test_medians_and_quantiles_are_numpys(axis, double):
    for keepdims in (False, True):
        np.testing.assert_allclose(ng.median(double.tensor(X), axis, keepdims).numpy(), np.median(X, axis, keepdims=keepdims), rtol=1e-15)
        for q, method in itertools.product((0.0, 0.3, 0.5, 1.0, [0.9, 0.1], [[0.25, 0.75]], []), METHODS):
            got = ng.quantile(double.tensor(X), q, axis, method, keepdims)
            want = np.quantile(X, q, axis, method=method, keepdims=keepdims)
            assert got.shape == want.shape
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(ng.percentile(double.tensor(X), [5, 50.0], axis).numpy(), np.percentile(X, [5, 50], axis), rtol=1e-14)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 1501, 1502])
def test_of_any_number_of_entries(n, method, double):
    """Halves go to the even rank, as in NumPy and torch."""
    x = np.random.default_rng(n).normal(size=n)
    for q in (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0):
        want = np.quantile(x, q, method=method)
        assert ng.quantile(double.tensor(x), q, method=method).item() == pytest.approx(want, rel=1e-13)
        assert want == pytest.approx(torch.quantile(torch.tensor(x), q, interpolation=method).item(), rel=1e-13)
    assert ng.median(double.tensor(x)).item() == np.median(x)


@RUN
@given(st.lists(st.floats(-9, 9), min_size=1, max_size=8), st.lists(st.floats(0, 1), min_size=2, max_size=5), st.sampled_from(METHODS))
def test_quantiles_are_monotone_and_within(data, places, method):
    places = sorted(places)
    for base in (ng.NumpyBackend(), ng.TorchBackend(dtype="float64")):
        values = ng.quantile(base.tensor(data), places, method=method).numpy()
        assert (np.diff(values) >= -1e-14).all() and values.min() >= min(data) - 1e-14 and values.max() <= max(data) + 1e-14
        assert ng.quantile(base.tensor([data[0]] * 4), places, method=method).tolist() == [data[0]] * len(places)


@pytest.mark.parametrize("f, slopes", [
    (lambda x: ng.median(x), [0.0, 0.5, 0.0, 0.5]),  # of 4, 2, 1, 2: the two in the middle
    (lambda x: ng.median(x[:3]), [0.0, 1.0, 0.0, 0.0]),
    (lambda x: ng.quantile(x, 0.5, method="lower"), [0.0, 1.0, 0.0, 0.0]),  # of equals the first is of the lower rank
    (lambda x: ng.quantile(x, 0.5, method="higher"), [0.0, 0.0, 0.0, 1.0]),
    (lambda x: ng.quantile(x, 0.9), [0.7, 0.0, 0.0, 0.3]),
    (lambda x: ng.quantile(x, 0.8, method="midpoint"), [0.5, 0.0, 0.0, 0.5]),
])  # fmt: skip
def test_who_gets_the_derivative(f, slopes, backend):
    x = ng.Autodiff(ng.Autodiff(ng.Autodiff(backend))).tensor([4.0, 2.0, 1.0, 2.0], requires_grad=True)
    y = f(x)
    g = (y**3).wrt(x)
    h = g.sum().wrt(x)
    value = y.numpy().astype(float)
    np.testing.assert_allclose(g.numpy().astype(float), 3 * value**2 * np.array(slopes), rtol=1e-12)
    np.testing.assert_allclose(h.numpy().astype(float), 6 * value * np.array(slopes), rtol=1e-12)
    np.testing.assert_allclose(h.sum().wrt(x).numpy().astype(float), 6 * np.array(slopes), rtol=1e-12)


def test_one_nan_makes_nan_of_the_answer(backend):
    data = [[1.0, NAN, 2.0, 4.0], [1.0, 3.0, 2.0, 4.0]]
    x = ng.Autodiff(backend).tensor(data, requires_grad=True)
    for y in (ng.median(x, 1), ng.quantile(x, 0.4, 1), ng.quantile(x, [0.4, 0.0], 1)[1]):
        assert np.isnan(y.tolist()[0]) and np.isfinite(y.tolist()[1])
        assert y.wrt(x).tolist()[0] == [0.0] * 4  # no entry has more to do with it than another


def test_infinite_entries(double):
    x = double.tensor([-INF, 1.0, INF, INF])
    assert ng.median(x[:3]).item() == 1.0 and ng.median(x).item() == INF
    assert ng.quantile(x, [0.0, 1.0]).tolist() == [-INF, INF] and ng.quantile(x, [1.0, 2 / 3]).tolist() == [INF, INF]


def test_of_nothing(double):
    x = ng.Autodiff(double).tensor(np.zeros((2, 0)), requires_grad=True)
    for y in (ng.median(x, 1), ng.quantile(x, 0.5, 1)):
        assert y.shape == (2,) and np.isnan(y.numpy()).all() and y.wrt(x).shape == (2, 0)
    assert ng.quantile(x, [0.1, 0.2, 0.3], 1).shape == (3, 2) and ng.median(x, 0).shape == (0,)
    assert ng.median(double.tensor([3, 1])).item() == 2.0


# covariances


def test_covariances_are_numpys(double):
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(3, 7)), rng.normal(size=(2, 7))
    counts, weights = rng.integers(1, 4, 7), rng.uniform(0.2, 2, 7)
    t, u = double.tensor(a), double.tensor(b)
    np.testing.assert_allclose(ng.cov(t, u).numpy(), np.cov(a, b), rtol=1e-12)
    np.testing.assert_allclose(ng.cov(t.mT, rowvar=False).numpy(), np.cov(a), rtol=1e-12)
    for given_ in ({}, {"fweights": counts}, {"aweights": weights}, {"fweights": counts, "aweights": weights}):
        for correction in (0, 1):
            np.testing.assert_allclose(ng.cov(t, correction=correction, **given_).numpy(), np.cov(a, ddof=correction, **given_), rtol=1e-12)
    assert ng.cov(t[0]).item() == pytest.approx(np.cov(a[0]), rel=1e-13) and ng.cov(t[0]).shape == ()
    np.testing.assert_allclose(ng.corrcoef(t, u).numpy(), np.corrcoef(a, b), rtol=1e-12)
    assert ng.corrcoef(t[0]).item() == pytest.approx(1.0, rel=1e-14) and np.isnan(ng.cov(double.tensor([1.0])).item())
    flat = ng.corrcoef(double.tensor([[1.0, 1.0], [0.0, 1.0]])).numpy()
    assert np.isnan(flat[0]).all() and flat[1, 1] == pytest.approx(1.0, rel=1e-14)


def test_derivatives_of_covariances_are_torchs(double):
    rng = np.random.default_rng(5)
    a, w = rng.normal(size=(3, 7)), rng.uniform(0.2, 2, 7)
    second_order(double, ng.cov, torch.cov, a)
    second_order(double, ng.corrcoef, torch.corrcoef, a)
    second_order(double, lambda x: ng.cov(x, aweights=w), lambda t: torch.cov(t, aweights=torch.tensor(w)), a)


# norms


@pytest.mark.parametrize("axis", AXES, ids=repr)
@pytest.mark.parametrize("order", [1, 2, 3, 4, 1.5, 2.5, 10, INF, -INF])
def test_norms_of_any_order_are_torchs(order, axis, double):
    for keepdims in (False, True):
        second_order(
            double, lambda x, k=keepdims: ng.norm(x, axis, k, order), lambda t, k=keepdims: torch.linalg.vector_norm(t, order, axis, k), X,
            rtol=1e-10,
        )  # fmt: skip


def test_the_norm_of_order_0_counts(double):
    x = ng.Autodiff(double).tensor([[0.0, 2.0], [3.0, NAN]], requires_grad=True)
    y = ng.norm(x, axis=1, ord=0)
    assert y.tolist() == [1.0, 2.0] and y.level == 0 and "float64" in str(y.dtype)


@pytest.mark.parametrize("order", [1, 1.5, 2, 3, 4, INF])
def test_norms_of_zeros(order, backend):
    """An entry that is 0 beside others gets 0, and so do all at the origin, to first order."""
    x = ng.Autodiff(ng.Autodiff(backend)).tensor([[0.0, 2.0], [0.0, 0.0]], requires_grad=True)
    y = ng.norm(x, axis=1, ord=order)
    g = y.wrt(x)
    assert y.tolist() == [2.0, 0.0] and g.numpy().astype(float)[0].tolist() == [0.0, 1.0]
    assert g.numpy().astype(float)[1].tolist() == [0.0, 0.0]
    if 1 < order < INF:
        assert not np.isfinite(g.sum().wrt(x).numpy().astype(float)[1]).any()


def test_norms_neither_overflow_nor_vanish(double):
    for size in (1e-200, 1e200):
        assert ng.norm(double.tensor([3.0 * size, 4.0 * size]), ord=3).item() == pytest.approx(91 ** (1 / 3) * size, rel=1e-14)
    x = ng.Autodiff(double).tensor([3e200, 4e200], requires_grad=True)
    y = ng.norm(x, ord=3)
    np.testing.assert_allclose(y.wrt(x).numpy(), np.array([9.0, 16.0]) / 91 ** (2 / 3), rtol=1e-13)
    assert ng.norm(double.tensor([1.0, INF]), ord=3).item() == INF and ng.norm(double.tensor(np.zeros(0)), ord=3).item() == 0.0


@pytest.mark.parametrize("p, odd", [*itertools.product([0.5, 1.0, 2.0, 2.5, 3.0, 4.0], [False, True])])
def test_powers_of_sizes(p, odd, backend):
    """``|x|^p`` and ``sign(x) |x|^p`` to third order, by mpmath."""
    mp = mpmath.mp.clone()
    mp.dps = 50
    f = lambda v: abs(v) ** mp.mpf(p) * (mp.sign(v) if odd else 1)
    stack = ng.Autodiff(ng.Autodiff(ng.Autodiff(backend)))
    for point in (-1.7, 0.6):
        x = stack.tensor(point, requires_grad=True)
        y = apply("abspow", x, p=p, odd=odd)
        for k in range(4):
            assert float(y.numpy()) == pytest.approx(float(mp.diff(f, point, k)), rel=1e-13, abs=1e-13)
            y = y.wrt(x) if k < 3 else y


# what is counted


def test_counts_and_ranges_are_numpys(double):
    data = np.array([[0.0, 2.0, -1.0], [3.0, 0.0, 0.0]])
    x = double.tensor(data)
    for axis in (None, 0, 1, (0, 1)):
        np.testing.assert_array_equal(ng.count_nonzero(x, axis).numpy(), np.count_nonzero(data, axis))
        np.testing.assert_array_equal(ng.any(x, axis).numpy(), data.any(axis))
        np.testing.assert_array_equal(ng.all(x, axis).numpy(), data.all(axis))
        np.testing.assert_array_equal(ng.ptp(x, axis).numpy(), np.ptp(data, axis))
        least, greatest = ng.aminmax(x, axis)
        np.testing.assert_array_equal(least.numpy(), data.min(axis))
        np.testing.assert_array_equal(greatest.numpy(), data.max(axis))
    v = ng.Autodiff(double).tensor(data, requires_grad=True)
    assert ng.ptp(v, 1).wrt(v).tolist() == [[0.0, 1.0, -1.0], [1.0, -0.5, -0.5]]
    assert ng.count_nonzero(v).level == 0 and "int64" in str(ng.count_nonzero(v).dtype)


# bad input


def test_what_a_quantile_refuses():
    x = ng.tensor([1.0, 2.0])
    with pytest.raises(ArgumentError, match=r"quantile: got q=1.5; expected numbers from 0 to 1"):
        ng.quantile(x, 1.5)
    with pytest.raises(ArgumentError, match=r"percentile: got q=\[50.0, -1.0\]; expected numbers from 0 to 100"):
        ng.percentile(x, [50.0, -1.0])
    with pytest.raises(ArgumentError, match="quantile: got q=nan"):
        ng.quantile(x, NAN)
    with pytest.raises(ArgumentError, match="quantile: got method 'mid'; expected one of 'linear', 'lower'"):
        ng.quantile(x, 0.5, method="mid")
    with pytest.raises(ArgumentError, match=r"quantile: got a q that is on levels; .* Try q.detach\(\)"):
        ng.quantile(x, ng.Autodiff(ng.NumpyBackend()).tensor(0.5, requires_grad=True))


def test_what_averages_and_covariances_refuse():
    x = ng.tensor([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]])
    with pytest.raises(ShapeError, match=r"average: got weights of shape \(2,\) for an array of shape \(3, 2\); expected the same"):
        ng.average(x, weights=[1.0, 2.0])
    with pytest.raises(ShapeError, match="average: got 2 weights for 3 entries along axis 0; expected as many"):
        ng.average(x, 0, [1.0, 2.0])
    with pytest.raises(ShapeError, match="cov: got 2 and 3 observations; expected as many of both"):
        ng.cov(x, ng.tensor([1.0, 2.0, 3.0]))
    with pytest.raises(ShapeError, match=r"cov: got aweights of shape \(3,\) for 2 observations; expected shape \(2,\)"):
        ng.cov(x, aweights=[1.0, 2.0, 3.0])
    with pytest.raises(ShapeError, match=r"cov: got shape \(1, 3, 2\); expected at most two axes"):
        ng.corrcoef(x[None])


@pytest.mark.parametrize("order", [-1, -2.5, "fro", True, None, NAN])
def test_orders_of_norms(order):
    with pytest.raises(ArgumentError, match=r"norm: got ord=.*; expected a number from 0 on, infinity, or minus infinity"):
        ng.norm(ng.tensor([1.0]), ord=order)


def test_extrema_of_nothing():
    for f in (ng.ptp, ng.aminmax, lambda x: ng.norm(x, ord=INF)):
        with pytest.raises(ShapeError, match="expected at least one entry"):
            f(ng.tensor(np.zeros((2, 0))))
