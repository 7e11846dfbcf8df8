"""What look-ups run: only what leads to the tensor, and everything once. Counted in ops of the base backend, never in seconds."""

import random
from itertools import pairwise

import numpy as np
import pytest
from counting import CountingBackend

import nestgrad as ng
from nestgrad import Autodiff, Tensor
from nestgrad.errors import GraphFreedError
from nestgrad.func import grad

LAYERS = 1000


def levels(backend: CountingBackend, n: int) -> Autodiff:
    """``n`` levels over a backend."""
    stack = Autodiff(backend)
    for _ in range(n - 1):
        stack = Autodiff(stack)
    return stack


class Net:
    """Layers ``tanh(h w + b)``, the last without tanh. All widths differ, so an array tells by its shape whose derivative it is."""

    def __init__(self, depth: int, widths: tuple[int, ...] = (3, 4, 6, 7, 2)) -> None:
        rng = np.random.default_rng(0)
        self.backend = CountingBackend()
        self.stack = levels(self.backend, depth)
        self.x = self.stack.tensor(rng.normal(size=(5, widths[0])), requires_grad=True)
        self.parameters: list[Tensor] = []
        h = self.x
        for n, m in pairwise(widths):
            if self.parameters:
                h = h.tanh()
            w = self.stack.tensor(rng.normal(size=(n, m)), requires_grad=True)
            b = self.stack.tensor(rng.normal(size=m), requires_grad=True)
            self.parameters += [w, b]
            h = ng.linear(h, w, b)
        self.u = h
        self.backend.restart()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_look_up_of_the_input_computes_no_gradient_of_a_parameter(depth):
    """One product for each layer and none more; no array of a parameter's shape."""
    net = Net(depth)
    net.x.grad(net.u.backward())
    assert net.backend.counts["product"] + net.backend.counts["matmul"] == 4
    assert not {p.shape for p in net.parameters} & set(net.backend.shapes)


def test_a_second_derivative_by_the_input_computes_no_gradient_of_a_parameter():
    net = Net(2)
    net.x.grad(net.x.grad(net.u.backward()).backward())
    assert not {p.shape for p in net.parameters} & set(net.backend.shapes)


def test_wrt_computes_what_is_asked_and_nothing_else():
    lazy, at_once = Net(1), Net(1)
    lazy.x.grad(lazy.u.backward())
    at_once.x.grad(at_once.u.backward(wrt=[at_once.x]))
    assert at_once.backend.counts == lazy.backend.counts


def test_transforms_compute_what_argnums_name_and_nothing_else():
    net = Net(1)
    backend, values = net.backend, [net.x.numpy(), *(p.numpy() for p in net.parameters)]

    def f(x, *parameters):
        h = x
        for k in range(0, len(parameters), 2):
            h = ng.linear(h.tanh() if k else h, parameters[k], parameters[k + 1])
        return h.sum()

    constants = [backend.tensor(v) for v in values]
    backend.restart()
    grad(f)(*constants)
    assert backend.counts["product"] == 4
    assert not {p.shape for p in net.parameters} & set(backend.shapes)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_second_look_up_runs_no_op(depth):
    net = Net(depth)
    grads = net.u.backward()
    first = net.x.grad(grads)
    net.backend.restart()
    again = net.x.grad(grads)
    assert net.backend.total == 0
    assert np.array_equal(first.numpy(), again.numpy())


def test_a_look_up_after_wrt_runs_no_op():
    net = Net(2)
    grads = net.u.backward(wrt=[net.x, net.parameters[0]])
    net.backend.restart()
    net.parameters[0].grad(grads), net.x.grad(grads)
    assert net.backend.total == 0


def test_a_look_up_shares_what_an_earlier_one_has_run():
    """Of the last layer's bias after its weights: the sum over the samples alone."""
    net = Net(1)
    grads = net.u.backward()
    net.x.grad(grads)
    net.backend.restart()
    for p in net.parameters:
        p.grad(grads)
    assert net.backend.counts == {"product": 4, "sum": 4}


# orders of look-ups


class Deep:
    """A net of ``LAYERS`` layers of width 2."""

    def __init__(self) -> None:
        rng = random.Random(0)
        self.backend = CountingBackend()
        self.stack = Autodiff(self.backend)
        h = self.stack.tensor([[0.3, 0.1]], requires_grad=True)
        self.parameters, self.hidden = [h], []
        for _ in range(LAYERS):
            w = self.stack.tensor([[1.0, rng.uniform(-0.1, 0.1)], [rng.uniform(-0.1, 0.1), 1.0]], requires_grad=True)
            b = self.stack.tensor([rng.uniform(-0.1, 0.1), 0.0], requires_grad=True)
            h = ng.linear(h, w, b).tanh()
            self.parameters += [w, b]
            self.hidden.append(h)
        self.u = h.sum()
        self.backend.restart()

    @property
    def everything(self) -> list[Tensor]:
        """All that can be looked up."""
        return self.parameters + self.hidden


@pytest.fixture(scope="module")
def whole() -> tuple[int, list[np.ndarray]]:
    """Ops of a pass for everything at once, and what it gives for the parameters and for the values between layers."""
    net = Deep()
    grads = net.u.backward(wrt=net.everything)
    return net.backend.total, [x.grad(grads).numpy() for x in net.everything]


def shuffled(xs: list[Tensor]) -> list[Tensor]:
    """In a random order, the same each time."""
    return random.Random(1).sample(xs, len(xs))


ORDERS = {
    "forward": lambda net: net.parameters,
    "reverse": lambda net: net.parameters[::-1],
    "random": lambda net: shuffled(net.parameters),
    "hidden forward": lambda net: net.hidden,
    "hidden reverse": lambda net: net.hidden[::-1],
    "hidden first": lambda net: net.hidden + net.parameters,
    "hidden reverse, then all": lambda net: net.hidden[::-1] + net.parameters,
    "everything, in a random order": lambda net: shuffled(net.hidden + net.parameters),
}


@pytest.mark.parametrize("order", ORDERS)
def test_looking_up_everything_costs_one_pass(order, whole):
    """2,000 parameters and 1,000 values between layers: within 1.3 of the ops of one full pass, and the same numbers to the bit."""
    net = Deep()
    grads = net.u.backward()
    found = {x: x.grad(grads) for x in ORDERS[order](net)}
    assert net.backend.total <= 1.3 * whole[0]
    assert all(np.array_equal(found[x].numpy(), g) for x, g in zip(net.everything, whole[1], strict=True) if x in found)


def test_what_was_dropped_is_computed_again_only_once(whole):
    """All parameters first, after which no cotangent of the values between layers is left: still less than two passes."""
    net = Deep()
    grads = net.u.backward()
    found = [x.grad(grads) for x in net.everything]
    assert net.backend.total < 2 * whole[0]
    assert all(np.array_equal(x.numpy(), g) for x, g in zip(found, whole[1], strict=True))


def test_wrt_everything_costs_one_pass(whole):
    """As much as for the parameters alone, since the cotangents of the values between layers are on the way; and look-ups cost nothing."""
    net = Deep()
    grads = net.u.backward(wrt=net.parameters)
    assert net.backend.total == whole[0]
    for x in net.parameters:
        x.grad(grads)
    assert net.backend.total == whole[0]


def test_removed_gradients_cost_no_more(whole):
    """``grad_remove`` of each parameter: no op more than look-ups."""
    net = Deep()
    grads = net.u.backward()
    for p in net.parameters:
        p.grad_remove(grads)
    assert net.backend.total == whole[0]


def test_a_removed_gradient_is_computed_again_right():
    net = Net(1)
    grads = net.u.backward()
    first = [p.grad_remove(grads).numpy() for p in net.parameters]
    assert all(np.array_equal(a, p.grad(grads).numpy()) for a, p in zip(first, net.parameters, strict=True))


# retain_graph=False


def test_a_pass_that_frees_costs_one_pass(whole):
    net = Deep()
    grads = net.u.backward(retain_graph=False)
    assert net.backend.total == whole[0]
    for p in shuffled(net.parameters):
        p.grad(grads)
    assert net.backend.total == whole[0]


def test_a_pass_that_frees_runs_what_wrt_names_and_nothing_else():
    lazy, freeing = Net(2), Net(2)
    lazy.x.grad(lazy.u.backward())
    freeing.x.grad(freeing.u.backward(wrt=[freeing.x], retain_graph=False))
    assert freeing.backend.counts == lazy.backend.counts


def test_nothing_is_looked_up_in_a_freed_graph():
    """Values between layers were not asked for: an error, and no op runs."""
    net = Net(1)
    h = net.x.tanh()
    u = (h * h).sum()
    grads = u.backward(retain_graph=False)
    assert net.x.grad(grads).shape == net.x.shape
    net.backend.restart()
    with pytest.raises(GraphFreedError, match="freed at"):
        h.grad(grads)
    with pytest.raises(GraphFreedError, match="freed at"):
        net.x.grad(u.backward())
    assert net.backend.total <= 1
