"""Deep graphs: no recursion, and work that grows as the graph does."""

import time

import numpy as np
import pytest
import torch

import nestgrad as ng
from nestgrad.partials.plans import _PLANS


def levels(array):
    return ng.Autodiff(ng.NumpyBackend()).tensor(array, requires_grad=True)


def foreign(array):
    return torch.tensor(array, dtype=torch.float64, requires_grad=True)


both = pytest.mark.parametrize("leaf", [levels, foreign])


def chain(x, n):
    """``n`` ops one after the other."""
    for _ in range(n):
        x = x.sin()
    return x


def blocks(x, n):
    """Each block reads its operand twice, so there are 2^n ways through ``n`` of them."""
    for _ in range(n):
        x = x.sin() + x / 2
    return x


def wanted(step, x, n):
    """Value, first and second derivative of ``n`` steps, by the chain rule: ``step`` gives those of one."""
    first, second = 1.0, 0.0
    for _ in range(n):
        x, d, dd = step(x)
        first, second = d * first, dd * first * first + d * second
    return first, second


STEPS = {
    chain: lambda x: (np.sin(x), np.cos(x), -np.sin(x)),
    blocks: lambda x: (np.sin(x) + x / 2, np.cos(x) + 0.5, -np.sin(x)),
}


@both
@pytest.mark.parametrize(("build", "n"), [(chain, 1200), (blocks, 100)])
def test_second_derivatives_of_deep_graphs(leaf, build, n):
    x = leaf(0.3)
    out = build(x, n)
    for _ in range(2):
        ng.backward(out, 2)
        first, second = wanted(STEPS[build], 0.3, n)
        assert np.allclose([x.hgrad[0].item(), x.hgrad[1].item()], [first, second], rtol=1e-9)
    controller = ng.Controller(out)
    assert controller.compatible is True
    assert len(controller.to_dot()) > n


@both
@pytest.mark.parametrize("build", [chain, blocks])
def test_the_work_grows_as_the_graph(leaf, build):
    """By the ops of the program that is kept."""
    sizes = []
    for n in (50, 100, 200):
        ng.backward(build(leaf([0.3, 0.4]), n).sum(), 2)
        sizes.append(len(next(reversed(_PLANS.values())).flat.instructions))
    assert sizes[2] - sizes[1] <= 2.2 * (sizes[1] - sizes[0])


@pytest.mark.slow
@both
def test_ten_thousand_ops_take_ten_times_as_long_as_a_thousand(leaf):
    taken = []
    for n in (1_000, 10_000):
        x = leaf(0.3)
        out = chain(x, n)
        start = time.perf_counter()
        ng.backward(out, 2)
        taken.append(time.perf_counter() - start)
        assert np.allclose([x.hgrad[0].item(), x.hgrad[1].item()], wanted(STEPS[chain], 0.3, n), rtol=1e-8)
    assert taken[1] < 25.0 * taken[0]
