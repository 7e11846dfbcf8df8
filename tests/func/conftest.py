"""Stacks over base backends. The module ``functions`` stands beside the tests."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nestgrad.levels.autodiff import Autodiff

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def levels(base: Any) -> Callable[[int], Any]:
    """``levels(n)``: a stack of n levels."""

    def stack(n: int) -> Any:
        made = base
        for _ in range(n):
            made = Autodiff(made)
        return made

    return stack
