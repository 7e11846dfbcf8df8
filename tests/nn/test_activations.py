"""Activations: digits in the tails at every order, printed conventions, values beyond overflow, bad input.

The oracle is mpmath's numerical differentiation of the textbook formula in 90 digits, or a number worked out by hand.
"""

import mpmath
import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import ArgumentError, ShapeError

mp = mpmath.mp.clone()
mp.dps = 90

BACKENDS = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}


@pytest.fixture(params=BACKENDS, scope="module")
def base(request):
    return BACKENDS[request.param]


def logistic(x):
    return 1 / (1 + mp.exp(-x))


def orders(base, f, points, order):
    """Value and derivatives at several points, by nested levels."""
    stack = base
    for _ in range(order):
        stack = ng.Autodiff(stack)
    x = stack.tensor(points, requires_grad=True)
    y, found = f(x), []
    found.append(y.numpy())
    for _ in range(order):
        y = y.wrt(x)
        found.append(y.numpy())
    return found


# name: the function, the same in mpmath, how far out
SMOOTH = {
    "sigmoid": (ng.nn.sigmoid, logistic, 40.0),
    "log_sigmoid": (ng.nn.log_sigmoid, lambda x: -mp.log1p(mp.exp(-x)), 40.0),
    "softplus": (ng.nn.softplus, lambda x: mp.log1p(mp.exp(x)), 40.0),
    "softplus(beta=2.5)": (lambda x: ng.nn.softplus(x, 2.5), lambda x: mp.log1p(mp.exp(2.5 * x)) / 2.5, 16.0),
    "silu": (ng.nn.silu, lambda x: x * logistic(x), 40.0),
    "mish": (ng.nn.mish, lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), 40.0),
    "gelu": (ng.nn.gelu, lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, 30.0),
    "gelu tanh": (
        lambda x: ng.nn.gelu(x, approximate="tanh"),
        lambda x: x * logistic(2 * mp.mpf(0.7978845608028654) * (x + mp.mpf(0.044715) * x**3)),
        16.0,
    ),
    "elu": (lambda x: ng.nn.elu(x, 1.7), lambda x: x if x > 0 else mp.mpf(1.7) * mp.expm1(x), 40.0),
    "celu": (lambda x: ng.nn.celu(x, 1.7), lambda x: x if x > 0 else mp.mpf(1.7) * mp.expm1(x / mp.mpf(1.7)), 40.0),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_both_tails_keep_their_digits_to_third_order(base, name):
    """Relative to each derivative itself, however small: rounding of the argument of the exponential is all that may show (1e-10)."""
    f, exact, far = SMOOTH[name]
    points = [-far, -far / 2, -3.3, -0.4, 0.6, 3.1, far / 2, far]
    found = orders(base, f, points, 3)
    for k, x in enumerate(points):
        for order, want in enumerate(mp.diffs(exact, mp.mpf(x), 3, h=mp.mpf("1e-15"))):
            got = float(found[order][k])
            assert got == pytest.approx(float(want), rel=1e-10, abs=1e-300), f"{name} at {x}, order {order}"


@pytest.mark.parametrize(("name", "right"), [("log_sigmoid", -4.248354255291589e-18), ("silu", -1.6143746170108038e-16)])
def test_user_cases_20_and_21_second_derivatives_at_plus_and_minus_40(base, name, right):
    """Computed elsewhere to thirty digits."""
    assert orders(base, getattr(ng.nn, name), [40.0, -40.0], 2)[2] == pytest.approx([right, right], rel=1e-10)


@pytest.mark.parametrize(
    "name", ["elu", "celu", "selu", "sigmoid", "log_sigmoid", "softplus", "silu", "mish", "gelu", "hardswish", "softsign"]
)
@pytest.mark.parametrize("far", [1e3, 1e30])
def test_where_an_exponential_overflows_all_orders_are_finite(base, name, far):
    with np.errstate(over="raise" if far < 1e10 else "ignore", invalid="raise"):
        found = orders(base, getattr(ng.nn, name), [far, -far], 2)
    assert all(np.isfinite(values).all() for values in found)
    assert found[1] == pytest.approx([{"log_sigmoid": 0.0, "sigmoid": 0.0, "selu": 1.0507009873554805, "softsign": 0.0}.get(name, 1.0),
                                      1.0 if name == "log_sigmoid" else 0.0], abs=1e-5)  # fmt: skip


# name: the function, the point, derivatives of orders 1, 2, 3 there
KINKS = {
    "relu at 0": (ng.nn.relu, 0.0, (0.0, 0.0, 0.0)),
    "leaky_relu at 0": (lambda x: ng.nn.leaky_relu(x, 0.1), 0.0, (0.1, 0.0, 0.0)),
    "prelu at 0": (lambda x: ng.nn.prelu(x, 0.25), 0.0, (0.25, 0.0, 0.0)),
    "relu6 at 0": (ng.nn.relu6, 0.0, (0.0, 0.0, 0.0)),
    "relu6 at 6": (ng.nn.relu6, 6.0, (0.0, 0.0, 0.0)),
    "hardtanh at -1": (ng.nn.hardtanh, -1.0, (0.0, 0.0, 0.0)),
    "hardsigmoid at 3": (ng.nn.hardsigmoid, 3.0, (0.0, 0.0, 0.0)),
    "hardswish at -3": (ng.nn.hardswish, -3.0, (0.0, 0.0, 0.0)),
    "hardswish at 3": (ng.nn.hardswish, 3.0, (1.0, 0.0, 0.0)),
    "hardshrink at 1/2": (ng.nn.hardshrink, 0.5, (0.0, 0.0, 0.0)),
    "softshrink at -1/2": (ng.nn.softshrink, -0.5, (0.0, 0.0, 0.0)),
    "threshold": (lambda x: ng.nn.threshold(x, 0.3, 2.0), 0.3, (0.0, 0.0, 0.0)),
    "elu at 0": (lambda x: ng.nn.elu(x, 2.0), 0.0, (2.0, 2.0, 2.0)),
    "celu at 0": (lambda x: ng.nn.celu(x, 2.0), 0.0, (1.0, 0.5, 0.25)),
    "selu at 0": (ng.nn.selu, 0.0, (1.7580993408473766,) * 3),
    "softsign at 0": (ng.nn.softsign, 0.0, (1.0, 0.0, 0.0)),
    "tanhshrink at 0": (ng.nn.tanhshrink, 0.0, (0.0, 0.0, 2.0)),
}


@pytest.mark.parametrize("case", KINKS)
def test_derivatives_at_kinks_are_the_printed_ones(base, case):
    f, point, printed = KINKS[case]
    assert [float(v[0]) for v in orders(base, f, [point, 0.7], 3)[1:]] == pytest.approx(printed, rel=1e-14, abs=0)


def test_hardswish_is_quadratic_between():
    """x (x + 3) / 6."""
    found = orders(BACKENDS["numpy"], ng.nn.hardswish, [-2.9, 1.0, 2.9], 2)
    assert found[1] == pytest.approx([(2 * x + 3) / 6 for x in (-2.9, 1.0, 2.9)], rel=1e-14)
    assert found[2] == pytest.approx([1 / 3] * 3, rel=1e-15)


def test_gelu_differentiates_the_formula_that_it_computes(base):
    """The two differ in their derivatives by far more than rounding, each agrees with differences of itself."""
    x, h = 1.3, 1e-5
    slopes = []
    for word in ("none", "tanh"):
        f = lambda v, word=word: ng.nn.gelu(base.tensor(v), word).item()
        (slope,) = orders(base, lambda v, word=word: ng.nn.gelu(v, word), [x], 1)[1]
        assert slope == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-9)
        slopes.append(slope)
    assert abs(slopes[0] - slopes[1]) > 1e-4


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_softmax_to_fourth_order(base, order):
    """Along a line: softmax of two is the logistic function of the difference."""
    t = 0.7
    stack = base
    for _ in range(order):
        stack = ng.Autodiff(stack)
    x = stack.tensor(t, requires_grad=True)
    y = ng.nn.softmax(ng.stack([x * 2.0, x * -1.0]), 0)[0]
    for _ in range(order):
        y = y.wrt(x)
    assert y.item() == pytest.approx(float(mp.diff(lambda v: logistic(3 * v), mp.mpf(t), order)), rel=1e-12)


def test_the_weight_of_prelu_is_learnt(base):
    """One weight for each channel: its derivative is the sum of what is negative there, and the mixed one counts that."""
    stack = ng.Autodiff(ng.Autodiff(base))
    data = np.array([[1.0, -2.0, -0.5], [-3.0, 4.0, -1.5]])
    x, w = stack.tensor(data, requires_grad=True), stack.tensor([0.1, 0.2, 0.3], requires_grad=True)
    y = ng.nn.prelu(x, w)
    assert y.numpy() == pytest.approx(np.where(data > 0, data, data * [0.1, 0.2, 0.3]), rel=1e-14)
    g = y.sum().wrt(w)
    assert g.tolist() == pytest.approx([-3.0, -2.0, -2.0], rel=1e-14)
    assert g.sum().wrt(x).numpy() == pytest.approx(np.where(data > 0, 0.0, 1.0), rel=1e-14, abs=0)
    images = stack.tensor(np.full((2, 3, 2, 2), -1.0))
    assert ng.nn.prelu(images, w)[0, :, 0, 0].tolist() == pytest.approx([-0.1, -0.2, -0.3], rel=1e-14)


def test_other_names_and_compositions(base):
    x = base.tensor([-1.5, 0.3, 2.0, -0.2])
    assert ng.nn.logsigmoid is ng.nn.log_sigmoid
    assert ng.nn.softmin(x).numpy() == pytest.approx(np.exp(-x.numpy()) / np.exp(-x.numpy()).sum(), rel=1e-14)
    assert ng.nn.glu(x).numpy() == pytest.approx(x.numpy()[:2] / (1 + np.exp(-x.numpy()[2:])), rel=1e-14)
    assert ng.nn.gelu(base.tensor([1, 2])).numpy() == pytest.approx([0.8413447460685429, 1.9544997361036416], rel=1e-14)


def test_bad_input_is_an_error_that_says_what_was_expected():
    x = BACKENDS["numpy"].tensor(np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"glu: got 3 entries along axis 1 of shape \(2, 3\); expected an even number"):
        ng.nn.glu(x)
    with pytest.raises(ShapeError, match=r"prelu: got a weight of shape \(2,\) for shape \(2, 3\); expected one entry, or 3"):
        ng.nn.prelu(x, BACKENDS["numpy"].tensor([0.1, 0.2]))
    with pytest.raises(ArgumentError, match="gelu: got approximate 'fast'; expected 'none' or 'tanh'"):
        ng.nn.gelu(x, "fast")
    with pytest.raises(ShapeError, match="softmax: got axis 2"):
        ng.nn.softmin(x, 2)
