"""The backend of fifty digits and the one that counts stand beside the tests of backends and of cost."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / room) for room in ("backends", "cost")]
