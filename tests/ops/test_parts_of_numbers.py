"""Remainders, quotients, signs, jumps, and numbers in the place of NaN: values as Python and NumPy have them, derivatives as printed."""

import math

import numpy as np
import pytest

import nestgrad as ng

PAIRS = [(x, y) for x in (5.3, -5.3, 3.0, 0.4, -7.25, 1e9 + 0.5) for y in (1.7, -1.7, 1.5, 0.25)]


@pytest.mark.parametrize("x, y", PAIRS)
def test_remainders_and_quotients_are_those_of_python_and_c(double, nest, x, y):
    stack = nest(double, 2)
    u, v = stack.tensor(x, requires_grad=True), stack.tensor(y, requires_grad=True)
    assert (u % v).item() == x % y and ng.fmod(u, v).item() == math.fmod(x, y) and (u // v).item() == x // y
    for z, quotient in ((u % v, x // y), (ng.fmod(u, v), float(round((x - math.fmod(x, y)) / y)))):
        assert z.wrt(u).item() == 1.0 and z.wrt(v).item() == -quotient
        w = z * z  # a second derivative of the pieces: 2 by x, 2 q^2 by y, -2 q mixed
        assert [w.wrt(a).wrt(b).item() for a, b in ((u, u), (v, v), (u, v), (v, u))] == [2.0, 2 * quotient**2, -2 * quotient, -2 * quotient]
    assert not (u // v).tracked_on()


def test_operators_take_numbers_and_arrays_on_either_side(double):
    x = double.tensor([5.5, -5.5])
    a = np.array([5.5, -5.5])
    for ours, theirs in (
        (x % 2, a % 2), (7 % x, 7 % a), (x // 2.0, a // 2.0), (7 // x, 7 // a), (divmod(x, 2)[0], a // 2), (divmod(7, x)[1], 7 % a),
        (a % x, a % a), (x % a, a % a), (round(x, 0), np.round(a)), (math.floor(x), np.floor(a)), (math.ceil(x), np.ceil(a)),
        (math.trunc(x), np.trunc(a)), (x.round(), np.round(a)), (ng.divmod(x, 3)[1], a % 3),
    ):  # fmt: skip
        assert isinstance(ours, ng.Tensor)
        np.testing.assert_array_equal(ours.numpy(), theirs)


def test_integers_stay_integers(double):
    x = double.tensor([7, -7])
    counted = double.tensor([True]) % 2
    for got, want in ((x % 3, [1, 2]), (x // 3, [2, -3]), (ng.fmod(x, 3), [1, -1]), (ng.trunc(x), [7, -7]), (counted, [1])):
        assert got.tolist() == want and "int" in str(got.dtype)
    assert (x % 2.5).tolist() == [2.0, 0.5]


def test_what_cannot_be_divided_is_refused():
    with pytest.raises(ng.errors.DTypeError, match="expected a Tensor, a number or an array"):
        ng.tensor([1.0]) % [1.0, 2.0]
    with pytest.raises(TypeError):
        ng.tensor([1.0]) // "two"


def test_rounding_to_decimals(double):
    x = double.tensor([2.675, -1234.5, 0.125])
    assert x.round(2).tolist() == np.round([2.675, -1234.5, 0.125], 2).tolist()
    assert ng.round(x, -2).tolist() == [0.0, -1200.0, 0.0] and round(x, 1).tolist() == x.round(1).tolist()


def test_a_divisor_of_zero_in_the_branch_not_taken(double, nest):
    stack = nest(double, 2)
    y = stack.tensor([0.0, 2.0], requires_grad=True)
    with np.errstate(all="ignore"):
        for f in (ng.remainder, ng.fmod):
            chosen = ng.where(y > 1.0, f(5.0, y), y**2)
            assert chosen.sum().wrt(y).tolist() == [0.0, -2.0] and chosen.sum().wrt(y).sum().wrt(y).tolist()[0] == 2.0


def test_jumps_have_the_derivatives_of_their_pieces(double, nest):
    stack = nest(double, 2)
    x = stack.tensor([-1.5, 0.0, 2.0], requires_grad=True)
    y = stack.tensor([0.3, 0.3, -0.3], requires_grad=True)
    assert (ng.frac(x) ** 2).sum().wrt(x).tolist() == [-1.0, 0.0, 0.0]
    step = ng.heaviside(x, y)
    assert step.tolist() == [0.0, 0.3, 1.0]
    assert (step * step).sum().wrt(y).tolist() == [0.0, 0.6, 0.0] and (step * step).sum().wrt(y).sum().wrt(y).tolist() == [0.0, 2.0, 0.0]
    assert (step * x).sum().wrt(x).tolist() == [0.0, 0.3, 1.0]
    signed = ng.copysign(x, y)
    assert signed.tolist() == [1.5, 0.0, -2.0] and ng.copysign(1.0, double.tensor([-0.0, 0.0])).tolist() == [-1.0, 1.0]
    assert (signed**3).sum().wrt(x).tolist() == [-6.75, 0.0, -12.0] and (signed**3).sum().wrt(x).sum().wrt(x).tolist() == [9.0, 0.0, -12.0]


def test_numbers_in_the_place_of_nan(double, nest):
    x = nest(double, 2).tensor([math.nan, math.inf, -math.inf, 1.5], requires_grad=True)
    y = ng.nan_to_num(x, 7.0, 8.0, 9.0)
    assert y.tolist() == [7.0, 8.0, 9.0, 1.5]
    assert (y * y).sum().wrt(x).tolist() == [0.0, 0.0, 0.0, 3.0] and (y * y).sum().wrt(x).sum().wrt(x).tolist() == [0.0, 0.0, 0.0, 2.0]
    largest = np.finfo(np.float64).max
    assert ng.nan_to_num(x).tolist() == [0.0, largest, -largest, 1.5] and ng.nan_to_num(double.tensor([1, 2])).tolist() == [1, 2]


# what is linear in pieces: the function, points, values, slopes there
PIECES = {
    "heaviside by its value at 0": (
        lambda t: ng.heaviside(np.array([-1.5, 0.0, 2.0, -0.0]), t), [0.3, 0.4, -0.3, -0.6], [0.0, 0.4, 1.0, -0.6], [0.0, 1.0, 0.0, 1.0],
    ),
    "copysign": (
        lambda t: ng.copysign(t, np.array([-1.0, 2.0, -0.0, 0.0, -3.0])),
        [1.5, -0.5, 2.0, -0.25, 0.0], [-1.5, 0.5, -2.0, 0.25, 0.0], [-1.0, -1.0, -1.0, -1.0, 0.0],
    ),
    "nan_to_num": (
        lambda t: ng.nan_to_num(t, 7.0, 8.0, 9.0), [math.nan, math.inf, -math.inf, 1.5], [7.0, 8.0, 9.0, 1.5], [0.0, 0.0, 0.0, 1.0],
    ),
}  # fmt: skip
slope = lambda f: ng.func.grad(lambda t: f(t).sum())
tangent = lambda f: lambda t: ng.func.jvp(f, (t,), (ng.ones_like(t),))[1]
MODES = {
    "reverse": lambda f, t: [f(t), slope(f)(t), slope(slope(f))(t)],
    "forward": lambda f, t: [f(t), tangent(f)(t), tangent(tangent(f))(t)],
    "forward of reverse": lambda f, t: [f(t), slope(f)(t), tangent(slope(f))(t)],
    "reverse of forward": lambda f, t: [f(t), tangent(f)(t), slope(tangent(f))(t)],
    "series": lambda f, t: [c * k for c, k in zip(ng.func.taylor(f, t, ng.ones_like(t), 2), (1.0, 1.0, 2.0), strict=True)],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PIECES)
def test_pieces_have_the_same_derivatives_in_all_modes(double, name, mode):
    """Value and two derivatives of ``(1 + piece)^3``, by hand."""
    f, points, values, slopes = PIECES[name]
    v, s = 1.0 + np.array(values), np.array(slopes)
    found = MODES[mode](lambda t: (1.0 + f(t)) ** 3, double.tensor(points))
    for got, want in zip(found, (v**3, 3 * v**2 * s, 6 * v * s**2), strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-15)


def test_what_is_asked_of_a_number_is_a_constant(double, nest):
    x = nest(double, 1).tensor([math.nan, math.inf, -math.inf, -0.0, 2.0], requires_grad=True)
    for f, want in (
        (ng.isinf, [False, True, True, False, False]), (ng.isposinf, [False, True, False, False, False]),
        (ng.isneginf, [False, False, True, False, False]), (lambda v: ng.signbit(v)[1:], [False, True, True, False]),
        (lambda v: ng.logical_xor(v > 0, v < 3), [False, True, True, True, False]),
    ):  # fmt: skip
        assert f(x).tolist() == want and not f(x).tracked_on()


def test_powers_in_double_precision():
    x = ng.tensor([2.0, 3.0], dtype="float32")
    y = ng.float_power(x, 0.1)
    assert y.dtype == np.float64 and y.tolist() == [2.0**0.1, 3.0**0.1]
    assert ng.float_power(ng.tensor([2, 3]), ng.tensor([-1, 2])).tolist() == [0.5, 9.0] and ng.positive(x) is x


def test_numbers_alone_and_beside_arrays(double):
    for f, want in ((ng.hypot, 5.0), (ng.atan2, math.atan2(3, 4)), (ng.logaddexp, math.log(math.exp(3) + math.exp(4))),
                    (ng.logaddexp2, math.log2(24)), (ng.xlogy, 3 * math.log(4)), (ng.xlog1py, 3 * math.log(5)), (ng.copysign, 3.0),
                    (ng.remainder, 3.0), (ng.fmod, 3.0), (ng.floor_divide, 0.0), (ng.heaviside, 1.0)):  # fmt: skip
        assert f(3, 4).item() == pytest.approx(want, rel=1e-15)
        for x, y in ((double.tensor([3.0]), 4), (3, double.tensor([4.0])), (double.tensor([3]), double.tensor([4.0]))):
            assert f(x, y).tolist() == pytest.approx([want], rel=1e-15)
