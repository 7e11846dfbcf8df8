"""What became of the samples, told and written down."""

import importlib.util
import json
from collections import Counter
from pathlib import Path
from typing import Any

from torch_ops.compare import Outcome
from torch_ops.table import ADAPTERS

PAGE = Path(__file__).parents[1] / "passed.json"
NAMES = Path(__file__).parents[2] / "layout" / "test_names.py"

Found = dict[str, Any]
"""An outcome as plain data, which goes from one process to another."""


def plain(name: str, outcome: Outcome) -> Found:
    """An outcome as plain data."""
    return {
        "name": name, "passed": outcome.passed, "by_differences": outcome.by_differences, "left_out": dict(outcome.left_out),
        "excepted": outcome.excepted, "wrong": len(outcome.wrong),
    }  # fmt: skip


def lines(found: list[Found]) -> list[str]:
    """For each operation how many samples passed, and how many were left out for which reason; then sums."""
    told, reasons, sums = [], Counter[str](), Counter[str]()
    for name, parts in _by_name(found).items():
        counts, why = Counter[str](), Counter[str]()
        for part in parts:
            counts.update({k: part[k] for k in ("passed", "by_differences", "excepted", "wrong")})
            why.update(part["left_out"])
        sums.update(counts)
        reasons.update(why)
        texts = [f"{counts['passed']} passed"]
        texts += [f"{counts['by_differences']} of them with a second derivative by differences"] if counts["by_differences"] else []
        texts += [f"{counts['excepted']} differ as an exception says"] if counts["excepted"] else []
        texts += [f"{counts['wrong']} WRONG"] if counts["wrong"] else []
        texts += [f"{n} left out: {reason}" for reason, n in why.items()]
        told.append(f"{name} ({ADAPTERS[name].ours}): {'; '.join(texts)}")
    total = f"{len(told)} operations, {sums['passed']} samples passed ({sums['by_differences']} with a second derivative by differences)"
    told += ["", f"{total}; {sums['excepted']} differ as an exception says; {sums['wrong']} wrong; {reasons.total()} left out:"]
    return told + [f"  {n}: {reason}" for reason, n in reasons.most_common()]


def write(found: list[Found]) -> str:
    """The number of samples that passed, for each op of ours, into ``passed.json``: of a run of all of them."""
    by_name = _by_name(found)
    lacking = [name for name in ADAPTERS if len(by_name.get(name, ())) != ADAPTERS[name].parts]
    if lacking:
        return f"{PAGE.name} is as it was: not all operations ran"
    passed: Counter[str] = Counter()
    for name, parts in by_name.items():
        passed[op_of(ADAPTERS[name].ours)] += sum(part["passed"] for part in parts)
    PAGE.write_text(json.dumps(dict(sorted(passed.items())), indent=0) + "\n", encoding="utf-8")
    return f"{PAGE.name}: {len(passed)} ops, {passed.total()} samples"


def op_of(ours: str) -> str:
    """The name in the op table of a function, where it has another one."""
    spec = importlib.util.spec_from_file_location("nestgrad_tests_names", NAMES)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    last = ours.rpartition(".")[2]
    return {users: op for op, users in module.CALLED.items()}.get(last, last)


def _by_name(found: list[Found]) -> dict[str, list[Found]]:
    by_name: dict[str, list[Found]] = {}
    for one in sorted(found, key=lambda one: str(one["name"])):
        by_name.setdefault(one["name"], []).append(one)
    return by_name
