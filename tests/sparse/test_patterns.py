"""Patterns of functions: supersets of the truth for every value, and no larger than they must be where ops tell of themselves."""

import numpy as np
import pytest
from dense import arrow, chain, nonzeros, pattern_of
from hypothesis import given, settings, strategies as st

import nestgrad as ng
from nestgrad.dependence import TooDense, jacobian_pattern
from nestgrad.func import grad, trace

X = np.array([0.3, -0.7, 1.1, 0.4, -1.2, 0.9])
BAND = np.diag(np.arange(1.0, 7.0)) + np.diag(np.ones(5), 1)
PLACES = np.array([1, 1, 5])
MASK = np.array([True, False, True, True, False, False])

# What a trace knows all about: the pattern is that of the derivative itself, at these numbers without any zero.
EXACT = {
    "elementwise": lambda x: x.sin() * x,
    "broadcast": lambda x: x[:3].reshape(3, 1) * x[3:],
    "slices": lambda x: x[1:] - x[:-1] * x[::-1][1:],
    "places": lambda x: x[PLACES] * x[0],
    "written": lambda x: x.at[1].set(x[0]).at[PLACES].add(x[3]),
    "joined": lambda x: ng.concat([x[:2], ng.stack([x[4], x[5]]), x[3:]]),
    "parts": lambda x: ng.split(x, 3)[1] * 2.0,
    "turned": lambda x: ng.roll(x, 2) + x.flip(0),
    "transposed": lambda x: x.reshape(2, 3).permute(1, 0) ** 2,
    "diagonal": lambda x: ng.diagonal(x.reshape(2, 3)),
    "padded": lambda x: ng.pad(x, ((1, 2),)) * 2.0,
    "around": lambda x: ng.pad(x, ((1, 2),), mode="wrap"),
    "sums": lambda x: x.reshape(2, 3).sum(1),
    "means": lambda x: x.reshape(2, 3).mean(0),
    "lines": lambda x: x.reshape(2, 3).softmax(1),
    "norms": lambda x: x.reshape(2, 3).norm(axis=1),
    "spread": lambda x: x.reshape(3, 2).std(0),
    "products": lambda x: x.reshape(2, 3).prod(0),
    "matrices": lambda x: x.reshape(2, 3) @ x.reshape(3, 2),
    "letters": lambda x: ng.einsum("ij,j->i", x.reshape(2, 3), x[:3]),
    "a known matrix": lambda x: BAND @ x,
    "known matrices": lambda x: x.reshape(1, 6) @ BAND,
    "a known mask": lambda x: ng.where(MASK, x.sin(), x.flip(0)),
    "known factors": lambda x: (x * x.flip(0)) * np.where(MASK, 2.0, 0.0),
    "running sums": lambda x: x.reshape(2, 3).cumsum(1),
    "differences": lambda x: ng.diff(x),
    "convolution": lambda x: ng.nn.conv1d(x.reshape(1, 1, 6), np.ones((1, 1, 2))),
    "averages": lambda x: ng.nn.avg_pool1d(x.reshape(1, 1, 6), 3, 1),
    "detached": lambda x: x * x.flip(0).detach(),
    "mapped": lambda x: ng.func.vmap(lambda row: row.softmax(0))(x.reshape(3, 2)),
    "tridiagonal": grad(chain),
    "arrow": grad(arrow),
    "chain of chains": grad(lambda x: chain(x[1:] * x[:-1])),
}


@pytest.mark.parametrize("f", EXACT.values(), ids=EXACT)
def test_the_pattern_is_that_of_the_derivative(f, base):
    x = base.tensor(X)
    assert np.array_equal(pattern_of(f, x), nonzeros(f, x))


# The derivative is another one elsewhere: the pattern holds all of them.
BRANCHES = {
    "where": (lambda x: ng.where(x > 0, x, x.flip(0)), [X, -X]),
    "max": (lambda x: x.reshape(2, 3).max(1), [X, -X, X[::-1].copy()]),
    "maximum": (lambda x: x.maximum(x.flip(0)), [X, -X]),
    "clip": (lambda x: x.clip(-0.5, 0.5), [X, 0.1 * X]),
    "sort": (lambda x: ng.sort(x.reshape(2, 3)), [X, -X, np.arange(6.0)]),
    "argmax": (lambda x: ng.concat([x[x.argmax(0)].reshape(1), x]), [X, -X]),
    "pooled": (lambda x: ng.nn.max_pool1d(x.reshape(1, 1, 6), 2), [X, -X]),
    "median": (lambda x: ng.median(x.reshape(2, 3), axis=1), [X, -X]),
}


@pytest.mark.parametrize(("f", "points"), BRANCHES.values(), ids=BRANCHES)
def test_the_pattern_holds_for_every_value(f, points):
    found = pattern_of(f, points[0])
    for point in points:
        assert np.array_equal(pattern_of(f, point), found)
        assert not (nonzeros(f, point) & ~found).any()
    assert not found.all()


def test_captured_numbers_that_vary_are_not_taken_for_zeros():
    """A mask that is on a level may be any; one that is a plain array is this one."""
    level = ng.Autodiff(ng.NumpyBackend())
    mask = level.tensor(np.where(MASK, 1.0, 0.0), requires_grad=True)
    assert np.array_equal(pattern_of(lambda x: x * mask, X), np.eye(6, dtype=bool))
    assert np.array_equal(pattern_of(lambda x: x * mask.numpy(), X), np.diag(MASK))


def test_custom_rules_are_followed_and_what_tells_nothing_is_dense():
    @ng.custom_jvp
    def cube(x):
        return x**3

    @cube.defjvp
    def _(primals, tangents):
        return primals[0] ** 3, 3.0 * primals[0] ** 2 * tangents[0]

    assert np.array_equal(pattern_of(lambda x: cube(x[1:]), X), np.eye(6, dtype=bool)[1:])
    assert not (nonzeros(grad(lambda x: cube(x[1:] * x[0]).sum()), X) & ~pattern_of(grad(lambda x: cube(x[1:] * x[0]).sum()), X)).any()


def test_what_depends_on_all_costs_no_row():
    n = 3000
    program = trace(grad(lambda x: (x.softmax(0) ** 2).sum()))(np.zeros(n))
    (found,) = jacobian_pattern(program, [0], limit=100 * n)
    assert found.full.all() and found.rows.nnz == 0


def test_a_limit_is_kept():
    n = 300
    program = trace(grad(lambda x: (x[1:].softmax(0) ** 2).sum()))(np.zeros(n))
    with pytest.raises(TooDense):
        jacobian_pattern(program, [0], limit=20 * n)


STEPS = {
    "sin": lambda x, k: x.sin(),
    "roll": lambda x, k: x * ng.roll(x, k),
    "slice": lambda x, k: x.at[k % 4 :].add(x[: x.shape[0] - k % 4] ** 2),
    "gate": lambda x, k: ng.where(x > 0.1 * k, x, 0.5 * x.flip(0)),
    "rows": lambda x, k: (x.reshape(2, -1) * x.reshape(2, -1).sum(1, keepdims=True)).reshape(-1),
    "columns": lambda x, k: x.reshape(2, -1).softmax(0).reshape(-1),
    "matrix": lambda x, k: np.roll(np.eye(8), k, 0) @ x + x,
    "scan": lambda x, k: x.reshape(4, 2).cumsum(0).reshape(-1),
    "square": lambda x, k: (x.reshape(2, 2, 2) @ x.reshape(2, 2, 2)).reshape(-1),
    "take": lambda x, k: x[np.arange(8) * (2 * k + 1) % 8] + x[k % 8],
    "extremum": lambda x, k: x.reshape(4, 2).max(1, keepdims=True).broadcast_to(4, 2).reshape(-1) * x,
    "mask": lambda x, k: x * (np.arange(8) % (k + 2) > 0),
    "sorted": lambda x, k: ng.sort(x.reshape(2, 4), axis=1).reshape(-1),
    "half": lambda x, k: ng.concat([x[:4].tanh(), x[4:]]),
}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 5)), min_size=1, max_size=4), st.integers(0, 10**6))
def test_patterns_of_random_programs_hold_every_entry(steps, seed):
    point = np.random.default_rng(seed).normal(size=8)
    other = np.random.default_rng(seed + 1).normal(size=8)

    def f(x):
        for name, k in steps:
            x = STEPS[name](x, k)
        return x

    for g in (f, grad(lambda x: (f(x).tanh() * x).sum())):
        found = pattern_of(g, point)
        assert not (nonzeros(g, point) & ~found).any()
        assert not (nonzeros(g, other) & ~found).any()
