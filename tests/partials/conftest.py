"""Modules that stand beside the tests: oracles."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
