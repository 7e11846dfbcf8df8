"""What it takes to compile: tracing and optimising a program, by its number of ops.

``python -m benchmarks.compiling`` prints a table for who works on the passes; `benchmarks/jit.py` has what users wait for, and the page.
"""

from time import thread_time
from typing import Any

import nestgrad as ng
from benchmarks.timing import markdown
from nestgrad import func
from nestgrad.compiled.passes import optimized


def layers(count: int) -> Any:
    """A function of two matrices with that many residual layers, and of about eight ops a layer."""

    def f(x: Any, w: Any) -> Any:
        for _ in range(count):
            h = (x @ w + 0.1 * x).tanh()
            x = x + h * h - 0.5 * h
        return x.sum()

    return f


def nested(order: int) -> Any:
    """A derivative of a function of numbers, by nested reverse mode."""

    def f(x: Any, w: Any) -> Any:
        return (x.tanh().exp() * w).sin().sum()

    for _ in range(order):
        inner = f
        f = lambda x, w, inner=inner: func.grad(inner)(x, w).sum()
    return f


def times(f: Any, repeats: int = 5) -> tuple[int, int, float, float]:
    """How many ops a program has, before and after; and seconds of tracing, and of optimising, at best."""
    b = ng.NumpyBackend()
    args = b.full((4, 4), 0.1), b.full((4, 4), 0.2)
    tracing, optimising = [], []
    for _ in range(repeats):
        start = thread_time()
        program = ng.func.trace(f)(*(b.tensor(a) for a in args))
        middle = thread_time()
        made = optimized(program)
        tracing.append(middle - start)
        optimising.append(thread_time() - middle)
    return len(program.instructions), len(made.instructions), min(tracing), min(optimising)


PROGRAMS = {
    "125 layers": layers(125),
    "60 layers and a gradient": lambda x, w: func.grad(layers(60))(x, w),
    "1,250 layers": layers(1250),
    "fifth derivative": nested(5),
}


def report() -> str:
    """A table."""
    rows = []
    for name, f in PROGRAMS.items():
        before, after, tracing, optimising = times(f)
        each = optimising / before
        rows.append([name, f"{before:,}", f"{after:,}", f"{tracing * 1e3:.1f}", f"{optimising * 1e3:.1f}", f"{each * 1e6:.0f}"])
    return markdown(["program", "ops", "left", "tracing, ms", "optimising, ms", "optimising, us per op"], rows)


if __name__ == "__main__":
    print(report())
