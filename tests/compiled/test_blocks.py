"""Programs in blocks of rows: what they give is what the whole gives, and programs that go across rows are left alone."""

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.compiled.executors import replay
from nestgrad.compiled.executors.blocks import in_blocks
from nestgrad.compiled.passes import optimized
from nestgrad.func import grad, taylor
from nestgrad.func.trees import flatten

RNG = np.random.default_rng(3)
N = 24


def blocked(f, *arrays, most=24):
    program = optimized(ng.func.trace(f)(*arrays))
    sizes = []

    def executor(block):
        sizes.append({v.shape[0] for v in block.inputs if v.shape} if block.inputs else set())
        return replay(block)

    return program, in_blocks(program, executor, most), sizes


def net(x, w):
    return (x @ w).tanh().sum(1)


ALIKE = {
    "entry by entry": lambda x, w: (x * 2.0 - x.sin() / 3, x > 0),
    "sums over rows": lambda x, w: (x.sum(0), (x * x).sum(), -(x.exp().sum((0, 1)) * 3.0)),
    "products": lambda x, w: (x @ w, (x @ w).tanh().sum(0), (x.sin() @ w) * (x @ w)),
    "gradients by parameters": lambda x, w: grad(lambda v: (net(x, v) ** 2).sum())(w),
    "gradients by rows": lambda x, w: grad(lambda z: (net(z, w) ** 3).sum())(x),
    "a residual": lambda x, w: grad(lambda v: ((taylor(lambda z: net(z, v), x, ng.ones_like(x), 2)[2] - net(x, v)) ** 2).sum())(w),
    "along rows": lambda x, w: (ng.softmax(x @ w, 1), x.max(1), ng.logsumexp(x, 1), x.mean(1)),
    "columns": lambda x, w: (x[:, 1:] ** 2, x[:, 0], grad(lambda z: (z[:, :1] * z[:, 2:].sin()).sum())(x), ng.pad(x, ((0, 0), (1, 0)))),
    "constants with equal rows": lambda x, w: x * np.tile([[1.0, 0.0, 2.0]], (N, 1)),
    "parts of parameters": lambda x, w: grad(lambda v: (net(x[:, :2], v[:-1]) ** 2).sum())(w),
    "shapes": lambda x, w: (ng.concat([x, x.sin()], 1), (x @ w).reshape(N, 2, 2), x),
    "parameters alone": lambda x, w: (x @ w, w.sin() + 1.0),
}
ACROSS = {
    "a mean that is read": lambda x, w: x - x.sum(0),
    "a sum in a function": lambda x, w: (x * x).sum().sqrt(),
    "a sum and a parameter": lambda x, w: x.sum(0)[:, None] + w,
    "rows with rows": lambda x, w: x @ x.T,
    "a softmax over rows": lambda x, w: ng.softmax(x, 0),
    "a running sum": lambda x, w: ng.cumsum(x, 0),
    "an extremum over rows": lambda x, w: x.max(0),
    "a transpose": lambda x, w: x.T.sin(),
    "rows moved": lambda x, w: x[::-1] * 2.0,
    "rows beside others": lambda x, w: ng.concat([x, x], 0).sin(),
    "a few rows": lambda x, w: x[:5],
    "rows padded": lambda x, w: ng.pad(x, ((1, 0), (0, 0))),
    "one row": lambda x, w: x * x[:1],
    "rows of a column beside rows": lambda x, w: x.sum(1) * x.T,
    "a constant by rows": lambda x, w: x * np.arange(3.0 * N).reshape(N, 3),
}


@pytest.mark.parametrize("name", ALIKE)
def test_blocks_give_what_the_whole_gives(name):
    x, w = RNG.normal(size=(N, 3)), RNG.normal(size=(3, 4))
    program, run, sizes = blocked(ALIKE[name], x, w)
    assert run is not None
    assert sizes and all(N not in block for block in sizes)
    want = [a.numpy() for a in flatten(ALIKE[name](ng.tensor(x), ng.tensor(w)))[0]]
    for got, a in zip(run(*[x, w][: len(program.inputs)]), want, strict=True):
        assert got.shape == a.shape and got.dtype == a.dtype
        np.testing.assert_allclose(got, a, rtol=1e-12, atol=1e-13)  # sums in another order


@pytest.mark.parametrize("name", ACROSS)
def test_what_goes_across_rows_runs_as_a_whole(name):
    assert blocked(ACROSS[name], RNG.normal(size=(N, 3)), RNG.normal(size=(3, 4)))[1] is None


def test_small_programs_and_numbers_of_rows_without_a_divisor_run_as_a_whole():
    f, w = ALIKE["products"], RNG.normal(size=(3, 4))
    assert blocked(f, RNG.normal(size=(N, 3)), w, most=N * 4)[1] is None
    assert blocked(f, RNG.normal(size=(23, 3)), w)[1] is None
    assert blocked(lambda: ng.ones(3))[1] is None
