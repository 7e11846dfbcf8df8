"""P. Programs that are called: what is traced, captured and cut inside, differentiated outside."""

import math
from collections.abc import Callable

import numpy as np

from nestgrad import Autodiff, Forward, Taylor, Tensor, func
from nestgrad.errors import NestgradError, TraceError
from nestgrad.func import call, trace
from programs.case import BASE, NO_LEVEL_LEFT, d, raises, right, stack, var
from programs.styles import squared_slope


@right(squared_slope(), 2 * 1.4**3 * -math.sin(0.42) * math.cos(0.42))
def p01_loss_with_a_derivative_inside():
    """(w cos(w x))^2 by w, and by x: -2 w^3 sin cos."""
    s = stack(1)

    def loss(w: Tensor, x: Tensor) -> Tensor:
        y = var(s, x)
        ux = d((w * y).sin(), y)
        return ux * ux

    program = trace(loss)(1.0, 1.0)
    w, x = var(s, 1.4), var(s, 0.3)
    grads = call(program, w, x).backward()
    return w.grad(grads), x.grad(grads)


@right(9 * 1.2**2, 18 * 1.2)
def p02_derivative_meets_its_variable_outside():
    s = stack(2)
    x = var(s, 1.2)

    def slope(x: Tensor) -> Tensor:
        y = var(s, x)
        return d(y**3, y)

    g = d(call(trace(slope)(x), x) * x, x)
    return g, d(g, x)


@right(1.2, 2.4)
def p03_detached_inside():
    x = var(stack(1), 1.2)
    return d(call(trace(lambda z: z * z.detach())(x), x), x), d(call(trace(lambda z: z * z)(x), x), x)


@right(4.32, 9 * 1.2**2)
def p04_captured_derivative_meets_a_new_variable_and_its_own():
    s = stack(2)
    x = var(s, 1.2)
    g = d(x**3, x)
    program = trace(lambda z: z * g)(1.0)
    y = var(s, 2.0)
    return d(call(program, y), y), d(call(program, x), x)


@right(9 * 1.2**2, may_raise=NO_LEVEL_LEFT)
def p05_and_one_level_is_not_enough():
    x = var(stack(1), 1.2)
    g = d(x**3, x)
    return d(call(trace(lambda z: z * g)(1.0), x), x)


@right(2.0, 3 * 1.5**2 * 2.0, 6 * 1.5 * 2.0)
def p06_captured_variable_is_an_input():
    s = stack(2)
    w, x = var(s, 2.0), var(s, 1.5)
    y = call(trace(lambda z: w * z**3)(1.0), x)
    g = d(y, x)
    return d(y, w) / 1.5**3 * 2.0, g, d(g, x)


@right(squared_slope(), squared_slope())
def p07_in_a_transform_and_around_one():
    s = stack(1)

    def loss(w: Tensor) -> Tensor:
        x = var(s, 0.3)
        ux = d(call(trace(lambda w, x: (w * x).sin())(w, x), w, x), x)
        return ux * ux

    return func.grad(loss)(1.4), call(trace(func.grad(loss))(1.0), 1.4)


@raises(TraceError, match="leaked from a trace")
def p08_stash_from_a_trace():
    stash: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        stash.append(x * 2.0)
        return x

    trace(f)(2.0)
    return (stash[0] + 1.0).numpy()


@raises(NestgradError, match="is on no level")
def p09_argument_looked_up_inside():
    return trace(lambda x: d(x**3, x))(var(stack(1), 1.2))


@raises(TraceError, match="a variable outside of the trace")
def p10_captured_variable_looked_up_inside():
    s = stack(1)
    w = var(s, 1.2)

    def f(x: Tensor) -> Tensor:
        y = var(s, x)
        return d(y * w, w)

    return trace(f)(2.0)


@right(0.0, 0.0, 0.0)
def p11_linear_functions_have_no_curvature():
    s = stack(2)
    x, w = var(s, 1.2), var(s, 2.0)
    linear = call(trace(lambda z: 3.0 * z + w)(1.0), x)
    return d(d(linear, x), x), d(d(linear, x), w), d(call(trace(lambda z: w + 0.0 * z)(1.0), x), x)


SAMPLES = np.array([0.2, 0.5, -0.7])


@right(3 * SAMPLES**2, 6 * 0.5, 3 * 0.5, 6 * 0.5)
def p12_in_every_mode():
    program = trace(lambda z: z**3)(1.0)

    def cube(z: Tensor) -> Tensor:
        made: Tensor = call(program, z)
        return made

    return (
        func.vmap(func.grad(cube))(SAMPLES),
        func.jvp(func.grad(cube), (0.5,), (1.0,))[1],
        func.taylor(cube, 0.5, 1.0, order=2)[2],
        func.hessian(cube)(0.5),
    )


@right(6 * 1.1 + 4 * 1.1, 4 * 1.1)
def p13_captured_derivative_still_depends_on_its_variable():
    """3 w^2 + w^2 z at z = 2; and w^2 z alone."""
    w = var(stack(2), 1.1)
    slope = d(w**3, w)
    return d(call(trace(lambda z: slope + w * w * z)(1.0), 2.0), w), d(call(trace(lambda z: w * w * z)(1.0), 2.0), w)


@raises(TraceError, match="grad: got a value that leaked from a trace")
def p14_look_up_by_what_has_leaked():
    s = stack(1)
    w = var(s, 1.1)
    stash: list[Tensor] = []

    def f(z: Tensor) -> Tensor:
        stash.append(func.jvp(lambda q: z, (w,), (w,))[1])  # zero, tied to w
        return z * w

    return d(call(trace(f)(1.0), 2.0), stash[0])


def seeded(level: Forward | Taylor, entered: Callable[[Tensor], Tensor]) -> Tensor:
    """The program of g times the derivative of z^2, where z has entered a level under the coat of a younger one; called with 3."""
    x = var(Autodiff(level), 0.5)
    y = entered(x) ** 2
    made: Tensor = call(trace(lambda g: x.grad(y.backward(gradient=g)))(1.0), 3.0)
    return made


@right(3.0, 3 * 0.5 * 4, 3.0, 3 * 0.5 * 4)
def p15_what_moves_is_captured():
    """z = x + x t: the derivative of z^2 by x is 2 x (1 + t)^2."""
    forward, taylor = Forward(BASE), Taylor(BASE, order=2)
    one = seeded(forward, lambda x: forward.dual(x, x))
    two = seeded(taylor, lambda x: taylor.series(x, x))
    return forward.primal(one), forward.tangent(one), taylor.terms(two)[0], taylor.terms(two)[1]
