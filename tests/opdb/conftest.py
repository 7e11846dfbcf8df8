"""Makes the package beside importable; tells at the end what became of torch's samples, and writes it down where that was asked for."""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A line for each operation, from the tests of all workers."""
    found = [value for reports in terminalreporter.stats.values() for r in reports if getattr(r, "when", "") == "call"
             for key, value in r.user_properties if key == "opdb"]  # fmt: skip
    if not found:
        return
    from torch_ops.report import lines, write

    terminalreporter.section("torch's database of operations")
    for line in lines(found):
        terminalreporter.write_line(line)
    if os.environ.get("NESTGRAD_OPDB_WRITE"):
        terminalreporter.write_line(write(found))
