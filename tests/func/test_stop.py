"""``stop_gradient``: a constant for every transform, at every order, in structures and under maps. Derivatives are worked out by hand."""

import numpy as np
import pytest

import nestgrad as ng
from nestgrad import func
from nestgrad.func import stop_gradient

HALF = lambda x: (x * x * stop_gradient(x)).sum()
"""x^2 c with c = x: first derivative 2 x c, second 2 c, third 0."""


def test_no_derivative_goes_through_it_in_any_mode(base):
    x = base.tensor([3.0])
    one = base.tensor([1.0])
    for found in (
        func.grad(HALF)(x), func.jacrev(HALF)(x), func.jacfwd(HALF)(x), func.vjp(HALF, x)[1](1.0)[0], func.jvp(HALF, (x,), (one,))[1],
        func.linearize(HALF, x)[1](one), func.taylor(HALF, x, one, 1)[1], func.derivative(HALF, (0,))(x),
        func.vmap(func.grad(HALF))(x.reshape((1, 1))),
    ):  # fmt: skip
        assert found.sum().item() == 18.0
    assert func.hessian(HALF)(x).item() == func.derivative(HALF, (0, 0))(x).item() == 2 * func.taylor(HALF, x, one, 2)[2].item() == 6.0
    assert func.derivative(HALF, (0, 0, 0))(x).item() == func.derivative(func.hessian(HALF), (0,))(x).item() == 0.0


def test_it_stops_on_every_level(levels):
    s = levels(3)
    x = s.tensor(2.0, requires_grad=True)
    y = x * stop_gradient(x * x)
    assert not stop_gradient(x).tracked_on() and not stop_gradient(x.grad((x**3).backward())).marks
    assert y.wrt(x).item() == 4.0 and y.wrt(x).wrt(x).item() == 0.0
    g = func.grad(lambda z: z * stop_gradient(z * x))(1.0)
    assert g.item() == 2.0 and not g.tracked_on()


def test_samples_stay_samples():
    found = func.vmap(lambda x: stop_gradient(x) * func.grad(lambda z: z * stop_gradient(x))(x))(np.array([1.0, 2.0, 3.0]))
    assert found.tolist() == [1.0, 4.0, 9.0]


def test_a_program_keeps_it():
    program = func.trace(lambda x: x * stop_gradient(x))(3.0)
    assert func.grad(lambda x: func.call(program, x))(5.0).item() == 5.0


def test_structures_keep_what_is_no_tensor(levels):
    x = levels(1).tensor([1.0, 2.0], requires_grad=True)
    array, nothing = np.ones(2), None
    found = stop_gradient({"x": x, "rest": (2, 0.5, array, "text", nothing), "whole": ng.tensor([1, 2])})
    assert found["x"].tolist() == [1.0, 2.0] and not found["x"].tracked_on() and x.tracked_on()
    assert found["rest"] == (2, 0.5, array, "text", None) and found["rest"][2] is array and found["whole"].tolist() == [1, 2]
    assert stop_gradient(2.5) == 2.5


def test_the_straight_through_estimator():
    """A step whose derivative is taken to be that of the identity."""
    rounded = lambda x: x + stop_gradient(x.round() - x)
    value, g = func.value_and_grad(lambda x: (rounded(x) ** 2).sum())(ng.tensor([0.6, 2.2]))
    assert value.item() == pytest.approx(5.0, rel=1e-15) and g.tolist() == pytest.approx([2.0, 4.0], rel=1e-15)
