"""The backend of fifty digits stands beside the tests of backends."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "backends"))
