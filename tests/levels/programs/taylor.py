"""N. Taylor mode beside the others: derivatives inside it, it inside them, and what leaves a series."""

import math
from typing import Any

from nestgrad import Forward, Taylor, Tensor, func
from nestgrad.errors import LevelError
from nestgrad.levels.autodiff import Autodiff
from programs.case import BASE, NO_LEVEL_LEFT, d, raises, right, stack, var

TAKEN_OUT = r"got a value that was taken out of Taylor level \d"


def coefficient(f: Any, x: Any, k: int, direction: Any = 1.0, order: int = 3) -> Any:
    """Coefficient ``k`` of a function along a line."""
    return func.taylor(f, x, direction, order=order)[k]


# w cos(w z) along z: c_2 = -w^3 cos(w z) / 2; by w: (-3 w^2 cos + w^3 z sin) / 2
@right(-(1.4**3) * math.cos(0.42) / 2, (-3 * 1.4**2 * math.cos(0.42) + 1.4**3 * 0.3 * math.sin(0.42)) / 2)
def n01_imperative_inside_taylor_differentiated_outside():
    s = stack(2)
    w = var(s, 1.4)

    def slope(z: Tensor) -> Tensor:
        y = var(s, z)
        return d((w * y).sin(), y)

    c = coefficient(slope, 0.3, 2)
    return c, d(c, w)


@right(-math.cos(0.6) / 6, -math.sin(0.6), -math.cos(0.6) / 2)
def n02_taylor_and_forward_and_reverse_in_each_other():
    """Of the sine: c_3; the derivative of c_1 in reverse, of c_2 in forward mode."""
    return (
        coefficient(lambda z: z.sin(), 0.6, 3),
        func.grad(lambda x: coefficient(lambda z: z.sin(), x, 1))(0.6),
        func.jvp(lambda x: coefficient(lambda z: z.sin(), x, 2), (0.6,), (1.0,))[1],
    )


@right(10.0, 8.0)
def n03_confusion_of_two_lines():
    """c_1 of z^2 at x is 2 x: x 2 x + x is 10 at 2, and x 2 x has the slope 4 x."""
    inner = coefficient(lambda x: x * coefficient(lambda z: z**2, x, 1) + x, 2.0, 0)
    slope = coefficient(lambda x: x * coefficient(lambda z: z**2, x, 1), 2.0, 1)
    return inner, slope


@right(12.0, 3.0)
def n04_taylor_of_taylor_closes_over_the_line():
    """c_1 in z of x z^2 at 1 is 2 x: 2 x^3 has the slope 6 x^2. c_1 in z of x z is x."""
    outer = coefficient(lambda x: x**2 * coefficient(lambda z: x * z**2, 1.0, 1), 2.0, 1)
    return outer / 2.0, coefficient(lambda x: coefficient(lambda z: x * z, 1.0, 1), 2.0, 1) * 3.0


def along_x(levels: int, k: int) -> Tensor:
    """z^2 g along x at z = 2, with g = (x^3)_x: c_1 = 4 x g = 12 x^3, c_2 = x^2 g = 3 x^4."""
    x = var(stack(levels), 1.1)
    g = d(x**3, x)
    return d(coefficient(lambda z: z**2 * g, 2.0, k, x), x)


@right(36 * 1.1**2, 12 * 1.1**3)
def n05_direction_and_function_depend_on_one_variable():
    return along_x(2, 1), along_x(2, 2)


@right(36 * 1.1**2, may_raise=NO_LEVEL_LEFT)
def n06_and_one_level_is_not_enough():
    return along_x(1, 1)


@right(9 * 1.1**2)
def n07_second_coefficient_alone_depends_on_a_variable():
    """z = 2 + t + x t^2: z g has c_2 = x g = 3 x^3."""
    s = stack(2)
    x = var(s, 1.1)
    level = Taylor(s, order=2)
    g = d(x**3, x)
    return d(level.terms(level.series(2.0, 1.0, x) * g)[2], x)


@raises(LevelError, match=TAKEN_OUT)
def n08_coefficient_meets_what_it_is_a_coefficient_of():
    level = Taylor(BASE, order=2)
    x = level.series(1.3, 1.0)
    return level.terms(level.terms(x**3)[2] * x)[1]


@raises(LevelError, match=TAKEN_OUT + " before")
def n09_coefficient_enters_the_level_again():
    level = Taylor(BASE, order=2)
    return level.series(level.terms(level.series(1.3, 1.0) ** 3)[2], 1.0)


@right(3 * 1.3, 3 * 1.3)
def n10_detached_coefficient_is_a_constant():
    level = Taylor(BASE, order=2)
    x = level.series(1.3, 1.0)
    c = level.terms(x**3)[2]
    return level.terms(c.detach() * x)[1], level.terms((x * 3.0).detach(level=level) * x)[1]


@right(0.0, 0.0)
def n11_linear_functions_have_no_curvature():
    w, x = var(stack(1), 1.7), var(stack(1), 0.3)
    return d(coefficient(lambda z: w * 3.0, 0.3, 1), w), d(coefficient(lambda z: 3.0 * z, x, 1), x)


@right(0.0)
def n12_derivative_is_tied_to_a_root_with_a_moving_coefficient():
    s = stack(1)
    w = var(s, 1.7)
    level = Taylor(s, order=2)
    z = level.series(0.3, 1.0, w)
    y = var(Autodiff(level), 0.5)
    return d(level.terms(d(2.0 * y + z, y))[2], w)


@right(12 * 0.8, 12 * 0.8, 12 * 0.8)
def n13_around_and_under_the_others():
    """(x^4)'''/2 by c_2 of a first derivative: in reverse over it, under it, and in forward mode over it."""
    s = stack(1)
    x = var(s, 0.8)
    above = Taylor(s, order=3)
    one = d(above.terms(above.series(x, 1.0) ** 4)[2], x)
    below = Taylor(BASE, order=2)
    y = var(Autodiff(below), below.series(0.8, 1.0))
    two = below.terms(d(y**4, y))[2]
    line = Taylor(BASE, order=2)
    moving = Forward(line)
    three = line.terms(moving.tangent(moving.dual(line.series(0.8, 1.0), 1.0) ** 4))[2]
    return one, two, three


# (z x)^2 3 x^2 at z = 2 + t: c_2 is x^2 3 x^2, by x 12 x^3
@right(12 * 1.2**3)
def n14_level_taken_off_under_a_series():
    s = stack(2)
    x = var(s, 1.2)
    v = d(x**3, x)
    return d(coefficient(lambda z: s.tensor((z * x) ** 2 * v, requires_grad=True) * 1.0, s.tensor(2.0), 2), x)


@raises(LevelError, match=r"taylor: the output was taken out of the level of this taylor")
def n15_output_of_taylor_that_left_its_level():
    s = stack(1)
    x = var(s, 0.3)
    return coefficient(lambda z: d(var(s, z) * x * z, x), 2.0, 1)


@raises(LevelError, match="has no backward pass")
def n16_no_pass_through_a_series():
    s = stack(1)
    x = var(s, 0.8)
    return d(Taylor(s, order=2).series(x, 1.0) ** 2, x)


@right(math.sin(0.5), 1.0, 0.0)
def n17_series_that_begins_with_its_second_coefficient():
    """y = sin(x) at x = 0.5 + w t^2; by w at 0 it is cos(0.5) t^2: then its own sine runs on a series without a first coefficient."""
    level = Taylor(BASE, order=2)
    w = var(Autodiff(level), 1.0)
    x = level.series(0.5, 0.0, 0.0) + w * level.series(0.0, 1.0) ** 2
    by_w = d(x, w)  # t^2
    terms = level.terms((0.5 + by_w).sin())
    return terms[0], terms[2] / math.cos(0.5), terms[1]
