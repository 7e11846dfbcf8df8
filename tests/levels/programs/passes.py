"""D. One level object, many passes: training loops, momentum, weights from gradients, derivatives of steps before."""

import math
from typing import Any

from nestgrad import Tensor
from programs.case import NO_LEVEL_LEFT, d, right, stack, var

RATE, POINT = 0.1, 0.7


def slope(w: float) -> tuple[float, float]:
    """f = tanh(w x)_x = w s at the point, and f_w = s - 2 w x t s."""
    t = math.tanh(w * POINT)
    s = 1 - t * t
    return w * s, s - 2 * w * POINT * t * s


def residual(w: float) -> float:
    """The derivative of (f - 0.3)^2 by w."""
    f, fw = slope(w)
    return 2 * (f - 0.3) * fw


def boundary(w: float) -> float:
    """The derivative of (tanh(1.5 w) - 0.2)^2 by w."""
    t = math.tanh(1.5 * w)
    return 3.0 * (t - 0.2) * (1 - t * t)


def trained(steps: int, momentum: float = 0.0) -> float:
    w, m = 0.5, 0.0
    for _ in range(steps):
        m = momentum * m + residual(w)
        w -= RATE * m
    return w


def balanced(from_this_step: bool) -> float:
    """Three steps on residual + lam boundary; lam is the ratio of the gradients, of this step or averaged over those before."""
    w, lam = 0.5, 1.0
    for _ in range(3):
        ratio = abs(residual(w) / boundary(w))
        lam = ratio if from_this_step else lam
        lam, w = (lam if from_this_step else 0.5 * lam + 0.5 * ratio), w - RATE * (residual(w) + lam * boundary(w))
    return w


def step(w: Tensor, x: Tensor) -> Tensor:
    """The gradient of one step."""
    ux = d((w * x).tanh(), x)
    r = ux - 0.3
    return d(r * r, w)


@right(trained(3, 0.9))
def d02_momentum_everything_new_no_detach():
    s = stack(2)
    w, m = var(s, 0.5), 0.0
    for _ in range(3):
        m = 0.9 * m + step(w, var(s, POINT))
        w = s.tensor(w - RATE * m, requires_grad=True)
    return w.detach()


@right(trained(3), may_raise=NO_LEVEL_LEFT)
def d03_points_made_once_no_detach():
    s = stack(2)
    w, x = var(s, 0.5), var(s, POINT)
    for _ in range(3):
        w = s.tensor(w - RATE * step(w, x), requires_grad=True)
    return w.detach()


@right(trained(3, 0.9))
def d05_points_made_once_momentum_detach_only_the_parameter():
    s = stack(2)
    w, x, m = var(s, 0.5), var(s, POINT), 0.0
    for _ in range(3):
        m = 0.9 * m + step(w, x)
        w = s.tensor((w - RATE * m).detach(), requires_grad=True)
    return w.detach()


@right(trained(3))
def d06_parameter_tracked_on_level_1_new_points_no_detach():
    s = stack(2)
    w = var(s.inner, 0.5)
    for _ in range(3):
        w = s.inner.tensor(w - RATE * step(w, var(s, POINT)), requires_grad=True)
    return w.detach()


def adaptive(from_this_step: bool, detach_weight: bool, new_points: bool, detach_parameter: bool = True) -> Tensor:
    s = stack(2)
    w, x, lam = var(s, 0.5), var(s, POINT), 1.0
    for _ in range(3):
        x = var(s, POINT) if new_points else x
        ux = d((w * x).tanh(), x)
        r, b = ux - 0.3, (w * 1.5).tanh() - 0.2
        ratio = abs(d(r * r, w) / d(b * b, w))
        if from_this_step:
            lam = ratio.detach() if detach_weight else ratio
        g = d(r * r + lam * (b * b), w)
        if not from_this_step:
            lam = 0.5 * lam + 0.5 * ratio
            lam = lam.detach() if detach_weight else lam
        w = w - RATE * g
        w = s.tensor(w.detach() if detach_parameter else w, requires_grad=True)
    return w.detach()


@right(balanced(True), may_raise=NO_LEVEL_LEFT)
def d08_loss_weight_from_this_steps_gradient_no_detach():
    return adaptive(from_this_step=True, detach_weight=False, new_points=True)


@right(balanced(True))
def d09_loss_weight_from_this_steps_gradient_detach():
    return adaptive(from_this_step=True, detach_weight=True, new_points=True)


@right(balanced(False), may_raise=NO_LEVEL_LEFT)
def d11_loss_weight_from_last_step_points_once_no_detach():
    return adaptive(from_this_step=False, detach_weight=False, new_points=False)


@right(balanced(False))
def d12_loss_weight_from_last_step_detach():
    return adaptive(from_this_step=False, detach_weight=True, new_points=False)


@right(math.cos(0.8) * 3 * 0.8**2 + math.sin(0.8) * 6 * 0.8)
def d14_last_steps_derivative_at_the_same_points():
    x = var(stack(2), 0.8)
    ux = d(x**3, x)
    return d(x.sin() * ux, x)


@right(-math.sin(0.8) * 3 * 0.8**2, 2)
def d15_old_value_leaves_all_levels_of_the_new_pass():
    s = stack(2)
    x = var(s, 0.8)
    ux = d(x**3, x)
    new = var(s, 0.8)
    r = new.sin() * ux
    return d(d(r, new), new), r.level


HALF = 3 * 0.8 + math.cos(0.8)  # (3 x^2 / 2 + sin x)'


@right(HALF, may_raise=NO_LEVEL_LEFT)
def d17_old_value_first_lifted_then_meets_the_old_variable():
    s = stack(1)
    x = var(s, 0.8)
    ux = d(x**3, x)
    y = var(s, 0.5)
    return d(ux * y + x.sin(), x)


@right(HALF, HALF)
def d18_same_with_two_levels_both_orders():
    s = stack(2)
    x = var(s, 0.8)
    ux = d(x**3, x)
    y = var(s, 0.5)
    return d(ux * y + x.sin(), x), d(ux * (y + x.sin() / ux), x)


@right(3.0, 3.0)
def d32_require_grad_makes_a_new_variable():
    s = stack(1)
    x = s.tensor(1.0)
    y = x * 5.0
    x = x.require_grad(levels=[s])
    again = x.require_grad()
    return d(y * x * 0.2 + x * 2.0, x), d(again * 3.0, again)


@right(4 * 0.5**3)
def d33_a_list_of_trial_points():
    s = stack(1)
    history: list[Tensor] = []

    def closure(z: float) -> Tensor:
        w = var(s, z)
        history.append(d(w**4, w))
        return history[-1]

    closure(1.0), closure(0.7), closure(0.5)
    return history[0] + history[1] + history[2] - history[0] - history[1]


@right(balanced(False))
def d36_boundary_weight_only_parameters_new_points_once_no_detach_of_weight():
    s = stack(2)
    w, x = var(s, 0.5), var(s, POINT)
    lam: Any = 1.0
    for _ in range(3):
        ux = d((w * x).tanh(), x)
        r, b = ux - 0.3, (w * 1.5).tanh() - 0.2
        ratio = abs(d(r * r, w) / d(b * b, w))
        g = d(r * r, w) + d(lam * (b * b), w)
        lam = 0.5 * lam + 0.5 * ratio
        w = s.tensor((w - RATE * g).detach(), requires_grad=True)
    return w.detach()
