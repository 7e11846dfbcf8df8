"""Peaks and leaks of resident memory, each in a process of its own, for ``benchmarks.partials`` (Linux: from /proc)."""

import gc
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.partials_cases import Case, attention, sine_times_exp, softmax_net
from benchmarks.partials_peers import Way, nestgrad, thoad, torch_func

HEADER = ["workload", "order", "result", "nestgrad", "thoad", "best of torch.func", "nestgrad / torch.func", "target"]
LEAKS = ["", "nestgrad", "thoad"]
CALLS = 12

CASES: dict[str, tuple[Callable[[int], Case], int, int, str]] = {
    "sine": (lambda n: sine_times_exp(n, 3), 4, 64, "0.6"),
    "attention": (lambda n: attention(n, 15, 20, 2, True), 2, 10, ""),
    "softmax net": (lambda n: softmax_net(n, 5, 2, False), 3, 45, ""),
}
"""The case by a size, a small size for the first call, the size of the row, the target."""


def status(name: str) -> float:
    """Megabytes, of this process."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    assert found is not None
    return int(found[1]) / 1024


def peak(run: Callable[[], object]) -> float:
    """By how much the resident memory grows at most."""
    gc.collect()
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
    kept = run()
    grown = status("VmHWM") - before
    del kept
    return grown


def ways(case: Case) -> dict[str, Way]:
    """All of them, by name."""
    return {"nestgrad": nestgrad(case), "thoad": thoad(case)} | torch_func(case)


def way(case: Case, who: str) -> Way:
    """One of them."""
    return nestgrad(case) if who == "nestgrad" else thoad(case) if who == "thoad" else torch_func(case)[who]


def leak(who: str) -> float:
    """By how much resident memory grows from the first call to the last; what a call gives is dropped before the next."""
    (weight,) = (torch.tensor(np.random.default_rng(0).normal(size=(20, 10))),)

    def call(k: int) -> None:
        x = torch.tensor(np.random.default_rng(k).normal(size=(10, 20)), requires_grad=True)
        if who == "nestgrad":
            import nestgrad

            nestgrad.backward(torch.tanh(x @ weight), 2)
        else:
            import thoad

            thoad.backward(torch.tanh(x @ weight), 2)
        assert x.hgrad[1].numel() == 100 * 200 * 200

    call(0)
    before = status("VmRSS")
    for k in range(1, CALLS + 1):
        call(k)
    return status("VmRSS") - before


def child(*words: str) -> float | None:
    """What a process of its own measures; None if it fails."""
    done = subprocess.run([sys.executable, "-m", __name__, *words], capture_output=True, text=True)
    if done.returncode and words[0] == "nestgrad":
        raise RuntimeError(done.stderr)
    return None if done.returncode else float(done.stdout)


def shown(value: float | None) -> str:
    """A cell."""
    return "not installed, or fails" if value is None else f"{value:.0f}"


def rows() -> list[list[str]]:
    """Peaks."""
    made = []
    for name, (make, _, size, target) in CASES.items():
        case = make(size)
        inputs = [sum(leaf.numel() for leaf in case.leaves)] * case.order if case.crossings else [case.leaves[0].numel()] * case.order
        result = case.f(*case.leaves).numel() * float(np.prod(inputs)) * 8 / 1e6
        peers = {who: child(who, name) for who in ("nestgrad", "thoad", *torch_func(case))}
        mine, theirs = peers.pop("nestgrad"), peers.pop("thoad")
        assert mine is not None
        best = min((value, who) for who, value in peers.items() if value is not None)
        cells = [f"{mine:.0f}", shown(theirs), f"{best[0]:.0f} ({best[1]})", f"{mine / best[0]:.2f}", target]
        made.append([case.name, str(case.order), f"{result:.0f}", *cells])
    return made


def leaks() -> list[list[str]]:
    """What is left."""
    return [["tanh(X W), X (10, 20), W (20, 10), order 2", *(shown(child(who, "leak")) for who in ("nestgrad", "thoad"))]]


def main(who: str, name: str) -> None:
    """Print one measurement."""
    torch.set_num_threads(1)
    if name == "leak":
        print(leak(who))
        return
    make, small, size, _ = CASES[name]
    way(make(small), who).run()
    case = way(make(size), who)
    print(peak(case.run))


if __name__ == "__main__":
    main(*sys.argv[1:])
