"""A chain of a million ops: recorded, differentiated (twice, on two levels), freed."""

import time
from typing import Any

import nestgrad as ng
from benchmarks.timing import markdown

LENGTH = 1_000_000


def run(stack: Any, orders: int) -> list[str]:
    """One row: seconds to record, to differentiate ``orders`` times, to free; and the nodes that are left."""
    x = stack.tensor(0.5, requires_grad=True)
    start = time.perf_counter()
    y = x
    for _ in range(LENGTH):
        y = y * 1.0000001
    recorded = time.perf_counter()
    derivatives = [y]
    for _ in range(orders):
        derivatives.append(x.grad(derivatives[-1].backward()))
    differentiated = time.perf_counter()
    value = derivatives[-1].item()
    del y, derivatives
    freed = time.perf_counter()
    assert abs(value - (1.0000001**LENGTH if orders == 1 else 0.0)) < 1e-6
    left = max(stack.tape.stats().nodes, stack.inner.tape.stats().nodes if orders > 1 else 0)
    times = (recorded - start, differentiated - recorded, freed - differentiated)
    return [f"{orders}", *(f"{t:.2f}" for t in times), f"{left} (the variable)"]


def report() -> str:
    """The table."""
    base = ng.NumpyBackend()
    rows = [run(ng.Autodiff(base), 1), run(ng.Autodiff(ng.Autodiff(base)), 2)]
    return "\n".join(
        [
            f"A chain of {LENGTH:,} ops, seconds:\n",
            markdown(["levels and order", "record", "differentiate", "free", "nodes left"], rows),
        ]
    )


if __name__ == "__main__":
    print(report())
