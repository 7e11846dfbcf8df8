"""Base backends in float64."""

from typing import Any

import pytest

from nestgrad.backends import NumpyBackend, TorchBackend


@pytest.fixture(params=["numpy", "torch"])
def base(request: pytest.FixtureRequest) -> Any:
    """A base backend in float64."""
    if request.param == "torch":
        pytest.importorskip("torch")
        return TorchBackend(dtype="float64")
    return NumpyBackend()
