"""Two levels, one in the other, in all sixteen ways: every op of the table has the derivatives that nested reverse mode gives it."""

from itertools import product

import pytest
from operators import Energy, Truth, by_levels, by_transforms

import nestgrad as ng
from nestgrad.ops import TABLE, Kind

WORDS = ["".join(word) for word in product("RFBT", repeat=2)]
BACKENDS = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", TABLE.values(), ids=TABLE)
def test_pairs_of_levels_and_of_transforms(op, backend):
    for k, sample in enumerate(op.samples.calls):
        f = Energy(BACKENDS[backend], op, sample, order=2, seed=k)
        right = Truth(f)
        for word in WORDS:
            # sums of a few dozen terms of size 1, in another order
            want = pytest.approx(right(word), rel=1e-10, abs=1e-11)
            assert by_levels(word, f) == want, f"{word} of {op.signature}, sample {k}, by level objects"
            assert by_transforms(word, f) == want, f"{word} of {op.signature}, sample {k}, by transforms"


@pytest.mark.parametrize("op", [op for op in TABLE.values() if op.kind is not Kind.CONSTANT], ids=lambda op: op.name)
def test_second_coefficients_under_and_over_another_level(op):
    """``S`` is the second derivative from a Taylor coefficient."""
    for k, sample in enumerate(op.samples.calls):
        f = Energy(BACKENDS["numpy"], op, sample, order=3, seed=k)
        right = Truth(f)
        for word in ("S", "SR", "RS", "SF", "FS", "ST", "TS", "SB", "BS"):
            assert by_levels(word, f) == pytest.approx(right(word), rel=1e-10, abs=1e-10), f"{word} of {op.signature}, sample {k}"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", [op for op in TABLE.values() if op.kind is not Kind.CONSTANT], ids=lambda op: op.name)
def test_collapsed_sums_under_and_over_another_transform(op, backend):
    """``L`` is the second derivative from the sum of two coefficients that is never taken apart."""
    for k, sample in enumerate(op.samples.calls):
        f = Energy(BACKENDS[backend], op, sample, order=3, seed=k)
        if f.point:
            right = Truth(f)
            for word in ("L", "LR", "RL", "LF", "FL", "LT", "TL", "LB", "BL") if backend == "numpy" else ("L", "RL"):
                assert by_transforms(word, f) == pytest.approx(right(word), rel=1e-10, abs=1e-10), f"{word} of {op.signature}, sample {k}"
