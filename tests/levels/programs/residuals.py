"""A. Residuals of differential equations: terms that were differentiated a different number of times meet in one expression."""

import math

import numpy as np

from nestgrad import Tensor
from programs.case import BASE, d, right, stack, var

X = np.linspace(-0.9, 0.8, 5)[:, None]
W, B = np.array([[0.9, -1.2, 0.6, 0.3]]), np.array([0.1, -0.2, 0.4, 0.0])
V, C = np.array([[0.7], [-0.5], [0.8], [1.1]]), np.array([0.2])
FORCE, NU = np.sin(3 * X), 0.3


def by_hand() -> tuple[list[np.ndarray], float, float]:
    """Derivatives of ``mean (c u u' - nu u'' - f)^2`` by the parameters W, B, V, C, and by nu and c, at c = 1.

    Of ``u = v tanh(w x + b) + C``: with ``h = tanh(z)`` and ``s = 1 - h^2``, ``h' = s``, ``s' = -2 h s``, ``(h s)' = s (s - 2 h^2)``.
    """
    w, v = W[0], V[:, 0]
    h = np.tanh(X * w + B)
    s = 1 - h**2
    by_b = np.stack([v * s, -2 * v * w * h * s, -2 * v * w**2 * s * (s - 2 * h**2)])  # of u, u', u''
    by_w = X * by_b + np.stack([0 * h, v * s, -4 * v * w * h * s])
    by_v = np.stack([h, w * s, -2 * w**2 * h * s])
    by_c = np.stack([np.ones((5, 1)), np.zeros((5, 1)), np.zeros((5, 1))])
    u, ux, uxx = (np.sum(v * part, axis=1, keepdims=True) for part in by_v)
    u = u + C
    r = u * ux - NU * uxx - FORCE
    grads = [np.mean(2 * r * (p[0] * ux + u * p[1] - NU * p[2]), axis=0) for p in (by_w, by_b, by_v, by_c)]
    return [g.reshape(p.shape) for g, p in zip(grads, (W, B, V, C), strict=True)], np.mean(-2 * r * uxx), np.mean(2 * r * u * ux)


GRADIENTS, BY_NU, BY_C = by_hand()


def net(p: list[Tensor], x: Tensor) -> Tensor:
    return (x @ p[0] + p[1]).tanh() @ p[2] + p[3]


def loss(p: list[Tensor], x: Tensor, force: object, turned_round: bool = False) -> Tensor:
    u = net(p, x)
    ux = d(u.sum(), x)
    uxx = d(ux.sum(), x)
    r = -force - uxx * NU + ux * u if turned_round else u * ux - NU * uxx - force  # type: ignore[operator]
    return (r * r).mean()


@right(*GRADIENTS)
def a01_burgers_data_on_stack():
    s = stack(3)
    p = [var(s, part) for part in (W, B, V, C)]
    grads = loss(p, var(s, X), s.tensor(FORCE)).backward()
    return [q.grad(grads) for q in p]


@right(*GRADIENTS)
def a02_burgers_data_on_base_backend():
    s = stack(3)
    p = [var(s, part) for part in (W, B, V, C)]
    grads = loss(p, var(s, X), BASE.tensor(FORCE), turned_round=True).backward()
    return [q.grad(grads) for q in p]


@right(*GRADIENTS)
def a04_parameters_created_at_each_level():
    s = stack(3)
    two, one = s.inner, s.inner.inner
    p = [var(one, W), var(two, B), var(s, V), var(one, C)]
    grads = loss(p, var(s, X), two.tensor(FORCE)).backward()
    return [q.grad(grads) for q in p]


@right(*GRADIENTS)
def a05_parameters_tracked_only_on_level_1():
    s = stack(3)
    p = [var(s, part, levels=[1]) for part in (W, B, V, C)]
    grads = loss(p, var(s, X, levels=[2, 3]), FORCE).backward()
    return [q.grad(grads) for q in p]


@right(BY_NU, BY_C)
def a07_coefficients_as_parameters():
    s = stack(3)
    p = [BASE.tensor(part) for part in (W, B, V, C)]
    x, nu, c = var(s, X), var(s, NU), var(s, 1.0)
    u = net(p, x)
    ux = d(u.sum(), x)
    uxx = d(ux.sum(), x)
    r = c * u * ux - nu * uxx - FORCE
    grads = (r * r).mean().backward()
    return nu.grad(grads), c.grad(grads)


@right(BY_NU, BY_C)
def a08_coefficient_on_level_1_times_u_first():
    s = stack(3)
    one = s.inner.inner
    p = [BASE.tensor(part) for part in (W, B, V, C)]
    x, nu, c = var(s, X), var(one, NU), var(one, 1.0)
    u = net(p, x)
    ux = d(u.sum(), x)
    uxx = d(ux.sum(), x)
    r = (c * u) * ux - FORCE - uxx * nu
    grads = (r * r).mean().backward()
    return nu.grad(grads), c.grad(grads)


# (k u')' with k = e^x, u = sin 2x: e^x (2 cos 2x - 4 sin 2x)
@right(math.exp(0.4) * (2 * math.cos(0.8) - 4 * math.sin(0.8)))
def a10_variable_coefficient_inside_divergence():
    x = var(stack(2), 0.4)
    ux = d((2.0 * x).sin(), x)
    return d(x.exp() * ux, x)


# (5 x^4 x^3 12 x^2)' = 540 x^8
@right(540 * 1.3**8)
def a11_three_terms_of_three_levels():
    x = var(stack(3), 1.3)
    vx = d(x**4, x)
    return d(d(x**5, x) * x**3 * d(vx, x), x)


# r = sin cos + sin = sin(2x)/2 + sin: r'' = -2 sin 2x - sin
@right(-2 * math.sin(1.4) - math.sin(0.7))
def a13_gradient_enhanced_with_four_levels():
    x = var(stack(4), 0.7)
    u = x.sin()
    ux = d(u, x)
    r = u * ux - d(ux, x)
    return d(d(r, x), x)


@right(0.0, 2 * 1.7 * 0.5**2)
def a14_linear_solution_zero_curvature_in_a_loss():
    s = stack(3)
    x, w = var(s, 0.5), var(s, 1.7)
    u = w * x
    uxx = d(d(u, x), x)
    r = uxx + u
    return uxx, d(r * r, w)


def _regulariser() -> float:
    """(u_x^2 + w^3)' by w, with u = x t, t = tanh(w x): u_x = t + w x s, d/dw u_x = x s + x s - 2 w x^2 t s."""
    x, w = 0.4, 0.8
    t = math.tanh(w * x)
    s = 1 - t * t
    return 2 * (t + w * x * s) * (2 * x * s - 2 * w * x * x * t * s) + 3 * w * w


@right(_regulariser())
def a16_regulariser_on_another_level_than_the_residual():
    s = stack(2)
    x, w = var(s, 0.4), var(s, 0.8)
    ux = d((w * x).tanh() * x, x)
    return d(ux * ux + w**3, w)


@right(6.0, 6.0)
def a17_inner_by_hand():
    x = var(stack(2), 1.0)
    g = d(x**3, x)
    return x.inner().grad(g.backward()), d(g + 0.0 * x.inner(), x)


@right(9 * 1.2**2)  # (x 3x^2)'
def a19_derivative_as_a_variable_then_multiplied():
    s = stack(2)
    x = var(s, 1.2)
    q = s.tensor(d(x**3, x), requires_grad=True)
    return d(x * q, x)


@right(1.2)
def a20_derivative_by_such_a_variable():
    s = stack(3)
    x = var(s, 1.2)
    q = s.tensor(d(x**3, x), requires_grad=True)
    return d(x * q, q)
