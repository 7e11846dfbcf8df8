"""The backends under test, each watched for methods that change their arguments."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nestgrad.backends import Backend, NumpyBackend, TorchBackend

sys.path.insert(0, str(Path(__file__).parent))

from frozen_backend import FrozenBackend
from mpmath_backend import MpmathBackend


class Watched:
    """A backend that checks after each call that the arguments are what they were."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.exact = isinstance(backend, MpmathBackend)
        self.float = np.dtype(np.float64 if self.exact else str(backend.default_dtype).removeprefix("torch."))
        self.eps = 1e-48 if self.exact else float(np.finfo(self.float).eps)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.backend, name)
        return self._watched(name, member) if callable(member) else member

    def _watched(self, name: str, method: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            native = name not in ("asarray", "accepts", "index")
            before = [self.backend.to_numpy(x) if native and hasattr(x, "dtype") else None for x in args]
            answer = method(*args, **kwargs)
            for x, was in zip(args, before, strict=True):
                same = was is None or np.array_equal(self.backend.to_numpy(x), was, equal_nan=was.dtype.kind == "f")
                assert same, f"{name} changed its argument"
            return answer

        return call

    def array(self, data: Any) -> Any:
        """An array of the backend; floats in its own precision."""
        data = np.asarray(data)
        return self.backend.asarray(data.astype(self.float) if data.dtype.kind == "f" else data)

    def check(self, got: Any, want: Any, ulps: float = 8) -> None:
        """``got`` has the shape, the kind of dtype and, to ``ulps`` roundings, the numbers of ``want``."""
        want = np.asarray(want)
        assert tuple(self.backend.shape(got)) == want.shape
        numbers = self.backend.to_numpy(got)
        if want.dtype.kind == "f":
            assert numbers.dtype == self.float
            scale = max(self.eps, float(np.finfo(self.float).eps))
            tiny = float(np.finfo(self.float).tiny)
            np.testing.assert_allclose(numbers, want.astype(self.float), rtol=ulps * scale, atol=tiny)
        else:
            assert numbers.dtype == want.dtype
            np.testing.assert_array_equal(numbers, want)


BACKENDS = {
    "numpy": lambda: NumpyBackend(),
    "numpy32": lambda: NumpyBackend("float32"),
    "torch64": lambda: TorchBackend(dtype="float64"),
    "torch32": lambda: TorchBackend(),
    "frozen": lambda: FrozenBackend(),
    "mpmath": lambda: MpmathBackend(),
}


@pytest.fixture(params=BACKENDS)
def b(request: pytest.FixtureRequest) -> Watched:
    return Watched(BACKENDS[request.param]())


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
