"""The conformance classes of the shipped kit, on the backends that come with nestgrad and on one of fifty digits."""

from typing import Any

import pytest
import torch

from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.testing import BackendConformance


class TestNumpy(BackendConformance):
    backend = NumpyBackend


class TestNumpy32(BackendConformance):
    backend = NumpyBackend("float32")


class TestTorch(BackendConformance):
    backend = TorchBackend(dtype="float64")


class TestTorch32(BackendConformance):
    backend = TorchBackend


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
class TestTorchOnCuda(BackendConformance):
    def make_backend(self) -> Any:
        return TorchBackend(device="cuda", dtype="float64")


class TestFiftyDigits(BackendConformance):
    @pytest.fixture(autouse=True)
    def its_class(self, fifty_digits: Any) -> None:
        type(self).backend = type(fifty_digits)
