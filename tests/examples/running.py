"""Examples as programs and as modules."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def run(name: str, *arguments: str, cwd: Path) -> str:
    """What the example prints. It must leave nothing behind that it was not told to write."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    before = set(cwd.iterdir())
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in set(cwd.iterdir()) - before} <= {"picture.png"}
    return done.stdout


def relative_error(printed: str) -> float:
    """What an example says it is off by."""
    found = re.search(r"relative L2 error (\S+);", printed)
    assert found, printed
    return float(found[1])
