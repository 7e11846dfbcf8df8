"""Run mypy and pyright, and make sure that neither looked past a file.

A type checker that does not follow the links ``src/nestgrad/levels`` and ``src/nestgrad/backends`` reports success
on the part that it saw. So the number of files that each reports must be the number that there are.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ("src", "examples")


def count_files(tops: tuple[str, ...]) -> int:
    """Count the Python files under ``tops``, through links."""
    return sum(
        name.endswith(".py")
        for top in tops
        for _, _, names in os.walk(ROOT / top, followlinks=True)
        for name in names
    )


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)


def run_mypy() -> tuple[bool, int]:
    """Run mypy as pyproject.toml configures it; return whether it passed and how many files it checked."""
    done = run("mypy")
    print(done.stdout + done.stderr, end="")
    match = re.search(r"(?:in|checked) (\d+) source files?", done.stdout)
    return done.returncode == 0, int(match[1]) if match else 0


def run_pyright() -> tuple[bool, int]:
    """Run pyright as pyproject.toml configures it; return whether it passed and how many files it checked."""
    done = run("pyright", "--outputjson", "--pythonpath", sys.executable)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        print(done.stdout + done.stderr, end="")
        return False, 0
    for found in report["generalDiagnostics"]:
        start = found.get("range", {}).get("start", {"line": 0, "character": 0})
        rule = f" ({found['rule']})" if "rule" in found else ""
        file = os.path.relpath(found["file"], ROOT)
        print(f"{file}:{start['line'] + 1}:{start['character'] + 1}: {found['severity']}: {found['message']}{rule}")
    return done.returncode == 0, int(report["summary"]["filesAnalyzed"])


def main() -> int:
    expected = count_files(CHECKED)
    passed = True
    for name, checker in (("mypy", run_mypy), ("pyright", run_pyright)):
        clean, seen = checker()
        print(f"{name}: {'ok' if clean else 'errors'}, checked {seen} of {expected} files")
        passed = passed and clean and seen == expected
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
