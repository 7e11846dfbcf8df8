"""20,000 repeated third-order steps with the cyclic collector off: what stays in memory."""

import gc
import tracemalloc
from typing import Any

import nestgrad as ng
from benchmarks.timing import markdown

STEPS = 20_000


def resident() -> float:
    """Resident memory of this process in MB (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def step(stack: Any, start: Any) -> float:
    """One third derivative."""
    x = stack.tensor(start, requires_grad=True)
    u = (x * 1.5).tanh() * x
    for _ in range(3):
        u = x.grad(u.sum().backward())
    return float(u.sum().item())


def peak(stack: Any, start: Any) -> int:
    """Traced peak of one step in bytes."""
    tracemalloc.start()
    step(stack, start)
    top = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return top


def report() -> str:
    """The table."""
    stack = ng.Autodiff(ng.Autodiff(ng.Autodiff(ng.NumpyBackend())))
    start = [0.1 * k for k in range(100)]
    gc.collect()
    gc.disable()
    try:
        peaks, nodes, memory = [], [], []
        for k in range(1, STEPS + 1):
            if k in (100, STEPS):
                peaks.append(peak(stack, start))
                nodes.append(stack.tape.stats().nodes + stack.inner.tape.stats().nodes + stack.inner.inner.tape.stats().nodes)
                memory.append(resident())
            else:
                step(stack, start)
    finally:
        gc.enable()
    rows = [[f"{k:,}", f"{n}", f"{p:,}", f"{m:.1f}"] for k, n, p, m in zip((100, STEPS), nodes, peaks, memory, strict=True)]
    return "\n".join(
        [
            f"{STEPS:,} third-order steps, each made anew, the cyclic collector off (target: equal nodes and peaks, growth under 10 MB):\n",
            markdown(["after step", "live nodes", "traced peak of the step, bytes", "resident, MB"], rows),
        ]
    )


if __name__ == "__main__":
    print(report())
