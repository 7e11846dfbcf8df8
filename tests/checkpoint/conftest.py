"""The modules of this folder, and those of ``tests/cost`` and ``tests/levels``, are imported by their own names."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cost"), str(HERE.parent / "levels")]
