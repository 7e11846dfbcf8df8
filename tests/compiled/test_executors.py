"""An executor's function gives what the ops give one by one: the same bits, types, dtypes and shapes, at every call."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nestgrad as ng
from nestgrad import func
from nestgrad.compiled.executors import replay
from nestgrad.levels.traced.program import Program
from nestgrad.ops import TABLE
from nestgrad.testing.calling import called

BACKEND = ng.NumpyBackend()
BACKENDS = {"numpy": BACKEND, "float32": ng.NumpyBackend("float32"), "torch": ng.TorchBackend(dtype="float64")}
X, Y = [0.3, -0.7, 1.1], [0.9, 0.4, -0.2]

on_each_backend = pytest.mark.parametrize("b", BACKENDS.values(), ids=BACKENDS)


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


@pytest.mark.parametrize("op", TABLE.values(), ids=TABLE)
@on_each_backend
def test_each_op_is_what_the_backend_makes_of_it(op, b):
    for sample in op.samples.calls:
        arrays, params = sample.native(b)
        program = program_of(lambda *xs, params=params: called(op, *xs, **params), b, *arrays)
        agree(program, replay(program), arrays, moved(b, arrays, sample.exact), arrays)


def test_a_backend_of_ones_own():
    """Fifty digits: what it does not define comes from the defaults."""
    spec = importlib.util.spec_from_file_location("executors_mpmath_backend", Path(__file__).parents[1] / "backends" / "mpmath_backend.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    b = module.MpmathBackend()
    program = program_of(lambda x, y: (func.grad(lambda z: (z.tanh() * y).sum())(x), ng.softmax(x)), b, X, Y)
    got = replay(program)(b.asarray(X), b.asarray(Y))
    assert all((g == w).all() for g, w in zip(got, program.run(b, [b.asarray(X), b.asarray(Y)]), strict=True))


@on_each_backend
def test_outputs_that_are_inputs_constants_or_the_same_twice(b):
    constant = b.tensor(Y)
    program = program_of(lambda x, y: (x, y * 2.0, x + 1.0, y * 2.0, constant, x[1:]), b, X, Y)
    arrays = [b.asarray(X), b.asarray(Y)]
    agree(program, replay(program), arrays, arrays[::-1], [arrays[0], arrays[0]])
    assert replay(program)(*arrays)[0] is arrays[0]


@on_each_backend
def test_ops_with_several_results_and_with_any_number_of_arrays(b):
    program = program_of(lambda x: (ng.sort(x)[0], ng.einsum("ij,j->i", ng.stack([x, x * 2.0]), x), ng.concat([x, x.detach()])), b, X)
    agree(program, replay(program), [b.asarray(X)], [b.asarray(Y)])


def test_an_op_of_ones_own_whose_name_is_no_name_in_python():
    total = ng.define("2 or more! (*xs)", "linear", lambda b, g: g, value=lambda b, *xs: b.add(xs[0], xs[1]))
    program = program_of(lambda x: func.grad(lambda z: (total(z, x) * z).sum())(x) + total(x, x), BACKEND, X)
    agree(program, replay(program), [BACKEND.asarray(X)], [BACKEND.asarray(Y)])


def test_a_long_program():
    """Text, and the time to compile it, grow with the number of ops."""

    def f(x: Any) -> Any:
        for _ in range(5_000):
            x = (x * 0.99).sin()
        return x

    program = program_of(f, BACKEND, X)
    assert len(program.instructions) == 10_000
    agree(program, replay(program), [BACKEND.asarray(X)], [BACKEND.asarray(Y)])


def test_errors_of_the_backend_come_through():
    program = program_of(lambda x, y: x @ y, BACKEND, np.ones((2, 3)), np.ones((3, 2)))
    with pytest.raises(ValueError, match="not aligned"):
        replay(program)(np.ones((2, 3)), np.ones((2, 3)))
