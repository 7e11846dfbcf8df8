"""Examples as programs, and the figures that docs/examples.md tells of them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")


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


def figure(text: str, where: str = PAGE) -> float:
    """The number at ``{}`` of a regular expression whose blanks stand for any white space."""
    number = r"(\d[\d.]*(?:e[+-]?\d+)?)"
    found = re.search(r"\s+".join(text.split()).replace("{}", number), where)
    assert found, (text, where)
    return float(found[1])


def as_told(figures: Iterable[tuple[str, str, float]], printed: str) -> None:
    """Assert that a program prints what the page tells.

    Args:
        figures: For each number, the words around it on the page and in what is printed, and how many times as large it may be: once for
            what is counted, in which case it may not be smaller either; and more for steps and errors, which depend on rounding.
        printed: By the program.
    """
    for page, program, times in figures:
        told, found = figure(page), figure(program, printed)
        assert found == told if times == 1 else found <= times * told, (page, program)
