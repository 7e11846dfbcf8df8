"""The cache of a compiled function: what is counted, how much is kept, and what is not shared."""

import copy
import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from likeness import alike

import nestgrad as ng
from nestgrad import jit
from nestgrad.func import grad
from nestgrad.levels.coats import bare


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


def mixed(x: Any, n: Any) -> Any:
    """Two floating dtypes: a Python number cannot be one input for both."""
    return x * n, x.astype("float32") * n


def test_a_call_with_several_floating_dtypes_is_one_call():
    g = jit(mixed)
    agree(mixed, g, x(), 2.0)
    agree(mixed, g, x(), 2.0)
    agree(mixed, g, x(), 3.0)
    stats = g.stats()
    assert (stats.calls, stats.traces, stats.entries) == (3, 2, 2)


@pytest.mark.parametrize(("f", "args"), [(mixed, (2.0,)), (lambda x, n: x * n, (2.0,)), (lambda x: (x * 1.0).sin() + 0.0, ())])
def test_the_program_of_a_call_is_what_that_call_runs(f, args):
    g = jit(f)
    made, optimised = g.program(x(), *args)
    assert (g.stats().calls, g.stats().traces) == (0, 1)
    g(x(), *args)
    assert (g.stats().calls, g.stats().traces) == (1, 1)
    assert g.program(x(), *args)[0] is made
    raw = [x().value, *(np.asarray(n) for n in args)][: len(made.inputs)]
    want = f(x(), *args)
    for program in (made, optimised):
        for got, expected in zip(program.replay(program.base, raw), want if isinstance(want, tuple) else (want,), strict=True):
            np.testing.assert_allclose(got, expected.numpy(), rtol=1e-15)


def test_the_executor_is_known_before_a_call_if_it_was_named_and_after_one_in_any_case():
    g = jit(lambda x: x * 2.0)
    assert g.executor is None and jit(lambda x: x, executor="replay").executor == "replay"
    g(x())
    assert g.executor == g.stats().executor == "numpy"


def test_captured_are_the_tensors_on_levels_of_the_last_trace():
    S = ng.Autodiff(ng.NumpyBackend())
    w, plain = S.tensor([1.0, 2.0, 3.0], requires_grad=True), ng.tensor([1.0, 1.0, 1.0])
    g = jit(lambda x: x * w + plain)
    assert g.captured == ()
    g(x())
    assert [tensor.value for tensor in g.captured] == [w.value]


@jit
def doubled(x: Any) -> Any:
    return x * 2.0


def test_a_copy_is_the_function_itself_and_a_pickle_is_its_name():
    assert copy.copy(doubled) is copy.deepcopy([doubled])[0] is doubled
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):  # as of functions: the versions of Python differ
        pickle.dumps(jit(lambda x: x))


@pytest.fixture
def counted_only() -> Iterator[None]:
    """No collection of cycles: what is freed is freed by counting references."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


ASKED: dict[str, Callable[[Any, Any], Any]] = {
    "a call": lambda g, x: g(x),
    "on a level": lambda g, x: g(x).wrt(x),
    "under grad": lambda g, x: grad(lambda z: g(z).sum())(x),
    "under grad of grad": lambda g, x: grad(lambda z: grad(g)(z).sum())(x),
    "the program": lambda g, x: g.program(x),
}


def case(asked: str, g: Any) -> Any:
    """A weak reference to the array of an argument of ``g``, which has been called with it."""
    x = ng.Autodiff(ng.Autodiff(ng.NumpyBackend())).tensor([0.3, -0.7, 1.1], requires_grad=True)
    ASKED[asked](g, x)
    return weakref.ref(bare(x.value))


@pytest.mark.usefixtures("counted_only")
@pytest.mark.parametrize("asked", ASKED)
def test_what_is_kept_of_a_call_holds_none_of_its_arguments(asked):
    g = jit(lambda x: (x**3).sum())
    h = jit(lambda x: grad(lambda z: (z**3).sum())(x).sum())
    for f in (g, h):
        first, second = case(asked, f), case(asked, f)
        assert (first() is None, second() is None) == (True, True)
        assert f.stats().entries >= 1


@pytest.mark.parametrize("executor", ["replay", "numpy"])
@pytest.mark.parametrize("asked", ASKED)
def test_a_function_that_is_dropped_frees_its_programs(asked, executor):
    weights = ng.tensor([1.0, 2.0, 3.0])
    g = jit(partial(lambda w, x: (x**3 * w).sum(), weights), executor=executor)
    case(asked, g)
    refs = [weakref.ref(g), weakref.ref(weights.value)]
    del g, weights
    gc.collect()  # what the optimiser works with refers to itself
    assert [ref() is None for ref in refs] == [True, True]
