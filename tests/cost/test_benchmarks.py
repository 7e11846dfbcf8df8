"""The benchmarks run, and what they compare is equal. Times are for ``make bench``: none is looked at here."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALL = {
    "pinn": "SIZES = {(16, 8): 2}",
    "per_op": "ROUNDS = 1",
    "chain": "LENGTH = 1000",
    "steps": "STEPS = 101",
    "checkpointing": "BLOCKS, ROWS, UNITS, REPEATS, LARGE = 4, 8, 4, 1, 9",
    "ops": "SECONDS, LEAST, ONLY = 0.0, 1, ('exp', 'add', 'softmax', 'matmul')",
    "fields": "POINTS, UNITS, REPEATS, DIMENSIONS, DTYPES, PLATES = 4, 4, 1, (2,), ('float64',), (2,)",
    "hessians": "DENSE, CHAIN, SEPARABLE, CHUNKED, CHUNK, REPEATS = 10, 40, 50, 10, 4, 1",
    "jit": "SIZES, FLAMES, LONG = {(16, 8): 2}, (8, 4, 2), 20",
    "modes": "ORDERS, TORCH_ORDERS, POINTS, REPEATS, SIZES = 3, 2, 20, 4, {(16, 8): 2}",
}
"""What makes each one short."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name == "jit" else name for name in SMALL])
def test_a_benchmark_gives_its_table(name):
    if name in ("pinn", "jit"):
        pytest.importorskip("autograd", reason="HIPS autograd comes with the bench extra")
    if name == "jit":
        pytest.importorskip("jax", reason="jax comes with the bench extra")
    if name in ("pinn", "jit", "modes", "ops", "fields", "hessians"):
        pytest.importorskip("torch", reason="the tables compare with torch")
    names, _, values = SMALL[name].partition(" = ")
    code = f"import benchmarks.{name} as module\n{', '.join(f'module.{n}' for n in names.split(', '))} = {values}\nprint(module.report())"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n| ---") >= 1


def test_every_function_is_measured_or_says_why_not(monkeypatch):
    """And no reason is given for what is measured."""
    pytest.importorskip("torch", reason="the tables compare with torch")
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import ops
    from benchmarks.ops_cases import WITHOUT

    import nestgrad as ng

    assert ops.ROWS, "which add the cases"
    measured = {case.name.partition(",")[0] for case in ops.CASES}
    excused = [name for names in WITHOUT.values() for name in names.split()]
    functions = {f"{room}{name}" for room, module in (("", ng), ("linalg.", ng.linalg), ("nn.", ng.nn))
                 for name in module.__all__ if inspect.isfunction(getattr(module, name))}  # fmt: skip
    assert len(set(excused)) == len(excused) and set(excused) <= functions
    assert not measured & set(excused)
    assert functions == (measured & functions) | set(excused)
