"""Nodes of products of torch's graph: their derivatives are torch's own, whichever factors are tracked."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from adopted import Run, compare, compare_all, reals

F = torch.nn.functional


def x(*shape: int, seed: int = 0) -> torch.Tensor:
    return reals(*shape, seed=seed)


CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "mm": (torch.mm, (x(3, 4), x(4, 2, seed=1))),
    "square mm": (torch.mm, (x(3, 3), x(3, 3, seed=1))),
    "transposed mm": (lambda a, b: torch.mm(a.t(), b.t()), (x(3, 3), x(2, 3, seed=1))),
    "mm with no inner axis": (torch.mm, (x(3, 0), x(0, 2))),
    "mm without rows": (torch.mm, (x(0, 3), x(3, 2))),
    "mv": (torch.mv, (x(3, 4), x(4, seed=1))),
    "dot": (torch.dot, (x(3), x(3, seed=1))),
    "dot of nothing": (torch.dot, (x(0), x(0))),
    "vdot": (torch.vdot, (x(3), x(3, seed=1))),
    "bmm": (torch.bmm, (x(2, 3, 4), x(2, 4, 3, seed=1))),
    "matmul of vectors": (torch.matmul, (x(4), x(4, seed=1))),
    "vector by matrix": (torch.matmul, (x(4), x(4, 3, seed=1))),
    "vector by stack": (torch.matmul, (x(4), x(2, 4, 3, seed=1))),
    "stack by matrix": (torch.matmul, (x(2, 3, 4), x(4, 3, seed=1))),
    "stack by vector": (torch.matmul, (x(2, 3, 4), x(4, seed=1))),
    "stacks that broadcast": (torch.matmul, (x(1, 3, 2), x(4, 2, 3, seed=1))),
    "outer": (torch.outer, (x(3), x(4, seed=1))),
    "inner": (torch.inner, (x(2, 3), x(4, 3, seed=1))),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=-3), (x(3), x(2, 4, seed=1), x(4, 3, seed=2))),
    "addmm without the first": (lambda c, a, b: torch.addmm(c, a, b, beta=0, alpha=3), (x(3), x(2, 4, seed=1), x(4, 3, seed=2))),
    "addmv": (lambda c, a, b: torch.addmv(c, a, b, beta=2, alpha=0.5), (x(3), x(3, 4, seed=1), x(4, seed=2))),
    "addr": (lambda c, a, b: torch.addr(c, a, b, beta=0.5, alpha=3), (x(4), x(3, seed=1), x(4, seed=2))),
    "addbmm": (lambda c, a, b: torch.addbmm(c, a, b, beta=2, alpha=3), (x(3), x(2, 3, 4, seed=1), x(2, 4, 3, seed=2))),
    "baddbmm": (lambda c, a, b: torch.baddbmm(c, a, b, beta=2, alpha=3), (x(3), x(2, 3, 4, seed=1), x(2, 4, 3, seed=2))),
    "linear": (F.linear, (x(4, 3), x(2, 3, seed=1), x(2, seed=2))),
    "square linear": (F.linear, (x(3, 3), x(3, 3, seed=1), x(3, seed=2))),
    "linear without bias": (F.linear, (x(4, 3), x(2, 3, seed=1))),
    "linear of a vector": (F.linear, (x(3), x(2, 3, seed=1), x(2, seed=2))),
    "linear of a vector without bias": (F.linear, (x(3), x(2, 3, seed=1))),
    "linear of a stack": (F.linear, (x(2, 4, 3), x(2, 3, seed=1), x(2, seed=2))),
    "bilinear": (F.bilinear, (x(4, 3), x(4, 2, seed=1), x(5, 3, 2, seed=2), x(5, seed=3))),
    "bilinear of vectors": (F.bilinear, (x(3), x(2, seed=1), x(5, 3, 2, seed=2))),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bki", a, b), (x(2, 3, 4), x(2, 4, 2, seed=1))),
    "einsum of a diagonal": (lambda a, b: torch.einsum("ii,ij->j", a, b), (x(3, 3), x(3, 2, seed=1))),
    "tensordot": (lambda a, b: torch.tensordot(a, b, 2), (x(2, 3, 4), x(3, 4, 2, seed=1))),
    "cross": (torch.linalg.cross, (x(4, 3), x(4, 3, seed=1))),
    "cross that broadcasts": (lambda a, b: torch.linalg.cross(a, b, dim=0), (x(3, 1), x(3, 2, seed=1))),
    "kron": (torch.kron, (x(2, 2), x(3, 2, seed=1))),
    "chain": (lambda a, b, c: torch.linalg.multi_dot([a, b, c]), (x(2, 3), x(3, 4, seed=1), x(4, 2, seed=2))),
    "power": (lambda a: torch.matrix_power(a, 3), (x(3, 3),)),
}


@pytest.mark.parametrize("name", CASES)
def test_products_have_the_derivatives_of_torch(name: str) -> None:
    f, arguments = CASES[name]
    compare_all(f, *arguments)


TWICE: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "mm": (lambda a: torch.mm(a, a), (3, 3)),
    "mm by its transpose": (lambda a: torch.mm(a, a.t()), (3, 2)),
    "bmm": (lambda a: torch.bmm(a, a.mT), (2, 3, 2)),
    "dot": (lambda a: torch.dot(a, a), (3,)),
    "outer": (lambda a: torch.outer(a, a), (3,)),
    "mv": (lambda a: torch.mv(a, a[0]), (3, 3)),
    "addmm": (lambda a: torch.addmm(a, a, a), (3, 3)),
    "addr": (lambda a: torch.addr(a, a[0], a[1]), (2, 2)),
    "linear": (lambda a: F.linear(a, a, a[0]), (3, 3)),
}


@pytest.mark.parametrize("name", TWICE)
def test_the_same_tensor_may_be_both_factors(name: str) -> None:
    f, shape = TWICE[name]
    compare_all(f, x(*shape))


def test_factors_need_not_be_contiguous() -> None:
    whole = x(4, 6)
    compare(lambda a: torch.mm(a[::2, 1:4], a[1::2, ::2].t()), whole)
    compare(lambda a: torch.mm(a.expand(3, 2), a.expand(3, 2).t()), x(1, 2))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_distances_between_rows(p: float) -> None:
    arguments = x(2, 4, 3), x(5, 3, seed=1)
    compare(
        lambda a, b: torch.cdist(a, b, p), *arguments, oracle=lambda a, b: torch.linalg.vector_norm(a[..., None, :] - b, p, -1)
    )  # fmt: skip


def test_rows_that_are_equal_have_distance_0_and_no_slope() -> None:
    a = x(3, 2)
    y = torch.cdist(a, a)
    (expected,) = torch.autograd.grad(y.sum(), a, retain_graph=True)
    torch.testing.assert_close(Run(y, [a]).gradient(torch.ones_like(y))[0], expected)


@pytest.mark.parametrize("activation", [torch.tanh, torch.sigmoid, F.softplus, F.gelu])
def test_a_network_of_linear_layers_has_the_derivatives_of_torch(activation: Callable[[torch.Tensor], torch.Tensor]) -> None:
    generator = torch.Generator().manual_seed(7)
    sizes = [3, 4, 4, 1]
    layers = [torch.nn.Linear(n, m, dtype=torch.float64) for n, m in pairwise(sizes)]
    for layer in layers:
        for p in layer.parameters():
            p.data.copy_(torch.randn(p.shape, dtype=p.dtype, generator=generator))

    def network(u: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        for layer in layers[:-1]:
            u = activation(layer(u))
        return layers[-1](u)

    compare(network, x(5, 3), *[p for layer in layers for p in layer.parameters()])
