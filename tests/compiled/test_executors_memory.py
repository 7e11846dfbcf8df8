"""Writing over dead values changes nothing that anybody can see."""

import threading
import weakref
from typing import Any

import numpy as np
import pytest
from executing import agree, program_of, same
from hypothesis import given, settings, strategies as st
from random_steps import steps_of

import nestgrad as ng
from nestgrad import func
from nestgrad.compiled.executors import buffers
from nestgrad.compiled.executors.expanding import expanded
from nestgrad.ops import TABLE
from nestgrad.testing.calling import called

BACKEND = ng.NumpyBackend()
SINGLE = ng.NumpyBackend("float32")
RNG = np.random.default_rng(5)
A, B, C = (RNG.uniform(-1.5, 1.5, (4, 6)) for _ in range(3))
W = RNG.uniform(-1, 1, (6, 6))


def waves(x: Any, y: Any) -> Any:
    """Some values that come and go."""
    z = (x * y).tanh() + x
    return (z @ ng.tensor(W, backend=x.backend)).exp() * z - y, z.sum(0)


# random programs: every value is of shape (4, 6), made of one or two others

UNARY = {
    "neg": lambda x: -x,
    "tanh": lambda x: x.tanh(),
    "exp": lambda x: (x.tanh() * 0.5).exp(),
    "root": lambda x: (x * x + 0.5).sqrt(),
    "cube": lambda x: x.tanh() ** 3,
    "tenth": lambda x: x.tanh() ** 10,
    "inverse": lambda x: (x * x + 1.0) ** -1,
    "reversed": lambda x: x[::-1],
    "every second column": lambda x: ng.concat([x[:, ::2], x[:, 1::2]], axis=1),
    "turned": lambda x: x.T.reshape(4, 6),
    "in columns": lambda x: (x.T * 1.5).T,
    "flat": lambda x: x.reshape(24)[::-1].reshape(4, 6),
    "row spread": lambda x: x[1:2].broadcast_to(4, 6),
    "row added": lambda x: x + x[0],
    "row means": lambda x: x - x.mean(1, keepdims=True),
    "row sums spread": lambda x: x.sum(1, keepdims=True).broadcast_to(4, 6),
    "softmax": lambda x: ng.softmax(x, axis=1),
    "gelu": lambda x: ng.nn.gelu(x),
    "silu": lambda x: ng.nn.silu(x),
    "relu": lambda x: ng.relu(x),
    "layer": lambda x: ng.linear(x, ng.tensor(W), ng.tensor(W[0])).tanh(),
    "in three axes": lambda x: ng.linear(x.reshape(2, 2, 6), ng.tensor(W), ng.tensor(W[1])).reshape(4, 6),
    "rounded": lambda x: (x * 3.0).round(),
    "detached": lambda x: x.detach(),
    "gradient": lambda x: func.grad(lambda z: (z * z.sin()).sum())(x),
    "slope of a root": lambda x: func.grad(lambda z: ng.relu(z).sqrt().sum())(x + 5.0),
    "sorted": lambda x: ng.sort(x, axis=1),
    "running": lambda x: x.cumsum(1),
    "as ints": lambda x: (x * 2.0).astype("int64").astype("float64"),
}
BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (y * y + 1.0),
    "maximum": lambda x, y: ng.maximum(x, y),
    "where": lambda x, y: ng.where(x > y, x * y, y),
    "product": lambda x, y: (x @ y.T) @ y * 0.1,
    "turned product": lambda x, y: x @ (x.T @ y).tanh(),
    "columns": lambda x, y: (x.T * y.T).T,
    "gradient by one": lambda x, y: func.grad(lambda z: ((z * y).tanh() * z.detach()).sum())(x),
    "power": lambda x, y: (x * x + 0.5) ** y.tanh(),
}

steps = steps_of(UNARY, BINARY, back=5, most=12)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(steps, st.sets(st.integers(0, 14), max_size=3))
def test_random_programs_give_what_their_ops_give(chosen: list[tuple[Any, ...]], returned: set[int]):
    def f(x: Any, y: Any) -> Any:
        values = [x, y]
        for name, *places in chosen:
            args = [values[-1 - k % len(values)] for k in places]
            values.append(UNARY[name](*args) if name in UNARY else BINARY[name](*args))
        return [values[-1], values[-1].sum(), *(values[k % len(values)] for k in sorted(returned))]

    program = program_of(f, BACKEND, A, B)
    arrays = [A.copy(), B.copy(), C.copy()]
    a, b, c = arrays
    agree(program, buffers(program), [a, b], [b, c], [a, a], [c, a], [a, b])
    for array, before in zip(arrays, (A, B, C), strict=True):
        np.testing.assert_array_equal(array, before)


def test_values_have_fewer_places_than_there_are():
    def f(x: Any) -> Any:
        for _ in range(50):
            x = (x * 0.9).tanh() + x.sin()
        return x

    a = RNG.uniform(-1, 1, (64, 64)).astype("f4")
    program = program_of(f, SINGLE, a)
    run = buffers(program)
    agree(program, run, [a], [a])
    assert run.nbytes <= 3.1 * a.nbytes


def test_memory_goes_with_the_function():
    program = program_of(waves, BACKEND, A, B)
    run = buffers(program)
    for _ in range(2):
        run(A, B)
    (kept,) = run._free
    array = weakref.ref(kept.__defaults__[0])
    del kept
    assert array() is not None and run.nbytes > 0
    del run
    assert array() is None


def test_results_are_no_part_of_the_memory_that_is_kept():
    """Nor are views of what ops made on the way, or what an op gives back as it is: a first power."""

    def f(x: Any) -> Any:
        return [(x * 2.0).T, (x * 3.0).reshape(24)[3:], (x * 4.0)[::-1], x.exp(), (x + 1.0).detach(), called(TABLE["powi"], x * 5.0, n=1)]

    program = program_of(f, BACKEND, A)
    run = buffers(program)
    run(A)
    kept = run(A)
    before = [k.copy() for k in kept]
    run(B)
    for k, want in zip(kept, before, strict=True):
        np.testing.assert_array_equal(k, want)


def test_arguments_may_be_views_of_each_other_and_lie_in_memory_in_any_way():
    program = program_of(waves, BACKEND, A, B)
    run = buffers(program)
    run(A, B)
    whole = RNG.uniform(-1, 1, (12, 9))
    before = whole.copy()
    views = [whole[:4, :6], whole[1:5, :6], whole[4::2, 2:8], whole.T[3:7, :6], whole[3::-1, 6:0:-1], np.broadcast_to(whole[0, :6], (4, 6))]
    for x in views:
        for y in views:
            for got, want in zip(run(x, y), program.run(BACKEND, [x, y]), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)  # sums in the order in which numbers lie in memory
    read_only = A.copy()
    read_only.setflags(write=False)
    agree(program, run, [read_only, read_only])
    np.testing.assert_array_equal(whole, before)


def test_numbers_in_another_order_of_bytes():
    program = program_of(waves, BACKEND, A, B)
    run = buffers(program)
    run(A, B)
    for got, want in zip(run(A.astype(">f8"), B), program.run(BACKEND, [A, B]), strict=True):
        same(got, want, BACKEND)


def test_nothing_and_single_numbers():
    program = program_of(lambda x, y: ((x * 2.0).exp() + y * 3.0, (y * 2.0).tanh() * y, (x * 2.0).sum()), BACKEND, np.zeros((0, 3)), 0.5)
    empty = np.zeros((0, 3))
    agree(program, buffers(program), [empty, np.float64(0.5)], [empty, np.asarray(0.5)], [empty, np.asarray(0.25)])


def test_dtypes_that_meet():
    x, w = A.astype("f4"), W.copy()

    def f(x: Any, w: Any) -> Any:
        half = w.astype("float32") * 0.5
        return (((x * 2.0) @ (w * 2.0)) * x + ng.linear(x * 1.5, half, w[0] * 2.0)).sum(0), (half @ (x.T * 0.5)) * 2.0

    program = program_of(f, BACKEND, x, w)
    assert {str(step.out.dtype) for step in program.instructions} == {"float32", "float64"}
    agree(program, buffers(program), [x, w], [x, w], [x[::-1].copy(), w])


def test_a_bias_with_more_rows_columns_or_axes_than_the_product():
    def f(x: Any, y: Any) -> Any:
        w = ng.tensor(W) * y.sum()
        more = ng.stack([x * 2.0, y * 2.0])
        wide = ng.linear(x * 1.5, w[:, :1], y[0] * 2.0) * 2.0
        return [ng.linear(x[:1] * 1.5, w, y * 2.0) * 2.0, ng.linear(x * 1.5, w, more) * 2.0, ng.linear(more, w, y[0] * 2.0) * 2.0, wide]

    program = program_of(f, BACKEND, A, B)
    agree(program, buffers(program), [A, B], [B, C], [A, A])


def test_nan_infinities_and_signed_zeros():
    def f(x: Any, y: Any) -> Any:
        roots = func.grad(lambda z: (z.sqrt() * y + z.log() / y).sum())(x)
        return [roots, func.grad(lambda z: ng.where(z > 0, z, 1.0).log().sum())(y)]

    program = program_of(f, BACKEND, A[0], B[0])
    x, y = np.array([0.0, -0.0, 1.0, np.inf, np.nan, 2.0]), np.array([0.0, 1.0, np.inf, -0.0, 0.0, -np.inf])
    agree(program, buffers(program), [x, y], [x, y], [y, x], [x[::-1].copy(), y])


def test_threads_do_not_meet():
    program = program_of(waves, BACKEND, A, B)
    run = buffers(program)
    run(A, B)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            x, y = rng.uniform(-1, 1, (2, 4, 6))
            if any((g != w).any() for g, w in zip(run(x, y), program.run(BACKEND, [x, y]), strict=True)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert run.nbytes <= 4 * buffers_nbytes(program)


def buffers_nbytes(program: Any) -> int:
    """What one call needs."""
    run = buffers(program)
    run(A, B)
    run(A, B)
    return int(run.nbytes)


def test_a_call_within_a_call():
    """An op of a user's own that calls the function again."""
    inner: list[Any] = []

    def again(b: Any, x: Any) -> Any:
        return b.add(x, inner[0](b.mul(x, 0.0))[0]) if inner and float(x[0, 0]) else x

    op = ng.define("again(x)", "special", lambda b, g: g, forward=[lambda b, t: t], kernels={"numpy": lambda x: again(BACKEND, x)})
    program = program_of(lambda x: (op(x * 2.0).tanh() * 3.0 + x).tanh(), BACKEND, A)
    run = buffers(program)
    inner.append(run)
    for array in (A, B, A):
        np.testing.assert_array_equal(run(array)[0], program.run(BACKEND, [array])[0])


def test_an_op_of_a_users_own_may_keep_what_it_reads():
    kept: list[Any] = []

    def keeping(x: Any) -> Any:
        kept.append((x, x.copy()))
        return x * 2.0

    op = ng.define("keeping(x)", "linear", lambda b, g: b.scale(g, 2.0), kernels={"numpy": keeping})
    program = program_of(lambda x: (op((x * 3.0).T).T + x.tanh().sin() * x.cos()).exp(), BACKEND, A)
    run = buffers(program)
    for array in (A, B, C):
        run(array)
    for array, before in kept:
        np.testing.assert_array_equal(array, before)


class Louder(ng.NumpyBackend):
    """A backend with one method of its own."""

    def tanh(self, x: Any) -> Any:
        return np.tanh(x) * 2.0

    def sum(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        return x if x.ndim == 1 else super().sum(x, axes, keepdims)


def test_a_backend_that_overrides_a_method():
    """What is known of NumPy's methods is not taken for granted of others."""
    b = Louder()
    memory = b.memory
    assert memory.writer("tanh") is None and memory.writer("sin") is not None
    assert not memory.fresh("sum") and memory.fresh("amax")
    program = program_of(lambda x, y: [waves(x, y)[0], (x.tanh() * 2.0 + y.tanh()).sin()], b, A, B)
    agree(program, buffers(program), [A, B], [B, C], [A, B])


@pytest.mark.parametrize("name", [name for name in TABLE if BACKEND.memory.fresh(name)])
def test_what_is_said_to_be_new_memory_is(name):
    op = TABLE[name]
    for sample in op.samples.calls:
        arrays, params = sample.native(BACKEND)
        f = op.of(BACKEND)
        out = f(*arrays, **params) if op.variadic else f(*arrays, *op.bound((), params))
        for part in out if isinstance(out, tuple) else (out,):
            assert not any(np.may_share_memory(part, a) for a in arrays)


@pytest.mark.parametrize("b", [BACKEND, SINGLE], ids=repr)
@pytest.mark.parametrize("name", [name for name in TABLE if BACKEND.memory.expands(name)])
def test_ops_taken_apart_give_the_same_bits(name, b):
    op = TABLE[name]
    for sample in op.samples.calls:
        arrays, params = sample.native(b)
        program = program_of(lambda *xs, params=params: called(op, *xs, **params), b, *arrays)
        apart = expanded(program, b.memory)
        for got, want in zip(apart.run(b, arrays), program.run(b, arrays), strict=True):
            same(got, want, b)


def test_ops_have_their_parts_in_common():
    """Two cotangents of one tanh: the derivative is computed once."""
    program = program_of(lambda x, y, z: (lambda g: [g(y), g(z)])(func.vjp(ng.tanh, x)[1]), SINGLE, A, B, C)
    assert [s.op.name for s in program.instructions] == ["tanh", "tanh_vjp", "tanh_vjp"]
    assert [s.op.name for s in expanded(program, SINGLE.memory).instructions] == ["tanh", "square", "sub", "mul", "mul"]
