"""What tests of all rooms share. A folder, or a module, with other backends has a ``base`` of its own."""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.levels.reverse.node import Node


def pytest_collection_finish() -> None:
    """What the tests themselves are made of is millions of objects that stay: no collection is to look through them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=["numpy", "torch"])
def base(request: pytest.FixtureRequest) -> Any:
    """A base backend in float64."""
    if request.param == "torch":
        pytest.importorskip("torch")
        return TorchBackend(dtype="float64")
    return NumpyBackend()


@pytest.fixture
def peak() -> Callable[[Callable[[], Any]], tuple[Any, int]]:
    """``peak(run)``: what it returns, and the most bytes that Python's own count saw meanwhile."""

    def peak(run: Callable[[], Any]) -> tuple[Any, int]:
        tracemalloc.start()
        try:
            return run(), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return peak


@pytest.fixture
def nodes() -> Callable[[], int]:
    """``nodes()``: how many nodes of graphs are alive, whoever holds them."""
    return lambda: sum(type(thing) is Node for thing in gc.get_objects())
