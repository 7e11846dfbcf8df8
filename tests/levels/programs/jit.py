"""J. Compiled functions: looked up inside and outside, on levels older and younger, called again with other values."""

import math
from typing import Any

import numpy as np

from nestgrad import Autodiff, Forward, Taylor, Tensor, func, jit
from nestgrad.errors import GraphFreedError, LevelError, NotConnectedError, NotTrackedError, TraceError
from programs.case import BASE, NO_LEVEL_LEFT, d, raises, right, stack, var
from programs.passes import POINT, RATE, residual, slope, step as gradient_of_step, trained
from programs.residuals import FORCE, GRADIENTS, NU, B, C, V, W, X, loss, net
from programs.styles import squared_slope


@right(*GRADIENTS)
def j02_tracked_arguments_looked_up_inside():
    s = stack(3)

    def step(p: list[Tensor], x: Tensor, force: Tensor) -> list[Tensor]:
        grads = loss(p, x, force).backward()
        return [q.grad(grads) for q in p]

    return jit(step)([var(s, part) for part in (W, B, V, C)], var(s, X), BASE.tensor(FORCE))


@right(*GRADIENTS)
def j03_loss_differentiated_outside():
    s = stack(3)
    p = [var(s, part) for part in (W, B, V, C)]
    made = jit(loss)(p, var(s, X), BASE.tensor(FORCE))
    assert made.level == 1
    grads = made.backward()
    return [q.grad(grads) for q in p]


@right(*GRADIENTS)
def j05_functional_grad_inside_and_jit_inside_grad():
    def whole(*p: Tensor) -> Tensor:
        inner = jit(lambda p, x: net(p, x.reshape(1, 1)).sum())
        u = lambda x: inner(list(p), x)
        rows = [u(x) * func.grad(u)(x) - NU * func.grad(func.grad(u))(x) - f for x, f in zip(X[:, 0], FORCE[:, 0], strict=True)]
        return sum((r * r for r in rows), BASE.tensor(0.0)) / 5.0

    return [jit(func.grad(whole, argnums=k))(*(BASE.tensor(part) for part in (W, B, V, C))) for k in range(4)]


@right(9 * 1.2**2)  # (x 3x^2)'
def j06_derivative_meets_its_variable_outside():
    x = var(stack(2), 1.2)
    ux = jit(lambda x: d(x**3, x))(x)
    return d(ux * x, x)


# (x^6 + x^2)'. Where u is a number of its own, 3 u^2 u' is lost, so what is right is this or an error.
@right(6 * 1.2**5 + 2.4, may_raise="history")
def j08_argument_looked_up_beside_one_that_was_made_of_it():
    x = var(stack(2), 1.2)
    return jit(lambda x, u: d(u**3 + x * u / x, x))(x, x * x)


@right(6 * 1.2**5)
def j09_argument_with_a_history_differentiated_outside():
    x = var(stack(2), 1.2)
    return d(jit(lambda u: u**3)(x * x), x)


@right(3 * 1.2**4, 12 * 1.2**3)
def j10_argument_with_a_history_looked_up_inside():
    """(u^3)_u = 3 u^2 with u = x^2, then by x; no argument beside it has one."""
    x = var(stack(2), 1.2)
    g = jit(lambda u: d(u**3, u))(x * x)
    return g, d(g, x)


@raises(LevelError, match="detach")
def j11_variable_made_inside_escapes():
    s = stack(1)
    return jit(lambda v: s.tensor(v, requires_grad=True) * 2.0)(BASE.tensor(1.0))


@right(trained(3))
def j12_training_loop():
    s = stack(2)

    @jit
    def update(w: Tensor) -> Tensor:
        w = var(s, w)
        return (w - RATE * gradient_of_step(w, var(s, POINT))).detach()

    w = BASE.tensor(0.5)
    for _ in range(3):
        w = update(w)
    return w


@right(trained(3))
def j13_training_loop_with_variables_from_outside():
    s = stack(2)
    update = jit(lambda w, x: w - RATE * gradient_of_step(w, x))
    w = var(s, 0.5)
    for _ in range(3):
        w = s.variable(update(w, var(s, POINT)))
    return w.detach()


@right(3 * 1.2**2, 2.4)
def j14_two_handles_on_one_variable():
    x = var(stack(2), 1.2)
    y = x.inner()
    return jit(lambda y: d(y**3, x))(y), jit(lambda a, b: d(a * a, a))(y, x)


@right(3 * 1.2**2 + 1.2)
def j30_one_tensor_as_two_arguments():
    x = var(stack(1), 1.2)
    return jit(lambda a, b: d(a**2 * b + b * a.detach(), a) - a.detach())(x, x) + x.detach()


def _slopes_beside_a_derivative(*ages: str) -> list[Tensor]:
    """Of one compiled function that closes over a derivative, by arguments that are older and newer than that."""
    s = stack(2)
    x = var(s, 1.2)
    ux = d(x**3, x)
    f = jit(lambda z: z * ux)
    return [d(f(z), z) for z in (x if age == "older" else var(s, 2.0) for age in ages)]


@right(3 * 1.2**2, 9 * 1.2**2, may_raise=NO_LEVEL_LEFT)
def j15_one_function_and_a_derivative_older_or_newer_than_its_argument():
    return _slopes_beside_a_derivative("newer", "older")


@right(9 * 1.2**2, 3 * 1.2**2, may_raise=NO_LEVEL_LEFT)
def j16_the_same_in_the_other_order():
    return _slopes_beside_a_derivative("older", "newer")


@right(squared_slope())
def j17_inside_grad():
    s = stack(1)
    f = jit(lambda w, x: (w * x).sin())

    def loss(w: Tensor) -> Tensor:
        x = var(s, 0.3)
        ux = d(f(w, x), x)
        return ux * ux

    return func.grad(loss)(1.4)


@raises(TraceError, match="leaked from a trace|changed what it closes over")
def j19_stash_from_a_trace():
    stash: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        stash.append(x * 2.0)
        return x

    jit(f)(BASE.tensor(2.0))
    return (stash[0] + 1.0).numpy()


@raises(TraceError, LevelError, match="trace")
def j20_gradients_stashed_from_a_trace():
    x = var(stack(1), 2.0)
    stash: list[Any] = []

    def f(x: Tensor) -> Tensor:
        stash.append((x * x).backward())
        return x

    jit(f)(x)
    return x.grad(stash[0])


@right(1.2, 1.0)
def j21_detached_inside_differentiated_outside():
    """x detach(x) has the slope x; detached on level 2 alone, it has the slope 1 by the second derivative."""
    x = var(stack(2), 1.2)
    all_levels, one = jit(lambda z: z * z.detach()), jit(lambda z: z * z.detach(level=2))
    return d(all_levels(x), x), d(d(one(x), x), x)


@right(2.0, 4.0, may_raise="only through a value that was taken out of|does not depend on this tensor")
def j22_inner_inside():
    s = stack(2)
    x, y = var(s, 1.2), var(s, 2.0)
    f = jit(lambda y, z: y * z.inner())
    return d(f(y, x), x), d(f(y, x) * y / x.detach(), y)


@right(2.0, 6.0, 12.0, 5.0, 15.0, 30.0)
def j23_called_again_with_other_values():
    s = stack(2)
    f = jit(lambda w, x: w * x**3)
    found = []
    for w, x in ((var(s, 2.0), var(s, 1.0)), (var(s, 5.0), var(s, 1.0))):
        u = f(w, x)
        ux = d(u, x)
        found += [u, ux, d(ux, x)]
    return found


@right(4.0, 4.0, 4.0)
def j24_called_with_more_and_with_fewer_levels():
    f = jit(lambda x: x * x)
    two, one = var(stack(2), 2.0), var(stack(1), 2.0)
    made = f(two), f(one), f(BASE.tensor(2.0))
    assert [y.level for y in made] == [2, 1, 0]
    return made


@right(2.0, 2.0, 4.0)
def j25_output_of_several_of_which_one_is_detached():
    x = var(stack(1), 2.0)
    a, b, c = jit(lambda x: (x, x.detach(), x * x))(x)
    assert (a.level, b.level, c.level) == (1, 0, 1)
    return d(a, x) * 2.0, b, d(c, x)


@right(12.0, 2 * 12.0, 3.0, 0.0)
def j26_variable_from_outside_looked_up_inside():
    """(w x^3)_w = x^3 and (w x^3)_x = 3 w x^2, of closed-over w and x, at w = 1, x = 2; and with an argument z beside them."""
    s = stack(2)
    w, x = var(s, 1.0), var(s, 2.0)
    f = jit(lambda z: z * d(w * x**3, x))
    y = f(BASE.tensor(1.0))
    g = jit(lambda z: d(z * w * x, x))
    z = var(s, 3.0)
    return y, f(BASE.tensor(2.0)), g(z), d(g(z), x)


@right(7.0, 3.0, 5.0)
def j27_captured_variable_gets_a_gradient():
    s = stack(1)
    w, b = var(s, 3.0), var(s, 1.0)
    f = jit(lambda z: w * z + b)
    z = var(s, 2.0)
    grads = f(z).backward()
    assert b.grad(grads).item() == 1.0
    return f(z), z.grad(grads), w.grad(grads) + 3.0


@right(0.0, 0.0, 3.0)
def j28_linear_functions_have_no_curvature():
    s = stack(2)
    x, w = var(s, 1.2), var(s, 3.0)
    f = jit(lambda x: w * x)
    slope_inside = jit(lambda x: d(3.0 * x, x))(x)
    return d(d(f(x), x), x), d(slope_inside, x), d(f(x), x)


@raises(NotConnectedError, match="does not depend on this tensor")
def j29_not_connected_inside():
    s = stack(2)
    return jit(lambda x, y: d(x * x, y))(var(s, 1.0), var(s, 2.0))


@raises(NotConnectedError, match="does not depend on this tensor")
def j31_not_connected_outside():
    s = stack(2)
    x, y = var(s, 1.0), var(s, 2.0)
    return d(jit(lambda x, y: x * x)(x, y), y)


@raises(NotTrackedError, match="depends on nothing that requires gradients")
def j32_nothing_is_tracked():
    return jit(lambda x: d(x * x, x))(BASE.tensor(1.0))


@raises(LevelError, match=NO_LEVEL_LEFT)
def j33_too_few_levels_inside():
    return jit(lambda x: d(d(x**3, x), x))(var(stack(1), 1.0))


@right(2 * 1.1 * math.sin(1.1), 2 * math.sin(1.1) + 2 * 1.1 * math.cos(1.1))
def j34_tracked_seed_inside():
    """The seed sin(x) counts, too: (2 x sin x)' at 1.1."""
    x = var(stack(2), 1.1)
    g = jit(lambda x: x.grad((x * x).backward(gradient=x.sin())))(x)
    return g, d(g, x)


@right(4.0, 4.0, 4.0)
def j35_derivatives_inside_of_what_was_made_outside():
    """u = x^2 was made outside, and has a graph there."""
    x = var(stack(2), 2.0)
    u = x * x
    grads = u.backward()
    return d(u, x), jit(lambda z: z * 0.0 + d(u, x))(BASE.tensor(1.0)), jit(lambda z: z * 0.0 + x.grad(grads))(BASE.tensor(1.0))


@right(12.0, 48.0, 12.0)
def j36_in_each_other():
    inner = jit(lambda x: x**3)
    outer = jit(lambda x: func.grad(inner)(x))
    x = var(stack(1), 2.0)
    return outer(x), d(jit(lambda x: inner(x) * x)(x), x) * 1.5, jit(func.grad(jit(lambda x: inner(x))))(2.0)


SAMPLES = np.array([0.2, 0.5, -0.7])


@right(3 * SAMPLES**2, 6 * 0.5, 3 * 0.5, 6 * 0.5, 3 * SAMPLES**2, 6 * 0.5)
def j37_in_every_mode():
    cube = jit(lambda z: z**3)
    slope = jit(func.grad(cube))
    return (
        func.vmap(func.grad(cube))(SAMPLES),
        func.jvp(func.grad(cube), (0.5,), (1.0,))[1],
        func.taylor(cube, 0.5, 1.0, order=2)[2],
        func.hessian(cube)(0.5),
        func.vmap(slope)(SAMPLES),
        func.jvp(slope, (0.5,), (1.0,))[1],
    )


@right(squared_slope(), squared_slope())
def j38_imperative_inside_with_numbers():
    s = stack(2)

    def loss(w: Any, x: Any) -> Tensor:
        w, x = var(s, w), var(s, x)
        ux = d((w * x).sin(), x)
        return d(ux * ux, w).detach()

    f = jit(loss)
    f(0.1, 0.2)
    return f(1.4, 0.3), jit(func.grad(lambda w: func.grad(lambda x: (w * x).sin())(0.3) ** 2))(1.4)


@right(9 * 1.2**2, 18 * 1.2)
def j39_derivative_from_outside_as_an_argument():
    """(x u_x)' = 9 x^2: the mark of u_x comes along, and what f knows of levels does."""
    x = var(stack(3), 1.2)
    ux = d(x**3, x)
    g = d(jit(lambda x, ux: x * ux)(x, ux), x)
    return g, d(g, x)


@right(4.0, may_raise=NO_LEVEL_LEFT)
def j40_one_trace_for_two_orders_of_marks():
    """With one level: 2 * 3x^2 of an x that is older than y is a constant of y; of x itself it must not be one."""
    s = stack(1)
    x = var(s, 1.0)
    ux = d(2.0 * x * x, x)
    f = jit(lambda a, b: a * b)
    y = var(s, 5.0)
    assert d(f(y, ux), y).item() == 4.0
    d(f(x, ux), x)
    raise AssertionError("the derivative of x u_x is 8, and no level is left for it")


@right(residual(0.5), slope(0.5)[0])
def j41_loss_and_gradient_returned_together():
    s = stack(2)

    def both(w: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        ux = d((w * x).tanh(), x)
        return d((ux - 0.3) ** 2, w), ux

    g, ux = jit(both)(var(s, 0.5), var(s, POINT))
    assert (g.level, ux.level) == (0, 1)
    return g, ux


@raises(GraphFreedError, match="freed at 'sin'")
def j42_freed_inside():
    x = var(stack(1), 0.4)

    def f(x: Tensor) -> Tensor:
        y = x.sin()
        y.backward(retain_graph=False)
        return d(y, x)

    return jit(f)(x)


@right(6.0, 3.0)
def j43_closed_over_by_the_function_of_a_transform_inside():
    """(a x^2)_x = 2 a x, by a: 2 x; the inner function closes over the argument."""
    s = stack(1)
    a = var(s, 1.0)
    f = jit(lambda a, x: func.grad(lambda x: a * x * x)(x))
    y = f(a, BASE.tensor(3.0))
    return y, d(y, a) / 2.0


@right(2.0, 2.0, 10.0, 2.0)
def j44_detached_on_the_level_of_an_argument_that_has_fewer():
    """x on two levels, then on one: detach(level=2) is nothing there."""
    s = stack(2)
    f = jit(lambda x: x * x.detach(level=2))
    x, y = var(s, 2.0), var(s, 5.0, levels=[1])
    return d(f(x), x), d(f(x), x), d(f(y), y), d(d(f(x), x) * 2.0, x)


@right(3.0, 12.0)
def j45_variable_made_of_an_argument():
    """q = x^2 as a variable of its own: (x q)_q = x, and by x through q: (x^3)_x."""
    s = stack(2)

    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        q = s.tensor(x * x, requires_grad=True)
        y = x * q
        return d(y, q).detach() + 1.0, d(y, x)

    return jit(f)(var(s, 2.0))


@right(4.0, 6.0, 4.0)
def j46_what_moves_outside_is_taken_apart_inside():
    """The tangent and the first coefficient of what is closed over, 3 and 5; and the value alone."""
    forward, taylor = Forward(BASE), Taylor(BASE, order=2)
    p, q = forward.dual(3.0, 3.0), taylor.series(3.0, 5.0)
    z = BASE.tensor(1.0)
    return (
        jit(lambda z: forward.tangent(p) + z)(z),
        jit(lambda z: taylor.terms(q)[1] + z)(z),
        jit(lambda z: forward.primal(p) + z)(z),
    )


@raises(TraceError, match="detach: inside jit, got level=")
def j47_level_of_a_series_named_inside():
    taylor = Taylor(BASE, order=2)
    return jit(lambda z: (1.43 - z).detach(level=taylor))(taylor.series(0.5, 1.0))


@right(-math.sin(0.5), 0.0, math.cos(0.5))
def j48_slope_of_a_function_that_is_linear_in_the_argument():
    """(s p)_s = p, of which the program computes nothing: it is what is closed over. Its cosine has the slope -sin(p)."""
    s = stack(1)
    p, z = var(s, 0.5), var(s, 2.0)
    cosine = jit(lambda z: func.grad(lambda s: s * p)(z).cos())(z)
    looked_up = jit(lambda z: func.jacrev(lambda s: s * p)(z).sin())(z)
    return d(cosine, p), d(cosine, z), d(looked_up, p)


@right(1.0 - 0.588)
def j49_series_of_what_is_closed_over():
    """The first coefficient of a series along p itself; on no level, as it is outside of a trace."""
    taylor = Taylor(BASE, order=2)
    s = Autodiff(taylor)
    x, p = var(s, -0.588), var(s, 1.0)
    y = jit(lambda x: taylor.terms(taylor.series(p, p))[1] + x)(x)
    assert not y.tracked_on()
    return y


@right(0.16, 0.56)
def j50_traced_and_called_inside():
    """A program that is traced and called inside, and closes over what the compiled function does: (w z^2) by w and by z."""
    s = stack(1)
    w, z = var(s, 0.7), var(s, 0.4)
    f = jit(lambda z: func.call(func.trace(lambda t: w * t)(z), z) * z)
    return d(f(z), w), d(f(z), z)
