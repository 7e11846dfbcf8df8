"""An executor's function gives what the ops give one by one: the same bits, types, dtypes and shapes, at every call."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from executing import agree, moved, program_of

import nestgrad as ng
from nestgrad import func
from nestgrad.compiled.executors import buffers, replay
from nestgrad.ops import TABLE
from nestgrad.testing.calling import called

BACKEND = ng.NumpyBackend()
BACKENDS = {"numpy": BACKEND, "float32": ng.NumpyBackend("float32"), "torch": ng.TorchBackend(dtype="float64")}
X, Y = [0.3, -0.7, 1.1], [0.9, 0.4, -0.2]

EXECUTORS = {"replay": replay, "buffers": buffers}

by_each_executor = pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)
on_each_backend = pytest.mark.parametrize("b", BACKENDS.values(), ids=BACKENDS)


@pytest.mark.parametrize("op", TABLE.values(), ids=TABLE)
@on_each_backend
def test_each_op_is_what_the_backend_makes_of_it(op, b):
    for sample in op.samples.calls:
        arrays, params = sample.native(b)
        program = program_of(lambda *xs, params=params: called(op, *xs, **params), b, *arrays)
        agree(program, replay(program), arrays, moved(b, arrays, sample.exact), arrays)


def touched(x: Any) -> Any:
    """``x``, made by one more op."""
    kind = "bool" if "bool" in str(x.dtype) else "int" if "int" in str(x.dtype) else "float"
    return x * 1.0 if kind == "float" else x + 0 if kind == "int" else ng.logical_or(x, x)


@pytest.mark.parametrize("op", TABLE.values(), ids=TABLE)
@pytest.mark.parametrize(("turned", "read_later"), [(False, False), (True, True)], ids=["in rows, dies", "in columns, lives on"])
def test_each_op_among_others(op, turned, read_later):
    """What it reads and what it gives are values that nobody outside holds; it may write over what is not read later."""

    def f(*xs: Any, params: Any) -> Any:
        xs = tuple(touched(x.T).T if turned else touched(x) for x in xs)
        outs = called(op, *xs, **params)
        outs = [touched(out) for out in (outs if isinstance(outs, tuple) else [outs])]
        return [[touched(out) for out in outs], [touched(x) for x in xs] if read_later else []]

    b = BACKENDS["float32"]
    for sample in op.samples.calls:
        arrays, params = sample.native(b)
        program = program_of(lambda *xs, params=params: f(*xs, params=params), b, *arrays)
        agree(program, buffers(program), arrays, moved(b, arrays, sample.exact), arrays)


@by_each_executor
def test_a_backend_of_ones_own(executor):
    """Fifty digits: what it does not define comes from the defaults."""
    spec = importlib.util.spec_from_file_location("executors_mpmath_backend", Path(__file__).parents[1] / "backends" / "mpmath_backend.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    b = module.MpmathBackend()
    program = program_of(lambda x, y: (func.grad(lambda z: (z.tanh() * y).sum())(x), ng.softmax(x)), b, X, Y)
    got = executor(program)(b.asarray(X), b.asarray(Y))
    assert all((g == w).all() for g, w in zip(got, program.run(b, [b.asarray(X), b.asarray(Y)]), strict=True))


@on_each_backend
@by_each_executor
def test_outputs_that_are_inputs_constants_or_the_same_twice(b, executor):
    constant = b.tensor(Y)
    program = program_of(lambda x, y: (x, y * 2.0, x + 1.0, y * 2.0, constant, x[1:]), b, X, Y)
    arrays = [b.asarray(X), b.asarray(Y)]
    agree(program, executor(program), arrays, arrays[::-1], [arrays[0], arrays[0]])
    assert executor(program)(*arrays)[0] is arrays[0]


@on_each_backend
@by_each_executor
def test_ops_with_several_results_and_with_any_number_of_arrays(b, executor):
    program = program_of(lambda x: (*ng.cummax(x, 0), ng.einsum("ij,j->i", ng.stack([x, x * 2.0]), x), ng.concat([x, x.detach()])), b, X)
    agree(program, executor(program), [b.asarray(X)], [b.asarray(Y)])


@by_each_executor
def test_an_op_of_ones_own_whose_name_is_no_name_in_python(executor):
    total = ng.define("2 or more! (*xs)", "linear", lambda b, g: g, value=lambda b, *xs: b.add(xs[0], xs[1]))
    program = program_of(lambda x: func.grad(lambda z: (total(z, x) * z).sum())(x) + total(x, x), BACKEND, X)
    agree(program, executor(program), [BACKEND.asarray(X)], [BACKEND.asarray(Y)])


@by_each_executor
def test_a_long_program(executor):
    """Text, and the time to compile it, grow with the number of ops."""

    def f(x: Any) -> Any:
        for _ in range(5_000):
            x = (x * 0.99).sin()
        return x

    program = program_of(f, BACKEND, X)
    assert len(program.instructions) == 10_000
    agree(program, executor(program), [BACKEND.asarray(X)], [BACKEND.asarray(Y)])


@by_each_executor
def test_errors_of_the_backend_come_through(executor):
    program = program_of(lambda x, y: x @ y, BACKEND, np.ones((2, 3)), np.ones((3, 2)))
    run = executor(program)
    for _ in range(3):
        with pytest.raises(ValueError, match="not aligned"):
            run(np.ones((2, 3)), np.ones((2, 3)))
        assert run(np.ones((2, 3)), np.ones((3, 2)))[0].tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with pytest.raises(TypeError):
        run(np.ones((2, 3)), np.ones((3, 2)), np.ones((3, 2)))
