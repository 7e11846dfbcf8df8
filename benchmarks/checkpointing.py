"""Memory against time: 100 blocks of Linear, layer norm and GELU, with their arrays stored, balanced, and in regions.

First order: the gradients of all parameters. Second order: the gradients, by all parameters, of the squared norm of the gradient by the
input; both levels checkpointed alike. Memory is the traced peak of NumPy's arrays and of Python's objects above what the data take.
"""

import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import nestgrad as ng
from benchmarks.timing import interleaved, markdown, median, ratio

BLOCKS, ROWS, UNITS, REPEATS = 100, 256, 64, 5


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


def network(x: Any, p: list[Any], size: int) -> Any:
    """All blocks, in regions of ``size`` of them; 0: no regions."""
    if not size:
        return blocks(x, *p)
    region = ng.checkpoint(blocks)
    for k in range(0, len(p), 2 * size):
        x = region(x, *p[k : k + 2 * size])
    return x


def data() -> tuple[Any, list[Any]]:
    """Rows and parameters."""
    rng = np.random.default_rng(0)
    weights = []
    for _ in range(BLOCKS):
        weights += [rng.normal(size=(UNITS, UNITS)) / math.sqrt(UNITS), 0.1 * rng.normal(size=UNITS)]
    return rng.normal(size=(ROWS, UNITS)), weights


def step(order: int, policy: Any, size: int, points: Any, weights: list[Any]) -> list[Any]:
    """The gradients of all parameters."""
    stack: Any = ng.NumpyBackend()
    for _ in range(order):
        stack = ng.Autodiff(stack, checkpointing=policy)
    x = stack.tensor(points, requires_grad=True)
    p = [stack.tensor(w, requires_grad=True) for w in weights]
    loss = network(x, p, size).square().mean()
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


def rows() -> list[list[str]]:
    """For each order and way: memory and time, and both relative to storing everything."""
    points, weights = data()
    root = max(1, round(math.sqrt(BLOCKS)))
    ways = {"all stored": (None, 0), "`Balanced()`": (ng.Balanced(), 0), "regions of one block": (None, 1), f"regions of {root} blocks": (None, root)}
    table = []
    for order in (1, 2):
        runs = {name: lambda o=order, a=policy, n=size: step(o, a, n, points, weights) for name, (policy, size) in ways.items()}
        plain = runs["all stored"]()
        for name, run in runs.items():
            for ours, theirs in zip(run(), plain, strict=True):
                assert np.array_equal(ours.numpy(), theirs.numpy()), name  # to the last bit
        del plain, ours, theirs
        peaks = {name: peak(run) for name, run in runs.items()}
        times = interleaved(runs, REPEATS, 1)
        for name in ways:
            table.append(
                [f"{order}", name, f"{peaks[name] / 1e6:.1f}", f"{peaks[name] / peaks['all stored']:.2f}",
                 f"{median(times[name]) * 1e3:.0f}", f"{ratio(times, name, 'all stored'):.2f}"]
            )  # fmt: skip
    return table


def report() -> str:
    """The table."""
    return "\n".join(
        [
            f"{BLOCKS} blocks of Linear, layer norm and GELU on {ROWS} x {UNITS} numbers, float64, NumPy; gradients of all parameters, equal to the "
            "last bit. Relative to storing everything:\n",
            markdown(["order", "way", "peak, MB", "relative", "time, ms", "relative"], rows()),
        ]
    )


if __name__ == "__main__":
    print(report())
