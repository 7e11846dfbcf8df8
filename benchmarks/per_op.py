"""What an op costs in Python, per level, forward and backward; and what marks, ages and ``lo`` are of it."""

from typing import Any

import numpy as np

import nestgrad as ng
from benchmarks.timing import best, markdown
from nestgrad.levels.dressed import Dressed
from nestgrad.levels.reverse import record
from nestgrad.levels.reverse.backward import Pass
from nestgrad.ops import TABLE

ROUNDS = 500

LENGTH = 300
"""Ops in the chain whose backward pass is timed."""


def stacks(depth: int) -> list[Any]:
    """A base backend, and stacks of 1 to ``depth`` levels over it."""
    made: list[Any] = [ng.NumpyBackend()]
    for _ in range(depth):
        made.append(ng.Autodiff(made[-1]))
    return made


def in_turns(functions: list[Any], number: int = 200) -> list[float]:
    """Seconds of one call of each, the least of many: in turn, and for seconds, so that all meet the same moods of the machine."""
    runs = [[best(f, number, 5) for f in functions] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*runs, strict=True)]


def forward_rows() -> list[list[str]]:
    """Microseconds that one level adds to an op on a vector of 4 numbers."""
    levels = stacks(3)
    rows = []
    for name, call in (("mul", lambda x: x * x), ("tanh", lambda x: x.tanh()), ("x * 2.0", lambda x: x * 2.0), ("sum", lambda x: x.sum())):
        xs = [stack.tensor([0.1, 0.2, 0.3, 0.4], requires_grad=depth > 0) for depth, stack in enumerate(levels)]
        times = [t * 1e6 for t in in_turns([lambda x=x, call=call: call(x) for x in xs])]
        rows.append([name, *(f"{t:.2f}" for t in times), f"{(times[3] - times[0]) / 3:.2f}"])
    return rows


def backward_rows() -> list[list[str]]:
    """Microseconds per op of a backward pass through a chain, less those of the backend's ops alone."""
    rows = []
    for name, call, raw in (
        ("tanh", lambda x: x.tanh(), lambda base, g: base.tanh_vjp(g, g)),
        ("x * 1.01", lambda x: x * 1.01, lambda base, g: base.scale(g, 1.01)),
    ):
        x = stacks(1)[1].tensor([0.1, 0.2, 0.3, 0.4], requires_grad=True)
        y = x
        for _ in range(LENGTH):
            y = call(y)
        root, seed = y.value, np.ones(4)

        def whole(root: Any = root, seed: Any = seed, x: Any = x, b: Any = y.b) -> Any:
            return Pass(b, root.node, seed, root.tape).cotangent(x.value.node)

        def kernels(raw: Any = raw, base: Any = y.b.base, seed: Any = seed) -> Any:
            for _ in range(LENGTH):
                raw(base, seed)

        passed, computed = (t / LENGTH * 1e6 for t in in_turns([whole, kernels], 2))
        rows.append([name, f"{passed:.2f}", f"{passed - computed:.2f}"])
    return rows


def bookkeeping_rows() -> list[list[str]]:
    """The same recorder with and without ages and ``lo``, and the test of marks in an operator, as a share of a whole op."""
    backend = ng.NumpyBackend()
    plain = Dressed(backend)
    source = record._source(TABLE["mul"])
    kept = [line for line in source.splitlines() if ".age = " not in line and ".lo" not in line]
    names: dict[str, Any] = dict(record.recorder(TABLE["mul"]).__globals__)
    exec(compile("\n".join(kept), "<without ages>", "exec"), names)
    plain.mul = names["make"](backend.mul, plain.mixed, plain.shape, plain.dtype)
    rows = []
    for depth in (1, 3):
        x = stacks(depth)[depth].tensor([0.1, 0.2, 0.3, 0.4], requires_grad=True)
        b, value = x.b, x.value
        whole, with_ages, without, marks, nothing = in_turns(
            [lambda x=x: x * x, lambda b=b, v=value: b.mul(v, v), lambda v=value: plain.mul(v, v),
             lambda x=x: x.marks is x.marks, lambda x=x: x]
        )  # fmt: skip
        marks -= nothing
        share = (with_ages - without + max(marks, 0.0)) / whole
        rows.append([f"mul, {depth} level{'s' if depth > 1 else ''}", f"{whole * 1e6:.2f}", f"{(with_ages - without) * 1e6:.2f}",
                     f"{marks * 1e6:.2f}", f"{100 * share:.0f} %"])
    return rows


def report() -> str:
    """All tables."""
    return "\n".join(
        [
            "Forward, microseconds of a whole Tensor op on 4 numbers (target: 0.6 per level at most):\n",
            markdown(["op", "no level", "1", "2", "3", "per level"], forward_rows()),
            f"\nBackward, microseconds per op of a chain of {LENGTH} (target: 1.5 at most):\n",
            markdown(["op", "whole", "without the backend's"], backward_rows()),
            "\nMarks, ages and `lo`, microseconds (target: 7 % of an op at most):\n",
            markdown(["op", "whole", "ages and `lo`", "test of marks", "share"], bookkeeping_rows()),
        ]
    )


if __name__ == "__main__":
    print(report())
