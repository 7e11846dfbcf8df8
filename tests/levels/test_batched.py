"""``Batched``: every op on many samples at once is what a loop over the samples gives, at any depth, and so are its derivatives."""

import zlib
from itertools import product
from typing import Any

import numpy as np
import pytest

from nestgrad import Batched, NumpyBackend
from nestgrad.backends import TorchBackend
from nestgrad.ops import TABLE
from nestgrad.tensor.handle import apply

BACKENDS = {"numpy": NumpyBackend(), "torch": TorchBackend(dtype="float64")}
CALLS = [(op, sample) for op in TABLE.values() for sample in op.samples.calls]
NAMES = [f"{op.name}{k}" for op in TABLE.values() for k in range(len(op.samples.calls))]
EXACT = {"rtol": 1e-12, "atol": 1e-14}  # the same sums in another order, at the most

every_call = pytest.mark.parametrize("op, sample", CALLS, ids=NAMES)


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
        found.append(base.to_numpy(getattr(base.dressed, op.name)(*args, **params)))
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
        got = B.unbatch(apply(op.name, *args, **params))
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
        got = inner.unbatch(outer.unbatch(apply(op.name, *args, **params)), axis=1)
        np.testing.assert_allclose(got.numpy(), loop(base, op, arrays, params, (2, 3), on), **EXACT, err_msg=str(on))


def _samples(a: Any, first: bool, second: bool) -> Any:
    a = a if second else a[:, 0]
    return a if first else a[0]
