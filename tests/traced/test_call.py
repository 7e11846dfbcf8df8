"""A call is differentiated by backward passes like the function itself: to third order, by arguments and by what is captured."""

import gc
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from cases import U, V, W, X, Y, called, close, stack

import nestgrad as ng
from nestgrad import func


def test_derivatives_to_third_order_by_transforms(f: Callable[..., Any], backend: Any):
    x, y, u = backend.tensor(X), backend.tensor(Y), backend.tensor(U)

    def third(f: Callable[..., Any]) -> list[Any]:
        first = func.grad(f, argnums=(0, 1))
        second = func.grad(lambda x, y: sum((g * u).sum() for g in first(x, y)), argnums=(0, 1))
        return [*first(x, y), *second(x, y), *func.grad(lambda x, y: sum((g * u).sum() for g in second(x, y)), argnums=(0, 1))(x, y)]

    for got, want in zip(third(called(f, backend)), third(f), strict=True):
        close(got, want, rtol=1e-10)


def test_derivatives_to_third_order_by_lookups(f: Callable[..., Any], backend: Any):
    S = stack(backend, 3)
    u, v = S.tensor(U), S.tensor(V)

    def third(f: Callable[..., Any]) -> list[Any]:
        x, y = S.tensor(X, requires_grad=True), S.tensor(Y, requires_grad=True)
        found, out = [], f(x, y) + 0.0 * (x * y).sum()  # connected to both, as a call is
        for order in range(3):
            grads = out.backward()
            found += [x.grad(grads), y.grad(grads)]
            out = (found[-2] * u).sum() + (found[-1] * v).sum() if order < 2 else out
        return found

    for got, want in zip(third(called(f, backend)), third(f), strict=True):
        close(got, want, rtol=1e-10)


def test_captured_tensors_get_gradients_to_third_order(backend: Any):
    """Of levels that are older than the trace: by a program that holds their values as hidden inputs."""
    S = stack(backend, 3)
    w, v = S.tensor(Y, requires_grad=True), S.tensor(W, requires_grad=True)

    def f(x: Any) -> Any:
        return ((v @ x).tanh() * w * (w * x).sin()).sum()

    program = ng.func.trace(f)(backend.tensor(X))
    assert len(program.captured) >= 2
    x = S.tensor(U, requires_grad=True)
    for order in itertools.product((w, x), (x, v), (w, v)):
        got, want = ng.func.call(program, x), f(x)
        for by in order:
            got, want = got.wrt(by).sum(), want.wrt(by).sum()
        close(got, want)


def test_captured_tensors_of_a_running_transform_are_differentiated():
    x = ng.tensor(X)

    def traced(w: Any) -> Any:
        program = ng.func.trace(lambda x: (w * x).sin().sum())(x)
        return ng.func.call(program, w) + ng.func.call(program, w * 2.0)

    def plain(w: Any) -> Any:
        return (w * w).sin().sum() + (w * w * 2.0).sin().sum()

    w = ng.tensor(Y)
    close(func.grad(traced)(w), func.grad(plain)(w))
    close(func.grad(lambda w: func.grad(traced)(w).sum())(w), func.grad(lambda w: func.grad(plain)(w).sum())(w))


def test_a_trace_inside_grad_and_grad_inside_a_trace():
    f = func.grad(lambda z: (z**3).sum() * z[0])

    def inside(x: Any) -> Any:
        return (ng.func.call(ng.func.trace(f)(x), x) * x).sum()

    x = ng.tensor(X)
    close(func.grad(inside)(x), func.grad(lambda x: (f(x) * x).sum())(x))


def test_one_call_is_one_step_whatever_its_length():
    """On a level it is a node for each output, and one that they share."""
    S = ng.Autodiff(ng.NumpyBackend())
    long = ng.func.trace(lambda x: (sum((x * k).sin() for k in range(1, 30)), x.exp()))(ng.tensor(X))
    x = S.tensor(X, requires_grad=True)
    outs = ng.func.call(long, x)
    assert S.tape.stats().nodes == 4  # x, two outputs, what they share
    assert [out.tracked_on() for out in outs] == [(S.tape,)] * 2


def test_outputs_without_derivative_are_constants():
    S = ng.Autodiff(ng.NumpyBackend())
    x = S.tensor(X, requires_grad=True)
    y, k = ng.func.call(ng.func.trace(lambda x: (x.sum(), x.argmax(axis=0)))(ng.tensor(X)), x)
    assert y.tracked_on() and not k.tracked_on() and not k.marks and k.item() == 2


def test_the_derivative_programs_are_made_once():
    program = ng.func.trace(lambda x: (x**3).sum())(ng.tensor(X))
    made = []
    for _ in range(3):
        func.grad(lambda x: (func.grad(lambda x: ng.func.call(program, x))(x) ** 2).sum())(ng.tensor(Y))
        made.append([made for key, made in program.derived.items() if key[0] == "reverse"])
    assert len(made[0]) == 1 and all(a is b for a, b in zip(made[0], made[-1], strict=True))


@pytest.mark.parametrize("seeded", [(0,), (1,), (0, 1)])
def test_several_outputs_of_which_some_are_used(seeded: tuple[int, ...]):
    def f(x: Any, y: Any) -> Any:
        z = x * y
        return z.sin(), (z * z).sum()

    run = ng.func.trace(f)(ng.tensor(X), ng.tensor(Y))

    def loss(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, y: sum((f(x, y)[k] * (k + 2.0)).sum() for k in seeded)

    for k in (0, 1):
        got, want = (
            func.grad(loss(g), argnums=k)(ng.tensor(U), ng.tensor(V)) for g in (lambda *xs: ng.func.call(run, *xs), f)
        )
        close(got, want)


def test_threads_share_a_program():
    """Its derivatives are made by whoever asks first."""
    program = ng.func.trace(lambda x: (x.sin() * x).sum())(ng.tensor(X))
    want = func.grad(lambda x: (x.sin() * x).sum())(ng.tensor(Y))
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(func.grad(lambda x: ng.func.call(program, x)), ng.tensor(Y)) for _ in range(8)]
    for got in found:
        close(got.result(), want)


def test_reference_counting_frees_what_a_trace_and_a_call_have_made():
    S = stack(ng.NumpyBackend(), 2)
    program = ng.func.trace(lambda x: (x**3).sum())(ng.tensor(X))
    x = S.tensor(X, requires_grad=True)
    gc.collect()
    gc.disable()

    def once():
        ng.func.call(program, x).wrt(x).sum().wrt(x)
        ng.func.trace(lambda x: func.grad(lambda z: (z**3).sum())(x))(x)

    try:
        once()
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(3):
            once()
        assert gc.collect() == 0 and len(gc.get_objects()) - before < 20
    finally:
        gc.enable()
