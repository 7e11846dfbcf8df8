"""Timing side by side: A B A B in one process, medians of ratios, one thread."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Table = list[list[str]]


def interleaved(
    functions: Mapping[str, Callable[[], Any]], repeats: int, warm_up: int = 3, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of each call of each function, called in turn. ``time.thread_time`` as the clock leaves out what other processes take."""
    for _ in range(warm_up):
        for function in functions.values():
            function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = clock()
            function()
            times[name].append(clock() - start)
    return times


def ratio(times: Mapping[str, list[float]], ours: str, theirs: str) -> float:
    """Median of the ratios of neighbouring calls."""
    return statistics.median(a / b for a, b in zip(times[ours], times[theirs], strict=True))


def median(seconds: list[float]) -> float:
    """Median."""
    return statistics.median(seconds)


def best(function: Callable[[], Any], number: int = 200, repeats: int = 60) -> float:
    """Seconds of one call: the least of many means, for functions of microseconds."""
    least = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(number):
            function()
        least = min(least, (time.perf_counter() - start) / number)
    return least


def markdown(header: list[str], rows: Table) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)
