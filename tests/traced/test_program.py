"""A program gives what the function gives, on any backend, and holds ops of the table and nothing else."""

from typing import Any

import numpy as np
import pytest
from cases import BACKENDS, FUNCTIONS, W, X, Y, close

import nestgrad as ng
from nestgrad import func
from nestgrad.levels.marks import NONE
from nestgrad.ops import TABLE, Kind
from nestgrad.tensor.handle import make
from nestgrad.testing.calling import called


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]


x0, y0 = ng.tensor(X), ng.tensor(Y)
OTHER = ([-0.5, 0.2, 0.8], [0.3, -0.1, 0.6])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_replay_is_the_function_at_other_points(name: str, backend: Any):
    f = FUNCTIONS[name]
    program = ng.func.trace(f)(backend.tensor(X), backend.tensor(Y))
    x, y = (backend.tensor(v) for v in OTHER)
    want = f(x, y)
    close(ng.func.call(program, x, y), want)
    for b in (backend, backend.dressed):
        (got,) = program.replay(b, [x.value, y.value])
        np.testing.assert_allclose(backend.to_numpy(got), want.numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_program_holds_ops_of_the_table_with_the_shapes_and_dtypes_that_arise(name: str):
    backend = ng.NumpyBackend()
    program = ng.func.trace(FUNCTIONS[name])(backend.tensor(X), backend.tensor(Y))
    found = {v.number: np.asarray(p) for v, p in zip(program.inputs, (X, Y), strict=True)}
    found |= {v.number: p for v, p in program.constants}
    for step in program.instructions:
        assert TABLE[step.op.name] is step.op and step.op.kind is not Kind.COMPOSITE
        args = [found[a.number] if hasattr(a, "number") else a for a in step.operands]
        out = found[step.out.number] = step.run(backend, args)
        assert (step.out.shape, step.out.dtype) == (np.shape(out), np.asarray(out).dtype)
    assert [v.number for v in program.outputs] == [program.instructions[-1].out.number]


def of_values(op: Any, params: Any) -> Any:
    """An op of the table as a function of Tensors."""
    return lambda *xs: called(op, *xs, **params)


@pytest.mark.parametrize("op", TABLE.values(), ids=TABLE)
def test_every_op_replays_what_the_backend_does(op: Any, backend: Any):
    for sample in op.samples.calls:
        arrays, params = sample.native(backend)
        program = ng.func.trace(of_values(op, params))(*(make(backend.dressed, a, NONE) for a in arrays))
        if op.kind is not Kind.COMPOSITE and not op.results:  # these are taken apart
            assert [step.op for step in program.instructions] == [op]
        moved = [backend.mul(a, 0.9) if backend.is_floating(a) and k not in sample.exact else a for k, a in enumerate(arrays)]
        (got,) = program.replay(backend, moved)
        want = called(op, *(make(backend.dressed, a, NONE) for a in moved), **params).value
        assert backend.dtype(got) == backend.dtype(want) and tuple(backend.shape(got)) == tuple(backend.shape(want))
        # a composite for which, or for a part of which, the backend has a kernel is replayed in smaller parts, whose rounding is another
        in_parts = op.kind is Kind.COMPOSITE
        digits = {"rtol": 1e-14, "atol": 1e-15} if in_parts else {"rtol": 0.0}
        np.testing.assert_allclose(backend.to_numpy(got), backend.to_numpy(want), **digits)


def test_pretty_is_one_line_for_each_variable():
    weights = ng.Autodiff(ng.NumpyBackend()).tensor(W, requires_grad=True)

    def f(x: Any, n: Any) -> Any:
        h = (weights @ x).tanh()
        return ng.concat([h, h[::2] * 0.5]).sum(), ng.where(n > 2, x.reshape(1, 3), ng.arange(3.0)).astype("float32"), x.argmax(axis=0)

    program = ng.func.trace(f)(x0, ng.tensor([1, 2, 3]))
    assert program.pretty() == str(program) == (
        "input v0: float64[3]\n"
        "input v1: int64[3]\n"
        "captured v2: float64[3, 3]\n"
        "v3: float64[3] = constant [0.0, 1.0, 2.0]\n"
        "v4: float64[3] = vecmat(v0, v2, ty=True)\n"
        "v5: float64[3] = tanh(v4)\n"
        "v6: float64[2] = getitem(v5, index=(::2,))\n"
        "v7: float64[2] = scale(v6, c=0.5)\n"
        "v8: float64[5] = concat(v5, v7, axis=0)\n"
        "v9: float64[] = sum(v8, axes=(0,), keepdims=False)\n"
        "v10: bool[3] = gt(v1, 2)\n"
        "v11: float64[1, 3] = reshape(v0, shape=(1, 3))\n"
        "v12: float64[1, 3] = where(v10, v11, v3)\n"
        "v13: float32[1, 3] = cast(v12, dtype=float32)\n"
        "v14: int64[] = argmax(v0, axis=0, keepdims=False)\n"
        "return v9, v13, v14"
    )  # fmt: skip
    assert repr(program) == "<program of 2 inputs, 1 captured, 11 ops, 3 outputs>"


def test_names_of_dtypes_are_alike_over_torch():
    program = ng.func.trace(lambda x: x.astype("float32")[[0, 2]])(ng.TorchBackend(dtype="float64").tensor(X))
    assert str(program) == (
        "input v0: float64[3]\nv1: float32[3] = cast(v0, dtype=float32)\nv2: float32[2] = getitem(v1, index=([0, 2],))\nreturn v2"
    )


def test_what_the_outputs_do_not_need_is_not_in_the_program():
    program = ng.func.trace(lambda x: (x.exp().sum(), x.sin())[1])(x0)
    assert [step.op.name for step in program.instructions] == ["sin"]


def test_levels_made_inside_disappear():
    """Ops of a third derivative: those of x^3 and of its rules, each once, and nothing that a level does."""
    f = func.grad(func.grad(func.grad(lambda x: x**3)))
    program = ng.func.trace(f)(2.0)
    assert {step.op.name for step in program.instructions} <= {"mul", "scale", "powi"}
    assert len(program.instructions) <= 6
    assert program.replay(ng.NumpyBackend(), [np.asarray(5.0)]) == (6.0,)


def test_arguments_and_outputs_may_be_nested():
    def f(p: Any, x: Any) -> Any:
        return {"y": p["w"] * x + p["b"][0], "shape": (x, None)}

    program = ng.func.trace(f)({"w": 2.0, "b": [1.0]}, x0)
    out = ng.func.call(program, {"w": 3.0, "b": [0.5]}, x0)
    assert out["shape"][0].tolist() == X and out["shape"][1] is None
    np.testing.assert_allclose(out["y"].numpy(), 3.0 * np.array(X) + 0.5)


def test_outputs_may_be_inputs_constants_and_numbers():
    data = ng.tensor([4.0, 5.0])
    program = ng.func.trace(lambda x: (x, data, 7.0))(x0)
    assert program.instructions == ()
    assert [out.tolist() for out in ng.func.call(program, y0)] == [Y, [4.0, 5.0], 7.0]


def test_arrays_are_constants_and_one_array_is_one_constant():
    data = ng.tensor([1.0, 2.0, 3.0])
    program = ng.func.trace(lambda x: x * data + data)(x0)
    assert len(program.constants) == 1 and program.captured == ()


def test_two_handles_of_one_variable_are_one_captured_input():
    S = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))
    w = S.tensor(Y, requires_grad=True)
    again = make(w.b, w.value.over(w.value.value), w.marks)
    assert again.value is not w.value
    program = ng.func.trace(lambda x: (x * w).sum() + (x + again).sum())(x0)
    assert len(program.captured) == 1 and program.captured[0].value is w.value


def test_shared_memory_is_copied_into_the_program():
    array = np.array([1.0, 2.0, 3.0])
    shared = ng.from_numpy(array)
    program = ng.func.trace(lambda x: x * shared)(x0)
    array.setflags(write=True)
    array[:] = 0.0
    np.testing.assert_allclose(ng.func.call(program, x0).numpy(), np.array(X) * [1.0, 2.0, 3.0])


def test_a_trace_in_a_trace_is_inlined():
    def outer(x: Any) -> Any:
        inner = ng.func.trace(lambda z: (z * x).sin())(x)  # x of the outer trace is captured by the inner
        assert len(inner.captured) == 1
        return ng.func.call(inner, x + 1.0)

    program = ng.func.trace(outer)(x0)
    assert [step.op.name for step in program.instructions] == ["add", "mul", "sin"]
    np.testing.assert_allclose(ng.func.call(program, y0).numpy(), np.sin((np.array(Y) + 1.0) * Y))


def test_a_call_in_a_trace_is_inlined():
    square = ng.func.trace(lambda x: x * x)(x0)
    program = ng.func.trace(lambda x: ng.func.call(square, ng.func.call(square, x)))(x0)
    assert [step.op.name for step in program.instructions] == ["mul", "mul"]
    assert "call" not in str(program)


def test_the_level_records_what_is_computed_with_its_inputs():
    """Under levels that wrap it and over such as it wraps, its wires are the innermost."""
    for stack in (lambda b: ng.Autodiff(ng.Traced(b)), lambda b: ng.Traced(ng.Autodiff(b))):
        S = stack(ng.NumpyBackend())
        T = S if isinstance(S, ng.Traced) else S.inner
        x = S.tensor(T.input(X), requires_grad=True)
        y = T.input(Y)
        program = T.program([(x * x * y).sum().wrt(x), y.exp()])
        got = ng.func.call(program, y0, x0)
        np.testing.assert_allclose(got[0].numpy(), 2.0 * np.array(Y) * X)
        np.testing.assert_allclose(got[1].numpy(), np.exp(X))
        assert {step.op.name for step in program.instructions} <= {"mul", "add", "exp"}


def test_stacks_made_outside_work_inside():
    S = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))

    def f(x: Any) -> Any:
        x = S.tensor(x, requires_grad=True)
        return (x**4).sum().wrt(x).sum().wrt(x)

    program = ng.func.trace(f)(S.tensor(X, requires_grad=True))
    out = ng.func.call(program, x0)
    assert not out.marks and not out.tracked_on()
    np.testing.assert_allclose(out.numpy(), 12.0 * np.array(X) ** 2)


def test_traced_positions_are_read_when_the_program_runs():
    """Of labels as arguments, and of positions that are computed; and so in derivatives, tangents, series and batches."""
    f = lambda x, rows: (ng.log_softmax(x)[ng.arange(2), rows] ** 2).sum() + x[0, x[0].argmax(axis=0)] ** 3
    x, rows = ng.tensor([X, Y]), ng.tensor([2, 0])
    program = ng.func.trace(f)(x * 2.0, ng.tensor([1, 1]))
    run = lambda x, rows: ng.func.call(program, x, rows)
    for many in (rows, ng.tensor([-1, 1])):
        close(run(x, many), f(x, many))
        close(func.grad(run)(x, many), func.grad(f)(x, many))
        close(func.hessian(run)(x, many), func.hessian(f)(x, many))
        close(func.jvp(lambda x, many=many: run(x, many), (x,), (x,))[1], func.jvp(lambda x, many=many: f(x, many), (x,), (x,))[1])
    xs, many = ng.stack([x, x * 0.5, x + 1.0]), ng.tensor([[0, 1], [1, 2], [-3, 0]])
    close(func.vmap(run)(xs, many), ng.stack([f(a, i) for a, i in zip(xs, many, strict=True)]))
    close(func.vmap(func.grad(run))(xs, many), func.vmap(func.grad(f))(xs, many))


def test_derivatives_are_made_at_points_where_the_function_can_run():
    """A position that is 0 because of the axis' size 1 stays one in the programs of derivatives."""
    program = ng.func.trace(lambda x, i: (x[i] * x[(x[0] * 0.0).astype("int64")]).sum())(ng.tensor([2.0]), ng.tensor([0, 0]))
    assert func.grad(lambda x: ng.func.call(program, x, ng.tensor([0, 0])))(ng.tensor([3.0])).tolist() == [12.0]
