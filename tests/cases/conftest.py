"""The backends on which the handed cases run, in float64, and stacks over them."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nestgrad.backends import NumpyBackend, TorchBackend
from nestgrad.levels.autodiff import Autodiff

sys.path.insert(0, str(Path(__file__).parent))

from orders import HESSIANS, STYLES


@pytest.fixture(params=["numpy", "torch"])
def base(request: pytest.FixtureRequest) -> Any:
    """A base backend in float64."""
    return NumpyBackend() if request.param == "numpy" else TorchBackend(dtype="float64")


@pytest.fixture(params=STYLES)
def orders(request: pytest.FixtureRequest, base: Any) -> Callable[..., list[Any]]:
    """``orders(f, x, n)``: the derivatives of order 1 to n, on stacked levels or by nested transforms, compiled or not."""
    return partial(STYLES[request.param], base)


@pytest.fixture(params=HESSIANS)
def hessian(request: pytest.FixtureRequest, base: Any) -> Callable[..., Any]:
    """``hessian(f, x)``: all second derivatives, on stacked levels or by nested transforms, compiled or not."""
    return lambda f, x: HESSIANS[request.param](f, base, x)


@pytest.fixture
def stack(base: Any) -> Callable[[int], Any]:
    """``stack(n)``: n levels of reverse mode."""

    def levels(n: int) -> Any:
        made: Any = base
        for _ in range(n):
            made = Autodiff(made)
        return made

    return levels
