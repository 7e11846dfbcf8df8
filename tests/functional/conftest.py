"""Modules beside the tests, and torch, which is the oracle."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch.autograd.functional is what these functions are compared with")
sys.path.insert(0, str(Path(__file__).parent))
