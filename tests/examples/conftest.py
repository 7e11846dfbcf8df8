"""The module ``running`` stands beside the tests. Examples are imported by their names."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """An example, by its name, as a module."""
    from running import EXAMPLES

    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module
