"""Imports go one way: front -> levels -> ops and ``backends/base.py``; a backend knows only its own array library.

The check reads the source: an import inside a function or under ``TYPE_CHECKING`` couples two modules as well.
"""

import ast
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "nestgrad"

ARRAY_LIBRARIES = {"numpy", "torch", "jax", "cupy", "tensorflow", "autograd", "scipy"}

# What every backend and every level is: the ops' methods, and the factories of tensors.
CONTRACT = {"nestgrad.backends.base", "nestgrad.backends.factories"}

# What a module may import, by the longest prefix of its name; the rest is the front, which may import all of nestgrad.
# "x" allows the module x alone, "x.*" allows x and what is in it.
MAY_IMPORT = {
    "nestgrad.errors": set(),
    "nestgrad.backends": {"nestgrad.errors", "nestgrad.backends.*"},
    "nestgrad.ops": {"nestgrad.errors", "nestgrad.ops.*", *CONTRACT},
    "nestgrad.levels": {"nestgrad.errors", "nestgrad.levels.*", "nestgrad.ops.*", *CONTRACT},
}

# Which modules may import which array library.
MAY_USE = {
    "nestgrad.backends.numpy": {"numpy", "scipy"},  # scipy, where installed, for the special functions
    "nestgrad.backends.torch": {"torch"},
    "nestgrad.optimize.operators": {"scipy"},  # imported when an operator is made
    "nestgrad.dependence.pattern": {"scipy"},  # imported when a pattern is made
    "nestgrad.testing": {"numpy"},  # the oracles of the shipped kit
}

# (importing module, imported module or library): every departure from the rules above, with its reason.
EXCEPTIONS: set[tuple[str, str]] = {
    # a factory makes the user's handle over the dressed backend; both are imported when called
    ("nestgrad.backends.factories", "nestgrad.tensor"),
    ("nestgrad.backends.factories", "nestgrad.tensor.create"),
    ("nestgrad.backends.factories", "nestgrad.levels.dressed"),
    ("nestgrad.levels.level", "nestgrad.tensor.doors"),
    ("nestgrad.levels.traced.level", "nestgrad.func.tracing"),
    # the doors of a level take and give Tensors: for the type checker alone
    ("nestgrad.levels.batched", "nestgrad.tensor"),
    ("nestgrad.levels.level", "nestgrad.tensor"),
    ("nestgrad.levels.forward", "nestgrad.tensor"),
    ("nestgrad.levels.traced.level", "nestgrad.tensor"),
    ("nestgrad.levels.taylor", "nestgrad.tensor"),
}


class Import(NamedTuple):
    """One import: of a module, or of a name that may be a module."""

    module: str
    line: int


@functools.cache
def modules() -> dict[str, Path]:
    """All modules of the package by name, found through the links."""
    found = {}
    for folder, _, files in os.walk(PACKAGE, followlinks=True):
        for file in files:
            if file.endswith(".py"):
                path = Path(folder, file)
                parts = ("nestgrad", *path.relative_to(PACKAGE).with_suffix("").parts)
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def imports(module: str) -> tuple[Import, ...]:
    """What ``module`` imports, anywhere in its source."""
    found = []
    for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: relative import; write the full name"
            assert node.module is not None
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.append(Import(full if full in modules() else node.module, node.lineno))
    return tuple(found)


def rule(table: dict[str, set[str]], module: str) -> set[str] | None:
    """The entry of ``table`` for the longest prefix of ``module``."""
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        if (prefix := ".".join(parts[:end])) in table:
            return table[prefix]
    return None


def allowed(target: str, patterns: set[str]) -> bool:
    return any(
        target == pattern.removesuffix(".*") or (pattern.endswith(".*") and target.startswith(pattern[:-1]))
        for pattern in patterns
    )


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_go_one_way(module):
    may = rule(MAY_IMPORT, module)
    if may is None:
        return  # the front
    wrong = [
        f"line {line}: {target}"
        for target, line in imports(module)
        if target.split(".")[0] == "nestgrad" and not allowed(target, may) and (module, target) not in EXCEPTIONS
    ]
    assert not wrong, f"{module} may import {sorted(may)} of nestgrad, but imports {wrong}"


@pytest.mark.parametrize("module", sorted(modules()))
def test_array_libraries_stay_in_their_backend(module):
    may = rule(MAY_USE, module) or set()
    wrong = [
        f"line {line}: {target}"
        for target, line in imports(module)
        if (top := target.split(".")[0]) in ARRAY_LIBRARIES - may and (module, top) not in EXCEPTIONS
    ]
    assert not wrong, f"{module} may import {sorted(may) or 'no array library'}, but imports {wrong}"


@pytest.mark.parametrize("module", sorted(modules()))
def test_the_rooms_have_one_name(module):
    rooms = {"levels", "backends"}
    wrong = [f"line {line}: {target}" for target, line in imports(module) if target.split(".")[0] in rooms]
    assert not wrong, f"{module}: write nestgrad.levels and nestgrad.backends, not {wrong}"


def test_every_exception_is_still_needed():
    used = {
        (module, name)
        for module in modules()
        for target, _ in imports(module)
        for name in (target, target.split(".")[0])
    }
    assert used >= EXCEPTIONS, f"not needed any more: {EXCEPTIONS - used}"


@functools.cache
def loaded_by(statement: str) -> frozenset[str]:
    """The names in ``sys.modules`` after ``statement`` ran in a new interpreter.

    It starts where a top-level ``import levels`` would succeed.
    """
    program = f"{statement}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return frozenset(json.loads(done.stdout))


def test_importing_nestgrad_loads_no_array_library_but_numpy():
    loaded = {name.split(".")[0] for name in loaded_by("import nestgrad, nestgrad.levels, nestgrad.backends")}
    assert not loaded & (ARRAY_LIBRARIES - {"numpy"})


def test_importing_nestgrad_makes_no_second_copy_of_the_rooms():
    loaded = loaded_by("import nestgrad, nestgrad.levels, nestgrad.backends")
    assert {"nestgrad.levels", "nestgrad.backends"} <= loaded
    assert not {name for name in loaded if name.split(".")[0] in {"levels", "backends"}}


def test_modules_beside_tests_have_names_of_their_own():
    """They are imported by bare names, so a second module of a name would be taken for the first, whichever that is in a run."""
    beside = [
        path
        for folder in (ROOT / "tests").iterdir()
        if folder.is_dir()
        for path in folder.iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists()) and not path.name.startswith(("test_", "conftest", "__"))
    ]
    names = [path.stem for path in beside]
    assert len(names) > 10
    assert sorted(names) == sorted(set(names))
