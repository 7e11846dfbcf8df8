"""M. Forward mode beside reverse mode: confusion, one in the other, values that leave a dual, and what a dual depends on by its tangent."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nestgrad import Forward, Tensor, func
from nestgrad.errors import LevelError
from nestgrad.levels.autodiff import Autodiff
from programs.case import BASE, NO_LEVEL_LEFT, d, raises, right, stack, var
from programs.confusion import FOUR, THREE, four, functional, three_deep
from programs.styles import squared_slope

TAKEN_OUT = r"got a value that was taken out of Forward level \d"


def pushed(f: Callable[[Any], Any], x: Any, v: Any = 1.0) -> Any:
    """The derivative of a function of a number in forward mode."""
    return func.jvp(f, (x,), (v,))[1]


@right(*FOUR, THREE, 1.0)
def m01_confusion_forward():
    return [*four(pushed), three_deep(pushed), pushed(lambda x: pushed(lambda y: x, 2.0 * x) + x, 1.5)]


def alternating(first: Any, second: Any) -> Any:
    """One mode in the other."""
    depth = [0]

    def derivative(f: Callable[[Any], Any], x: Any) -> Any:
        depth[0] += 1
        try:
            return (first if depth[0] % 2 else second)(f, x)
        finally:
            depth[0] -= 1

    return derivative


@right(*FOUR, THREE, *FOUR, THREE)
def m02_confusion_forward_and_reverse_in_turns():
    one, two = alternating(pushed, functional), alternating(functional, pushed)
    return [*four(one), three_deep(one), *four(two), three_deep(two)]


@right(*FOUR)
def m03_confusion_on_two_forward_levels():
    outer, inner = (Forward(BASE) for _ in range(2))

    def on(level: Forward) -> Any:
        return lambda f, x: level.tangent(f(level.dual(x, 1.0)))

    return four(alternating(on(outer), on(inner)))


@raises(LevelError, match=TAKEN_OUT)
def m04_confusion_on_one_forward_level():
    level = Forward(BASE)
    return four(lambda f, x: level.tangent(f(level.dual(x, 1.0))))


@right(squared_slope())
def m05_imperative_inside_jvp():
    s = stack(1)

    def loss(w: Tensor) -> Tensor:
        x = var(s, 0.3)
        ux = d((w * x).sin(), x)
        return ux * ux

    return pushed(loss, 1.4)


def _curved(x: float) -> float:
    """With p(z) = sin z + z cos z: (z sin(z) y)_z at z = x y is y p(xy); by y at y = x it is p + x^2 p'; and (x p + x^3 p')' at x."""
    z = x * x
    p, p1, p2 = math.sin(z) + z * math.cos(z), 2 * math.cos(z) - z * math.sin(z), -3 * math.sin(z) - z * math.cos(z)
    return p + 5 * z * p1 + 2 * z * z * p2


@right(_curved(0.6))
def m06_reverse_over_forward_over_reverse_with_closures():
    return func.grad(lambda x: pushed(lambda y: func.grad(lambda z: z.sin() * y * z)(x * y), x, x))(0.6)


@right(0.0, 0.0, np.zeros(3))
def m07_constant_functions():
    return pushed(lambda x: 3.0, 1.0), pushed(lambda x: BASE.tensor(2.0), 1.0), func.jvp(lambda x: 3.0 * np.ones(3), (1.0,), (1.0,))[1]


# ---------------------------------------------------------------- what a dual depends on by its tangent
def along_x(levels: int) -> Tensor:
    """z g in the direction x, with g = (x^3)_x: the tangent x g = 3 x^3, by x 9 x^2."""
    x = var(stack(levels), 1.1)
    g = d(x**3, x)
    return d(pushed(lambda z: z * g, 2.0, x), x)


@right(9 * 1.1**2)
def m08_direction_and_function_depend_on_one_variable():
    return along_x(2)


@right(9 * 1.1**2, may_raise=NO_LEVEL_LEFT)
def m09_and_one_level_is_not_enough():
    return along_x(1)


@right(9 * 1.1**2)
def m10_the_same_through_doors():
    s = stack(2)
    x = var(s, 1.1)
    level = Forward(s)
    g = d(x**3, x)
    return d(level.tangent(level.dual(2.0, x) * g), x)


# ---------------------------------------------------------------- what leaves a dual
@raises(LevelError, match=TAKEN_OUT)
def m11_tangent_meets_what_it_is_a_tangent_of():
    level = Forward(BASE)
    x = level.dual(1.3, 1.0)
    return level.tangent(level.tangent(x**2) * x)  # 4 x, of which the level has seen one half


@right(4 * 1.3)
def m12_and_with_two_forward_levels():
    inner, outer = (Forward(BASE) for _ in range(2))
    x = outer.dual(inner.dual(1.3, 1.0), 1.0)
    return inner.tangent(outer.tangent(x**2) * outer.primal(x))


@raises(LevelError, match=TAKEN_OUT)
def m13_primal_is_not_a_constant():
    level = Forward(BASE)
    x = level.dual(1.3, 1.0)
    return level.tangent(level.primal(x) * x)


@raises(LevelError, match=TAKEN_OUT + r" before \(tangent\(\)\)")
def m14_tangent_enters_the_level_again():
    level = Forward(BASE)
    return level.tangent(level.dual(level.tangent(level.dual(1.3, 1.0) ** 2), 1.0) ** 2)


@right(1.3, 2.6)
def m15_detached_primal_is_a_constant():
    level = Forward(BASE)
    x = level.dual(1.3, 1.0)
    return level.tangent(level.primal(x).detach() * x), level.tangent(x.detach(level=level) * x * 2.0)


@right(6 * 0.7, 6 * 0.7)
def m16_values_of_one_step_in_the_next():
    """Loops on one level hand on what is detached; loops of ``jvp`` hand on what they like."""
    level, x, y = Forward(BASE), BASE.tensor(0.7), BASE.tensor(0.7)
    for _ in range(2):
        tx = level.tangent(3.0 * level.dual(x.detach(), 1.0) ** 2)
        x = x + 0.0 * tx
        ty = pushed(lambda z: 3.0 * z**2, y)
        y = y + 0.0 * ty
    return tx, ty


@raises(LevelError, match=r"jvp: the output was taken out of the level of this jvp .* Make a variable inside")
def m17_output_of_jvp_that_left_its_level():
    s = stack(1)
    x = var(s, 0.3)
    return pushed(lambda z: d(var(s, z) * x * z, x), 2.0)  # the derivative by x is on a level under jvp's


# ---------------------------------------------------------------- zeros
@right(0.0, 0.0, 0.0)
def m18_linear_functions_have_no_curvature():
    w, x = var(stack(2), 1.7), var(stack(1), 0.3)
    return d(pushed(lambda z: 3.0 * z, x), x), d(pushed(lambda z: w * 3.0, 0.3), w), d(d(pushed(lambda z: w * z, 0.3), w), w)


def slope_beside(direction: Any, factor: Any, level: Forward) -> tuple[Tensor, Tensor]:
    """(2 y + c z)_y = 2 where z moves: a derivative is tied to all that its root was, the tangent too."""
    z = level.dual(0.3, direction)
    y = var(Autodiff(level), 0.5)
    return d(2.0 * y + factor * z, y), z


@right(0.0, 0.0)
def m19_derivative_is_tied_to_a_moving_root():
    s = stack(1)
    w = var(s, 1.7)
    level = Forward(s)
    by_value, _ = slope_beside(1.0, w, level)
    by_tangent, _ = slope_beside(w, 1.0, level)
    return d(level.primal(by_value), w), d(level.tangent(by_tangent), w)


# ---------------------------------------------------------------- Forward and Autodiff around each other
CURVATURE = 6 * 0.8 * math.sin(0.8) + 6 * 0.8**2 * math.cos(0.8) - 0.8**3 * math.sin(0.8)  # (x^3 sin x)''


@right(CURVATURE, CURVATURE)
def m20_either_around_the_other():
    s = stack(1)
    x = var(s, 0.8)
    above = Forward(s)
    z = above.dual(x, 1.0)
    first = d(above.tangent(z**3 * z.sin()), x)
    below = Forward(BASE)
    y = var(Autodiff(below), below.dual(0.8, 1.0))
    return first, below.tangent(d(y**3 * y.sin(), y))


@right(6 * 0.8, 6 * 0.8, 3 * 0.8**2)
def m21_a_dual_is_the_variable_that_it_was():
    s = stack(1)
    x = var(s, 0.8)
    level = Forward(s)
    z = level.dual(x, 1.0)
    t = level.tangent(z**3)
    return d(t, x), d(t, z), d(level.primal(z**3), z)


@right(0.8, 1.0, 1.6)
def m22_detach_on_the_forward_level_alone():
    s = stack(1)
    x = var(s, 0.8)
    level = Forward(s)
    z = level.dual(x, 1.0)
    y = z * z.detach(level=level)
    t = level.tangent(y)
    return t, d(t, x), d(level.primal(y), x)


@raises(LevelError, match="has no backward pass")
def m23_no_pass_through_a_dual():
    s = stack(1)
    x = var(s, 0.8)
    return d(Forward(s).dual(x, 1.0) ** 2, x)


@right(3 * 0.8**2)
def m24_level_on_which_nothing_moves_is_looked_through():
    s = stack(1)
    x = var(s, 0.8)
    top = Autodiff(Forward(s))
    return d(top.tensor(x**3), x)


# ((z x)^2 3 x^2) in the direction 1 at z = 2 is 4 x^2 3 x^2, by x 48 x^3
@right(48 * 1.2**3)
def m25_level_taken_off_under_a_dual():
    s = stack(2)
    x = var(s, 1.2)
    v = d(x**3, x)
    return d(pushed(lambda z: s.tensor((z * x) ** 2 * v, requires_grad=True) * 1.0, s.tensor(2.0)), x)


@right(6 * 1.1**2 * 0.9, 2 * 1.1**3)
def m26_hessian_vector_product_differentiated_by_its_vector():
    """h = 6 x^2 v for x^4 / 2, by v 6 x^2."""
    s = stack(2)
    x, v = var(s, 1.1), var(s, 0.9)
    h = pushed(func.grad(lambda z: z**4 * 0.5), x, v)
    return h, d(h, v) * x / 3.0


@right(3 * 0.9**2 * 1.4, 0.9**3)
def m27_linearize_is_a_function_of_its_direction():
    s = stack(2)
    w, v = var(s, 1.4), var(s, 0.9)
    _, push = func.linearize(lambda z: w * z, 2.0)
    t = push(v**3)
    return d(t, v), d(t, w)
