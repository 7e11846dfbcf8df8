"""Cases D: the engine itself: nesting, look-ups, memory. The right values come from sympy, jax or a formula worked by hand."""

import gc
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from orders import check

import nestgrad as ng
from nestgrad import Autodiff
from nestgrad.errors import LevelError, NoLevelLeft, NotConnectedError
from nestgrad.func import grad, vjp
from nestgrad.levels.reverse.node import Node


def _by_levels(base):
    """The derivative of a function of one number, with a level of its own each time."""

    def d(f):
        def derivative(x):
            v = Autodiff(base).tensor(x, requires_grad=True)
            return f(v).wrt(v)

        return derivative

    return d


def _by_transforms(base):
    """The same by ``grad``, at a Tensor or at a number."""
    return lambda f: lambda x: grad(f)(base.tensor(x))


@pytest.mark.parametrize(
    ("program", "right"),
    [
        (lambda D, E: D(lambda x: x * E(lambda y: x + y)(1.0))(1.0), 1.0),
        (lambda D, E: D(lambda x: x * E(lambda y: x * y)(1.0))(4.0), 8.0),
        (lambda D, E: D(lambda x: x * E(lambda y: y * ng.sin(x * y))(x * x))(1.2), -9.753535123572703),
        (lambda D, E: D(lambda a: a * E(lambda b: b * D(lambda c: a * b * c * c)(b))(a))(1.1), 31.944),
    ],
    ids=["a", "b", "c", "d"],
)
@pytest.mark.parametrize("outer", ["level", "transform"])
@pytest.mark.parametrize("inner", ["level", "transform"])
def test_35_an_inner_derivative_takes_the_outer_variable_as_a_constant(base, program, right, outer, inner):
    D = {"level": _by_levels(base), "transform": _by_transforms(base)}
    check(program(D[outer], D[inner]), right)


def test_36_a_derivative_across_two_calls(stack):
    S = stack(2)
    u, p = S.tensor([2.0, 3.0], requires_grad=True), S.tensor(5.0, requires_grad=True)
    f = u[0] ** 2 * u[1] ** 3 * p**2
    check(f.wrt(p).wrt(u), [1080.0, 1080.0])
    check(f.wrt(u)[0].wrt(p), 1080.0)
    g = lambda u, p: u[0] ** 2 * u[1] ** 3 * p**2
    check(grad(grad(g, 1), 0)(u, p), [1080.0, 1080.0])


def _resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _nodes():
    return sum(type(thing) is Node for thing in gc.get_objects())


def _first_by_levels(base, data):
    x = Autodiff(Autodiff(base)).tensor(data, requires_grad=True)
    return x.tanh().sum().wrt(x)


def _second_by_levels(base, data):
    x = Autodiff(Autodiff(base)).tensor(data, requires_grad=True)
    return x.grad(x.grad(x.tanh().sum().backward()).backward())


def _second_by_transforms(base, data):
    return grad(lambda v: grad(lambda w: w.tanh().sum())(v).sum())(base.tensor(data))


def _pullback(base, data):
    y, pull = vjp(lambda v: v.tanh(), base.tensor(data))
    return pull(y)[0]


def _given_up(base, data):
    """A graph that nobody differentiates, and a look-up that fails half-way."""
    x = Autodiff(Autodiff(base)).tensor(data, requires_grad=True)
    try:
        (x.tanh() * x.exp()).sum().backward().wrt(x.tanh())
    except NotConnectedError:
        return x
    raise AssertionError


@pytest.fixture
def one_thread():
    """torch on one thread: on a busy machine its threads wait for each other longer than they compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("step", "times"), [(_first_by_levels, 300), (_second_by_levels, 60), (_second_by_transforms, 60), (_pullback, 60), (_given_up, 60)]
)
def test_37_nested_derivatives_leave_no_memory_behind(base, step, times):
    """With the cyclic collector off. A graph kept by one of sixty steps is 0.8 MB or more; the first runs warm what allocators keep."""
    data = np.linspace(-1.0, 1.0, 100_000)
    for _ in range(10):
        step(base, data)
    gc.collect()
    gc.disable()
    try:
        nodes, memory = _nodes(), _resident()
        for _ in range(times):
            step(base, data)
        assert _nodes() == nodes
        assert _resident() - memory < 10e6
    finally:
        gc.enable()


def test_38_a_compiled_function_can_be_differentiated_twice(hessian):
    check(hessian(ng.jit(lambda x: (x**4).sum()), [0.25, 1.0, 2.0]), np.diag([0.75, 12.0, 48.0]))


def test_39_one_graph_answers_again_and_again(stack):
    S = stack(2)
    x, y = (S.tensor(v, requires_grad=True) for v in (1.5, -2.0))
    grads = (x**2 * y**3).backward()
    for _ in range(2):
        f_x, f_y = x.grad(grads), y.grad(grads)
        check([f_x.item(), f_y.item()], [-24.0, 27.0])
        by_x, by_y = f_x.backward(), f_y.backward()
        for _ in range(2):
            check([x.grad(by_x).item(), y.grad(by_x).item(), x.grad(by_y).item(), y.grad(by_y).item()], [-16.0, 36.0, 36.0, -27.0])


def test_40_a_derivative_by_something_unrelated_is_none_or_an_error_never_a_number(stack):
    x = stack(2).tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()
    g = y.wrt(x)
    with pytest.raises(NotConnectedError, match="does not depend on this tensor"):
        g.grad(y.backward())
    assert y.backward().get(g) is None and g not in y.backward()


def test_41_first_and_second_derivatives_do_not_add_up(stack):
    x = stack(2).tensor(0.7, requires_grad=True)
    grads = (3.0 * x).exp().backward()
    first = x.grad(grads)
    second = x.grad(first.backward())
    check(first, 3.0 * math.exp(2.1), rtol=1e-14)
    check(second, 9.0 * math.exp(2.1), rtol=1e-14)
    check(x.grad(grads), 3.0 * math.exp(2.1), rtol=1e-14)


def _w(y, v):
    return y * y * v


def test_42_a_mixed_derivative_on_two_levels(stack):
    S = stack(2)
    y, v = S.tensor(2.0, requires_grad=True), S.tensor(3.0, requires_grad=True)
    check(_w(y, v).wrt(y).wrt(v), 4.0)


def test_42_each_variable_on_the_level_that_is_differentiated_by_it(stack):
    S = stack(2)
    y, v = S.tensor(2.0, requires_grad=True, levels=[2]), S.tensor(3.0, requires_grad=True, levels=[1])
    check(_w(y, v).wrt(y).wrt(v), 4.0)


def test_42_too_few_levels_are_an_error_that_names_the_level(stack):
    S = stack(1)
    y, v = S.tensor(2.0, requires_grad=True), S.tensor(3.0, requires_grad=True)
    with pytest.raises(NoLevelLeft, match=r"taken out of Autodiff level 1: a derivative of a .* one more Autodiff"):
        _w(y, v).wrt(y).wrt(v)


def test_42_the_wrong_order_of_levels_is_an_error_that_names_the_level(stack):
    S = stack(2)
    y, v = S.tensor(2.0, requires_grad=True, levels=[1]), S.tensor(3.0, requires_grad=True, levels=[2])
    with pytest.raises(LevelError, match=r"taken out of Autodiff level 2"):
        _w(y, v).wrt(y).wrt(v)


def test_43_a_custom_rule_may_use_what_the_forward_pass_stored(orders):
    square = ng.custom_vjp(lambda x: (2.0 * x) ** 2)
    square.defvjp(lambda x: ((2.0 * x) ** 2, 2.0 * x), lambda t, g: (4.0 * g * t,))
    check(orders(square, 1.7, 2)[1], 8.0)


def test_44_a_custom_rule_is_right_each_time_it_is_run(stack):
    product = ng.custom_vjp(lambda x: x.prod())
    product.defvjp(lambda x: (x.prod(), (x, x.prod())), lambda saved, g: (g * saved[1] / saved[0],))
    x = stack(2).tensor(np.ones(3), requires_grad=True)
    g = product(x).wrt(x)
    assert [g[0].wrt(x)[1].item() for _ in range(2)] == [1.0, 1.0]


def test_45_a_rule_for_reverse_only_is_enough_for_a_hessian():
    f = ng.custom_vjp(lambda p: p[0].sin() * p[1])
    f.defvjp(lambda p: (f(p), p), lambda p, g: (g * ng.stack([p[0].cos() * p[1], p[0].sin()]),))
    check(ng.func.hessian(f)(np.array([1.0, 2.0])), [[-1.682941969615793, 0.5403023058681398], [0.5403023058681398, 0.0]])
