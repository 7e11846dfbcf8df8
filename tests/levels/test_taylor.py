"""Taylor mode against mpmath's own Taylor series, which shares no code with it."""

import gc
import weakref

import mpmath as mp
import pytest

import nestgrad as ng
from nestgrad.errors import DTypeError, LevelError, OrderError, ShapeError

ORDER = 8
FUNCTIONS = {
    "exp": (lambda x: x.exp(), mp.exp),
    "expm1": (lambda x: x.expm1(), mp.expm1),
    "sin": (lambda x: x.sin(), mp.sin),
    "cos": (lambda x: x.cos(), mp.cos),
    "tan": (lambda x: x.tan(), mp.tan),
    "asin": (lambda x: (x / 3).asin(), lambda x: mp.asin(x / 3)),
    "acos": (lambda x: (x / 3).acos(), lambda x: mp.acos(x / 3)),
    "atan": (lambda x: x.atan(), mp.atan),
    "sinh": (lambda x: x.sinh(), mp.sinh),
    "cosh": (lambda x: x.cosh(), mp.cosh),
    "tanh": (lambda x: x.tanh(), mp.tanh),
    "asinh": (lambda x: x.asinh(), mp.asinh),
    "acosh": (lambda x: (x + 1).acosh(), lambda x: mp.acosh(x + 1)),
    "atanh": (lambda x: (x / 3).atanh(), lambda x: mp.atanh(x / 3)),
    "log": (lambda x: x.log(), mp.log),
    "log1p": (lambda x: x.log1p(), mp.log1p),
    "sqrt": (lambda x: x.sqrt(), mp.sqrt),
    "rsqrt": (lambda x: x.rsqrt(), lambda x: 1 / mp.sqrt(x)),
    "reciprocal": (lambda x: 1 / x, lambda x: 1 / x),
    "square": (lambda x: x.square(), lambda x: x * x),
    "sigmoid": (lambda x: x.sigmoid(), lambda x: 1 / (1 + mp.exp(-x))),
    "softplus": (lambda x: x.softplus(), lambda x: mp.log(1 + mp.exp(x))),
    "erf": (lambda x: x.erf(), mp.erf),
    "seventh power": (lambda x: x**7, lambda x: x**7),
    "negative power": (lambda x: x**-3, lambda x: x**-3),
    "real power": (lambda x: x**2.5, lambda x: x**2.5),
    "power of itself": (lambda x: x**x, lambda x: x**x),
    "quotient": (lambda x: x.sin() / (1 + x * x), lambda x: mp.sin(x) / (1 + x * x)),
    "composition": (lambda x: (x.sin() / x).tanh() * (x * x).exp(), lambda x: mp.tanh(mp.sin(x) / x) * mp.exp(x * x)),
    "norm": (lambda x: ng.stack([x, x * x, x.cos()]).norm(), lambda x: mp.sqrt(x * x + x**4 + mp.cos(x) ** 2)),
    "logsumexp": (lambda x: ng.stack([x, x * x]).logsumexp(0), lambda x: mp.log(mp.exp(x) + mp.exp(x * x))),
    "softmax": (lambda x: ng.stack([x, x * x]).softmax(0)[1], lambda x: 1 / (1 + mp.exp(x - x * x))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_coefficients_are_those_of_the_series(name):
    ours, theirs = FUNCTIONS[name]
    T = ng.Taylor(ng.NumpyBackend(), ORDER)
    found = [c.item() for c in T.terms(ours(T.series(0.7, 1.0)))]
    with mp.workdps(40):
        right = [float(c) for c in mp.taylor(theirs, mp.mpf(0.7), ORDER)]
    # the recurrences lose a few digits per order; the eighth coefficient still has twelve
    assert found == pytest.approx(right, rel=1e-12, abs=1e-13)


def test_along_a_curve_the_coefficients_are_those_of_the_composition():
    T = ng.Taylor(ng.NumpyBackend(), 4)
    found = [c.item() for c in T.terms(T.series(0.3, 1.0, -2.0, 0.5).exp())]
    with mp.workdps(30):
        right = [float(c) for c in mp.taylor(lambda t: mp.exp(mp.mpf(0.3) + t - 2 * t**2 + t**3 / 2), 0, 4)]
    assert found == pytest.approx(right, rel=1e-13)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_coefficients_of_arrays_are_those_of_their_entries(backend):
    T = ng.Taylor(ng.get_backend(backend), 3)
    terms = T.terms(T.series([[1.0, 2.0], [3.0, -1.0]], [[1.0, 0.5], [0.0, 2.0]]) ** 2)
    assert [t.numpy().tolist() for t in terms] == [
        [[1.0, 4.0], [9.0, 1.0]], [[2.0, 2.0], [0.0, -4.0]], [[1.0, 0.25], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]]  # fmt: skip


def test_nothing_is_computed_for_a_constant_and_zeros_are_no_arrays():
    T = ng.Taylor(ng.NumpyBackend(), 5)
    x = T.series([1.0, 2.0], [1.0, 1.0])
    assert (x * x).value.terms[2:] == ()  # a square has two coefficients, whatever the order
    assert isinstance((x > 1).value, type(ng.NumpyBackend().full((2,), 0.0)))


def test_a_series_leaves_no_cycles():
    gc.collect()
    gc.disable()
    try:
        T = ng.Taylor(ng.NumpyBackend(), 4)
        y = T.series([0.5, 0.7], [1.0, 1.0]).tanh().sigmoid().exp()
        seen = weakref.ref(y.value.terms[2])
        assert seen() is not None
        del y
        assert seen() is None
    finally:
        gc.enable()


def test_a_coefficient_that_left_is_not_mixed_silently():
    """d/dt of (t |-> x(t) c_1) with c_1 taken out: the level comes off, so its coefficients are lost, not zero."""
    T = ng.Taylor(ng.NumpyBackend(), 2)
    x = T.series(2.0, 1.0)
    _, first, _ = T.terms(x**3)
    with pytest.raises(LevelError, match=r"terms: got a value that was taken out of Taylor level 1 \(.*\), so what it was .* is lost"):
        T.terms(first * x)
    with pytest.raises(LevelError, match=r"series: got a value that was taken out of Taylor level 1 before \(terms\(\)\)"):
        T.series(first, 1.0)
    assert [c.item() for c in T.terms(T.series(first.detach(), 1.0) * 2.0)] == [24.0, 2.0, 0.0]


def test_orders_and_shapes_are_checked():
    for order in (0, -1, 2.0, True, None):
        with pytest.raises(OrderError, match=r"Taylor: got order .*; expected an int from 1 on"):
            ng.Taylor(ng.NumpyBackend(), order)
    T = ng.Taylor(ng.NumpyBackend(), 2)
    with pytest.raises(OrderError, match="series: got 3 coefficients for order 2; expected 1 to 2"):
        T.series(1.0, 1.0, 1.0, 1.0)
    with pytest.raises(ShapeError, match=r"series: got a coefficient of shape \(2,\) for a value of shape \(\)"):
        T.series(1.0, [1.0, 2.0])
    with pytest.raises(DTypeError, match="series: got dtype int64; expected a floating one"):
        T.series([1, 2], [1, 2])


def test_very_high_orders_are_right_or_an_error():
    T = ng.Taylor(ng.NumpyBackend(), 50)
    with mp.workdps(80):
        right = float(mp.taylor(lambda x: 1 / (1 + mp.exp(-x)), mp.mpf(0.5), 50)[50])
    assert T.terms(T.series(0.5, 1.0).sigmoid())[50].item() == pytest.approx(right, rel=1e-9)
    T = ng.Taylor(ng.NumpyBackend(), 400)
    with pytest.raises(OrderError, match=r"powf: got order 400 in Taylor mode.*expected up to about 80.*Try a lower order"):
        T.series(0.5, 1.0) ** 2.5
