"""What the tests of executors share: programs, and what it means that a function gives what a program gives."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nestgrad import func
from nestgrad.levels.traced.program import Program


def program_of(f: Callable[..., Any], base: Any, *arrays: Any) -> Program:
    """The program of a function of arrays."""
    return func.trace(f)(*(base.tensor(a) for a in arrays))


def same(got: Any, want: Any, base: Any) -> None:
    """Raw arrays are equal in all that can be asked of them; NaN equals NaN, and 0.0 is not -0.0."""
    assert type(got) is type(want) and base.dtype(got) == base.dtype(want) and tuple(base.shape(got)) == tuple(base.shape(want))
    a, b = base.to_numpy(got), base.to_numpy(want)
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def agree(program: Program, run: Callable[..., Any], *given: list[Any]) -> None:
    """A function gives what the program gives for each list of arrays, and none of its results changes later."""
    base, kept = program.base, []
    for arrays in given:
        kept.append((run(*arrays), program.run(base, arrays)))
    for got, want in kept:
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b, base)


def moved(base: Any, arrays: list[Any], exact: tuple[int, ...] = ()) -> list[Any]:
    """Other arrays of these shapes and dtypes."""
    return [base.mul(a, 0.875) if base.is_floating(a) and k not in exact else a for k, a in enumerate(arrays)]
