"""All operations on a million numbers, against torch: value, gradient, and the gradient of a weighted sum of the gradient.

float32, one thread, two levels of ``Autodiff`` over the torch backend against torch's autograd with ``create_graph``, A B A B in one
process, by the thread's own time on the processor, so that other processes do not count. Both compute ``g`` as the gradient of
``f(x).sum()`` and then that of ``(g * v).sum()``, and must agree.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import nestgrad as ng
from benchmarks import ops_arrays, ops_elementwise, ops_networks
from benchmarks.ops_cases import CASES, Case
from benchmarks.timing import interleaved, markdown, median, ratio

ROWS = (ops_elementwise, ops_arrays, ops_networks)
"""The modules that add the rows."""
SECONDS = 0.4
"""How long each side of a measurement runs, about."""
LEAST, MOST = 5, 60
"""How often each side runs, at least and at most."""
ONLY: tuple[str, ...] = ()
"""Names of rows, for a quick look; none means all."""


@dataclass(frozen=True)
class Measured:
    """Milliseconds of both sides, and the median of the ratios of neighbouring runs."""

    name: str
    ours: float
    theirs: float
    ratio: float


def sides(case: Case) -> dict[str, Callable[[], list[Any]]]:
    """The two functions that are timed. Each returns the value, the gradients and the second ones, by the inputs."""
    rng = np.random.default_rng(0)
    arrays = [draw(rng).astype("float32") for draw in case.inputs]
    directions = [rng.normal(size=a.shape).astype("float32") for a in arrays]
    stack = ng.Autodiff(ng.Autodiff(ng.TorchBackend()))
    base = stack.base
    xs = [base.asarray(a) for a in arrays]
    vs = [stack.tensor(v) for v in directions]
    ts = [torch.from_numpy(a.copy()) for a in arrays]
    us = [torch.from_numpy(v.copy()) for v in directions]

    def ours() -> list[Any]:
        inputs = [stack.from_torch(x, requires_grad=True) for x in xs]
        y = case.ours(*inputs)
        grads = y.sum().backward()
        first = [x.grad(grads) for x in inputs]
        grads = total([(g * v).sum() for g, v in zip(first, vs, strict=True)]).backward()
        return [y, *first, *(grads.get(x) for x in inputs)]

    def theirs() -> list[Any]:
        inputs = [t.detach().requires_grad_() for t in ts]
        y = case.theirs(*inputs)
        first = torch.autograd.grad(y.sum(), inputs, create_graph=True)
        weighted = total([(g * u).sum() for g, u in zip(first, us, strict=True)])
        second = torch.autograd.grad(weighted, inputs, allow_unused=True) if weighted.requires_grad else [None] * len(inputs)
        return [y, *first, *second]

    return {"ours": ours, "theirs": theirs}


def total(terms: Sequence[Any]) -> Any:
    """The sum of some numbers."""
    found = terms[0]
    for term in terms[1:]:
        found = found + term
    return found


def agree(case: Case, both: dict[str, Callable[[], list[Any]]]) -> None:
    """Both sides computed the same, to what float32 and the number of its roundings give."""
    for k, (p, q) in enumerate(zip(both["ours"](), both["theirs"](), strict=True)):
        p = np.zeros(()) if p is None else p.numpy()
        q = np.zeros(()) if q is None else q.numpy(force=True)  # which may be one of torch's zeros without memory
        scale = max(float(np.abs(q).max()), float(np.abs(p).max()), 1e-3) if q.size else 1.0
        worst = float(np.abs(p - q).max()) / scale if q.size else 0.0
        assert worst <= case.tolerance, f"{case.name}: result {k} differs by {worst:.2e} of the largest entry"


def measure(case: Case) -> Measured:
    """One row."""
    both = sides(case)
    agree(case, both)
    start = time.thread_time()
    for side in both.values():
        side()
    once = (time.thread_time() - start) / 2
    times = interleaved(both, max(LEAST, min(MOST, int(SECONDS / once))), 1, time.thread_time)
    return Measured(case.name, median(times["ours"]) * 1e3, median(times["theirs"]) * 1e3, ratio(times, "ours", "theirs"))


def convolution() -> str:
    """The convolution of NumPy against torch's on one thread of the CPU: value alone, and all of it."""
    case = next((c for c in CASES if c.name == "nn.conv2d"), None)
    if case is None:
        return ""
    rng = np.random.default_rng(0)
    arrays = [draw(rng).astype("float32") for draw in case.inputs]
    base = ng.NumpyBackend(dtype="float32")
    xs, ts = [base.tensor(a) for a in arrays], [torch.from_numpy(a) for a in arrays]
    both = {"ours": lambda: case.ours(*xs), "theirs": lambda: case.theirs(*ts)}
    times = interleaved(both, 10, clock=time.thread_time)
    return (
        f"\n`nn.conv2d` on NumPy, value alone: {median(times['ours']) * 1e3:.1f} ms, torch {median(times['theirs']) * 1e3:.1f} ms, "
        f"ratio {ratio(times, 'ours', 'theirs'):.2f}.\n"
    )


def report() -> str:
    """The table, the worst first."""
    torch.set_num_threads(1)
    rows = sorted((measure(case) for case in CASES if not ONLY or case.name in ONLY), key=lambda row: -row.ratio)
    middle = statistics.median(row.ratio for row in rows)
    above = ", ".join(f"`{row.name}` {row.ratio:.2f}" for row in rows if row.ratio > 1.5) or "none"
    table = markdown(
        ["operation", "nestgrad, ms", "torch, ms", "ratio"],
        [[f"`{row.name}`", f"{row.ours:.2f}", f"{row.theirs:.2f}", f"{row.ratio:.2f}"] for row in rows],
    )
    return (
        f"Value, gradient and second-order gradient of {len(rows)} operations, float32 (target: a median of 1.15 at most, none above 1.5). "
        f"**Median: {middle:.2f}. Worst: `{rows[0].name}`, {rows[0].ratio:.2f}.** Above 1.5: {above}.\n{convolution()}\n{table}"
    )


if __name__ == "__main__":
    import sys

    ONLY = tuple(sys.argv[1:])
    print(report())
