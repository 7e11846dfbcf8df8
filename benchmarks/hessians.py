"""Whole Hessians: dense, against torch.func; sparse, by colouring; in chunks, with bounded memory."""

import resource
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import nestgrad as ng
from benchmarks.modes import agree
from benchmarks.timing import interleaved, markdown, median, ratio
from nestgrad import func

DENSE, CHAIN, SEPARABLE, CHUNKED, CHUNK = 500, 10_000, 100_000, 1500, 50
REPEATS = 15


def rosenbrock(x: Any) -> Any:
    """Rosenbrock's function; the same code here and in torch."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def chain(x: Any) -> Any:
    """A chain of springs that are not linear: the Hessian is tridiagonal."""
    stretch = x[1:] - x[:-1]
    return (stretch**2 / 2.0 + stretch**4 / 4.0).sum() + (1.0 - x.cos()).sum()


def separable(x: Any) -> Any:
    """No two entries meet: the Hessian is diagonal."""
    return (x.sin() * x.exp()).sum()


def dense_rows() -> list[list[str]]:
    """Milliseconds of the whole Hessian of Rosenbrock's function."""
    point = np.random.default_rng(0).uniform(-1.5, 1.5, DENSE)
    theirs = torch.tensor(point)
    runs: dict[str, Callable[[], Any]] = {"torch.func": lambda: torch.func.hessian(rosenbrock)(theirs)}
    for name, backend in (("NumPy", ng.NumpyBackend()), ("torch", ng.TorchBackend())):
        x, hessian = backend.tensor(point), func.hessian(rosenbrock)
        runs[name] = lambda x=x, hessian=hessian: hessian(x)
        agree(runs[name](), runs["torch.func"](), 1e-12)
    times = interleaved(runs, REPEATS)
    cells = [f"{median(times[name]) * 1e3:.2f}" for name in runs]
    return [[f"{DENSE:,}", *cells, *(f"{ratio(times, name, 'torch.func'):.2f}" for name in ("NumPy", "torch"))]]


def sparse_rows() -> list[list[str]]:
    """Milliseconds of a sparse Hessian: all of it, the first time; of the products alone, later; and of a diagonal."""
    rows = []
    for name, backend in (("NumPy", ng.NumpyBackend()), ("torch", ng.TorchBackend())):
        x = backend.tensor(np.random.default_rng(0).uniform(-1.5, 1.5, CHAIN))
        again = ng.sparse.sparse_hessian(chain)
        last = again(x)
        assert last.nnz == 3 * CHAIN - 2
        many, diagonal = backend.tensor(np.random.default_rng(0).uniform(-1.5, 1.5, SEPARABLE)), func.hessian_diag(separable)
        runs = {
            "first": lambda x=x: ng.sparse.sparse_hessian(chain)(x),
            "again": lambda x=x, again=again: again(x),
            "diagonal": lambda many=many, diagonal=diagonal: diagonal(many),
        }
        times = interleaved(runs, REPEATS)
        rows.append([name, *(f"{median(times[run]) * 1e3:.1f}" for run in runs)])
    return rows


def memory_rows() -> list[list[str]]:
    """Megabytes beyond the result that a dense Hessian takes at its worst moment, in chunks and whole: the larger peak comes later."""
    x = ng.tensor(np.random.default_rng(0).uniform(-1.5, 1.5, CHUNKED))
    rows = []
    for step in (CHUNK, None):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        tracemalloc.start()
        found = func.hessian(rosenbrock, chunk_size=step)(x).numpy()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        size = found.nbytes / 1e6
        beyond = [f"{megabytes - size:.1f}" for megabytes in (peak / 1e6, grown)]
        rows.append([f"{CHUNKED:,}", "all" if step is None else str(step), f"{size:.1f}", *beyond])
    return rows


def report() -> str:
    """The tables."""
    torch.set_num_threads(1)
    sparse = (
        f"\nThe sparse Hessian of a chain of {CHAIN:,} (target: 1,000 milliseconds the first time, with pattern and colours), and the "
        f"diagonal of that of a separable function of {SEPARABLE:,}, milliseconds:\n"
    )
    memory = (
        "\nMemory of a dense Hessian beyond the result, megabytes (target in chunks: 60), by Python's count and by how much the system's "
        "peak grew, which is less by what earlier runs had given back:\n"
    )
    return "\n".join(
        [
            "The dense Hessian of Rosenbrock's function, milliseconds, float64 (target: 1 at most):\n",
            markdown(["n", "torch.func.hessian", "NumPy", "torch", "NumPy / torch.func", "torch / torch.func"], dense_rows()),
            sparse,
            markdown(["backend", "first time", "again", "diagonal"], sparse_rows()),
            memory,
            markdown(["n", "chunk_size", "result", "beyond, traced", "beyond, resident"], memory_rows()),
        ]
    )
