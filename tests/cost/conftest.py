"""Makes the counting backend importable, and keeps the cyclic collector out of the way where a test asks for it."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def no_collector() -> Iterator[None]:
    """The cyclic collector is off: what is freed is freed by reference counting."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
