"""The module ``pages`` stands beside the tests, those that write pages in ``tools``."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]
