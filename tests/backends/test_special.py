"""Special functions of every backend, and of NumPy's without SciPy, against mpmath; what they do at their poles and at infinity."""

import sys

import numpy as np
import pytest
from mpmath.ctx_mp import MPContext

from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.backends.derived import Derived

mp = MPContext()
mp.dps = 60

LINE = [-30.0, -8.5, -3.01, -2.9, -1.3, -0.5, -0.01, 0.01, 0.3, 1.2, 1.3, 2.0, 3.3, 7.0, 20.0]
RIGHT = [1e-3, 0.3, 0.99999, 1.00001, 1.3, 1.99999, 2.6, 7.0, 40.0, 1e3, 1e6]
NEGATIVE = [-0.3, -1.5, -4.01, -20.5]


def scaled(x):
    return mp.exp(x * x) * mp.erfc(x)


def slope(f, n):
    return lambda x: mp.taylor(f, x, n, chop=False)[n] * mp.factorial(n)


def log_normal(x):
    return mp.log(mp.ncdf(x)) if x < 0 else mp.log1p(-mp.ncdf(-x))


# name: (mpmath's, parameters, points)
FUNCTIONS = {
    "erfc": (mp.erfc, (), [*LINE, 25.0]),
    "erfcx": (scaled, (), [x for x in LINE if x > -9]),
    "erfcx_slope": (slope(scaled, 2), (2,), [x for x in LINE if x > -9]),
    "erfinv": (mp.erfinv, (), [-0.9999, -0.5, -0.3, 1e-9, 0.49, 0.51, 0.9, 1 - 1e-12]),
    "ndtr": (mp.ncdf, (), [*LINE, -37.0]),
    "log_ndtr": (log_normal, (), LINE),
    "log_ndtr_slope": (slope(log_normal, 1), (1,), LINE),
    "log_ndtr_slope 2": (slope(log_normal, 2), (2,), LINE),
    "log_ndtr_slope 3": (slope(log_normal, 3), (3,), LINE),
    "sinc_slope": (slope(lambda x: mp.sin(mp.pi * x) / (mp.pi * x), 1), (1,), [0.01, 0.3, 0.5, -1.2, 1.3, 20.3]),
    "sinc_slope 4": (slope(lambda x: mp.sin(mp.pi * x) / (mp.pi * x), 4), (4,), [0.01, 0.3, 0.6, -0.9, 1.0, 1.3, 20.3]),
    "lgamma": (lambda x: mp.re(mp.loggamma(x)), (), [*RIGHT, *NEGATIVE]),
    "digamma": (mp.digamma, (), [x for x in RIGHT if x != 1.3] + NEGATIVE),
    "polygamma": (lambda x: mp.psi(1, x), (1,), [*RIGHT, *NEGATIVE]),
    "polygamma 4": (lambda x: mp.psi(4, x), (4,), [x for x in RIGHT if x > 0.1] + NEGATIVE),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), (), [-8.0, 1e-30, 0.3, 1e30]),
    "exp2": (lambda x: mp.mpf(2) ** x, (), LINE),
    "log2": (lambda x: mp.log(x, 2), (), RIGHT),
    "log10": (mp.log10, (), RIGHT),
}

plain = {name: method for base in reversed(Derived.__mro__[:-2]) for name, method in vars(base).items() if not name.startswith("__")}
needed = {name.split()[0] for name in FUNCTIONS}
Defaults = type("Defaults", (NumpyBackend,), {name: plain[name] for name in needed})
BACKENDS = {"numpy": NumpyBackend(), "torch": TorchBackend(dtype="float64"), "defaults": Defaults()}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_functions_have_twelve_digits(backend, name):
    """Relative to each value, however small it is."""
    f, params, points = FUNCTIONS[name]
    b = BACKENDS[backend]
    with np.errstate(all="ignore"):
        got = b.to_numpy(getattr(b, name.split()[0])(b.asarray(points), *params))
    np.testing.assert_allclose(got, [float(f(mp.mpf(x))) for x in points], rtol=2e-12, atol=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_poles_ends_and_infinities(backend):
    b = BACKENDS[backend]
    inf = np.inf
    with np.errstate(all="ignore"):
        for name, points, want, params in (
            ("lgamma", [0.0, -1.0, -3.0, inf, 1.0, 2.0], [inf, inf, inf, inf, 0.0, 0.0], ()),
            ("polygamma", [0.0, -2.0, inf], [inf, inf, 0.0], (1,)),
            ("erfinv", [1.0, -1.0, 0.0], [inf, -inf, 0.0], ()),
            ("erfc", [inf, -inf], [0.0, 2.0], ()),
            ("erfcx", [inf], [0.0], ()),
            ("ndtr", [inf, -inf], [1.0, 0.0], ()),
            ("cbrt", [0.0, inf, -inf], [0.0, inf, -inf], ()),
        ):
            np.testing.assert_array_equal(b.to_numpy(getattr(b, name)(b.asarray(points), *params)), want, err_msg=name)
        assert np.isnan(b.to_numpy(b.erfinv(b.asarray([1.5, -2.0, np.nan])))).all()
        assert not np.isfinite(b.to_numpy(b.digamma(b.asarray([0.0, -1.0])))).any()
        assert not np.isfinite(b.to_numpy(b.polygamma(b.asarray([0.0, -2.0]), 2))).any()


@pytest.mark.parametrize("name", ["erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "lgamma", "digamma", "polygamma"])
def test_numpy_does_without_scipy(monkeypatch, name):
    from nestgrad.backends.numpy import special

    monkeypatch.setitem(sys.modules, "scipy", None)
    special._scipy.cache_clear()
    f, params, points = FUNCTIONS[name]
    b = NumpyBackend()
    try:
        assert special._scipy() is None
        got = getattr(b, name)(b.asarray(points), *params)
    finally:
        special._scipy.cache_clear()
    np.testing.assert_allclose(got, [float(f(mp.mpf(x))) for x in points], rtol=2e-12, atol=0)


def test_far_left_of_zero_takes_no_longer():
    """By reflection: a sum would have as many terms as the number is negative."""
    for b in (NumpyBackend(), TorchBackend(dtype="float64")):
        got = b.to_numpy(b.polygamma(b.asarray([-1e9 - 0.25]), 2))  # psi''(1 - x), which is nearly 0, less the derivative of a cotangent
        assert got == pytest.approx(float(4 * mp.pi**3), rel=1e-12)


# parts of numbers and the plane, by NumPy's own functions, on the defaults

NUMBERS = [5.3, -5.3, 3.0, -3.0, 0.0, -0.0, 1.0, 0.1, 1e300, -1e-300, np.inf, -np.inf, np.nan]
BINARY = {"remainder": np.remainder, "fmod": np.fmod, "atan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign,
          "heaviside": np.heaviside, "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2}  # fmt: skip
ALL = {"defaults": type("Defaults", (NumpyBackend,), {name: plain[name] for name in [*BINARY, "floor_divide", "signbit"]})(), **BACKENDS}


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers_are_numpys(backend, name):
    b = ALL[backend]
    x, y = np.meshgrid(NUMBERS, NUMBERS)
    if name in ("remainder", "fmod"):
        x, y = np.meshgrid([v for v in NUMBERS if abs(v) < 1e9], [v for v in NUMBERS if not abs(v) < 0.1])
    with np.errstate(all="ignore"):
        got, want = b.to_numpy(getattr(b, name)(b.asarray(x), b.asarray(y))), BINARY[name](x, y)
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=2e-15 if "mod" in name or name == "remainder" else 0)


@pytest.mark.parametrize("backend", ALL)
def test_whole_quotients_of_integers_and_floats(backend):
    b = ALL[backend]
    x, y = np.meshgrid([7, -7, 6, 0], [3, -3, 4, -1])
    for left, right in ((x, y), (x / 2, y / 4)):
        np.testing.assert_array_equal(b.to_numpy(b.floor_divide(b.asarray(left), b.asarray(right))), left // right)
    got = b.to_numpy(b.floor_divide(b.asarray([1.0, -1.0, -1e-300]), b.asarray([0.1, np.inf, 1e300])))
    np.testing.assert_array_equal(got, np.floor_divide([1.0, -1.0, -1e-300], [0.1, np.inf, 1e300]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [9, 20, 21, 40, 100, 171, 400, 1000])
@pytest.mark.parametrize("kind", [NumpyBackend, TorchBackend])
def test_high_orders_of_polygamma_are_in_range_where_their_values_are(kind, n, dtype):
    """Factorials and powers leave the range of numbers long before their product does, in single precision from 20 on."""
    b, points = kind(dtype=dtype), [0.5, 1.0, 3.0, 50.0, 300.0, 1e4, -0.25, -2.75, -4.5]
    info = np.finfo(dtype)
    with mp.workdps(700), np.errstate(all="ignore"):  # what cancels between poles
        right = [mp.psi(n, mp.mpf(x)) for x in points]
        got = b.to_numpy(b.polygamma(b.asarray(points), n))
        for value, want in zip(got, right, strict=True):
            if info.tiny < abs(want) < info.max:
                assert abs((mp.mpf(float(value)) - want) / want) < 2 * n * info.eps  # a rounded quotient to the power n + 1
            else:
                assert not np.isfinite(value) if abs(want) > 1 else abs(value) <= info.tiny
