"""O. Many samples at once: derivatives inside a batch and outside of it, closures that are tracked, and what a batch cannot do."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import nestgrad as ng
from nestgrad import Batched, Tensor, func
from nestgrad.errors import LevelError
from nestgrad.levels.autodiff import Autodiff
from programs.case import BASE, NO_LEVEL_LEFT, d, raises, right, stack, var
from programs.confusion import FOUR, THREE, four, three_deep

ZS = np.array([0.2, 0.5, -0.7])
W = 1.3


@right(6 * ZS**2, 2 * ZS**3)
def o01_imperative_inside_vmap():
    s = stack(1)

    def both(z: Tensor) -> tuple[Tensor, Tensor]:
        x, w = var(s, z), var(s, 1.0)
        grads = (w * x**3 * 2.0).backward()
        return x.grad(grads), w.grad(grads)

    return func.vmap(both)(ZS)


NU = 0.3


def _residual(w: float) -> float:
    """The derivative by w of the mean of r^2, r = u u_x - nu u_xx of u = sin(w x): r = w s (c + nu w)."""
    s, c = np.sin(w * ZS), np.cos(w * ZS)
    r = w * s * (c + NU * w)
    rw = s * (c + NU * w) + w * ZS * c * (c + NU * w) + w * s * (NU - ZS * s)
    return float((2 * r * rw).mean())


@right(_residual(W))
def o02_functional_residual_imperative_parameter():
    w = var(stack(1), W)

    def r(x: Tensor) -> Tensor:
        def u(x: Tensor) -> Tensor:
            return (w * x).sin()

        return u(x) * func.grad(u)(x) - NU * func.grad(func.grad(u))(x)

    return d((func.vmap(r)(ZS) ** 2).mean(), w)


@right(6 * ZS, np.full(3, 6.0))
def o03_values_stay_connected_to_what_was_batched():
    x = var(stack(2), ZS)
    g = d(func.vmap(lambda z: z * z * 3.0)(x).sum(), x)
    return g, d(g.sum(), x)


def _in_samples(f: Callable[[Any], Any], x: Any) -> Any:
    """The derivative at the second of two samples."""
    return func.vmap(func.grad(f))(ng.stack([0.1, x]))[1]


@right(*FOUR, THREE)
def o04_confusion_in_samples():
    return [*four(_in_samples), three_deep(_in_samples)]


@right(2 * W * ZS, float(2 * ZS.sum()))
def o05_gradient_of_each_sample_differentiated_by_a_closure():
    w = var(stack(1), W)
    g = func.vmap(func.grad(lambda z: w * z * z))(ZS)
    return g, d(g.sum(), w)


@right(W**2 * np.outer(ZS, ZS[:2]), 2 * W * float(ZS.sum() * ZS[:2].sum()), W**2 * np.full(3, ZS[:2].sum()))
def o06_batch_in_a_batch():
    s = stack(1)
    w, x = var(s, W), var(s, ZS)
    y = func.vmap(lambda a: func.vmap(lambda b: a * b * w)(ZS[:2]) * w)(x)
    grads = y.sum().backward()
    return y, w.grad(grads), x.grad(grads)


# ---------------------------------------------------------------- what a batch cannot do
@raises(LevelError, match="holds 3 samples of vmap level .*, which has ended, is used outside")
def o07_stashed_samples():
    stash: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        stash.append(x * 2.0)
        return x

    func.vmap(f)(ZS)
    return (stash[0] + 1.0).numpy()


@raises(LevelError, match="has no backward pass")
def o08_pass_from_samples():
    x = var(stack(1), ZS)
    return func.vmap(lambda z: d(z * z, x))(x)


@raises(LevelError, match="would have to leave that level")
def o09_pass_through_samples_to_a_variable_from_outside():
    s = stack(1)
    x = var(s, 0.5)
    return func.vmap(lambda z: d(var(s, z) * x, x))(ZS)


def squares() -> tuple[Tensor, Tensor, Tensor]:
    """The sum of the squares of some samples, what was batched, and the samples."""
    s = stack(1)
    x = var(s, ZS)
    level = Batched(s)
    z = level.batch(x)
    return level.unbatch(z * z).sum(), x, z


@raises(LevelError, match="a derivative there would be one for each sample")
def o10_derivative_by_samples_on_a_level_under_them():
    y, _, z = squares()
    return d(y, z)


@right(2 * ZS, False)
def o22_derivative_by_what_was_batched():
    y, x, z = squares()
    return d(y, x), z in y.backward()


@raises(LevelError, match="so it is no plain number")
def o11_branch_on_a_sample():
    return func.vmap(lambda z: z if z > 0 else -z)(ZS)


# ---------------------------------------------------------------- marks and ages in a batch
def cubes(levels: int) -> Tensor:
    """x (x^3)_x, sample by sample: 3 x^3."""
    x = var(stack(levels), ZS)
    g = d((x**3).sum(), x)
    return d(func.vmap(lambda a, b: a * b)(x, g).sum(), x)


@right(9 * ZS**2)
def o12_derivative_meets_its_variable_in_a_batch():
    return cubes(2)


@right(9 * ZS**2, may_raise=NO_LEVEL_LEFT)
def o13_and_one_level_is_not_enough():
    return cubes(1)


@right(float((12 * ZS**2 * 1.2**3).sum()))  # (z x)^2 3 x^2 is 3 z^2 x^4
def o14_level_taken_off_under_a_batch():
    s = stack(2)
    x = var(s, 1.2)
    v = d(x**3, x)
    return d(func.vmap(lambda z: s.tensor((z * x) ** 2 * v, requires_grad=True) * 1.0)(ZS).sum(), x)


@right(float(ZS.sum()), ZS)
def o15_detached_samples_are_constants():
    w = var(stack(1), W)
    x = var(stack(1), ZS)
    return d(func.vmap(lambda z: (w * z).detach() + w * z)(ZS).sum(), w), d(func.vmap(lambda z: z * z.detach())(x).sum(), x)


@right(0.0, np.zeros(3), np.zeros(3))
def o16_linear_functions_have_no_curvature():
    """(2 y + w z)_y is 2 for each sample, and tied to w and to the samples."""
    s = stack(1)
    w, x = var(s, W), var(s, ZS)

    def slope(z: Tensor) -> Tensor:
        y = var(s, 0.5)
        return d(2.0 * y + w * z, y)

    return d(func.vmap(slope)(ZS).sum(), w), d(func.vmap(slope)(x).sum(), x), d(func.vmap(lambda z: 3.0)(x).sum() + 0.0 * x.sum(), x)


# ---------------------------------------------------------------- the level class, and Jacobians
@right(3 * ZS**2, 6 * ZS, float((ZS**3).sum()))
def o17_around_and_under_autodiff():
    below = Batched(BASE)
    upper = Autodiff(Autodiff(below))
    z, w = var(upper, below.batch(ZS)), var(upper, 1.0)
    g = d(w * z**3, z)
    s = stack(1)
    v = var(s, 1.0)
    above = Batched(s)
    return below.unbatch(g), below.unbatch(d(g, z)), d(above.unbatch(above.batch(ZS) ** 3 * v).sum(), v)


@right(np.full(3, W), np.zeros(3))
def o18_what_is_the_same_for_all_samples():
    level = Batched(BASE)
    w = var(Autodiff(level), W)
    z = level.batch(ZS)
    y = w * w * 0.5 + 0.0 * z
    return level.unbatch(d(y, w), size=3), level.unbatch(d(y - y, w), size=3)


# of f(z) = (z_0^2 z_1, z_1) at (2, 3), and of its first entry
JACOBIAN = np.array([[12.0, 4.0], [0.0, 1.0]])
HESSIAN = np.array([[6.0, 4.0], [4.0, 0.0]])


@right(W * JACOBIAN, float(JACOBIAN.sum()), W * JACOBIAN, float(JACOBIAN.sum()), W * HESSIAN, float(HESSIAN.sum()))
def o19_jacobians_with_a_closure():
    w = var(stack(1), W)
    at = np.array([2.0, 3.0])

    def f(z: Tensor) -> Tensor:
        return w * ng.stack([z[0] ** 2 * z[1], z[1]])

    made: list[Tensor] = []
    for jacobian in (func.jacfwd(f), func.jacrev(f), func.hessian(lambda z: f(z)[0])):
        j = jacobian(at)
        made += [j, d(j.sum(), w)]
    return made


@right(np.array([[2 * 0.3, 0.0], [0.0, 2 * 0.3]]), np.array([2.0 * 0.3**2, 2.0 * 0.3**2]))
def o20_imperative_inside_jacobians():
    """(y^2 z / 2)_y = y z at y = z is z^2."""
    s = stack(1)

    def slope(z: Tensor) -> Tensor:
        y = var(s, z)
        return d((y**2 * z * 0.5).sum(), y)

    twice = func.jacrev(slope)(np.array([0.3, 0.3]))
    return twice, func.vmap(lambda z: slope(z) + z * z)(np.array([0.3, 0.3]))


@right(np.cos(ZS), math.cos(0.2) * ZS)
def o21_points_or_directions_are_samples():
    points = func.vmap(lambda z: func.jvp(lambda q: q.sin(), (z,), (1.0,))[1])
    directions = func.vmap(lambda t: func.jvp(lambda q: q.sin(), (0.2,), (t,))[1])
    return points(ZS), directions(ZS)
