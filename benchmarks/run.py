"""Run all measurements: ``python -m benchmarks.run [--write] [names]``. ``--write`` puts the tables into docs/performance.md."""

import argparse
import datetime
import importlib
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
NAMES = ("pinn", "per_op", "chain", "steps", "modes", "fields", "hessians", "partials", "checkpointing", "ops", "jit")


def machine() -> str:
    """What it was measured on."""
    from importlib.metadata import version

    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        cpu = found.group(1) if found else cpu
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "torch", "autograd", "jax"))
    return (
        f"Measured on {datetime.date.today().isoformat()}: {cpu}, {os.cpu_count()} cores, one thread, "
        f"Python {platform.python_version()}, {versions}."
    )


def write(name: str, text: str) -> None:
    """Replace the block of one measurement in the page."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    page = PAGE.read_text()
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    if not rest:
        raise SystemExit(f"{PAGE} has no block {begin}")
    PAGE.write_text(f"{head}{begin}\n{text}\n{end}{tail}")


def main() -> None:
    """Each measurement in a process of its own, so that none inherits the heap of another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(importlib.import_module(f"benchmarks.{options.names[0]}").report())
        return
    for name in options.names:
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", "benchmarks.run", "--one", name]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        print(text, flush=True)
        if options.write:
            write(name, text)
    if options.write:
        write("machine", machine())
        if {"modes", "fields"} & {*options.names}:
            subprocess.run([sys.executable, "-m", "benchmarks.growth"], check=True)


if __name__ == "__main__":
    main()
