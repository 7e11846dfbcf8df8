"""What is kept alive, and for how long: no graph by results, no arrays by programs that are kept, nothing by cycles."""

import gc
import resource
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from kinds_of_leaves import both, foreign, levels

import nestgrad as ng
from nestgrad.levels.coats import bare
from nestgrad.partials import plans
from nestgrad.partials.plans import _PLANS, MOST


@pytest.fixture(autouse=True)
def without_collector():
    """What goes, goes by counting references."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def storage(x):
    """A weak reference to the array of a tensor."""
    return weakref.ref(bare(x.value) if isinstance(x, ng.Tensor) else x)


def graph(x, w):
    """A function of each kind of op: elementwise, product, reduction, indices, softmax."""
    h = (x @ w).tanh()
    return (h.exp() * h).sum(0) + h[0] * x[:, 0].sum()


@both
def test_nothing_is_left_when_names_are_gone(leaves):
    rng = np.random.default_rng(0)
    for create_graph in (False, True) if leaves is levels else (False,):
        for _ in range(3):
            x, w = leaves(rng.normal(size=(4, 3)), rng.normal(size=(3, 2)))
            out = graph(x, w)
            controller = ng.backward(out, 2, crossings=True, create_graph=create_graph)
            dead = [storage(t) for t in (x, w)] + [weakref.ref(t) for t in (x, w, out, controller)]
            x.hgrad[1], controller.fetch_hgrad((x, w)), controller._repr_html_()
            del x, w, out, controller
            assert [ref() for ref in dead] == [None] * len(dead)


@both
def test_hgrad_outlives_graph_and_leaf_and_holds_neither(leaves):
    (x,) = leaves(np.ones(3))
    inside = x.sin()
    controller = ng.backward(inside.exp(), 2)
    hgrad, numbers = x.hgrad, x.hgrad[0].tolist()
    dead = [weakref.ref(x), storage(x), storage(inside), weakref.ref(controller)]
    del x, inside, controller
    assert [ref() for ref in dead] == [None] * 4 and hgrad[0].tolist() == numbers


def test_a_graph_of_torch_that_results_hold_goes_when_they_are_cleared():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(4, 3)), rng.normal(size=(3, 2))]
    x, w = (torch.from_numpy(array).requires_grad_() for array in arrays)
    controller = ng.backward(graph(x, w), 2, create_graph=True)
    dead = [weakref.ref(array) for array in arrays]
    controller.clear()
    del arrays, x, w, controller
    assert [ref() for ref in dead] == [None, None]


@both
def test_a_controller_with_another_tensor_lets_go_of_the_first(leaves):
    x, y = leaves(np.ones(3), np.ones(3))
    out = (x * x).sin()
    controller = ng.Controller(out)
    controller.require_grad_((x,))
    controller.backward(2)
    controller.tensor = y * y
    dead = [weakref.ref(out), weakref.ref(x)]
    del out, x
    assert [ref() for ref in dead] == [None, None]


@both
def test_programs_that_are_kept_hold_no_array_of_a_graph(leaves):
    rng = np.random.default_rng(1)
    x, w = leaves(rng.normal(size=(40, 30)), rng.normal(size=(30, 20)))
    h = (x @ w).tanh()
    out = h.exp().sum() + torch_or(leaves, h)
    ng.backward(out, 2)
    assert len(_PLANS) > 0
    dead = [storage(t) for t in (x, w, h)]
    del x, w, h, out
    assert [ref() for ref in dead] == [None] * 3


def torch_or(leaves, h):
    """A softmax, which saves its answer."""
    return torch.softmax(h, 1)[0, 0] if leaves is foreign else ng.nn.softmax(h, 1)[0, 0]


def test_positions_of_a_graph_are_not_kept_with_its_program():
    rng = np.random.default_rng(2)
    arrays = [rng.integers(0, 50, 1000), rng.integers(0, 50, (40, 4)), rng.normal(size=(50, 4)), rng.normal(size=(40, 4))]
    rows, places, start, factor = map(torch.from_numpy, arrays)  # which hold the arrays while their memory is held
    x = start.requires_grad_()
    ng.backward((x[rows] ** 2).sum() + (torch.gather(x, 0, places).sin() * factor).sum() + torch.index_select(x, 0, rows).exp().sum(), 2)
    dead = [weakref.ref(array) for array in arrays]
    del arrays, rows, places, start, factor, x
    assert [ref() for ref in dead] == [None] * 4


def _megabytes():
    """What the process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


@both
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell")
def test_twenty_calls_hold_no_more_memory_than_eight(leaves):
    """Hessians of 31 MB, of which thoad keeps 732 MB after twelve."""
    side, held = 2000, []
    (x,) = leaves(np.linspace(0.0, 1.0, side))
    for _ in range(20):
        out = (x * x).sum() ** 2
        controller = ng.backward(out, 2)
        dense = controller.fetch_hgrad((x, x))[0]
        assert tuple(dense.shape) == (1, side, side) and x.hgrad.blocks[1].nbytes == 8 * side**2
        del dense
        held.append(_megabytes())
    assert min(held[16:]) - min(held[4:8]) < 150.0  # what the system has not got back differs from call to call; twelve that stay are 375


@both
def test_so_many_kinds_of_graphs_are_kept_and_no_more(leaves):
    (x,) = leaves(np.ones(2))
    for k in range(MOST + 5):
        out = x * x
        for _ in range(k % 8):
            out = out.sin()
        ng.backward(out.reshape(-1, *(1,) * (k // 8)), 1)
    assert len(_PLANS) == MOST


@both
def test_kept_programs_hold_no_more_numbers_than_so_many(leaves, monkeypatch):
    """A Hessian's program holds as many unit vectors as there are directions. The last few stay, however large they are."""
    monkeypatch.setattr(plans, "LARGE", 1 << 18)
    monkeypatch.setattr(plans, "FEW", 3)
    for n in range(100, 112):
        (x,) = leaves(np.linspace(0.0, 1.0, n))
        ng.backward((x * x).sum() ** 2, 2)
    kept = [plan.nbytes for plan in _PLANS.values()]
    assert kept[-1] >= 8 * 111**2, "what is held is counted"
    assert len(kept) == 3 and sum(kept) > 1 << 18, "those few"
