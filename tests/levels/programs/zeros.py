"""E. Zeros and what is not connected; F. detach; G. broadcasting between levels."""

import math

import numpy as np

from nestgrad import Tensor, func
from nestgrad.errors import NestgradError, NoLevelLeft, NotConnectedError, NotTrackedError
from programs.case import d, raises, right, stack, var

ANEW = r"does not depend on this tensor .* Was it created anew"


@right(0.0, 0.0, 0.0)
def e02_separable_function_mixed_partials():
    s = stack(2)
    x, y = var(s, 0.4), var(s, 0.6)
    grads = (2.0 * x + y**2).backward()
    ux, uy = x.grad(grads), y.grad(grads)
    return d(ux, y), d(uy, x), d(ux, x)


@raises(NotConnectedError, match=ANEW)
def e03_never_connected_first_order():
    s = stack(2)
    x, z = var(s, 0.4), var(s, 1.0)
    return d(x * x, z)


@raises(NotConnectedError, match=ANEW)
def e05_created_anew_by_mistake_second_order():
    s = stack(2)
    x = var(s, 0.4)
    ux = d(x**3, x)
    return d(ux, var(s, 0.4))


@raises(NotConnectedError, match=ANEW)
def e06_created_anew_by_mistake_linear():
    s = stack(2)
    x = var(s, 0.4)
    ux = d(x * 3.0, x)
    return d(ux, var(s, 0.4))


@right(0.0, 1.0, 0.0, 2.0, 0.0)
def e08_powers_zero_one_two():
    x = var(stack(3), 0.0)
    return d(x**0, x), d(x**1, x), d(d(x**1, x), x), d(d(x**2, x), x), d(d(x**0, x), x)


@raises(NotTrackedError, match="depends on nothing that requires gradients")
def e09_untracked_root():
    return stack(2).tensor(1.0).backward()


@raises(NotConnectedError, NotTrackedError, match="does not depend on this tensor|tracked on no level")
def e11_derivative_by_a_derivative():
    x = var(stack(2), 0.4)
    y = x**3
    return d(y, d(y, x))


@raises(NestgradError, match="does not depend on this tensor")
def e12_another_stack():
    x, y = var(stack(1), 0.4), var(stack(1), 0.4)
    return d(y * y, x)


@right(0.0, 1.0)
def e14_zero_where_only_another_parameter_stays():
    s = stack(2)
    x, w = var(s, 0.4), var(s, 2.0)
    grads = d(w * x, x).backward()
    return x.grad(grads), w.grad(grads)


@raises(NoLevelLeft, match=r"taken out of Autodiff level 1: a derivative of a powi .* detach\(\) .* one more Autodiff")
def e15_no_level_left_says_so():
    x = var(stack(1), 0.4)
    return d(d(x**3, x), x)


@right(2.0, 1.0, 2.0, 0.0)
def f02_detach_from_a_level_upwards():
    x = var(stack(2), 2.0)
    top, low = x * x.detach(level=2), x * x.detach(level=1)
    return d(top, x), d(d(top, x), x), d(low, x), d(d(low, x), x)


# q = x [x^2] with [] constant from level 2 up: q_x = [x^2]; the next derivative is on level 2 as well, so 0
@right(4.0, 4.0, 0.0, 2.0)
def f09_detach_between_three_levels():
    x = var(stack(3), 2.0)
    q, p = x * (x * x).detach(level=2), x * (x * x).detach(level=3)
    return d(q, x), d(d(p, x), x), d(d(q, x), x), d(d(d(p, x), x), x)


@right(math.cos(0.8) * 3 * 0.8**2, -math.sin(0.8) * 3 * 0.8**2 + math.cos(0.8) * 6 * 0.8)
def f04_derivative_detached_on_its_own_level_only():
    s = stack(2)
    x = var(s, 0.8)
    ux = d(x**3, x).detach(level=s)
    rx = d(x.sin() * ux, x)
    return rx, d(rx, x)


@right(math.sin(0.6))
def f05_detach_inside_grad():
    return func.grad(lambda x: x * x.sin().detach())(0.6)


@right(0.0, 0.6)
def f07_detach_inside_nested():
    def inner(x: Tensor) -> Tensor:
        return func.grad(lambda y: y * x.detach() * x)(x)

    return func.grad(func.grad(lambda x: x * x.detach()))(0.6), func.grad(inner)(0.6)


@right(2.0)
def f08_numbers_are_constants():
    x = var(stack(1), 2.0)
    return d(x * x.item(), x)


@right(np.full((2, 1), 3.0), np.full(3, 2.0))
def g02_derivative_row_times_column_of_another_level():
    s = stack(2)
    x, c = var(s, np.ones(3)), var(s, np.ones((2, 1)))
    ux = d((x * x * 0.5).sum(), x)
    grads = (ux * c).sum().backward()
    return c.grad(grads), x.grad(grads)


@right(2.0, np.ones(2))
def g03_scalar_marked_times_vector():
    s = stack(2)
    x, v = var(s, 1.0), var(s, np.ones(2))
    ux = d(x**2 * 0.5, x)
    grads = (ux * v).sum().backward()
    return x.grad(grads), v.grad(grads)


@right(np.full(2, 2.0), 3.0)
def g05_getitem_reshape_across():
    x = var(stack(2), np.array([1.0, 2.0]))
    g = d((x**2).sum(), x)
    y = x[1] * 0.0 + g.reshape(1, 2).sum() * 0.5
    return d(y * 2.0, x), y
