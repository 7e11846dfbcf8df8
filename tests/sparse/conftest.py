"""Base backends in float64. The module ``dense`` stands beside the tests."""

import sys
from pathlib import Path
from typing import Any

import pytest

from nestgrad.backends import NumpyBackend, TorchBackend

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("scipy")


@pytest.fixture(params=["numpy", "torch"])
def base(request: pytest.FixtureRequest) -> Any:
    """A base backend in float64."""
    if request.param == "torch":
        pytest.importorskip("torch")
        return TorchBackend(dtype="float64")
    return NumpyBackend()
