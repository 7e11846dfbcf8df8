"""Threads that call one compiled function at once: each gets its own result, and one trace serves them all."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest
from likeness import EXECUTORS, alike, stacked, var

import nestgrad as ng
from nestgrad import func, jit
from nestgrad.levels.base import running


@pytest.fixture(autouse=True)
def switching_often() -> Iterator[None]:
    """Threads take turns every few bytecodes."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run at once, and start together."""
    barrier = threading.Barrier(count)

    def run(i: int) -> Any:
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(count) as pool:
        return [made.result() for made in [pool.submit(run, i) for i in range(count)]]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_each_thread_gets_its_own_result(executor: str):
    """Buffers of one call are not another's, even when all of them trace at once."""
    f = lambda x, c: ((x * c).sin() @ x.T + c * c).tanh() * 2.0 + x.sum() * c
    for _ in range(5):
        g = jit(f, executor=executor)

        def work(i: int, g: Any = g) -> list[Any]:
            x = ng.tensor(np.full((4, 4), 0.1 * (i + 1)))
            return [(x, 0.5 + k, g(x, 0.5 + k)) for k in range(10)]

        for rows in in_threads(6, work):
            for x, c, got in rows:
                alike(got, f(x, c))
        assert g.stats().entries == 1


def test_threads_with_signatures_of_their_own():
    f = lambda x: (x * x).sum().wrt(x) if x.level else x * 2.0
    g = jit(f)
    S = stacked(ng.NumpyBackend(), 2)

    def work(i: int) -> list[Any]:
        made = []
        for k in range(15):
            x = [var(S, np.full(1 + k % 5, float(i))), ng.tensor(np.full(1 + k % 5, float(i)))][(i + k) % 2]
            made.append((x, g(x)))
        return made

    for rows in in_threads(6, work):
        for x, got in rows:
            alike(got, f(x))
    assert g.stats().entries == 10


def test_threads_differentiate_outside():
    """The derivative programs are made by whoever asks first."""
    f = lambda x: (x.sin() * x).sum()
    for _ in range(3):
        g = jit(f)
        xs = [ng.tensor([0.1 * i, 0.5, -0.3]) for i in range(6)]
        first = in_threads(6, lambda i, g=g, xs=xs: func.grad(g)(xs[i]))
        second = in_threads(6, lambda i, g=g, xs=xs: func.hessian(g)(xs[i]))
        for x, a, b in zip(xs, first, second, strict=True):
            alike(a, func.grad(f)(x), rtol=1e-11)
            alike(b, func.hessian(f)(x), rtol=1e-11)


def test_threads_while_what_is_closed_over_changes():
    """A thread that rebinds meanwhile: each result is that of one of the values, an old one or a new one, and none is kept too long."""
    factor: Any = 1.0
    f = lambda x: x * factor
    g = jit(f)
    stop = threading.Event()

    def change() -> None:
        nonlocal factor
        while not stop.is_set():
            factor += 1.0

    changing = threading.Thread(target=change)
    changing.start()

    def rising(i: int) -> list[tuple[float, float, float]]:
        return [(factor, g(ng.tensor([1.0])).item(), factor) for _ in range(40)]

    try:
        results = in_threads(3, rising)
    finally:
        stop.set()
        changing.join()
    assert all(first <= found <= last for rows in results for first, found, last in rows)
    for value in (*(found for rows in results for _, found, _ in rows), factor):  # no program took another value for this one
        factor = value
        alike(g(ng.tensor([1.0])), f(ng.tensor([1.0])))


def test_what_changes_while_a_function_is_traced():
    """Between the look at what is closed over and the trace another thread binds anew: that trace serves its own call and no other."""
    factor: Any = 3.0
    seen: list[float] = []

    def f(x: Any) -> Any:
        nonlocal factor
        factor = 5.0 if not seen else factor
        seen.append(factor)
        return x * factor

    g = jit(f)
    assert g(ng.tensor([1.0])).item() == 5.0
    factor = 3.0
    assert g(ng.tensor([1.0])).item() == 3.0
    assert g.stats().traces == 2


def test_a_trace_in_one_thread_does_not_touch_what_another_does():
    """While one traces, the other computes without ``jit``, and its tensors are ordinary ones."""
    inside, go_on = threading.Event(), threading.Event()

    def f(x: Any) -> Any:
        inside.set()
        assert go_on.wait(10)
        return x * 2.0

    g = jit(f)
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(g, ng.tensor([1.0]))
        assert inside.wait(10), made.exception(10)
        x = var(ng.Autodiff(ng.NumpyBackend()), [1.0, 2.0])
        y = (x**3).sum().wrt(x)
        assert y.tolist() == [3.0, 12.0] and float(y[0].item()) == 3.0 and running.get() is None
        other = jit(lambda z: z + 1.0)(ng.tensor([1.0]))
        assert other.tolist() == [2.0]
        go_on.set()
        assert made.result().tolist() == [2.0]


def test_a_thread_that_is_started_inside():
    """With the context of the trace it records, too; or it says that it cannot."""

    def f(x: Any) -> Any:
        out: list[Any] = []
        context = copy_context()
        thread = threading.Thread(target=lambda: out.append(context.run(lambda: func.grad(lambda z: (z**3).sum())(x))))
        thread.start()
        thread.join()
        return out[0] * 2.0

    g = jit(f)
    for x in ([1.0, 2.0], [3.0, 0.5]):
        alike(g(ng.tensor(x)), f(ng.tensor(x)))


def test_an_error_in_one_thread_leaves_the_others_alone():
    def f(x: Any) -> Any:
        if x.shape == (3,):
            raise ValueError("three")
        return x * 2.0

    g = jit(f)

    def work(i: int) -> Any:
        for _ in range(10):
            if i % 2:
                with pytest.raises(ValueError, match="three"):
                    g(ng.ones(3))
            else:
                assert g(ng.ones(2)).tolist() == [2.0, 2.0]
        return running.get()

    assert in_threads(6, work) == [None] * 6
    assert g.stats().entries == 1
