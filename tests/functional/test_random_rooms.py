"""The same random functions in the rooms beside: partial derivatives, operators on fields, sparse matrices, SciPy's operators.

PyTorch's nested Jacobians are the oracle, and every method has to agree with them.
"""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, strategies as st
from random_functions import RandomFunction, functions, of_nestgrad, of_torch, runs

import nestgrad as ng
from nestgrad import func, optimize, pde, sparse

pytest.importorskip("scipy", reason="sparse matrices and linear operators are SciPy's")

pytestmark = pytest.mark.filterwarnings("ignore::nestgrad.pde.PiecewiseLinearWarning")  # some are, or stand still in part

BACKENDS = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}
FIRST, SECOND = ("reverse", "forward"), ("reverse", "forward", "taylor")
LARGE = 1e6
"""Beyond this, what is left of the numbers is not worth a comparison."""


class Point:
    """A function of one of the inputs, a vector; the others stand still.

    Attributes:
        ours, theirs: The function, as nestgrad's and as PyTorch's.
        x, tx: Where.
        story: What an error tells.
    """

    def __init__(self, f: RandomFunction, base: Any, k: int) -> None:
        f = f._replace(outs=f.outs[:1], several=False)
        mine, other = [base.tensor(a) for a in f.inputs], [torch.tensor(a) for a in f.inputs]
        self.ours = lambda x: f.over(of_nestgrad(base))(*mine[:k], x, *mine[k + 1 :])
        self.theirs = lambda x: f.over(of_torch())(*other[:k], x, *other[k + 1 :])
        self.x, self.tx = mine[k], other[k]
        self.story = f"{f} by input {k} over {base.name}"

    def derivative(self, order: int) -> np.ndarray:
        """All derivatives of that order."""
        out = self.theirs(self.tx)
        g = self.theirs
        for _ in range(order):
            g = lambda x, g=g: torch.autograd.functional.jacobian(g, x, create_graph=True)
        found = g(self.tx).detach() if out.numel() else torch.zeros(*out.shape, *[self.tx.numel()] * order)
        assume(bool(torch.isfinite(found).all()) and (not found.numel() or found.abs().max() < LARGE))
        return found.numpy()

    def same(self, what: str, found: Any, expected: np.ndarray) -> None:
        """Assert that shapes agree, and numbers, by the largest of them."""
        a = np.asarray(found.numpy() if hasattr(found, "numpy") else found)
        assert a.shape == expected.shape, (what, self.story)
        if a.size:
            assert np.abs(a - expected).max() <= 1e-8 * max(1.0, np.abs(expected).max()), (what, self.story, a, expected)


def compare(data: Any, f: RandomFunction) -> None:
    k = next((i for i, x in enumerate(f.inputs) if x.ndim == 1 and x.size), None)
    assume(k is not None)
    assert k is not None
    p = Point(f, BACKENDS[data.draw(st.sampled_from(sorted(BACKENDS)))], k)
    assume(p.theirs(p.tx).numel() <= 12)
    jacobian, hessians = p.derivative(1), p.derivative(2)
    fields(p, jacobian, hessians)
    partial(p, hessians)
    matrices(p, jacobian)
    if p.x.size <= 2 and p.theirs(p.tx).numel() <= 4:
        fourth = p.derivative(4)
        for method in SECOND:
            p.same(method, pde.biharmonic(p.ours, method)(p.x), np.einsum("...iijj->...", fourth))
        p.same("fourth", func.derivative(p.ours, (0, 0, -1, -1))(p.x), fourth[..., 0, 0, -1, -1])


def fields(p: Point, jacobian: np.ndarray, hessians: np.ndarray) -> None:
    pure, v = np.diagonal(hessians, 0, -2, -1), np.cos(np.arange(p.x.size) + 1.0)
    for method in FIRST:
        p.same(method, pde.jacobian(p.ours, method)(p.x), jacobian)
    for method in SECOND:
        p.same(method, pde.hessian_diag(p.ours, method)(p.x), pure)
        p.same(method, pde.directional(p.ours, v, 2, method)(p.x), hessians @ v @ v)
        both = pde.laplacian(p.ours, method)(ng.stack([0.5 * p.x, p.x]))
        p.same(method, both[1], pure.sum(-1))
        value, gradient, laplacian = pde.value_gradient_laplacian(p.ours, method)(p.x)
        p.same(method, value, p.theirs(p.tx).numpy())
        p.same(method, gradient, jacobian)
        p.same(method, laplacian, pure.sum(-1))


def partial(p: Point, hessians: np.ndarray) -> None:
    for i in range(p.x.size):
        p.same("derivative", func.derivative(p.ours, (i, -1))(p.x), hessians[..., i, -1])


def matrices(p: Point, jacobian: np.ndarray) -> None:
    whole = jacobian.reshape(-1, p.x.size)
    total = lambda x: p.ours(x).sin().sum()
    hessian = torch.autograd.functional.hessian(lambda x: torch.sin(p.theirs(x)).sum(), p.tx).numpy()
    p.same("diagonal", func.hessian_diag(total)(p.x), np.diagonal(hessian))
    p.same("operator", optimize.hessian_operator(total, p.x) @ np.eye(p.x.size), hessian)
    if len(whole):
        p.same("operator", optimize.jacobian_operator(p.ours, p.x) @ np.eye(p.x.size), whole)
    p.same("sparse", sparse.sparse_hessian(total)(p.x).toarray(), hessian)
    for mode in ("columns", "rows"):
        p.same(mode, sparse.sparse_jacobian(p.ours, mode=mode)(p.x).toarray(), whole)


@runs(15)
@given(data=st.data())
def test_a_random_function_in_all_rooms(data):
    compare(data, data.draw(functions(most=7)))


@pytest.mark.fuzz
@runs(600, long=True)
@given(data=st.data())
def test_more_random_functions_in_all_rooms(data):
    compare(data, data.draw(functions()))
