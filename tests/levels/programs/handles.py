"""L. Several handles on one value: arguments of transforms, re-made variables, levels named inside, what is kept of old passes."""

import math

import numpy as np

from nestgrad import Tensor, func
from nestgrad.errors import LevelError, NotConnectedError, NotTrackedError
from nestgrad.levels.autodiff import Autodiff
from programs.case import NO_LEVEL_LEFT, d, raises, right, stack, var


@raises(NotConnectedError, match="does not depend on this tensor")
def l01_argument_of_a_transform_is_a_variable_of_its_own():
    t = var(stack(1), 3.0)
    return func.grad(lambda z: d(t * t, z))(t)


@right(3.0, 3.0)
def l02_variable_made_anew_on_one_level_is_another_on_all():
    s = stack(2)
    v = var(s, 3.0)
    return [d(v * q, q) for q in (s.tensor(v, requires_grad=True, levels=[1]), s.tensor(v, requires_grad=True, levels=[2]))]


@right(2 * math.cos(0.8), math.cos(0.8))
def l03_removed_gradient_still_goes_on_to_what_is_before():
    x = var(stack(1), 0.4)
    y = x * 2.0
    grads = y.sin().backward()
    y.grad_remove(grads)
    return x.grad(grads), y.grad(grads)


@raises(NotTrackedError, match="computed with wrt")
def l04_what_was_computed_for_a_handle_is_not_given_to_another():
    x = var(stack(2), 3.0)
    handle = x.detach(level=2)
    grads = (x * handle).backward(wrt=[handle])
    assert handle.grad(grads).item() == 6.0  # on level 1, where both are one variable; on level 2 the derivative by x is 3
    return x.grad(grads)


@right(0.0, 0.0, np.zeros(2))
def l05_zero_derivative_of_a_transform_stays_connected():
    w = var(stack(2), 1.7)
    wide = var(stack(1), np.ones(2))
    zero = func.grad(lambda x: w * 3.0)(0.3)
    return d(func.grad(func.grad(lambda x: w * x))(0.3), w), d(d(zero, w), w), d(func.vjp(lambda x: wide, 0.5)[1](wide)[0], wide)


@right(2 * 0.5 * math.cos(0.35) * (math.cos(0.35) - 0.35 * math.sin(0.35)))
def l06_stacks_that_share_a_level_share_it_inside_a_transform():
    s = stack(2)

    def loss(c: Tensor) -> Tensor:
        w, x = var(s.inner, 0.5), var(s, 0.7)
        ux = d((w * x).sin(), x)
        return d(ux * ux * c, w)

    return func.grad(loss)(1.0)


CURVED = -math.sin(0.8) * 3 * 0.8**2 + math.cos(0.8) * 6 * 0.8


@right(CURVED)
def l07_level_named_inside_a_transform_stands_above_it():
    s = stack(2)

    def loss(c: Tensor) -> Tensor:
        x = var(s, 0.8)
        ux = d(c * x**3, x).detach(level=s)
        return d(d(x.sin() * ux, x), x)

    return func.grad(loss)(1.3)


@raises(LevelError, match="two levels that could be meant")
def l08_level_named_inside_a_transform_for_a_value_from_outside():
    s = stack(1)
    w = var(s, 2.0)
    return func.grad(lambda z: (w * z).detach(level=s) * z)(1.0)


@right(12.0, 4.0)
def l09_level_made_inside_a_transform_outlives_it():
    stash: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        y = var(Autodiff(x.backend), 3.0)
        stash.extend((y, y * y * x))
        return x * x

    slope = func.grad(f)(2.0)
    y, z = stash
    return d(z, y), slope


@right(1.0, 0.0)
def l10_derivative_of_a_variable_by_itself():
    x = var(stack(2), 0.3)
    one = d(x, x)
    return one, d(one, x)


@right(2 * 1.3, 3 * 1.3**2)
def l11_inner_value_meets_its_own_variable():
    x = var(stack(2), 1.3)
    return d(x.inner() * x, x), d((x * x).inner() * x, x)


@right(6 * 0.7, may_raise=NO_LEVEL_LEFT)
def l12_linear_derivative_is_as_old_as_its_root():
    s = stack(2)
    x = var(s, 1.3)
    v = d(d(x**3, x), x)  # 6 x, out of both levels, before w is made
    w = var(s, 0.7)
    return d(d(w * x, x) * v, x)  # (w v)_x: what is tracked of w x's derivative is w alone


@right(2.0, 6.0)
def l13_two_handles_on_one_variable_in_one_pass():
    x = var(stack(2), 3.0)
    grads = (x * x.inner()).backward()  # on level 1, where both handles are x
    return x.grad(grads) / 3.0, x.inner().grad(grads)


@right(24.0, 24.0)
def l14_pullback_used_twice_and_late():
    s = stack(2)
    x = var(s, 2.0)
    y, pull = func.vjp(lambda z: z**3, x)
    func.grad(lambda z: z * x)(1.0)
    first, second = pull(y.detach() / 4.0)[0], pull(x)[0]  # 3 x^2 v
    return first, second


@right(2 * 0.6 * math.sin(0.6) + 0.6**2 * math.cos(0.6))
def l15_function_that_returns_its_own_argument():
    return func.grad(lambda x: x * func.value_and_grad(lambda z: z)(x)[0] * x.sin())(0.6)
