"""The module ``dense`` stands beside the tests, which need scipy."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("scipy")
