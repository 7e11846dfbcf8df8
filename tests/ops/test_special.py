"""Special functions: values, tails, removable and singular points, to third order and beyond, against mpmath's own functions."""

import math

import mpmath
import numpy as np
import pytest

import nestgrad as ng

mp = mpmath.mp.clone()
mp.dps = 120

ORDER = 4


def log_normal(x):
    return mp.log(mp.ncdf(x)) if x < 0 else mp.log1p(-mp.ncdf(-x))


# name: (function, mpmath's, points, relative error of value and four derivatives)
CASES = {
    "cbrt": (ng.cbrt, lambda x: mp.sign(x) * mp.cbrt(abs(x)), (-8.0, -1e-3, 0.7, 1e5), 1e-14),
    "exp2": (ng.exp2, lambda x: mp.mpf(2) ** x, (-30.0, 0.3, 40.0), 1e-14),
    "log2": (ng.log2, lambda x: mp.log(x, 2), (1e-5, 0.7, 3.0), 1e-14),
    "log10": (ng.log10, lambda x: mp.log10(x), (1e-5, 0.7, 3.0), 1e-14),
    "sinc": (ng.sinc, lambda x: mp.sin(mp.pi * x) / (mp.pi * x), (1e-9, -0.03, 0.4, -0.77, 1.3, 2.9, 37.3), 1e-12),
    "erfc": (ng.erfc, mp.erfc, (-3.0, 0.4, 3.0, 12.0, 25.0), 1e-12),
    "erfcx": (ng.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), (-4.0, -0.3, 1.1, 1.4, 3.0, 40.0), 1e-11),
    "erfinv": (ng.erfinv, mp.erfinv, (-0.99, -0.3, 1e-9, 0.6, 0.999), 1e-12),
    "ndtr": (ng.ndtr, mp.ncdf, (-37.0, -12.0, -0.4, 2.0, 30.0), 1e-12),
    "log_ndtr": (ng.log_ndtr, log_normal, (-40.0, -10.0, -3.1, -2.9, -0.4, 2.0, 12.0, 35.0), 5e-12),
    "lgamma": (ng.lgamma, lambda x: mp.re(mp.loggamma(x)), (-7.3, -0.4, 0.01, 1.5, 12.0, 1e4), 1e-12),
    "digamma": (ng.digamma, mp.digamma, (-7.3, -0.4, 0.01, 1.2, 12.0, 1e4), 1e-12),
    "polygamma": (lambda x: ng.polygamma(2, x), lambda x: mp.psi(2, x), (-7.5, -0.4, 0.01, 1.2, 12.0, 1e4), 1e-12),
}


def orders(stack, f, points, order=ORDER):
    """Value and derivatives at all points at once."""
    x = stack.tensor(list(points), requires_grad=True)
    y = f(x)
    yield y.numpy()
    for _ in range(order):
        y = y.sum().wrt(x)
        yield y.numpy()


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_keep_their_digits(double, nest, name):
    """Relative to each value itself, in both tails."""
    ours, theirs, points, tolerance = CASES[name]
    wants = [mp.taylor(theirs, mp.mpf(p), ORDER, chop=False) for p in points]
    for k, got in enumerate(orders(nest(double, ORDER), ours, points)):
        want = [float(w[k] * mp.factorial(k)) for w in wants]
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=0, err_msg=f"order {k}")


@pytest.mark.parametrize("x, want", [(-40.0, [40.024968827881896, -0.9993773352893302]), (40.0, [1.4e-348, -5.8e-347])])
def test_the_logarithm_of_the_normal_distribution_at_forty(double, nest, x, want):
    """Where ``x + hazard`` has lost all but a few digits, and where the density is below the smallest number."""
    _, *got = (float(v[0]) for v in orders(nest(double, 2), ng.log_ndtr, [x], 2))
    right = [float(v * mp.factorial(k)) for k, v in enumerate(mp.taylor(log_normal, mp.mpf(x), 2, chop=False))][1:]
    assert got == pytest.approx(right, rel=1e-12, abs=0)
    assert right == pytest.approx(want, rel=1e-3, abs=1e-300)


SINGLE = {"numpy": ng.NumpyBackend("float32"), "torch": ng.TorchBackend()}


@pytest.mark.parametrize("backend", SINGLE)
@pytest.mark.parametrize("name", CASES)
def test_in_single_precision(backend, nest, name):
    """Value, first and second derivative at the points as float32 has them."""
    ours, theirs, points, _ = CASES[name]
    points = [float(np.float32(p)) for p in points if abs(p) < 12 or (name == "log_ndtr" and p < 0)]
    wants = [mp.taylor(theirs, mp.mpf(p), 2, chop=False) for p in points]
    for k, got in enumerate(orders(nest(SINGLE[backend], 2), ours, points, 2)):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, [float(w[k] * mp.factorial(k)) for w in wants], rtol=3e-5, atol=1e-37, err_msg=f"order {k}")


# removable points


def test_sinc_at_zero_has_its_series(double, nest):
    """The derivatives of ``sin(pi x)/(pi x)`` at 0 are 0 and ``(-1)^k pi^2k / (2k + 1)``, in arrays beside other points as well."""
    want = [(-1) ** (k // 2) * math.pi**k / (k + 1) if k % 2 == 0 else 0.0 for k in range(9)]
    for points in ([0.0], [1.0, 0.0, 2.5]):
        got = [v[points.index(0.0)] for v in orders(nest(double, 8), ng.sinc, points, 8)]
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)


def test_sinc_by_one_series(double):
    """Eight coefficients in Taylor mode."""
    got = [c.item() for c in ng.func.taylor(ng.sinc, double.tensor(0.25), double.tensor(1.0), 8)]
    want = mp.taylor(lambda x: mp.sin(mp.pi * x) / (mp.pi * x), mp.mpf(0.25), 8)
    np.testing.assert_allclose(got, [float(w) for w in want], rtol=1e-11)


def test_logaddexp_of_equal_and_of_infinite_operands(double, nest):
    stack = nest(double, 2)
    inf = math.inf
    x = stack.tensor([1.0, -inf, -inf, 2.0, 800.0], requires_grad=True)
    y = stack.tensor([1.0, -inf, 2.0, -inf, -800.0], requires_grad=True)
    z = ng.logaddexp(x, y)
    np.testing.assert_allclose(z.numpy(), [1 + math.log(2), -inf, 2.0, 2.0, 800.0], rtol=1e-15)
    gx, gy = z.sum().wrt(x), z.sum().wrt(y)
    assert gx.tolist() == [0.5, 0.5, 0.0, 1.0, 1.0] and gy.tolist() == [0.5, 0.5, 1.0, 0.0, 0.0]
    assert gx.sum().wrt(x).tolist() == [0.25, 0.25, 0.0, 0.0, 0.0] == [-v for v in gx.sum().wrt(y).tolist()]


@pytest.mark.parametrize("f, one", [(ng.xlogy, 0.0), (ng.xlog1py, -1.0)])
def test_xlogy_where_a_factor_is_zero(double, nest, f, one):
    """All derivatives by ``y`` are 0 where ``x`` is 0; the one by ``x`` is the logarithm, infinite or not."""
    stack = nest(double, 3)
    x, y = stack.tensor([0.0, 0.0, 1.5], requires_grad=True), stack.tensor([one, one + 2.0, one + 1.0], requires_grad=True)
    z = f(x, y)
    assert z.tolist() == [0.0, 0.0, 0.0]
    by_y = z.sum().wrt(y)
    assert by_y.tolist() == [0.0, 0.0, 1.5]
    assert by_y.sum().wrt(y).tolist() == [0.0, 0.0, -1.5]
    np.testing.assert_allclose(z.sum().wrt(x).numpy(), [-math.inf, math.log(2.0), 0.0], rtol=1e-15, atol=1e-16)
    assert f(0.0, math.nan).item() != 0.0
    t = stack.tensor([0.0, 0.5], requires_grad=True)
    assert ng.where(t > 0.2, f(t, t + one), t**2).sum().wrt(t).tolist()[0] == 0.0


# the plane


def test_hypot_has_derivative_zero_at_the_origin_and_none_beyond(double, nest):
    stack = nest(double, 2)
    x, y = stack.tensor([0.0, 3.0, 1e200], requires_grad=True), stack.tensor([0.0, 4.0, 1e200], requires_grad=True)
    z = ng.hypot(x, y)
    np.testing.assert_allclose(z.numpy(), [0.0, 5.0, math.sqrt(2.0) * 1e200], rtol=1e-15)
    g = z.sum().wrt(x)
    np.testing.assert_allclose(g.numpy(), [0.0, 0.6, math.sqrt(0.5)], rtol=1e-15)
    with np.errstate(all="ignore"):
        h = g.sum().wrt(x).numpy()
        assert not np.isfinite(h[0]) and h[1] == pytest.approx(0.128, rel=1e-14)
        t = stack.tensor([0.0, 0.5], requires_grad=True)
        assert ng.where(t > 0.2, ng.hypot(t, 0.0), t**2).sum().wrt(t).sum().wrt(t).tolist()[0] == 2.0


@pytest.mark.parametrize("y, x", [(0.0, 1.0), (0.0, -1.0), (2.0, 0.0), (-2.0, 0.0), (1e-90, 2e-90), (-3e150, 1e150), (0.3, -0.7)])
def test_atan2_on_the_axes_and_far_from_one(double, nest, y, x):
    """Third order, in both arguments."""
    stack = nest(double, 3)
    v, u = stack.tensor(y, requires_grad=True), stack.tensor(x, requires_grad=True)
    z = ng.atan2(v, u)
    assert z.item() == math.atan2(y, x)
    w = 1 / (mp.mpf(x) + mp.mpc(0, 1) * mp.mpf(y))
    # the angle is the imaginary part of log(x + i y), so a derivative by x divides by it, and one by y has a factor i more
    for word, factor in (("v", 1j), ("u", 1), ("vu", -1j), ("uu", -1), ("vv", 1), ("vvu", -2), ("vvv", -2j), ("uuu", 2)):
        got = z
        for letter in word:
            got = got.wrt({"u": u, "v": v}[letter])
        want = float(mp.im(mp.mpc(factor) * w ** len(word)))
        if abs(want) < 1e300:
            assert got.item() == pytest.approx(want, rel=1e-13, abs=1e-16 * abs(float(abs(w) ** len(word)))), word


def test_the_angle_at_the_origin_has_no_derivative(double, nest):
    stack = nest(double, 1)
    y, x = stack.tensor(0.0, requires_grad=True), stack.tensor(0.0, requires_grad=True)
    with np.errstate(all="ignore"):
        assert ng.atan2(y, x).item() == 0.0 and math.isnan(ng.atan2(y, x).wrt(y).item())


# poles


def test_poles_of_the_gamma_family_are_honest(double, nest):
    stack = nest(double, 2)
    x = stack.tensor([0.0, -1.0, -4.0, 0.5], requires_grad=True)
    with np.errstate(all="ignore"):
        assert ng.lgamma(x).tolist()[:3] == [math.inf] * 3
        for f in (ng.lgamma, ng.digamma, lambda v: ng.polygamma(1, v)):
            g = f(x).sum().wrt(x)
            assert not np.isfinite(g.numpy()[:3]).any() and not np.isfinite(g.sum().wrt(x).numpy()[:3]).any()
            chosen = ng.where(x > 0.2, f(x), x**2).sum().wrt(x)
            assert chosen.tolist()[:3] == [0.0, -2.0, -8.0] and chosen.sum().wrt(x).tolist()[:3] == [2.0] * 3


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_the_derivative_of_a_polygamma_is_the_next(double, nest, n):
    x = nest(double, 1).tensor([-30.5, -2.3, 0.2, 1.0, 7.0, 400.0], requires_grad=True)
    got = ng.polygamma(n, x).sum().wrt(x)
    assert got.tolist() == ng.polygamma(n + 1, x).tolist()
    np.testing.assert_allclose(got.numpy(), [float(mp.psi(n + 1, mp.mpf(v))) for v in x.tolist()], rtol=1e-12)


@pytest.mark.parametrize("n", [-1, 1.5, True, "1"])
def test_polygamma_wants_a_whole_order(n):
    with pytest.raises(ng.errors.OrderError, match=r"polygamma: got n = .*; expected an int from 0 to 1000.*Try polygamma\(n, x\)"):
        ng.polygamma(n, 1.0)


def test_erfinv_at_its_ends(double, nest):
    x = nest(double, 2).tensor([1.0, -1.0, 1.5, 0.5], requires_grad=True)
    with np.errstate(all="ignore"):
        y = ng.erfinv(x)
        assert y.tolist()[:2] == [math.inf, -math.inf] and math.isnan(y.tolist()[2])
        assert y.sum().wrt(x).tolist()[:2] == [math.inf, math.inf]
        chosen = ng.where(x == 0.5, y, x**3).sum().wrt(x)
        assert chosen.tolist()[:3] == [3.0, 3.0, 6.75] and chosen.sum().wrt(x).tolist()[:3] == [6.0, -6.0, 9.0]
