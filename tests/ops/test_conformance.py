"""The conformance classes of the shipped kit, on the backends that come with nestgrad and on one of fifty digits."""

import importlib.util
from pathlib import Path
from typing import Any

from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.testing import BackendConformance


def mpmath_backend() -> Any:
    """The backend of ``tests/backends``, from its file."""
    path = Path(__file__).parents[1] / "backends" / "mpmath_backend.py"
    spec = importlib.util.spec_from_file_location("nestgrad_test_mpmath_backend", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MpmathBackend()


class TestNumpy(BackendConformance):
    backend = NumpyBackend


class TestNumpy32(BackendConformance):
    backend = NumpyBackend("float32")


class TestTorch(BackendConformance):
    backend = TorchBackend(dtype="float64")


class TestTorch32(BackendConformance):
    backend = TorchBackend


class TestFiftyDigits(BackendConformance):
    backend = mpmath_backend()
