"""Differential operators on a network, at many points: Laplacian and biharmonic, against torch.func and nested torch.autograd."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch

import nestgrad as ng
from benchmarks.modes import agree
from benchmarks.timing import interleaved, markdown, median, ratio

POINTS, UNITS, REPEATS = 256, 64, 30
DIMENSIONS = (2, 5, 10, 30, 100)
DTYPES = ("float64", "float32")
PLATES = (2, 3, 5)
"""Dimensions of the biharmonic."""

Net = Callable[[Any], Any]


def made(d: int, dtype: str, convert: Callable[[Any], Any]) -> tuple[Net, Any]:
    """A scalar tanh network of one point, or of rows of points, and points; the same code here and in torch."""
    rng = np.random.default_rng(0)
    widths = [d, UNITS, UNITS, UNITS, 1]
    shapes = list(pairwise(widths))
    matrices = [convert((rng.normal(size=shape) / np.sqrt(shape[0])).astype(dtype)) for shape in shapes]
    biases = [convert((rng.normal(size=m) / 10).astype(dtype)) for _, m in shapes]

    def u(x: Any) -> Any:
        for w, b in zip(matrices[:-1], biases[:-1], strict=True):
            x = (x @ w + b).tanh()
        return (x @ matrices[-1] + biases[-1])[..., 0]

    return u, convert(rng.uniform(-1, 1, (POINTS, d)).astype(dtype))


def trace_of_hessian(f: Net) -> Net:
    """The Laplacian by torch.func, of one point."""
    return lambda x: torch.trace(torch.func.hessian(f)(x))


def by_passes(f: Net) -> Net:
    """The Laplacian by torch.autograd, of rows of points: a backward pass for each coordinate of the gradient, recorded."""

    def laplacian(x: Any) -> Any:
        (first,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        passes = (torch.autograd.grad(first[:, k].sum(), x, create_graph=True)[0][:, k] for k in range(x.shape[1]))
        return sum(passes)

    return laplacian


def row(d: int, dtype: str, operator: Callable[[Net], Net], peers: Callable[[Net, Any], dict[str, Callable[[], Any]]]) -> list[str]:
    """Milliseconds of an operator at all points by each peer and on both backends, and how many of ours fit into each peer's."""
    runs = peers(*made(d, dtype, torch.tensor))
    others = list(runs)
    for name, backend in (("NumPy", ng.NumpyBackend()), ("torch", ng.TorchBackend())):
        u, x = made(d, dtype, backend.tensor)
        applied = operator(u)
        runs[name] = lambda applied=applied, x=x: applied(x)
        for peer in others:
            agree(runs[name](), runs[peer](), 1e-13 if dtype == "float64" else 1e-5)  # some hundred roundings
    times = interleaved(runs, max(5, REPEATS // (1 + d // 30)), 1)
    ratios = [f"{ratio(times, peer, name):.1f}" for peer in others for name in ("NumPy", "torch")]
    return [str(d), dtype, *(f"{median(times[name]) * 1e3:.2f}" for name in runs), *ratios]


def laplacians(u: Net, x: Any) -> dict[str, Callable[[], Any]]:
    """Peers of ``pde.laplacian``."""
    nested, tracked = by_passes(u), x.clone().requires_grad_()
    return {"torch.func": lambda: torch.func.vmap(trace_of_hessian(u))(x), "passes": lambda: nested(tracked)}


def biharmonics(u: Net, x: Any) -> dict[str, Callable[[], Any]]:
    """Peers of ``pde.biharmonic``."""
    nested, tracked = by_passes(by_passes(u)), x.clone().requires_grad_()
    return {"torch.func": lambda: torch.func.vmap(trace_of_hessian(trace_of_hessian(u)))(x), "passes": lambda: nested(tracked)}


def report() -> str:
    """The tables."""
    torch.set_num_threads(1)
    header = ["d", "dtype", "torch.func", "torch.autograd", "NumPy", "torch"]
    compared = [f"{peer} / {name}" for peer in ("torch.func", "autograd") for name in ("NumPy", "torch")]
    net = f"tanh network (d, {UNITS}, {UNITS}, {UNITS}, 1) at {POINTS} points"
    laplacian = (
        f"Laplacian of a {net}, milliseconds, and how many of ours fit into the peer's (targets against torch.func: 4 for d = 10, 3 "
        "for d = 100). torch.func: `vmap` of the trace of `hessian`; torch.autograd: a backward pass for each coordinate:\n"
    )
    biharmonic = "\nBiharmonic of the same network, by the same, nested in themselves (target: 5 for d = 5 against torch nested):\n"
    return "\n".join(
        [
            laplacian,
            markdown([*header, *compared], [row(d, dtype, ng.pde.laplacian, laplacians) for dtype in DTYPES for d in DIMENSIONS]),
            biharmonic,
            markdown([*header, *compared], [row(d, "float64", ng.pde.biharmonic, biharmonics) for d in PLATES]),
        ]
    )
