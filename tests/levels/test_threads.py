"""Threads: on one stack, on one Gradients, in transforms of their own."""

import math
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from programs.case import d, stack, var
from programs.passes import POINT, RATE, step, trained

from nestgrad import Tensor, func
from nestgrad.backends import NumpyBackend
from nestgrad.levels.autodiff import Autodiff

CLOSE = {"rtol": 1e-11}  # float64 through a hundred steps of a loop that contracts


class Counting:
    """Counts how often each op of a base backend runs."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self.lock = threading.Lock()
        self.base = NumpyBackend()
        for name in ("sin", "cos", "mul"):
            setattr(self.base, name, self._counted(name, getattr(self.base, name)))

    def _counted(self, name: str, op: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.lock:
                self.calls[name] = self.calls.get(name, 0) + 1
            return op(*args, **kwargs)

        return call


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run at once, and start together."""
    barrier, out, errors = threading.Barrier(count), [None] * count, []

    def run(i: int) -> None:
        barrier.wait()
        try:
            out[i] = work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    return out


@pytest.fixture
def busy() -> Iterator[None]:
    """Threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_two_threads_on_one_stack(busy: None):
    s = stack(2)

    def work(i: int) -> float:
        w, m = var(s, 0.5), 0.0
        for _ in range(20 * (i + 1)):
            m = 0.9 * m + step(w, var(s, POINT))
            w = s.tensor(w - RATE * m, requires_grad=True)
        return w.item()  # type: ignore[no-any-return]

    np.testing.assert_allclose(in_threads(2, work), [trained(20, 0.9), trained(40, 0.9)], **CLOSE)


def test_threads_on_one_gradients_get_right_values_and_run_each_op_at_most_once(busy: None):
    counting = Counting()
    s = Autodiff(Autodiff(counting.base))
    xs = [s.tensor(0.1 * (k + 1), requires_grad=True) for k in range(6)]
    shared = xs[0]
    for x in xs[1:]:
        shared = (shared * x).sin()
    for _ in range(5):
        counting.calls.clear()
        grads = shared.backward()
        for x in xs:
            x.grad(grads)
        alone = dict(counting.calls)
        counting.calls.clear()
        grads = shared.backward()
        got = in_threads(4, lambda i, g=grads: [x.grad(g).item() for x in (xs if i % 2 else xs[::-1])])
        assert counting.calls == alone
        right = _products([0.1 * (k + 1) for k in range(6)])
        for i, values in enumerate(got):
            np.testing.assert_allclose(values if i % 2 else values[::-1], right, rtol=1e-13)


def _products(xs: list[float]) -> list[float]:
    """Derivatives of s_k = sin(s_(k-1) x_k), s_0 = x_0, by hand."""
    grads, value = [1.0], xs[0]
    for x in xs[1:]:
        slope = math.cos(value * x)
        grads = [g * slope * x for g in grads] + [slope * value]
        value = math.sin(value * x)
    return grads


def test_threads_use_one_running_transform_each(busy: None):
    s = stack(1)

    def work(i: int) -> float:
        def slope(x: Tensor) -> Tensor:
            z = var(s, x)
            return d((z * (i + 1.0)).sin(), z)

        return sum(func.grad(slope)(0.1 * k).item() for k in range(30))

    for i, value in enumerate(in_threads(3, work)):
        n = i + 1.0
        assert value == pytest.approx(sum(-n * n * math.sin(0.1 * k * n) for k in range(30)), rel=1e-12)
