"""Every op of the table, compiled: its values, and its derivatives inside and outside, are those of the function itself."""

from typing import Any

import numpy as np
import pytest
from likeness import DOUBLE
from operators import TRANSFORMS, Energy, Truth, by_levels, by_transforms

from nestgrad import jit
from nestgrad.levels.marks import NONE
from nestgrad.ops import TABLE, Kind
from nestgrad.tensor.handle import make
from nestgrad.testing.calling import called

every_op = pytest.mark.parametrize("op", TABLE.values(), ids=TABLE)


@every_op
@pytest.mark.parametrize(("backend", "executor"), [("numpy", "replay"), ("numpy", "numpy"), ("torch", "replay")])
def test_values_and_dtypes_at_two_points(op, backend, executor):
    base = DOUBLE[backend]
    for sample in op.samples.calls:
        arrays, params = sample.native(base)
        f = jit(lambda *xs, params=params: called(op, *xs, **params), executor=executor)
        moved = [base.mul(a, 0.9) if base.is_floating(a) and k not in sample.exact else a for k, a in enumerate(arrays)]
        for given in (arrays, moved, arrays):
            xs = [make(base.dressed, a, NONE) for a in given]
            got, want = f(*xs), called(op, *xs, **params)
            assert (got.shape, got.dtype, got.tracked_on(), got.level) == (want.shape, want.dtype, (), 0)
            # ops taken apart, or joined, round elsewhere: a few units in the last place
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-13, atol=1e-14)


class InPlaceOf:
    """A function that is differentiated where an ``Energy`` is, in its directions."""

    def __init__(self, f: Energy, function: Any) -> None:
        self.base, self.point, self.directions, self.function = f.base, f.point, f.directions, function

    def __call__(self, *xs: Any) -> Any:
        return self.function(*xs)


@every_op
@pytest.mark.parametrize("backend", DOUBLE)
def test_derivatives_in_each_mode_and_of_second_order(op, backend):
    """On levels, which the arguments wear, and by transforms outside; in turn, from one sample to the next."""
    for k, sample in enumerate(op.samples.calls):
        f = Energy(DOUBLE[backend], op, sample, order=2, seed=k)
        right, compiled = Truth(f), InPlaceOf(f, jit(lambda *xs, f=f: f(*xs)))
        for by, words in ((by_levels, ("R", "RR", "FR", "T")), (by_transforms, ("RR", "B", "R", "F"))):
            word = words[k % 4] if backend == "numpy" else words[k % 4][-1]
            # sums of a few dozen terms of size 1, in another order
            want = pytest.approx(right(word), rel=1e-10, abs=1e-11)
            assert by(word, compiled) == want, f"{word} of {op.signature}, sample {k}, {by.__name__}"


@pytest.mark.parametrize("op", [op for op in TABLE.values() if op.kind is not Kind.CONSTANT], ids=lambda op: op.name)
def test_derivatives_that_are_taken_inside(op):
    """And differentiated once more outside."""
    for k, sample in enumerate(op.samples.calls):
        f = Energy(DOUBLE["numpy"], op, sample, order=2, seed=k)
        right = Truth(f)
        word, outer = (("R", "R"), ("R", "F"), ("F", "R"), ("T", "R"))[k % 4]
        made = jit(lambda *xs, f=f, word=word: TRANSFORMS[word](f, xs, f.directions[1]))
        what = f"{word} of {op.signature}, sample {k}"
        for _ in range(2):
            assert made(*f.point).item() == pytest.approx(right.derivative(1.0, (1,)), rel=1e-10, abs=1e-11), what
        got = by_transforms(outer, InPlaceOf(f, made))
        assert got == pytest.approx(right(outer + word), rel=1e-10, abs=1e-11), f"{outer} of {what}"
