"""The module ``cases`` stands beside the tests; each test of a call runs on its functions and backends."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cases import DOUBLE, FUNCTIONS


@pytest.fixture(params=DOUBLE)
def backend(request: pytest.FixtureRequest) -> Any:
    return DOUBLE[request.param]


@pytest.fixture(params=FUNCTIONS)
def f(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return FUNCTIONS[request.param]
