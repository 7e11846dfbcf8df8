"""What tests of all rooms share. A folder, or a module, with other backends has a ``base`` of its own."""

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
