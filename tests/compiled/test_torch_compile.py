"""Programs by torch's compiler: derivatives of order 1 to 4, against the function itself, run op by op.

A warning is an error here, as everywhere in the suite: nothing below may fall back silently.
"""

import threading

import numpy as np
import pytest
from torch_programs import PROGRAMS, QUICK

import nestgrad as ng
from nestgrad.compiled.executors.native import native, unavailable
from nestgrad.compiled.passes import optimized
from nestgrad.errors import CompileWarning
from nestgrad.func import grad
from nestgrad.func.trees import flatten

torch = pytest.importorskip("torch")
BASE = ng.TorchBackend(dtype="float64")
pytestmark = pytest.mark.skipif(bool(unavailable(BASE)), reason=unavailable(BASE))


def compiled(f, *arrays):
    """A function by the compiler, and the arrays as it takes them."""
    xs = [BASE.tensor(a) for a in arrays]
    return native(optimized(ng.func.trace(f)(*xs))), [x.value for x in xs]


def check(programs):
    """Compile them as one, which takes a fraction of the time, and compare each with the function."""
    arrays = [xs for _, xs in programs.values()]

    def together(*xs):
        rest = iter(xs)
        return [f(*(next(rest) for _ in given)) for f, given in programs.values()]

    run, given = compiled(together, *(a for xs in arrays for a in xs))
    for _ in range(2):
        outs = iter(run(*given))
        for name, (f, xs) in programs.items():
            for want in flatten(f(*map(BASE.tensor, xs)))[0]:
                got, right = next(outs), want.numpy()
                assert (tuple(got.shape), got.dtype) == (want.shape, want.dtype), name
                scale = np.abs(right[np.isfinite(right)]).max(initial=1e-3)
                # relative to the largest entry: sums of the compiler are in another order
                np.testing.assert_allclose(got.numpy(), right, rtol=1e-10, atol=1e-10 * scale, err_msg=name)


def test_a_few_programs_are_what_the_function_is():
    check(QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("k", range(8))
def test_programs_are_what_the_function_is(k):
    check({name: PROGRAMS[name] for name in [*PROGRAMS][k::8]})


def test_arrays_may_lie_in_memory_in_any_way():
    """And they may be one another's memory: nothing is written into."""

    def f(x, y):
        return (x.sin() * y.T).T, (x @ y).reshape(-1)

    run, _ = compiled(f, np.zeros((4, 4)), np.zeros((4, 4)))
    numbers = torch.from_numpy(np.random.default_rng(0).normal(size=(9, 9)))
    whole = numbers[:4, :4].contiguous()
    ways = {
        "as they come": whole,
        "transposed": whole.T,
        "expanded": whole[:1].expand(4, 4),
        "one number": numbers[0, 0].expand(4, 4),
        "a part": numbers[1:5, 2:6],
        "every second": numbers[::2, ::2][:4, :4],
        "overlapping": numbers.reshape(-1).as_strided((4, 4), (1, 1), 3),
        "at an odd address": numbers.reshape(-1)[1:17].reshape(4, 4),
    }
    for x in ways.values():
        for y in ways.values():
            before = numbers.clone()
            for a, b in zip(run(x, y), ((x.sin() * y.T).T, (x @ y).reshape(-1)), strict=True):
                torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-14)
            assert torch.equal(before, numbers)


def test_axes_of_size_one_and_none_may_have_any_stride_and_outputs_may_be_inputs_constants_views_and_the_same():
    c = np.array([1.0, 2.0])

    def f(x, y, z):
        u = x * 2.0
        return x * y, z.sum(0) + x[0], x, x.T, ng.asarray(c, backend=BASE), u, u, x.reshape(-1), u.T

    run, _ = compiled(f, np.zeros((1, 3)), np.zeros((3, 1)), np.zeros((0, 3)))
    line = torch.arange(9.0, dtype=torch.float64)
    x, y, z = line.as_strided((1, 3), (77, 1)), line.as_strided((3, 1), (1, 55)), line.as_strided((0, 3), (4, 2))
    for a, b in zip(run(x, y, z), (x * y, x[0], x, x.T, torch.from_numpy(c), x * 2, x * 2, x[0], x.T * 2), strict=True):
        assert torch.equal(a, b)


def test_what_is_not_finite_stays_what_it_is():
    def f(x):
        safe = grad(lambda z: ng.where(z > 0, z.log(), 0.0).sum())(x)
        return x * 0.0, x / x, x.isnan(), ng.maximum(x, 0.5), x.sign(), x * 10.0, x / 2.0, x.sqrt(), ng.nan_to_num(x), safe

    check({"": (f, (np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, 5e-324, -3.0]),))})


def test_a_position_out_of_range_raises_what_the_op_does():
    run, (x, _) = compiled(lambda x, i: ng.take(x, i, axis=0) * 2.0, np.arange(1000.0), np.zeros(500, int))
    rows = torch.arange(500)
    assert torch.equal(run(x, rows)[0], x[:500] * 2)
    for wrong in (1000, -1001):
        rows[77] = wrong
        with pytest.raises(IndexError):
            run(x, rows)


def test_a_singular_matrix_raises_what_the_op_does():
    run, (a,) = compiled(lambda a: ng.linalg.inv(a).sum(), np.eye(3))
    assert run(a)[0].item() == 3.0
    with pytest.raises(ng.errors.SingularMatrixError, match="inv"):
        run(torch.zeros(3, 3, dtype=torch.float64))


def test_an_op_of_ones_own_is_called_each_time():
    """Of what it does nothing is known, so that the compiler does not look into it; a kernel may do what it likes."""
    factors = [2.0]
    own = ng.define(
        "own(x, c)",
        "linear",
        lambda b, g, c: b.scale(g, c * factors[0]),
        kernels={"torch": lambda x, c: torch.from_numpy(x.numpy() * c * factors[0])},
    )
    run, (x,) = compiled(lambda x: own(x.sin(), 3.0).cos(), np.ones((2, 3)))
    for factors[0] in (2.0, 5.0):
        torch.testing.assert_close(run(x)[0], (x.sin() * 3 * factors[0]).cos(), rtol=1e-14, atol=1e-14)


def test_single_precision_and_half():
    f = grad(lambda x, y: (x @ y).tanh().sum())
    xs = [BASE.tensor(np.linspace(-1, 1, 12).reshape(3, 4)), BASE.tensor(np.linspace(0, 1, 8).reshape(4, 2))]
    given = [x.astype(dtype) for dtype in ("float32", "bfloat16") for x in xs]
    run = native(optimized(ng.func.trace(lambda a, b, c, d: (f(a, b), f(c, d)))(*given)))
    for got, dtype, rtol in zip(run(*(x.value for x in given)), (torch.float32, torch.bfloat16), (1e-6, 2e-2), strict=True):
        assert got.dtype == dtype
        torch.testing.assert_close(got.double(), f(*xs).value, rtol=rtol, atol=rtol)


def test_many_rows_run_in_blocks(monkeypatch):
    f, (_, *w) = QUICK["the gradients of Burgers' residual"]
    x = np.random.default_rng(1).normal(size=(24, 2))
    sizes = []

    def watched(self, write, inputs, compile_=ng.TorchBackend.compiled):
        sizes.append(inputs[0][0])
        return compile_(self, write, inputs)

    monkeypatch.setattr(ng.TorchBackend, "compiled", watched)
    monkeypatch.setattr(ng.TorchBackend, "at_hand", 64)
    check({"": (f, (x, *w))})
    assert sizes == [(8, 2)]


def test_threads_compile_one_after_the_other():
    outs = {}

    def work(k):
        run, (x,) = compiled(lambda x: (x * float(k)).sin(), np.ones(3))
        outs[k] = run(x)[0].numpy()[0]

    threads = [threading.Thread(target=work, args=(k,)) for k in (2, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert outs == pytest.approx({k: np.sin(k) for k in (2, 3)})


def test_where_the_compiler_fails_one_warning_tells_why_and_the_answer_is_right(monkeypatch):
    monkeypatch.setattr(ng.TorchBackend, "compiled", lambda self, write, inputs: 1 / 0)
    with pytest.warns(CompileWarning, match="1 ops.*runs op by op; because of ZeroDivisionError: division by zero.*Try executor=") as told:
        run, (x,) = compiled(lambda x: x.sin(), np.ones(2))
    assert len(told) == 1
    assert torch.equal(run(x)[0], x.sin())


def test_where_there_is_no_compiler_the_reason_is_told():
    program = optimized(ng.func.trace(lambda x: x * x)(2.0))
    assert unavailable(program.base) == "numpy has no compiler"
    with pytest.warns(CompileWarning, match="because numpy has no compiler"):
        assert native(program)(np.float64(3.0)) == (9.0,)
    with pytest.raises(ng.errors.BackendError, match=r"compiled: numpy has no compiler; expected .* Try TorchBackend"):
        program.base.compiled(lambda ops: None, [])


def test_jit_runs_by_it_and_is_differentiated_from_outside():
    f = ng.jit(lambda x: (x * x.sin()).sum(), executor="torch.compile")
    x = ng.Autodiff(ng.Autodiff(BASE)).tensor([0.3, 1.2], requires_grad=True)
    assert f.executor == "torch.compile"
    want = (x * x.sin()).sum()
    np.testing.assert_allclose(f(x).wrt(x).wrt(x).numpy(), want.wrt(x).wrt(x).numpy(), rtol=1e-14)
    with pytest.raises(ng.errors.BackendError, match=r"executor='torch.compile' for numpy; .* numpy has no compiler"):
        f(np.ones(2))
