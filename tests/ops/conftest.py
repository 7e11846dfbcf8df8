"""What the tests of ops share: backends, nested levels, and the backend of fifty digits."""

import sys
from pathlib import Path
from typing import Any

import pytest

from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.levels.autodiff import Autodiff

sys.path.insert(0, str(Path(__file__).parents[1] / "backends"))

from mpmath_backend import MpmathBackend

DOUBLE = {"numpy": NumpyBackend(), "torch": TorchBackend(dtype="float64")}
BACKENDS = {**DOUBLE, "fifty digits": MpmathBackend()}


@pytest.fixture(params=DOUBLE)
def double(request: pytest.FixtureRequest) -> Any:
    """Each backend in float64."""
    return DOUBLE[request.param]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Any:
    """Each backend in float64, and one of fifty digits."""
    return BACKENDS[request.param]


@pytest.fixture(scope="session")
def fifty_digits() -> Any:
    """A backend that is as exact as mpmath with fifty digits."""
    return BACKENDS["fifty digits"]


@pytest.fixture(scope="session")
def nest() -> Any:
    """``nest(backend, 3)`` is ``Autodiff(Autodiff(Autodiff(backend)))``."""

    def stack(backend: Any, order: int) -> Any:
        for _ in range(order):
            backend = Autodiff(backend)
        return backend

    return stack
