"""The cache of a compiled function: what is counted, how much is kept, and what is not shared."""

from collections.abc import Callable
from typing import Any

import pytest
from likeness import alike

import nestgrad as ng
from nestgrad import jit


def x() -> ng.Tensor:
    return ng.tensor([0.3, -0.7, 1.1])


def agree(f: Callable[..., Any], g: Callable[..., Any], *args: Any) -> None:
    """The compiled function gives what the function gives now."""
    alike(g(*args), f(*args))


def test_hits_and_traces_are_counted():
    g = jit(lambda x, n: x * n)
    g(x(), 2.0)
    g(x() * 2.0, 3.0)
    g(ng.tensor([1.0, 2.0]), 3.0)
    g(x(), 4.0)
    stats = g.stats()
    assert (stats.traces, stats.calls, stats.entries) == (2, 4, 2)


def test_a_change_is_counted_as_a_new_trace_with_its_reason():
    factor = 2.0
    g = jit(lambda x: x * factor)
    g(x())
    g(x())
    factor = 3.0
    g(x())
    assert g.stats().traces == 2 and g.stats().calls == 3
    assert "factor" in str(g.stats())


def test_the_cache_is_bounded():
    g = jit(lambda x: x * 2.0)
    for n in range(1, 100):
        g(ng.ones(n))
    assert g.stats().entries <= 64
    alike(g(ng.ones(1)), ng.ones(1) * 2.0)
    alike(g(ng.ones(99)), ng.ones(99) * 2.0)


def test_failed_traces_leave_nothing_behind():
    fail = [True]

    def f(x: Any) -> Any:
        y = x * 2.0
        if fail[0]:
            raise RuntimeError("not yet")
        return y

    g = jit(f)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not yet"):
            g(x())
    assert g.stats().entries == 0
    fail[0] = False
    agree(f, g, x())


def test_a_structure_that_changes_between_calls():
    kind = ["tensor"]
    outputs: dict[str, Callable[[Any], Any]] = {
        "tensor": lambda x: x * 2.0,
        "list": lambda x: [x, x * 2.0],
        "dict": lambda x: {"b": x, "a": [x * 3.0]},
        "none": lambda x: None,
        "number": lambda x: 3.0,
        "constant": lambda x: ng.ones(2),
    }
    f = lambda x: outputs[kind[0]](x)
    g = jit(f)
    for _ in range(2):
        for name in outputs:
            kind[0] = name
            if name == "number":  # numbers may come out as Tensors, or as they are
                assert float(g(x())) == 3.0
            else:
                agree(f, g, x())


def test_methods_of_two_objects_do_not_share_what_they_hold():
    class Net:
        def __init__(self, w: float) -> None:
            self.w = w

        @jit
        def __call__(self, x: Any) -> Any:
            return x * self.w

        @jit
        def forward(self, x: Any) -> Any:
            return x * self.w

    one, two = Net(2.0), Net(3.0)
    for _ in range(2):
        for net in (one, two):
            alike(net.forward(x()), x() * net.w)
            alike(net(x()), x() * net.w)
    one.w = 5.0
    alike(one.forward(x()), x() * 5.0)
    alike(two.forward(x()), x() * 3.0)


def test_a_marked_argument_on_a_stack_made_anew_finds_the_old_trace():
    """A derivative of the step before, on levels that are new at each step."""
    g = jit(lambda u_x: u_x * u_x)
    for _ in range(3):
        S = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))
        x = S.tensor(2.0, requires_grad=True)
        u_x = (x**3).wrt(x)
        alike(g(u_x), u_x * u_x)
        assert g(u_x).wrt(x).item() == (u_x * u_x).wrt(x).item()
    assert g.stats().traces == 1, g.stats()
