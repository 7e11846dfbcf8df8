"""What stays in memory: nothing that nobody can ask for. Freed by reference counting alone, at once and without recursion."""

import gc
import sys
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest
from remains import NUMPY, every_node, in_cycles, nodes, three

import nestgrad as ng
from nestgrad import Autodiff, Tensor
from nestgrad.func import derivative, grad, hessian_diag, jets, value_and_grad, vjp
from nestgrad.levels.base import running

pytestmark = pytest.mark.usefixtures("no_collector")


def net(x: Tensor, w: Tensor, c: Tensor) -> Tensor:
    """A value at each of the rows of ``x``."""
    return ng.linear(ng.linear(x, w, c).tanh(), w, c).tanh().sum(axis=1)


def step(stack: Autodiff) -> list[Tensor]:
    """A training step of third order: first and second derivatives by the input inside a loss."""
    x = stack.tensor([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]], requires_grad=True)
    w = stack.tensor([[0.5, -0.3], [0.2, 0.9]], requires_grad=True)
    c = stack.tensor([0.1, 0.2], requires_grad=True)
    u = net(x, w, c)
    u_x = x.grad(u.backward())
    u_xx = x.grad(u_x.backward())
    loss = (u * u_x.sum(axis=1) - u_xx.sum(axis=1)).square().mean()
    grads = loss.backward()
    return [w.grad(grads), c.grad(grads)]


# graphs


def test_a_graph_nobody_holds_is_freed_at_once():
    levels = three()
    x = levels[-1].tensor([0.1, 0.2], requires_grad=True)
    assert nodes(*levels) == [1, 1, 1]
    y = (x.sin() * x).exp().sum()
    assert nodes(*levels) == [5, 5, 5]
    del y
    assert nodes(*levels) == [1, 1, 1]


def test_a_branch_nobody_holds_is_freed_while_the_rest_lives():
    (level,) = levels = (Autodiff(NUMPY),)
    x = level.tensor([0.1, 0.2], requires_grad=True)
    y = x.sin()
    x.cos().exp()  # looked at and dropped
    assert nodes(*levels) == [2]
    assert y.wrt(x).shape == (2,)


def test_a_derivative_keeps_no_graph_of_the_level_it_was_taken_out_of():
    levels = three()
    x = levels[-1].tensor([0.1, 0.2], requires_grad=True)
    u_x = x.grad(x.sin().exp().backward())
    assert nodes(levels[-1]) == [1]
    assert nodes(levels[0])[0] > 1 and nodes(levels[1])[0] > 1
    del u_x
    assert nodes(*levels) == [1, 1, 1]


def test_steps_leave_no_node():
    levels = three()
    step(levels[-1])
    assert nodes(*levels) == [0, 0, 0]


def test_what_a_step_returns_keeps_nothing_of_it():
    """Gradients of the last order are constants."""
    levels = three()
    kept = step(levels[-1])
    assert nodes(*levels) == [0, 0, 0]
    assert all(g.level == 0 for g in kept)


def test_a_training_loop_that_hands_on_variables_keeps_one_step():
    levels = three()
    w = levels[-1].variable([0.5, -0.3])
    for _ in range(3):
        u = (w.sin() * w).sum()
        w = levels[-1].variable(w - 0.1 * w.grad(u.backward()))
        del u
        assert nodes(*levels) == [1, 1, 1]


def test_marks_keep_no_graph():
    """Momentum from last step's derivatives, never detached, on a level that it was taken out of."""
    level = Autodiff(NUMPY)
    momentum: Any = 0.0
    for _ in range(5):
        x = level.tensor([0.1, 0.2], requires_grad=True)
        momentum = 0.9 * momentum + x.grad((x * x * x).sum().backward())
        del x
        assert nodes(level) == [0]
    assert len(momentum.marks) == 1


# Gradients


def test_gradients_keep_the_graph_that_they_read():
    levels = three()
    x = levels[-1].tensor([0.1, 0.2], requires_grad=True)
    grads = x.sin().exp().backward()
    assert nodes(*levels) == [3, 3, 3]
    del grads
    assert nodes(*levels) == [1, 1, 1]


def test_wrt_lets_go_of_the_graph():
    """Of the tensors' own history, too: the answer is known by the age of the node."""
    others = every_node()
    x = Autodiff(NUMPY).tensor([0.1, 0.2], requires_grad=True)
    y = x.sin()
    grads = y.exp().backward(wrt=[x, y])
    assert every_node() - others == 2
    del y
    assert every_node() - others == 1
    assert x.grad(grads).shape == (2,)
    del x
    assert every_node() - others == 0
    assert grads.level == 1


def test_close_lets_go_of_the_graph():
    others = every_node()
    x = three()[-1].tensor([0.1, 0.2], requires_grad=True)
    grads = x.sin().exp().backward()
    x.grad(grads)
    grads.close()
    assert every_node() - others == 3  # of x on three levels


def test_a_replaced_gradient_keeps_no_graph():
    others = every_node()
    x = Autodiff(NUMPY).tensor([0.1, 0.2], requires_grad=True)
    y = x.sin()
    grads = y.exp().backward()
    y.grad_replace(grads, y.detach())
    grads.close()
    del y
    assert every_node() - others == 1


# cycles


@pytest.mark.parametrize(
    "run",
    [
        lambda: three()[-1].tensor([0.1], requires_grad=True).sin(),
        lambda: step(three()[-1]),
        lambda: grad(lambda x: (x.sin() * x).sum())(np.array([0.1, 0.2])),
        lambda: grad(grad(grad(lambda x: x.sin() * x)))(0.3),
        lambda: value_and_grad(lambda x: (x.sin() * x).sum())(np.array([0.1, 0.2])),
        lambda: vjp(lambda x: x.sin() * x, 0.3)[1](1.0),
        lambda: three()[-1].tensor([0.1], requires_grad=True).sin().backward().close(),
    ],
    ids=["forward", "third order", "grad", "nested grad", "value_and_grad", "vjp", "close"],
)
def test_no_cycle_is_left_to_the_collector(run):
    run()  # what is made once, such as recorders, may be in cycles
    assert in_cycles(run) == []


def test_no_cycle_is_left_by_imperative_style_inside_a_transform():
    stack = three()[-1]

    def f(x: Tensor) -> Tensor:
        z = stack.tensor(x, requires_grad=True)
        return z.grad((z * z * z).sum().backward()).sum()

    grad(f)(0.3)
    assert in_cycles(lambda: grad(f)(0.3)) == []


def chain(x: Tensor) -> Tensor:
    """A Hessian with three diagonals."""
    return (x**4).sum() + (x[1:] * x[:-1]).sin().sum()


SIX, MANY = np.linspace(-1.0, 1.0, 6), np.linspace(-1.0, 1.0, 300)
SECOND = {
    "jets": lambda: jets(chain, SIX, np.eye(6)),
    "jets of order 4": lambda: jets(lambda x: (1.0 + x * x) ** x, SIX, np.eye(6), 4, np.ones(6)),
    "derivative": lambda: derivative(lambda x: x[0] ** 4 * x[1], (0, 0, 0, 1))(SIX),
    "hessian_diag": lambda: hessian_diag(chain)(SIX),
    "hessian_diag, traced": lambda: hessian_diag(chain)(MANY),
    "a sparse Hessian": lambda: ng.sparse.sparse_hessian(chain)(SIX),
    "a sparse Jacobian": lambda: ng.sparse.sparse_jacobian(lambda x: x[1:] * x[:-1], mode="rows")(SIX),
    "functional": lambda: ng.functional.hessian(chain, SIX, strict=True),
}


@pytest.mark.parametrize("run", SECOND.values(), ids=SECOND)
def test_transforms_of_second_order_leave_nothing_behind(run: Any):
    pytest.importorskip("scipy")
    run()  # what is made once: compiled rules, patterns
    before = every_node()
    assert in_cycles(run) == []
    assert every_node() == before


# transforms


def test_a_transform_that_has_ended_leaves_nothing():
    """Its tape, those that stood in for older ones, and their nodes."""
    stack = three()[-1]
    tapes: list[Any] = []

    def f(x: Tensor) -> Tensor:
        tapes.extend(weakref.ref(tape) for tape in (running.get(), *stack.tapes))
        z = stack.tensor(x, requires_grad=True)
        return z.grad((z * z * z).sum().backward()).sum()

    result = grad(f)(0.3)
    assert len(tapes) == 4
    assert [tape() for tape in tapes] == [None] * 4
    assert nodes(*[stack, stack.inner, stack.inner.inner]) == [0, 0, 0]
    assert result.item() == pytest.approx(6 * 0.3, rel=1e-14)  # a few roundings


def test_a_loop_of_transforms_leaves_nothing():
    """Each step's derivative goes into the next, undetached."""
    x: Any = 0.3
    tapes: list[Any] = []

    def f(y: Tensor) -> Tensor:
        tapes.append(weakref.ref(running.get()))
        return y.sin()

    for _ in range(10):
        x = x - 0.1 * grad(f)(x)
    assert [tape() for tape in tapes] == [None] * 10
    assert not x.marks


# depth


@pytest.mark.parametrize(("depth", "n"), [(1, 200_000), (2, 50_000)])
def test_a_long_chain_is_differentiated_and_freed_without_recursion(depth, n):
    assert n >= 20 * sys.getrecursionlimit()  # 1,000, unless a library that another test has loaded has doubled it
    level: Any = NUMPY
    levels = []
    for _ in range(depth):
        level = Autodiff(level)
        levels.append(level)
    x = level.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(n):
        y = y + 1.0
    g = x.grad((y * y).backward())
    assert g.item() == 2.0 * (n + 1)
    if depth == 2:
        assert x.grad(g.backward()).item() == 2.0
    del y, g
    assert nodes(*levels) == [1] * depth


# repetition


def test_memory_of_repeated_steps_is_constant():
    levels = three()
    for _ in range(20):
        step(levels[-1])
    tracemalloc.start()
    before, peaks = [], []
    try:
        for k in range(300):
            if k in (100, 299):
                gc.collect()  # which empties the free lists of CPython; it finds nothing
                tracemalloc.reset_peak()
                before.append(tracemalloc.get_traced_memory()[0])
            step(levels[-1])
            if k in (100, 299):
                peaks.append(tracemalloc.get_traced_memory()[1] - before[-1])
    finally:
        tracemalloc.stop()
    assert peaks[1] == pytest.approx(peaks[0], rel=0.01)  # the sizes of a few dictionaries
    assert before[1] - before[0] < 200 * 200  # NumPy fills a cache of small blocks; a step's arrays and nodes are 100 times as much
    assert nodes(*levels) == [0, 0, 0]
