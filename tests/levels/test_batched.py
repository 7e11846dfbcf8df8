"""``Batched``: every op on many samples at once is what a loop over the samples gives, at any depth, and so are its derivatives."""

import zlib
from itertools import product
from typing import Any

import numpy as np
import pytest

from nestgrad import Autodiff, Batched, NumpyBackend
from nestgrad.backends import TorchBackend
from nestgrad.levels.marks import NONE
from nestgrad.ops import TABLE, Kind
from nestgrad.tensor.handle import apply, make
from nestgrad.testing.calling import called

BACKENDS = {"numpy": NumpyBackend(), "torch": TorchBackend(dtype="float64")}
CALLS = [(op, sample) for op in TABLE.values() for sample in op.samples.calls]
NAMES = [f"{op.name}{k}" for op in TABLE.values() for k in range(len(op.samples.calls))]
EXACT = {"rtol": 1e-12, "atol": 1e-14}  # the same sums in another order, at the most

every_call = pytest.mark.parametrize("op, sample", CALLS, ids=NAMES)
differentiable = pytest.mark.parametrize(
    "op, sample",
    [(o, s) for o, s in CALLS if o.kind is not Kind.CONSTANT],
    ids=[n for n, (o, _) in zip(NAMES, CALLS, strict=True) if o.kind is not Kind.CONSTANT],
)


@pytest.fixture(params=BACKENDS)
def base(request: pytest.FixtureRequest) -> Any:
    """Each backend, in float64."""
    return BACKENDS[request.param]


def perturbed(base: Any, op: Any, sample: Any, sizes: tuple[int, ...]) -> tuple[list[Any], dict[str, Any]]:
    """The arrays of a sample call, many of each: NumPy arrays with axes of ``sizes`` in front. And the parameters."""
    arrays, params = sample.native(base)
    rng = np.random.default_rng(zlib.crc32(op.name.encode()))
    many = []
    for a in arrays:
        one = np.broadcast_to(base.to_numpy(a), (*sizes, *base.shape(a)))
        many.append(one * rng.uniform(0.97, 1.03, one.shape) if one.dtype.kind == "f" else one ^ (rng.random(one.shape) < 0.5))
    return many, params


def loop(base: Any, op: Any, arrays: list[Any], params: dict[str, Any], sizes: tuple[int, ...], on: Any) -> Any:
    """The op on each sample by itself. ``on[i][j]``: whether argument ``i`` has an axis ``j`` of samples; else it has its first ones."""
    found = []
    for place in np.ndindex(*sizes):
        args = [base.asarray(np.asarray(a[tuple(k if here else 0 for k, here in zip(place, there, strict=True))]))
                for a, there in zip(arrays, on, strict=True)]  # fmt: skip
        found.append(called(op, *(make(base.dressed, a, NONE) for a in args), **params).numpy())
    return np.asarray(found).reshape(*sizes, *found[0].shape)


def choices(count: int) -> list[tuple[bool, ...]]:
    """Which arguments hold samples: each single one, each pair, ..., all."""
    return [on for on in product([False, True], repeat=count) if any(on)]


# every op


@every_call
def test_an_op_on_samples_is_the_loop(op, sample, base):
    arrays, params = perturbed(base, op, sample, (3,))
    B = Batched(base)
    for on in choices(len(arrays)):
        args = [B.batch(a) if here else base.tensor(a[0]) for a, here in zip(arrays, on, strict=True)]
        got = B.unbatch(called(op, *args, **params))
        np.testing.assert_allclose(got.numpy(), loop(base, op, arrays, params, (3,), [(h,) for h in on]), **EXACT, err_msg=str(on))


@every_call
def test_nested_batches_are_the_loop(op, sample, base):
    """Two levels, each argument on any of them: the outer axis is that of the outer level."""
    arrays, params = perturbed(base, op, sample, (2, 3))
    inner = Batched(base)
    outer = Batched(inner)
    for on in product(product([False, True], repeat=2), repeat=len(arrays)):
        if not all(map(any, zip(*on, strict=True))):
            continue
        args = []
        for a, (first, second) in zip(arrays, on, strict=True):
            x = base.tensor(np.array(_samples(a, first, second)))
            x = inner.batch(x, axis=1 if first else 0) if second else x
            args.append(outer.batch(x) if first else x)
        got = inner.unbatch(outer.unbatch(called(op, *args, **params)), axis=1)
        np.testing.assert_allclose(got.numpy(), loop(base, op, arrays, params, (2, 3), on), **EXACT, err_msg=str(on))


def _samples(a: Any, first: bool, second: bool) -> Any:
    a = a if second else a[:, 0]
    return a if first else a[0]


# derivatives of every op


def free(base: Any, sample: Any, arrays: list[Any]) -> list[int]:
    """The arguments to differentiate by."""
    return [k for k, a in enumerate(arrays) if a.dtype.kind == "f" and k not in sample.exact]


def pulled(op: Any, xs: list[Any], ks: list[int], params: dict[str, Any], seed: Any) -> list[Any]:
    """The cotangents of arguments ``ks``; ``None`` where the op has no derivative by them."""
    y = called(op, *xs, **params)
    if not y.tracked_on():
        return [None] * len(ks)
    grads = y.backward(gradient=seed)
    return [grads.get(xs[k]) for k in ks]


def pulled_by_loop(base: Any, op: Any, arrays: list[Any], ks: list[int], params: dict[str, Any], seeds: Any, on: Any) -> list[Any]:
    """For each argument to differentiate by, the cotangents of all samples."""
    A = Autodiff(base)
    found: list[list[Any]] = [[] for _ in ks]
    for n, seed in enumerate(seeds):
        xs = [A.tensor(np.array(a[n if here else 0]), requires_grad=k in ks) for k, (a, here) in enumerate(zip(arrays, on, strict=True))]
        for each, g in zip(found, pulled(op, xs, ks, params, A.tensor(seed)), strict=True):
            each.append(None if g is None else g.numpy())
    return [None if each[0] is None else np.stack(each) for each in found]


def problem(base: Any, op: Any, sample: Any) -> tuple[list[Any], dict[str, Any], list[int], Any]:
    """Arrays, parameters, what to differentiate by, and a seed for each of three samples."""
    arrays, params = perturbed(base, op, sample, (3,))
    y = loop(base, op, arrays, params, (3,), [(True,)] * len(arrays))
    return arrays, params, free(base, sample, arrays), np.random.default_rng(1).normal(size=y.shape)


@differentiable
def test_reverse_mode_over_samples_is_the_loop(op, sample, base):
    """``Autodiff(Batched(base))``: a variable for each sample, and one that all samples share, whose gradient differs by the sample."""
    arrays, params, ks, seeds = problem(base, op, sample)
    B = Batched(base)
    A = Autodiff(B)
    for on in choices(len(arrays)):
        xs = [
            A.tensor(B.batch(a) if here else np.array(a[0]), requires_grad=k in ks)
            for k, (a, here) in enumerate(zip(arrays, on, strict=True))
        ]
        got = pulled(op, xs, ks, params, B.batch(seeds))
        for k, g, right in zip(ks, got, pulled_by_loop(base, op, arrays, ks, params, seeds, on), strict=True):
            assert (g is None) == (right is None)
            if g is not None:
                np.testing.assert_allclose(B.unbatch(g, size=3).numpy(), right, **EXACT, err_msg=f"argument {k} with {on}")


@differentiable
def test_reverse_mode_through_a_batch_is_the_loop(op, sample, base):
    """``Batched(Autodiff(base))``: what comes out of the batch is differentiated by what went in, and by what all samples share."""
    arrays, params, ks, seeds = problem(base, op, sample)
    A = Autodiff(base)
    B = Batched(A)
    for on in choices(len(arrays)):
        xs = [A.tensor(a if here else np.array(a[0]), requires_grad=k in ks) for k, (a, here) in enumerate(zip(arrays, on, strict=True))]
        inside = [B.batch(x) if here else x for x, here in zip(xs, on, strict=True)]
        y = B.unbatch(called(op, *inside, **params))
        got = [None] * len(ks) if not y.tracked_on() else [y.backward(gradient=A.tensor(seeds)).get(xs[k]) for k in ks]
        for k, g, right in zip(ks, got, pulled_by_loop(base, op, arrays, ks, params, seeds, on), strict=True):
            assert (g is None) == (right is None)
            if g is not None:
                right = right if on[k] else right.sum(0)
                np.testing.assert_allclose(g.numpy(), right, **EXACT, err_msg=f"argument {k} with {on}")


# products


@pytest.mark.parametrize("seed", range(60))
def test_products_of_any_ranks_are_numpys(seed, base):
    """Axes that broadcast, axes of size 1 and 0, transposes, either operand the same for all samples or not."""
    rng = np.random.default_rng(seed)
    m, k, j = rng.choice([0, 1, 2, 3], 3, p=[0.1, 0.3, 0.3, 0.3])
    lead = rng.integers(1, 4, rng.integers(0, 3))
    tx, ty = rng.random(2) < 0.5
    operands = []
    for tail, flip in (((m, k), tx), ((k, j), ty)):
        mine = [1 if rng.random() < 0.3 else n for n in lead[rng.integers(0, len(lead) + 1) :]]
        operands.append(rng.normal(size=(4, *mine, *(tail[::-1] if flip else tail))))
    B = Batched(base)
    for on in choices(2):
        xs = [B.batch(a) if here else base.tensor(a[0]) for a, here in zip(operands, on, strict=True)]
        right = [np.matmul(*(np.swapaxes(o, -1, -2) if flip else o for o, flip in zip(each, (tx, ty), strict=True)))
                 for each in zip(*(a if here else [a[0]] * 4 for a, here in zip(operands, on, strict=True)), strict=True)]  # fmt: skip
        got = apply("product", *xs, tx=bool(tx), ty=bool(ty)) if tx or ty else apply("matmul", *xs)
        np.testing.assert_allclose(B.unbatch(got).numpy(), right, **EXACT, err_msg=str(on))


class Counting(NumpyBackend):
    """Notes the ranks of the operands of each product."""

    def __init__(self) -> None:
        super().__init__()
        self.ranks: list[tuple[int, int]] = []

    def matmul(self, x: Any, y: Any) -> Any:
        self.ranks.append((x.ndim, y.ndim))
        return super().matmul(x, y)


@pytest.mark.parametrize(
    "f, x, w",
    [
        (lambda x, w: x @ w, (5,), (5, 3)),
        (lambda x, w: x @ w, (2, 5), (5, 3)),
        (lambda x, w: w @ x, (5,), (3, 5)),
        (lambda x, w: apply("product", x, w, tx=True, ty=True), (5, 2), (3, 5)),
    ],
)
def test_samples_times_one_matrix_is_one_big_product(f, x, w):
    """And so is its gradient by each sample. One by the matrix is a product for each sample, with no sum where a sample is a vector."""
    base = Counting()
    B = Batched(base)
    a = Autodiff(B).tensor(B.batch(np.ones((7, *x))), requires_grad=True)
    y = f(a, base.tensor(np.ones(w)))
    y.square().sum().wrt(a)
    assert base.ranks == [(2, 2), (2, 2)]
    base.ranks.clear()
    v = Autodiff(B).tensor(np.ones(w), requires_grad=True)
    f(B.batch(np.ones((7, *x))), v).square().sum().wrt(v)
    assert base.ranks == [(2, 2)] + ([] if len(x) == 1 else [(3, 3)])
