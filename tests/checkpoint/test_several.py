"""A node with several results passes on what its parts would have passed on, in one pull."""

from typing import Any

import numpy as np
import pytest

from nestgrad import Autodiff, Tensor
from nestgrad.backends import NumpyBackend
from nestgrad.levels.reverse.several import several
from nestgrad.tensor.handle import make

NUMPY = NumpyBackend()
X, W = np.array([0.3, -0.7, 1.1]), np.array([1.5, 0.2, -0.4])


def product_and_ratio(x: Tensor, w: Tensor, pulls: list[tuple[bool, bool]]) -> list[Tensor]:
    """``x w`` and ``x / w`` as results of one node on the youngest level of both."""
    b, tape = x.b, x.value.tape
    p, q = x.value.value, w.value.value

    def pull(b: Any, cotangents: tuple[Any, ...]) -> list[Any]:
        pulls.append((cotangents[0] is not None, cotangents[1] is not None))
        g, h = (b.base.full((3,), 0.0) if c is None else c for c in cotangents)
        return [
            b.add(b.mul(g, q), b.div(h, q)),
            b.sub(b.mul(g, p), b.div(b.mul(h, p), b.mul(q, q))),
        ]

    made = several("both", tape, [b.mul(p, q), b.div(p, q)], [(3,), (3,)], [x.value.node, w.value.node], pull)
    return [make(b, value, x.marks) for value in made]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_several_results_have_the_derivatives_of_each(depth):
    def run(both: Any) -> list[np.ndarray]:
        stack: Any = NUMPY
        for _ in range(depth):
            stack = Autodiff(stack)
        x, w = stack.tensor(X, requires_grad=True), stack.tensor(W, requires_grad=True)
        y, z = both(x, w)
        u, found = (y.sin() * z + y).sum(), []
        for _ in range(depth):
            grads = u.backward(wrt=[x, w])
            u = (x.grad(grads) * w.grad(grads)).sum()
            found.append(x.grad(grads).numpy())
        return found

    pulls: list[tuple[bool, bool]] = []
    for ours, plain in zip(run(lambda x, w: product_and_ratio(x, w, pulls)), run(lambda x, w: (x * w, x / w)), strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-12)  # a few roundings: the sums are formed in another order
    assert pulls[0] == (True, True)


def test_all_arguments_cost_one_pull():
    pulls: list[tuple[bool, bool]] = []
    stack = Autodiff(NUMPY)
    x, w = stack.tensor(X, requires_grad=True), stack.tensor(W, requires_grad=True)
    y, z = product_and_ratio(x, w, pulls)
    grads = (y + z).backward()
    for t in (x, w, x, w):
        t.grad(grads)
    assert pulls == [(True, True)]


def test_a_result_that_is_not_used_has_no_cotangent():
    pulls: list[tuple[bool, bool]] = []
    stack = Autodiff(NUMPY)
    x, w = stack.tensor(X, requires_grad=True), stack.tensor(W, requires_grad=True)
    y, _ = product_and_ratio(x, w, pulls)
    np.testing.assert_array_equal(y.wrt(x).numpy(), W)
    assert pulls == [(True, False)]


def test_an_answer_of_none_is_exactly_zero():
    stack = Autodiff(NUMPY)
    x, w = stack.tensor(X, requires_grad=True), stack.tensor(W, requires_grad=True)
    parents = [x.value.node, w.value.node]
    (value,) = several("first", stack.tape, [x.value.value], [(3,)], parents, lambda b, cotangents: [cotangents[0], None])
    y = make(x.b, value, x.marks)
    assert w.grad(y.backward()).tolist() == [0.0, 0.0, 0.0]
    assert x.grad(y.backward()).tolist() == [1.0, 1.0, 1.0]
    assert "first" in str(stack.tape)
