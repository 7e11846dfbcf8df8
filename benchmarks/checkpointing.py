"""Memory against time: 100 blocks of Linear, layer norm and GELU, with their arrays stored, balanced, and in regions.

First order: the gradients of all parameters. Second order: the gradients, by all parameters, of the squared norm of the gradient by the
input; both levels checkpointed alike. Memory is the traced peak of NumPy's arrays and of Python's objects, beside the data. Ops are those
that the base backend was asked for.
"""

import math
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import nestgrad as ng
from benchmarks.timing import interleaved, markdown, median, ratio
from nestgrad.ops import TABLE

BLOCKS, ROWS, UNITS, REPEATS = 100, 256, 64, 5
LARGE = 2048
"""Rows where arrays, and not Python, take the time."""


def gelu(x: Any) -> Any:
    """From existing ops."""
    return 0.5 * x * ((x / math.sqrt(2.0)).erf() + 1.0)


def layer_norm(x: Any) -> Any:
    """From existing ops, without parameters."""
    far = x - x.mean(axis=-1, keepdims=True)
    return far * (far.square().mean(axis=-1, keepdims=True) + 1e-5).rsqrt()


def blocks(x: Any, *p: Any) -> Any:
    """Linear, layer norm, GELU for each pair of parameters."""
    for k in range(0, len(p), 2):
        x = gelu(layer_norm(ng.linear(x, p[k], p[k + 1])))
    return x


def network(x: Any, p: list[Any], size: int, stored: bool) -> Any:
    """All blocks, in regions of ``size`` of them; 0: no regions."""
    if not size:
        return blocks(x, *p)
    region = ng.checkpoint(blocks, store_waiting=stored)
    for k in range(0, len(p), 2 * size):
        x = region(x, *p[k : k + 2 * size])
    return x


def data(rows: int | None = None) -> tuple[Any, list[Any]]:
    """Points, as many as rows, and parameters."""
    rng = np.random.default_rng(0)
    weights = []
    for _ in range(BLOCKS):
        weights += [rng.normal(size=(UNITS, UNITS)) / math.sqrt(UNITS), 0.1 * rng.normal(size=UNITS)]
    return rng.normal(size=(rows or ROWS, UNITS)), weights


class Counting(ng.NumpyBackend):
    """NumPy, which counts the ops that it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0
        self._inside = False
        for name in TABLE:
            if hasattr(self, name):
                setattr(self, name, partial(self._run, getattr(self, name)))

    def _run(self, method: Any, *args: Any, **params: Any) -> Any:
        if self._inside:  # what an op calls to do its work
            return method(*args, **params)
        self.total += 1
        self._inside = True
        try:
            return method(*args, **params)
        finally:
            self._inside = False


Way = tuple[Any, int, bool]
"""Policy of the levels, blocks in a region (0: no regions), ``store_waiting``."""


def step(order: int, way: Way, points: Any, weights: list[Any], base: Any = None) -> list[Any]:
    """The gradients of all parameters."""
    policy, size, stored = way
    stack: Any = base or ng.NumpyBackend()
    for _ in range(order):
        stack = ng.Autodiff(stack, checkpointing=policy)
    x = stack.tensor(points, requires_grad=True)
    p = [stack.tensor(w, requires_grad=True) for w in weights]
    loss = network(x, p, size, stored).square().mean()
    for _ in range(order - 1):
        loss = loss.wrt(x).square().sum()
    grads = loss.backward(wrt=p)
    del loss
    return [w.grad(grads) for w in p]


def peak(run: Callable[[], Any]) -> int:
    """Traced peak in bytes."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def ops(order: int, way: Way, points: Any, weights: list[Any]) -> int:
    """How many run."""
    base = Counting()
    step(order, way, points, weights, base)
    return base.total


def table(rows: int, orders: tuple[int, ...], repeats: int) -> list[list[str]]:
    """For each order and way: memory, ops and time, and all three relative to storing everything."""
    points, weights = data(rows)
    root = max(1, round(math.sqrt(BLOCKS)))
    ways: dict[str, Way] = {
        "all stored": (None, 0, False),
        "`Balanced()`": (ng.Balanced(), 0, False),
        "regions of one block": (None, 1, False),
        f"regions of {root} blocks": (None, root, False),
        f"regions of {root} blocks, `store_waiting`": (None, root, True),
    }
    made = []
    for order in orders:
        runs = {name: partial(step, order, way, points, weights) for name, way in ways.items()}
        plain = [g.numpy() for g in runs["all stored"]()]
        for name, run in runs.items():
            for ours, theirs in zip(run(), plain, strict=True):
                assert np.array_equal(ours.numpy(), theirs), name  # to the last bit
        peaks = {name: peak(run) for name, run in runs.items()}
        counts = {name: ops(order, way, points, weights) for name, way in ways.items()}
        times = interleaved(runs, repeats, 1)
        for name in ways:
            made.append(
                [f"{rows:,}", f"{order}", name, f"{peaks[name] / 1e6:.1f}", f"{peaks[name] / peaks['all stored']:.2f}",
                 f"{counts[name]:,}", f"{counts[name] / counts['all stored']:.2f}",
                 f"{median(times[name]) * 1e3:.0f}", f"{ratio(times, name, 'all stored'):.2f}"]
            )  # fmt: skip
    return made


def report() -> str:
    """The table."""
    said = (
        f"{BLOCKS} blocks of {UNITS} units, float64, NumPy; equal to the last bit. Relative to storing everything "
        "(target at second order: memory 0.50 with `Balanced()`, 0.25 with regions, time 1.5):\n"
    )
    head = ["rows", "order", "way", "peak, MB", "relative", "ops", "relative", "time, ms", "relative"]
    return "\n".join([said, markdown(head, [*table(ROWS, (1, 2), REPEATS), *table(LARGE, (2,), max(1, REPEATS // 2))])])


if __name__ == "__main__":
    print(report())
