"""What stands beside the tests, and beside those of levels and of tracing, is imported by its own name."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "levels"), str(HERE.parent / "traced")]
