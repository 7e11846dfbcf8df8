"""Loops over one level object: optimisers, gradients through gradient steps, perturbation confusion in both styles.

The right values are the same loops in plain floats, with derivatives worked out by hand.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from programs.case import d, stack, var

from nestgrad import Tensor, func
from nestgrad.errors import NotConnectedError, NotTrackedError
from nestgrad.levels.marks import NONE

POINTS = [0.2, 0.7, 1.1]
STEPS = 200


def by_hand(w: float) -> float:
    """The derivative of mean (u_x - 0.3)^2 by w, u = tanh(w x): u_x = w s, and by w it is s - 2 w x t s."""
    total = 0.0
    for x in POINTS:
        t = math.tanh(w * x)
        s = 1 - t * t
        total += 2 * (w * s - 0.3) * (s - 2 * w * x * t * s)
    return total / len(POINTS)


def gradient(w: Tensor, x: Tensor) -> Tensor:
    """The same by two backward passes."""
    r = d((w * x).tanh().sum(), x) - 0.3
    return d((r * r).mean(), w)


class Sgd:
    """Descent with momentum."""

    def __init__(self) -> None:
        self.m: Any = 0.0

    def step(self, g: Any) -> Any:
        self.m = 0.9 * self.m + g
        return 0.02 * self.m


class Adam:
    """Adam, with the square root as a power so that floats and tensors take one spelling."""

    def __init__(self) -> None:
        self.m: Any = 0.0
        self.v: Any = 0.0
        self.k = 0

    def step(self, g: Any) -> Any:
        self.k += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.99 * self.v + 0.01 * g * g
        return 0.02 * (self.m / (1 - 0.9**self.k)) / ((self.v / (1 - 0.99**self.k)) ** 0.5 + 1e-8)


def trained(optimiser: Any) -> float:
    """The loop in floats."""
    w = 1.5
    for _ in range(STEPS):
        w -= optimiser.step(by_hand(w))
    return w


# float64; 200 steps carry roundings of 1e-16 along, which the descent damps
CLOSE = {"rtol": 1e-11}


@pytest.mark.parametrize("optimiser", [Sgd, Adam])
def test_everything_made_anew_needs_no_detach(optimiser: type):
    s, state = stack(2), optimiser()
    w = var(s, 1.5)
    for _ in range(STEPS):
        w = s.tensor(w - state.step(gradient(w, var(s, POINTS))), requires_grad=True)
    np.testing.assert_allclose(w.numpy(), trained(optimiser()), **CLOSE)


@pytest.mark.parametrize("optimiser", [Sgd, Adam])
def test_points_that_live_on_need_variable_and_nothing_else(optimiser: type):
    s, state = stack(2), optimiser()
    w, x = s.variable(1.5), var(s, POINTS)
    for _ in range(STEPS):
        w = s.variable(w - state.step(gradient(w, x)))
        assert w.marks is NONE
    np.testing.assert_allclose(w.numpy(), trained(optimiser()), **CLOSE)


@pytest.mark.parametrize("optimiser", [Sgd, Adam])
def test_by_transforms_nothing_is_needed_at_all(optimiser: type):
    s, state = stack(1), optimiser()
    x = s.tensor(POINTS)

    def loss(w: Tensor) -> Tensor:
        y = var(s, x)
        r = d((w * y).tanh().sum(), y) - 0.3
        return (r * r).mean()

    w = s.tensor(1.5)
    for _ in range(STEPS):
        w = w - state.step(func.grad(loss)(w))
        assert w.marks is NONE
    np.testing.assert_allclose(w.numpy(), trained(optimiser()), **CLOSE)


@pytest.mark.parametrize("anew", [True, False])
def test_momentum_and_loss_weights_of_the_step_before_are_data(anew: bool):
    """Weights as ratios of last step's gradients; with points that live on, the parameter by ``variable`` and the weight detached."""

    def boundary(w: float) -> float:
        t = math.tanh(1.5 * w)
        return 3.0 * (t - 0.2) * (1 - t * t)

    right, weight, m = 1.5, 1.0, 0.0
    for _ in range(STEPS):
        a, b = by_hand(right), boundary(right)
        m = 0.9 * m + a + weight * b
        right, weight = right - 0.005 * m, 0.9 * weight + 0.1 * abs(a / b)
    s = stack(2)
    x, w = var(s, POINTS), var(s, 1.5)
    lam: Any = 1.0
    momentum: Any = 0.0
    for _ in range(STEPS):
        x = var(s, POINTS) if anew else x
        r = d((w * x).tanh().sum(), x) - 0.3
        residual, edge = (r * r).mean(), ((w * 1.5).tanh() - 0.2) ** 2
        a, b = d(residual, w), d(edge, w)
        momentum = 0.9 * momentum + d(residual + lam * edge, w)
        lam = 0.9 * lam + 0.1 * abs(a / b)
        if anew:
            w = s.tensor(w - 0.005 * momentum, requires_grad=True)
        else:
            w, lam, momentum = s.variable(w - 0.005 * momentum), lam.detach(), momentum.detach()
    np.testing.assert_allclose(w.numpy(), right, **CLOSE)


@pytest.mark.parametrize("style", ["imperative", "transform"])
def test_a_gradient_through_fifty_inner_gradient_steps(style: str):
    """Steps w <- w - r (sin w - p w^2 / 2)'; the tangents by w0, r and p run along."""
    w, by_w, by_r, by_p = 0.5, 1.0, 0.0, 0.0
    r, p = 0.05, 0.3
    for _ in range(50):
        slope, curve = math.cos(w) - p * w, -math.sin(w) - p
        by_w, by_r, by_p = by_w * (1 - r * curve), by_r * (1 - r * curve) - slope, by_p * (1 - r * curve) + r * w
        w -= r * slope
    right = [-math.sin(w) * t for t in (by_w, by_r, by_p)]
    s = stack(2) if style == "imperative" else stack(1)
    start, rate, pull = (var(s, value, levels=[1]) for value in (0.5, 0.05, 0.3))  # level 2 is for the inner steps alone
    v = start
    for _ in range(50):
        if style == "imperative":
            inner = s.tensor(v, requires_grad=True)
            v = v - rate * d(inner.sin() - 0.5 * pull * inner * inner, inner)
        else:
            v = v - rate * func.grad(lambda z: z.sin() - 0.5 * pull * z * z)(v)
    grads = v.cos().backward()
    got = [x.grad(grads).item() for x in (start, rate, pull)]
    np.testing.assert_allclose(got, right, rtol=1e-12)


def test_marks_stay_as_few_as_the_tapes_they_are_of():
    s = stack(2)
    average, w = s.tensor(0.0), var(s, 1.5)
    for k in range(100):
        g = gradient(w, var(s, POINTS))
        average = 0.9 * average + 0.1 * g * func.grad(lambda v, g: (v * g).sin())(w, g)
        w = s.tensor(w - 0.01 * g, requires_grad=True)
        assert set(average.marks) <= {s.tape, s.inner.tape}, k
        assert average.tracked_on() == ()
    right, value = 1.5, 0.0
    for _ in range(100):
        g = by_hand(right)
        value = 0.9 * value + 0.1 * g * g * math.cos(right * g)
        right -= 0.01 * g
    np.testing.assert_allclose(average.numpy(), value, **CLOSE)


# ---------------------------------------------------------------- perturbation confusion
def imperative(levels: int) -> Callable[..., Any]:
    s = stack(levels)

    def derivative(f: Callable[[Any], Any], x: Any) -> Any:
        t = var(s, x)
        return d(f(t), t)

    return derivative


STYLES: dict[str, Callable[[], Callable[..., Any]]] = {
    "transforms": lambda: lambda f, x: func.grad(f)(x),
    "one stack": lambda: imperative(3),
    "a stack for each derivative": lambda: lambda f, x: imperative(3)(f, x),
}


@pytest.mark.parametrize("style", STYLES)
def test_perturbation_confusion(style: str):
    derive = STYLES[style]()
    assert derive(lambda x: x * derive(lambda y: x + y, 1.0), 1.0).item() == 1.0
    assert derive(lambda x: x * derive(lambda y: x * y, 1.0), 4.0).item() == 8.0
    c = 1.2**3  # x (y sin(x y))_y at y = x^2 is x (sin c + c cos c), c = x^3
    right = math.sin(c) + c * math.cos(c) + 3 * c * (2 * math.cos(c) - c * math.sin(c))
    assert derive(lambda x: x * derive(lambda y: y * (x * y).sin(), x**2), 1.2).item() == pytest.approx(right, rel=1e-13)
    deep = derive(lambda a: a * derive(lambda b: b * derive(lambda c: a * b * c**2, b), a), 1.1)
    assert deep.item() == pytest.approx(24 * 1.1**3, rel=1e-13)


def test_a_derivative_closed_over_by_an_inner_gradient():
    s = stack(2)
    x = var(s, 0.7)
    ux = d(x.sin(), x)
    energy = func.grad(lambda v: v**3 * ux)(x)  # 3 x^2 cos x, with both dependences on x
    assert energy.item() == pytest.approx(3 * 0.49 * math.cos(0.7), rel=1e-14)
    assert d(energy, x).item() == pytest.approx(6 * 0.7 * math.cos(0.7) - 3 * 0.49 * math.sin(0.7), rel=1e-14)


# ---------------------------------------------------------------- mistakes that users make
def test_a_leaf_made_anew_in_a_loop_is_not_connected():
    s = stack(2)
    x = var(s, 0.7)
    u = x.sin()
    x = var(s, 0.7)
    with pytest.raises(NotConnectedError, match="created anew"):
        d(u, x)


def test_a_tensor_leaked_from_a_transform_is_a_number_outside():
    leaked: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        leaked.append(x.sin())
        return x * leaked[0]

    func.grad(f)(0.7)
    assert leaked[0].item() == math.sin(0.7)
    assert float(leaked[0] * 2.0) == 2.0 * math.sin(0.7)
    assert repr(leaked[0]) == f"Tensor({math.sin(0.7)}, dtype=float64)"
    with pytest.raises(NotTrackedError, match="requires gradients"):
        leaked[0].backward()
    assert func.grad(lambda x: x * leaked[0])(2.0).item() == math.sin(0.7)
