"""The optimiser keeps the values of every op of the table, and of the programs of its first and second derivatives."""

from typing import Any

import numpy as np
import pytest
from pass_cases import of_sample, run, samples

from nestgrad.compiled.passes import optimized
from nestgrad.errors import RuleError
from nestgrad.levels.traced.call import _pullback
from nestgrad.levels.traced.program import Program


def pullback(program: Program, arrays: list[Any]) -> tuple[Program, list[Any]] | None:
    """The program of the cotangents of the floating inputs, and its arrays; ``None`` if none is reached."""
    floating = tuple(i for i, a in enumerate(arrays) if a.dtype.kind == "f")
    outs = run(program, arrays)
    seeded = tuple(j for j, out in enumerate(outs) if out.dtype.kind == "f")
    both = [*arrays, *(np.cos(np.arange(outs[j].size, dtype=float)).reshape(outs[j].shape) for j in seeded)]
    made, reached = _pullback(program, floating, seeded, both)
    return (made, both) if reached else None


@pytest.mark.parametrize(("op", "sample"), [s[1:] for s in samples()], ids=[s[0] for s in samples()])
def test_two_derivatives_of_an_op_of_the_table_keep_their_values(op: Any, sample: Any):
    found = of_sample(op, sample)
    for order in range(3):
        if order:
            try:
                found = pullback(*found)
            except RuleError:  # an op without a second derivative
                return
        if found is None:
            return
        program, arrays = found
        for got, want in zip(run(optimized(program), arrays), run(program, arrays), strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
