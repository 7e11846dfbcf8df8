"""All partial derivatives up to an order, against thoad, torch.func, torch.autograd's hessian and its nested passes.

thoad is optional: where it is not installed, its column says so.
"""

import gc
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks import partials_memory as memory, partials_scaling as scaling
from benchmarks.partials_cases import Case, dense, passes, stored
from benchmarks.partials_peers import Dense, TooSlow, Way, hessians, keys, limited, nested, nestgrad, seconds, thoad, torch_func
from benchmarks.timing import interleaved, markdown, median, ratio

SECONDS, PATIENCE = 6.0, 20.0
"""For a row; and how long a single call is waited for."""
TOLERANCE = 1e-9
"""Relative to the largest entry of the key. Roundings of order 7 stay far below it."""
PEERS = ("thoad", "hessian", "vectorized", "torch.func", "nested")


def slip(found: Dense, right: Dense) -> float:
    """The largest difference, relative to the largest entry of its key. Infinite where something is missing or has another shape."""
    worst = 0.0
    for key, value in right.items():
        mine = found.get(key)
        if value is None:
            continue
        size = float(value.abs().max()) if value.numel() else 0.0
        if mine is None:
            if size:
                return float("inf")
            continue
        if mine.numel() != value.numel():
            return float("inf")
        gap = (mine.detach().reshape(value.shape) - value).abs().max() if value.numel() else torch.zeros(())
        worst = max(worst, float(gap) / max(size, 1e-30)) if torch.isfinite(gap) else float("inf")
    return worst


def tried(case: Case, way: Way, right: Dense, patience: float = PATIENCE) -> tuple[str, Callable[[], Any] | None]:
    """What there is to say of a peer, and how to run it, unless it cannot."""
    try:
        with limited(patience):
            answer = way.run()
    except TooSlow:
        return f"> {patience:.0f} s", None
    except (AssertionError, NotImplementedError, RuntimeError, TypeError, ValueError, IndexError) as error:
        return f"{type(error).__name__}", None
    off = slip(way.read(answer), right)
    return ("" if off <= TOLERANCE else "wrong"), way.run


def fastest(ways: dict[str, Way], right: Dense, patience: float) -> tuple[str, Callable[[], Any]] | None:
    """The best of torch's ways of one kind, by two more calls of those whose first was not far behind. All must agree.

    None if all of them take longer than they are waited for.
    """
    once: dict[str, float] = {}
    for name, way in ways.items():
        try:
            with limited(min([patience, *(1.0 + 5 * took for took in once.values())])):
                start = time.perf_counter()
                answer = way.run()
                once[name] = time.perf_counter() - start
        except TooSlow:
            continue
        off = slip(way.read(answer), right)
        assert off <= TOLERANCE, f"{name} is {off:.0e} away from the reference"
        del answer
        gc.collect()
    if not once:
        return None
    near = [name for name, took in once.items() if took < 5 * min(once.values())]
    best = min(near, key=lambda name: min(seconds(ways[name].run) for _ in range(2)))
    return best, ways[best].run


def reference(case: Case) -> Dense:
    """The values, by torch: nested passes of what has few numbers or is of order 1, transforms otherwise."""
    passes = case.alone or len(keys(case)) == len(case.leaves) == case.leaves[0].numel() == 1
    way = next(iter((nested(case) if passes else torch_func(case)).values()))
    return way.read(way.run())


def row(case: Case) -> list[str]:
    """Milliseconds, and ratios to the peers.

    Raises:
        AssertionError: If nestgrad, or one of torch's ways, differs from torch's values.
    """
    right = reference(case)
    ours = nestgrad(case)
    first = seconds(ours.run)
    off = slip(ours.read(ours.run()), right)
    assert off <= TOLERANCE, f"{case.name}, order {case.order}: {off:.0e} away from torch"
    runs, says, used = {"nestgrad": ours.run}, dict.fromkeys(PEERS, ""), {}
    try:
        says["thoad"], run = tried(case, thoad(case), right)
        if run is not None:
            runs["thoad"] = run
    except ImportError:
        says["thoad"] = "not installed"
    families = {
        "nested": nested(case), "vectorized": hessians(case, True), "hessian": hessians(case, False),
        "torch.func": {} if case.alone else torch_func(case),
    }  # fmt: skip
    least = PATIENCE
    for family, ways in families.items():
        patience = min(PATIENCE, 1.0 + 20 * least)
        found = fastest(ways, right, patience) if ways else None
        if found is not None:
            used[family], runs[family] = found
            least = min(least, seconds(runs[family]))
        elif ways:
            says[family] = f"> {patience:.0f} s"
    del right
    gc.collect()
    once = sum(seconds(run) for run in runs.values())
    times = interleaved(runs, max(3, min(60, int(SECONDS / once))), 1, time.process_time)
    cells = []
    for peer in PEERS:
        cells.append(", ".join(filter(None, [f"{ratio(times, 'nestgrad', peer):.2f}" if peer in times else "", says[peer]])))
    best = min(used, key=lambda name: median(times[name]))
    named = best if best in ("nested", "hessian", "vectorized") else used[best]
    mine = [f"{median(times['nestgrad']) * 1e3:.2f}", f"{first * 1e3:.0f}"]
    last = [f"{median(times[best]) * 1e3:.2f} ({named})", f"{ratio(times, 'nestgrad', best):.2f}", case.flag]
    return [case.name, str(case.order), *mine, *cells, *last]


HEADER = ["workload", "order", "nestgrad, ms", "first call, ms", *(f"/ {peer}" for peer in PEERS), "best of torch, ms", "/ best", "target"]


def report() -> str:
    """The tables."""
    torch.set_num_threads(1)
    intro = (
        "Ratios of nestgrad's time to that of thoad 0.1.0, of `torch.autograd.functional.hessian` without and with `vectorize`, of "
        "torch.func (the fastest of the compositions of `jacfwd` and `jacrev`, by leaves or by one vector of all, or under `vmap`), and of "
        "nested passes of `torch.autograd.grad`. All values are compared with torch's; a row where thoad's differ says so. torch computes "
        "the last order only, nestgrad and thoad all orders up to it. float64; time of the processor; a target is of torch's best, or "
        "milliseconds.\n"
    )
    kept = (
        "\nRead as they are stored, the forward pass included; torch's are under `vmap`, or of sums; thoad keeps its batch (target of the "
        "first row: 0.05 of torch's best for the same as a dense tensor, above):\n"
    )
    return "\n".join(
        [
            intro,
            "Read as dense tensors, the forward pass included:\n",
            markdown(HEADER, [row(case) for case in dense()]),
            kept,
            markdown(HEADER, [row(case) for case in stored()]),
            "\nOrder 1, the graph being there, against one pass of `torch.autograd.grad`:\n",
            markdown(HEADER, [row(case) for case in passes()]),
            "\nGrowth with the length of the graph, order 2, milliseconds:\n",
            markdown(scaling.HEADER, scaling.rows()),
            "\nPeak of resident memory of the first call in a process of its own, the result included, megabytes:\n",
            markdown(memory.HEADER, memory.rows()),
            "\nResident memory that 12 calls of a case of 31 MB leave behind, with leaves made anew for each, megabytes:\n",
            markdown(memory.LEAKS, memory.leaks()),
        ]
    )


if __name__ == "__main__":
    print(report())
