"""Far out, where the plain formulas round to 0 or overflow: derivatives keep their relative accuracy there.

The right values are numerical derivatives of mpmath with eighty digits.
"""

import mpmath
import numpy as np
import pytest

import nestgrad as ng

mp = mpmath.mp.clone()
mp.dps = 80

ORDER = 4


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def softplus(x):
    return mp.log1p(mp.exp(x))


FUNCTIONS = {
    "sigmoid": (lambda x: x.sigmoid(), sigmoid),
    "1 - sigmoid": (lambda x: (-x).sigmoid(), lambda x: sigmoid(-x)),
    "softplus": (lambda x: x.softplus(), softplus),
    "log sigmoid": (lambda x: -(-x).softplus(), lambda x: mp.log(sigmoid(x))),
    "expm1": (lambda x: x.expm1(), mp.expm1),
    "silu": (lambda x: x * x.sigmoid(), lambda x: x * sigmoid(x)),
    "logsumexp": (lambda x: ng.stack([x, 0.0 * x]).logsumexp(0), softplus),
    "softmax": (lambda x: ng.stack([x, 0.0 * x]).softmax(0)[0], sigmoid),
}


def _orders(stack, f, x):
    variable = stack.tensor(x, requires_grad=True)
    y = f(variable)
    for _ in range(ORDER):
        y = y.wrt(variable)
        yield y.item()


@pytest.mark.parametrize("x", [-40.0, -12.0, 12.0, 40.0])
@pytest.mark.parametrize("name", ["sigmoid", "1 - sigmoid", "softplus", "log sigmoid", "expm1"])
def test_tails_of_the_logistic_family(double, nest, name, x):
    """To 1e-13 relative at every order, however small the derivative is."""
    ours, theirs = FUNCTIONS[name]
    want = mp.diffs(theirs, mp.mpf(x), ORDER)
    next(want)
    for k, (got, w) in enumerate(zip(_orders(nest(double, ORDER), ours, x), want, strict=True), 1):
        assert got == pytest.approx(float(w), rel=1e-13, abs=0), f"order {k}"


@pytest.mark.parametrize("x", [-40.0, 40.0])
def test_tails_of_silu(double, nest, x):
    """Second derivative at 40 and -40, where other tools give 0."""
    got = list(_orders(nest(double, ORDER), FUNCTIONS["silu"][0], x))[1]
    assert got == pytest.approx(-1.6143746170108038e-16, rel=1e-13, abs=0)


@pytest.mark.parametrize("x", [-40.0, 40.0])
def test_log_sigmoid_has_the_known_second_derivative(double, nest, x):
    got = list(_orders(nest(double, ORDER), FUNCTIONS["log sigmoid"][0], x))[1]
    assert got == pytest.approx(-4.248354255291589e-18, rel=1e-13, abs=0)


@pytest.mark.parametrize("x", [-40.0, -12.0, 12.0, 40.0])
@pytest.mark.parametrize("name", ["logsumexp", "softmax"])
def test_tails_of_softmax_and_its_kin(double, nest, name, x):
    """First derivatives: of logsumexp, and by a small entry, to 1e-13 relative.

    Where one entry has nearly all the weight, ``1 - p`` cancels in softmax: good to the rounding of 1. Of two entries, sigmoid is the
    accurate spelling.
    """
    ours, theirs = FUNCTIONS[name]
    want = float(mp.diff(theirs, mp.mpf(x)))
    got = next(_orders(nest(double, ORDER), ours, x))
    assert got == pytest.approx(want, rel=1e-13, abs=0 if name == "logsumexp" or x < 0 else 1e-15)


@pytest.mark.parametrize("x", [-40.0, -12.0, 12.0, 40.0])
def test_tails_of_log_softmax(double, nest, x):
    """Value, gradient and Hessian of both entries to 1e-13 relative, also of the one that has nearly all the weight."""
    p, q = sigmoid(mp.mpf(x)), sigmoid(-mp.mpf(x))
    for k, (value, gradient) in enumerate([(-softplus(-mp.mpf(x)), [q, -q]), (-softplus(mp.mpf(x)), [-p, p])]):
        both = nest(double, 2).tensor([x, 0.0], requires_grad=True)
        y = both.log_softmax(0)[k]
        g = y.wrt(both)
        rows = [g[i].wrt(both).tolist() for i in range(2)]
        assert y.item() == pytest.approx(float(value), rel=1e-13, abs=0)
        assert g.tolist() == pytest.approx([float(d) for d in gradient], rel=1e-13, abs=0)
        assert rows == [pytest.approx([float(s * p * q) for s in signs], rel=1e-13, abs=0) for signs in ([-1, 1], [1, -1])]


def test_large_numbers_do_not_overflow(double, nest):
    for f in (lambda x: x.sigmoid(), lambda x: x.softplus(), lambda x: x.tanh(), lambda x: -(-x).softplus(), lambda x: x.erf()):
        for x in (-1000.0, 1000.0):
            assert all(np.isfinite(d) for d in _orders(nest(double, ORDER), f, x))
    for name in ("logsumexp", "softmax", "log_softmax"):
        x = nest(double, 2).tensor([1000.0, -1000.0, 999.0], requires_grad=True)
        y = getattr(x, name)(0)
        g = (y * double.tensor([1.0, 2.0, 3.0]) if y.shape else y).sum().wrt(x)
        h = g[2].wrt(x)
        assert np.isfinite(g.numpy()).all() and np.isfinite(h.numpy()).all()


def test_saturated_tanh_has_zero_curvature(double, nest):
    """``tanh(a / (2 b)) + a`` at (1600, 1): all second derivatives are 0."""
    stack = nest(double, 2)
    a, b = stack.tensor(1600.0, requires_grad=True), stack.tensor(1.0, requires_grad=True)
    y = (a / (2.0 * b)).tanh() + a
    assert [y.wrt(v).wrt(w).item() for v in (a, b) for w in (a, b)] == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("name, x", [("tanh", 15.0), ("tanh", -15.0), ("erf", 5.5), ("erf", -5.5)])
def test_saturated_functions(double, nest, name, x):
    """erf keeps its digits; tanh's rule reads its rounded answer, so it is good to the rounding of 1."""
    want = mp.diffs(getattr(mp, name), mp.mpf(x), ORDER)
    next(want)
    for got, w in zip(_orders(nest(double, ORDER), lambda v: getattr(v, name)(), x), want, strict=True):
        assert got == pytest.approx(float(w), rel=1e-12 if name == "erf" else 0, abs=0 if name == "erf" else 2e-15)
