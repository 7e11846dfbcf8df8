"""The backends whose errors must be the same."""

from typing import Any

import pytest

from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.levels.autodiff import Autodiff


@pytest.fixture(params=["numpy", "torch"])
def base(request: pytest.FixtureRequest) -> Any:
    """A base backend in float64."""
    return NumpyBackend() if request.param == "numpy" else TorchBackend(dtype="float64")


@pytest.fixture
def S(base: Any) -> Any:
    """Two levels of reverse mode."""
    return Autodiff(Autodiff(base))
