"""How the cost of second derivatives grows with the length of the graph, for ``benchmarks.partials``."""

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import nestgrad as ng
from benchmarks.partials_peers import TooSlow, limited
from benchmarks.timing import median

HEADER = ["graph", "n", "first call", "again", "again, 2n", "2n / n", "nested autograd", "/ nested", "thoad"]
PATIENCE = 20.0

Step = Callable[[Any, Any], Any]
CHAIN, BLOCKS = 10_000, 100


def chain(u: Any, sin: Callable[[Any], Any], n: int) -> Any:
    """A chain of n operations."""
    for k in range(n):
        u = sin(u) if k % 2 else u * 1.0005
    return u


def residual(u: Any, sin: Callable[[Any], Any], n: int) -> Any:
    """n residual blocks."""
    for _ in range(n):
        u = sin(u) + u / 2
    return u


def hand(name: str, point: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """Second derivatives of each entry, by the chain rule in plain NumPy."""
    u, first, second = point, np.ones_like(point), np.zeros_like(point)
    for k in range(n):
        if name == "residual":
            slope, bend = np.cos(u) + 0.5, -np.sin(u)
            u, first, second = np.sin(u) + u / 2, slope * first, bend * first**2 + slope * second
        elif k % 2:
            slope, bend = np.cos(u), -np.sin(u)
            u, first, second = np.sin(u), slope * first, bend * first**2 + slope * second
        else:
            u, first, second = u * 1.0005, first * 1.0005, second * 1.0005
    return second


def seconds(run: Callable[[], Any], repeats: int = 3) -> float:
    """Median of some calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return median(times)


def row(label: str, name: str, make: Callable[..., Any], n: int) -> list[str]:
    """One graph."""
    point = np.random.default_rng(0).uniform(0.5, 1.0, 4)
    x = torch.tensor(point, requires_grad=True)

    def ours(length: int) -> Any:
        ng.backward(make(x, torch.sin, length).sum(), 2)
        return x.hgrad[1]

    def passes() -> Any:
        (first,) = torch.autograd.grad(make(x, torch.sin, n).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0]

    def check(found: Any) -> None:
        right = hand(name, point, n)
        assert np.abs(np.diagonal(found[0].numpy()) - right).max() <= 1e-9 * np.abs(right).max()

    start = time.process_time()
    check(ours(n))
    first = time.process_time() - start
    short, nested = seconds(lambda: ours(n)), seconds(passes)
    ours(2 * n)
    long = seconds(lambda: ours(2 * n))
    try:
        package = importlib.import_module("thoad")
        begun = time.perf_counter()
        with limited(PATIENCE):
            package.backward(make(x, torch.sin, n).sum(), 2).clear()
        peer = f"{(time.perf_counter() - begun) * 1e3:.0f}"
    except ImportError:
        peer = "not installed"
    except TooSlow:
        peer = f"> {PATIENCE:.0f} s"
    except (AssertionError, RecursionError) as error:
        peer = type(error).__name__
    cells = [f"{t * 1e3:.0f}" for t in (first, short, long)]
    return [label, f"{n:,}", *cells, f"{long / short:.2f}", f"{nested * 1e3:.0f}", f"{short / nested:.2f}", peer]


def rows() -> list[list[str]]:
    """Both graphs."""
    return [row("chain of n operations", "chain", chain, CHAIN), row("n blocks u = sin(u) + u/2", "residual", residual, BLOCKS)]
