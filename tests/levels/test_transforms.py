"""Transforms beside the imperative style: tapes of their own, stacks that stand above them, values that outlive them."""

import math
import threading
from typing import Any

import numpy as np
import pytest
from programs.case import BASE, d, stack, var

from nestgrad import Tensor, func
from nestgrad.backends import TorchBackend
from nestgrad.errors import LevelError, NestgradError, NoLevelLeft, NotConnectedError, NotTrackedError, ShapeError
from nestgrad.levels.autodiff import Autodiff
from nestgrad.levels.base import running
from nestgrad.levels.marks import NONE


def test_stacks_made_outside_stand_above_a_running_transform():
    s = stack(2)
    inside: list[Any] = []

    def f(x: Tensor) -> Tensor:
        transform = x.tracked_on()[0]
        tapes = s.tapes
        inside.extend(tapes)
        assert [tape.birth > transform.birth for tape in tapes] == [True, True]
        assert s.tapes == tapes
        assert s.inner.tapes == tapes[:1]
        y = var(s, x)
        assert y.tracked_on() == (*reversed(tapes), transform)
        assert [tape.number for tape in y.tracked_on()] == [3, 2, 1]
        return x

    before = s.tapes
    func.grad(f)(1.0)
    assert s.tapes == before
    assert all(tape.closed for tape in inside)
    assert not any(tape.closed for tape in before)


def test_a_stack_made_inside_stays_as_it_is_inside():
    def f(x: Tensor) -> Tensor:
        s = Autodiff(x.backend)
        assert s.tapes == (s.tape,)
        y = var(s, x)
        return d(y**3, y)

    assert func.grad(f)(2.0).item() == 12.0


def test_a_level_made_inside_over_a_stack_from_outside():
    s = stack(1)

    def f(x: Tensor) -> Tensor:
        upper = Autodiff(s)
        y = var(upper, x)
        return d(d(y**4, y), y)

    assert func.grad(f)(2.0).item() == pytest.approx(24 * 2.0, rel=1e-15)


def test_nested_transforms_each_have_their_stand_ins():
    s = stack(1)

    def slope(x: Tensor) -> Tensor:
        y = var(s, x)
        return d(y.sin() * x, y)  # x cos x

    assert func.grad(lambda x: func.grad(slope)(x) * slope(x))(0.4).item() == pytest.approx(_curve(0.4), rel=1e-14)


def _curve(x: float) -> float:
    """(f' f)' of f = x cos x: f'' f + f'^2."""
    f, f1, f2 = x * math.cos(x), math.cos(x) - x * math.sin(x), -2 * math.sin(x) - x * math.cos(x)
    return f2 * f + f1 * f1


def test_closures_literals_and_arrays_just_work():
    s = stack(2)
    w, data = var(s, 1.3), np.array([0.2, 0.5])
    value, slope = func.value_and_grad(lambda x: (w * x * data).sin().sum())(0.4)
    assert slope.item() == pytest.approx(sum(1.3 * t * math.cos(1.3 * 0.4 * t) for t in data), rel=1e-14)
    right = sum(t * math.cos(0.52 * t) - 0.52 * t * t * math.sin(0.52 * t) for t in data)
    assert d(slope, w).item() == pytest.approx(right, rel=1e-14)
    assert d(d(value, w), w).item() == pytest.approx(sum(-((0.4 * t) ** 2) * math.sin(0.52 * t) for t in data), rel=1e-14)


def test_marks_of_a_finished_transform_are_gone_and_those_from_outside_stay():
    s = stack(2)
    x = var(s, 0.7)
    ux = d(x**3, x)
    result = func.grad(lambda z: z * z * ux)(0.3)
    assert result.marks == ux.marks
    assert d(result, x).item() == pytest.approx(0.6 * 6 * 0.7, rel=1e-14)
    assert func.grad(lambda z: z * z)(0.3).marks is NONE


def test_a_stashed_tensor_counts_as_its_inner_value():
    s = stack(1)
    w = var(s, 2.5)
    stash: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        stash.extend((x, x * w))
        return x * w

    func.grad(f)(2.0)
    x, y = stash
    assert x.tracked_on() == ()
    assert y.tracked_on() == (s.tape,)
    assert y.level == 1
    assert d(y * y, w).item() == pytest.approx(2 * 4.0 * 2.5, rel=1e-15)
    later = var(stack(1), 3.0)
    assert d(later * y, later).item() == 5.0
    with pytest.raises(NotTrackedError, match="on no level any more, since its transform ended"):
        d(y, x)


def test_a_stashed_variable_of_a_stand_in_counts_as_its_inner_value():
    s = stack(1)
    stash: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        stash.append(var(s, x) * x)
        return x

    func.grad(f)(2.0)
    assert stash[0].tracked_on() == ()
    with pytest.raises(NotTrackedError, match="depends on nothing that requires gradients"):
        stash[0].backward()


def test_an_output_that_left_the_level_is_told_however_it_left():
    s = stack(2)
    outside = var(s, 1.5)
    for f in (lambda x: d(x**3, x), lambda x: x.inner() * x, lambda x: d(x * outside, outside) * x, lambda x: s.tensor(x.inner())):
        with pytest.raises(LevelError, match="taken out of the level of this vjp"):
            func.vjp(f, 2.0)
    assert func.vjp(lambda x: x.inner().detach() * x, 2.0)[1](1.0)[0].item() == 2.0


def test_an_argument_is_a_variable_of_its_own():
    s = stack(1)
    t = var(s, 3.0)

    def f(z: Tensor) -> Tensor:
        assert z in (z * t).backward()
        assert (t * t).backward().get(z) is None
        return z * t

    assert d(func.grad(f)(t), t).item() == 1.0
    both = func.grad(lambda a, b: a * a * b, argnums=(0, 1))(t, t)
    assert [g.item() for g in both] == [18.0, 9.0]
    assert d(both[0], t).item() == 12.0


def test_zero_derivatives_are_zeros_that_stay_connected():
    w = var(stack(2), 2.0)
    unused, other = func.grad(lambda x, y: x * w, argnums=(1, 0))(1.0, 5.0)
    assert [unused.item(), other.item()] == [0.0, 2.0]
    assert d(unused, w).item() == 0.0
    assert d(d(func.grad(lambda x: w * w)(1.0), w), w).item() == 0.0
    with pytest.raises(NotConnectedError):
        d(unused, var(stack(1), 1.0))


def test_a_pullback_is_used_any_number_of_times_with_any_seed():
    s = stack(2)
    x, v = var(s, 1.1), var(s, 0.6)
    value, pull = func.vjp(lambda z: z.sin() * v, x)
    assert value.item() == pytest.approx(0.6 * math.sin(1.1), rel=1e-15)
    for seed, number in ((1.0, 1.0), (np.asarray(2.0), 2.0), (v, 0.6), (d(x * x, x), 2.2)):
        g = pull(seed)[0]
        assert g.item() == pytest.approx(number * 0.6 * math.cos(1.1), rel=1e-14)
    assert d(pull(v)[0], v).item() == pytest.approx(1.2 * math.cos(1.1), rel=1e-14)
    assert d(pull(d(x * x, x))[0], x).item() == pytest.approx(0.6 * (2 * math.cos(1.1) - 2.2 * math.sin(1.1)), rel=1e-13)
    with pytest.raises(ShapeError):
        pull(np.ones(2))


def test_a_pullback_checks_its_seed_though_the_derivative_is_zero():
    _, pull = func.vjp(lambda z: BASE.tensor(np.ones(3)), 1.0)
    assert pull(np.ones(3))[0].item() == 0.0
    with pytest.raises(ShapeError, match=r"gradient of shape \(2,\) for a root of shape \(3,\)"):
        pull(np.ones(2))
    with pytest.raises(LevelError, match=r"torch.*numpy"):
        pull(TorchBackend(dtype="float64").tensor(np.ones(3)))


def test_a_failing_function_leaves_nothing_running():
    s = stack(1)

    def fail(x: Tensor) -> Tensor:
        raise ZeroDivisionError(var(s, x).tracked_on())

    with pytest.raises(ZeroDivisionError) as caught:
        func.grad(lambda x: func.grad(fail)(x))(1.0)
    assert running.get() is None
    assert all(tape.closed for tape in caught.value.args[0])
    assert var(s, 1.0).tracked_on() == (s.tape,)


def test_a_thread_started_inside_a_transform_sees_no_running_transform():
    """Context variables are not inherited: the stack from outside is itself there, under the transform, whose level is left."""
    s = stack(1)

    def loss(w: Tensor) -> Tensor:
        out: list[Tensor] = []

        def work() -> None:
            x = var(s, 0.3)
            out.append(d((w * x).sin(), x))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return out[0] * out[0]

    with pytest.raises(NestgradError, match="taken out of the level of this grad"):
        func.grad(loss)(1.4)


def test_detach_names_levels_as_they_are_inside():
    s = stack(2)
    outside = var(s, 2.0)

    def f(c: Tensor) -> Tensor:
        x = var(s, 0.8)
        assert (x * c).detach(level=s).tracked_on() == (x.tracked_on()[1], *c.tracked_on())
        assert outside.detach(level=s).tracked_on() == (s.inner.tape,)
        assert func.grad(lambda z: (c * z).detach(level=s) * z)(1.0).tracked_on() == c.tracked_on()
        with pytest.raises(LevelError, match="two levels that could be meant"):
            (c * outside).detach(level=s)
        return c * c

    assert func.grad(f)(1.0).item() == 2.0


def test_loops_of_gradient_steps_by_transforms_use_up_no_levels():
    """Fifty steps of w <- w - r (w^2 / 2)' and its derivative by r, on one level: w0 (1 - r)^50."""
    s = stack(1)
    w0, rate = var(s, 2.0), var(s, 0.1)
    w = w0
    for _ in range(50):
        w = w - rate * func.grad(lambda v: 0.5 * v * v)(w)
    grads = w.backward()
    assert w0.grad(grads).item() == pytest.approx(0.9**50, rel=1e-12)
    assert rate.grad(grads).item() == pytest.approx(-2.0 * 50 * 0.9**49, rel=1e-12)
    with pytest.raises(NoLevelLeft):
        d(w0.grad(grads), rate)
