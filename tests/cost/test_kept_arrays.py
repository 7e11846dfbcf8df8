"""Which arrays stay: those that a rule reads, and the cotangents that somebody asked for. Watched by weak references."""

from collections.abc import Callable
from typing import Any

import pytest
from remains import WatchingBackend

from nestgrad import Autodiff, Tensor
from nestgrad.errors import GraphFreedError
from nestgrad.func import vjp

pytestmark = pytest.mark.usefixtures("no_collector")


# what a node keeps


def arrays_kept(make: Any) -> list[str]:
    """Ops whose answers are kept by the graph of ``make(x)`` alone, on one level."""
    backend = WatchingBackend()
    x = Autodiff(backend).tensor([0.3, 0.4], requires_grad=True)
    result = make(x)
    assert result.shape in ((2,), ())
    return backend.alive


@pytest.mark.parametrize(
    ("make", "kept"),
    [
        (lambda x: (((x + 1.0) - 2.0) + 3.0).sum(), ["sum"]),  # linear ops read nothing
        (lambda x: ((x + 1.0).tanh() + 2.0).sum(), ["tanh", "sum"]),  # the answer of tanh, not its argument
        (lambda x: ((x + 1.0).exp() + 2.0).sum(), ["exp", "sum"]),
        (lambda x: ((x + 1.0).sin() + 2.0).sum(), ["add", "sum"]),  # the argument of sin, not its answer
        (lambda x: ((x + 1.0) * (x - 2.0) + 3.0).sum(), ["add", "sub", "sum"]),  # both factors, not the product
        (lambda x: ((x + 1.0) * 2.0).sum(), ["sum"]),
        (lambda x: (x + 1.0).reshape(2, 1).T[0].sum(), ["sum"]),
        (lambda x: (x + 1.0).floor() + x, ["add"]),  # a constant keeps its own value at most
    ],
)
def test_a_node_keeps_what_its_rule_reads_and_no_more(make, kept):
    assert arrays_kept(make) == kept


def test_factors_that_are_constants_keep_one_side():
    backend = WatchingBackend()
    level = Autodiff(backend)
    x, c = level.tensor([0.3, 0.4], requires_grad=True), backend.tensor([1.0, 2.0])
    y = ((x + 1.0) * (c + 2.0) + 3.0).sum()
    assert backend.alive == ["add", "sum"]  # c + 2, which the rule for x reads; not x + 1
    assert y.wrt(x).numpy().tolist() == [3.0, 4.0]


def test_what_is_not_tracked_is_not_kept():
    backend = WatchingBackend()
    x = backend.tensor([0.3, 0.4])
    y = (x.tanh() * x.sin()).exp()
    assert backend.alive == ["exp"]
    assert y.shape == (2,)


# cotangents


def chain(x: Tensor, n: int) -> Tensor:
    """``n`` layers of tanh and a factor."""
    for _ in range(n):
        x = x.tanh() * 1.1
    return x.sum()


def test_a_cotangent_is_dropped_when_it_has_been_used():
    """Of the cotangents of 50 layers, one is alive at the end: the one that was asked for."""
    backend = WatchingBackend()
    x = Autodiff(backend).tensor([0.3, 0.4], requires_grad=True)
    grads = chain(x, 50).backward()
    backend.made.clear()
    g = x.grad(grads)
    assert len(backend.made) > 100
    assert len(backend.alive) == 1
    assert g.shape == (2,)


def at_each(backend: WatchingBackend, name: str, look: Callable[[], int]) -> list[int]:
    """What ``look`` gives at each call of an op, in a list that fills while ops run."""
    seen: list[int] = []
    call = getattr(backend, name)
    setattr(backend, name, lambda *args: (seen.append(look()), call(*args))[1])
    return seen


def test_cotangents_are_dropped_while_the_pass_runs():
    """Never more than a few alive at once, however deep the graph."""
    most = []
    for layers in (20, 200):
        backend = WatchingBackend()
        alive = at_each(backend, "tanh_vjp", lambda b=backend: len(b.alive))
        x = Autodiff(backend).tensor([0.3, 0.4], requires_grad=True)
        grads = chain(x, layers).backward()
        backend.made.clear()
        x.grad(grads)
        assert len(alive) == layers
        most.append(max(alive))
    assert most[0] == most[1] <= 3


def test_grad_remove_lets_the_cotangent_go():
    backend = WatchingBackend()
    x = Autodiff(backend).tensor([0.3, 0.4], requires_grad=True)
    grads = (x.sin() * x).backward()
    backend.made.clear()
    g = x.grad_remove(grads)
    assert backend.alive == ["add"]
    del g
    assert backend.alive == []
    assert grads.level == 1


# graphs that are let go


def test_retain_graph_false_frees_what_the_nodes_saved():
    backend = WatchingBackend()
    level = Autodiff(backend)
    x = level.tensor([0.3, 0.4], requires_grad=True)
    u = chain(x, 20)
    assert level.tape.stats().bytes > 0
    grads = u.backward(retain_graph=False)
    assert level.tape.stats().bytes == 0
    assert backend.alive == ["sum", "tanh_vjp"]  # u, and the gradient
    with pytest.raises(GraphFreedError, match="retain_graph"):
        x.grad(u.backward())
    assert x.grad(grads).shape == (2,)


def test_retain_graph_false_frees_while_the_pass_runs():
    """When the rule of a layer runs, the layers after it have been freed: no value of theirs is alive."""
    backend = WatchingBackend()
    alive = at_each(backend, "tanh_vjp", lambda: backend.alive.count("tanh"))
    x = Autodiff(backend).tensor([0.3, 0.4], requires_grad=True)
    u = chain(x, 20)
    u.backward(retain_graph=False)
    assert alive == list(range(20, 0, -1))


def test_a_pullback_keeps_its_graph_and_then_lets_go():
    backend = WatchingBackend()
    x = backend.tensor([0.3, 0.4])
    value, pullback = vjp(lambda x: (x + 1.0).sin(), x)
    assert backend.alive == ["add", "sin"]
    del pullback
    assert backend.alive == ["sin"]
    assert value.shape == (2,)
