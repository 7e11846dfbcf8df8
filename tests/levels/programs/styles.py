"""C. One style inside the other: the imperative style in transforms, transforms in it, values stashed, derivatives closed over."""

import math

import numpy as np

from nestgrad import Tensor, func
from nestgrad.errors import LevelError, NestgradError
from nestgrad.levels.autodiff import Autodiff
from programs.case import BASE, d, raises, right, stack, var


def squared_slope(w: float = 1.4) -> float:
    """(w cos(0.3 w))^2, by w."""
    c, s = math.cos(0.3 * w), math.sin(0.3 * w)
    return 2 * w * c * (c - 0.3 * w * s)


@right(squared_slope())
def c01_imperative_inside_grad_global_stack():
    s = stack(1)

    def loss(w: Tensor) -> Tensor:
        x = var(s, 0.3)
        ux = d((w * x).sin(), x)
        return ux * ux

    return func.grad(loss)(1.4)


@right(squared_slope())
def c02_imperative_inside_grad_own_stack():
    def loss(w: Tensor) -> Tensor:
        x = var(Autodiff(w.backend), 0.3)
        ux = d((w * x).sin(), x)
        return ux * ux

    return func.grad(loss)(BASE.tensor(1.4))


# (w sin(w x))'' = -w^3 sin(w x); its square w^6 sin^2
@right(6 * 1.4**5 * math.sin(0.42) ** 2 + 0.6 * 1.4**6 * math.sin(0.42) * math.cos(0.42))
def c07_functional_second_order_float_argument():
    w = var(stack(1), 1.4)
    uxx = func.grad(func.grad(lambda x: w * (w * x).sin()))(0.3)
    return d(uxx * uxx, w)


@raises(NestgradError, match="taken out of the level of this grad")
def c10_outer_variable_looked_up_inside_a_transform():
    x = var(stack(2), 0.3)

    def loss(w: Tensor) -> Tensor:
        ux = d((w * x).sin(), x)
        return ux * ux

    return func.grad(loss)(1.4)


@raises(LevelError, match="Make a variable inside, S.tensor")
def c11_transforms_own_variable_differentiated_by_hand():
    return func.grad(lambda x: d(x**3, x))(2.0)


@right(6.25, 5.0)
def c13_stashed_value_used_after_the_transform():
    stash: list[Tensor] = []
    w = var(stack(1), 2.5)

    def f(x: Tensor) -> Tensor:
        stash.append(x * w)
        return (x * w) ** 2

    func.grad(f)(1.0)
    y = stash[0] * w
    return y, d(y, w)


@right(3 * 1.1**2, 6 * 1.1)
def c16_transform_on_a_derivative_closing_over_a_higher_level():
    x = var(stack(2), 1.1)
    u = x**3
    ux = d(u, x)
    func.grad(lambda p: p * p * u)(ux)
    return ux, d(ux, x)


@right(30 * 1.1**4)  # (p^2 u)_p at p = u_x is 2 u_x u = 6 x^5
def c17_and_differentiating_the_result():
    x = var(stack(2), 1.1)
    u = x**3
    ux = d(u, x)
    return d(func.grad(lambda p: p * p * u)(ux), x)


@right(4.0, 12.0, 24.0)
def c19_vjp_pulled_later_with_a_tracked_seed():
    y, pull = func.vjp(lambda x: x * x, BASE.tensor(2.0))
    v = var(stack(1), 3.0)
    g = pull(v)[0] * v
    func.grad(lambda z: z)(1.0)
    return y, pull(v)[0], d(g, v)


@right(2 * (12 * 1.5**2) ** 2 * 0.7)
def c20_hessian_vector_product_differentiated_by_its_vector():
    v = var(stack(1), 0.7)
    h = func.grad(lambda x: func.grad(lambda z: z**4)(x) * v)(1.5)
    return d(h * h, v)


@right(6.0)
def c25_gradients_used_after_their_transform():
    stash = []

    def f(x: Tensor) -> Tensor:
        y = x * x
        stash.append((x, y.backward()))
        return y

    func.grad(f)(3.0)
    x, grads = stash[0]
    return x.grad(grads)


@right(0.0, 0.0, np.zeros(3))
def c28_constant_functions():
    return func.grad(lambda x: 3.0)(1.0), func.grad(lambda x: BASE.tensor(2.0))(1.0), func.grad(lambda x: 3.0)(np.ones(3))


# (w z^3 x)_z at z = x is 3 w x^3, by x 9 w x^2; y = sin(9 w^2 x^2)
@right(18 * 1.3 * 0.7**2 * math.cos(9 * 1.3**2 * 0.7**2))
def c29_imperative_in_functional_in_imperative():
    s = stack(1)
    w = var(s, 1.3)

    def f(x: Tensor) -> Tensor:
        z = var(s, x)
        return d(w * z**3 * x, z)

    return d((w * func.grad(f)(BASE.tensor(0.7))).sin(), w)


@right(48 * 1.2**3)  # ((z x)^2 3 x^2)_z at z = 2 is 12 x^4
def c30_level_taken_off_under_a_transform_and_lifted_again():
    s = stack(2)
    x = var(s, 1.2)
    v = d(x**3, x)
    r = func.grad(lambda z: s.tensor((z * x) ** 2 * v, requires_grad=True) * 1.0)(s.tensor(2.0))
    return d(r, x)
