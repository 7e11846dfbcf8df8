"""The peers are not part of the test extra: where one is not installed, its tests skip."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
