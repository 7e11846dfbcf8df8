"""Sparse Hessians and Jacobians are the dense ones, in as few products as they say."""

import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from dense import arrow, chain
from hypothesis import given, settings, strategies as st
from test_patterns import STEPS

import nestgrad as ng
from nestgrad.errors import ArgumentError, DTypeError, LevelError, PatternError, ShapeError, TraceError
from nestgrad.func import hessian, jacrev, trace, vmap
from nestgrad.sparse import sparse_hessian, sparse_jacobian

X = np.linspace(-1.0, 1.0, 6)
BAND = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) <= 1


class Counting(ng.NumpyBackend):
    """Counts the rows of what is multiplied with the cosine in the chain's curvature: how many directions there were."""

    def __init__(self):
        super().__init__()
        self.directions = []

    def mul(self, x, y):
        out = super().mul(x, y)
        if getattr(out, "ndim", 0) == 2:
            self.directions.append(out.shape[0])
        return out


def test_a_chain_runs_in_three_directions_with_or_without_its_pattern():
    base = Counting()
    f = sparse_hessian(chain, check=False)
    found = f(base.tensor(np.linspace(-1.0, 1.0, 50)))
    assert found.nnz == 148 and f.products == 3 and set(base.directions) == {3}
    for compute, directions in (
        (f, {3}),
        (sparse_hessian(chain, pattern=f.pattern, check=False), {3}),
        (sparse_hessian(chain), {4}),  # one more checks the pattern
        (sparse_hessian(chain, chunk_size=2), {2}),
    ):
        base.directions.clear()
        compute(base.tensor(np.linspace(-1.0, 2.0, 50)))
        assert set(base.directions) == directions


FUNCTIONS = {
    "chain": chain,
    "arrow": arrow,
    "separable": lambda x: (x**4).sum(),
    "linear": lambda x: x.sum() * 2.0,
    "groups": lambda x: (x.reshape(2, 3).softmax(1) * x.reshape(2, 3)).sum(),
    "dense": lambda x: (x.softmax(0) ** 2).sum(),
    "stencil": lambda x: ((ng.roll(x, 1) - 2.0 * x + ng.roll(x, -1)) ** 3).sum(),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("chunk_size", [None, 1, 2])
def test_a_sparse_hessian_is_the_dense_one(f, chunk_size, base):
    at = base.tensor(X)
    compute = sparse_hessian(f, chunk_size=chunk_size)
    right = hessian(f)(at).numpy()
    for _ in range(2):  # traced, and remembered
        found = compute(at)
        assert found.format == "csr" and found.dtype == np.float64 and found.has_sorted_indices
        assert np.allclose(found.toarray(), right, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("mode", ["auto", "columns", "rows"])
@pytest.mark.parametrize("chunk_size", [None, 1, 2])
def test_a_sparse_jacobian_is_the_dense_one(mode, chunk_size, base):
    for f in (lambda x: x[1:] ** 2 * x[:-1], lambda x: ng.concat([x.sum().reshape(1), x**3]), lambda x: x.sum(), lambda x: x.reshape(2, 3)):
        compute = sparse_jacobian(f, mode=mode, chunk_size=chunk_size)
        right = jacrev(f)(base.tensor(X)).numpy().reshape(-1, 6)
        for _ in range(2):
            assert np.allclose(compute(base.tensor(X)).toarray(), right, rtol=1e-13)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 5)), min_size=1, max_size=3), st.integers(0, 10**6))
def test_matrices_of_random_programs_are_the_dense_ones(steps, seed):
    def f(x):
        for name, k in steps:
            x = STEPS[name](x, k)
        return x.tanh()

    first, second = np.random.default_rng(seed).normal(size=(2, 8))
    energy = lambda x: (f(x) * x).sum()
    by_hessian, by_jacobian = sparse_hessian(energy), sparse_jacobian(f)
    for point in (first, second):
        assert np.allclose(by_hessian(point).toarray(), hessian(energy)(point).numpy(), rtol=1e-9, atol=1e-10)
        assert np.allclose(by_jacobian(point).toarray(), jacrev(f)(point).numpy(), rtol=1e-10, atol=1e-11)


def test_arguments_of_any_shape_and_other_arguments():
    f = lambda k, x, power=2: (k * (x[1:] * x[:-1]) ** power).sum()
    x = np.arange(1.0, 7.0).reshape(3, 2)
    compute = sparse_hessian(f, argnums=1)
    for k in (2.0, np.ones((2, 2))):
        for power in (2, 3):
            right = hessian(f, argnums=1)(k, x, power=power).numpy().reshape(6, 6)
            assert np.allclose(compute(k, x, power=power).toarray(), right, rtol=1e-13)
    assert sparse_hessian(lambda x: x**3)(2.0).toarray().tolist() == [[12.0]]


def test_numbers_of_other_arguments_have_no_part_in_the_pattern():
    compute = sparse_jacobian(lambda x, a: a @ x)
    assert np.array_equal(compute(X, np.zeros((6, 6))).toarray(), np.zeros((6, 6)))
    assert np.array_equal(compute(X, BAND * 1.0).toarray(), BAND)


def test_the_dtype_is_that_of_the_function():
    for x in (X.astype("float32"), ng.NumpyBackend(dtype="float32").tensor(X.tolist())):
        compute = sparse_hessian(chain)
        assert compute(x).dtype == np.float32 and compute(x).dtype == np.float32
    assert sparse_hessian(lambda x: x.sum())(X.astype("float32")).dtype == np.float32


@pytest.mark.parametrize("mode", ["columns", "rows"])
def test_a_shorter_dtype_on_the_way_is_no_missing_entry(mode):
    """Products are rounded as the shorter of the dtypes is, though they come out in the longer one."""
    x, k = X.astype("float32"), np.linspace(0.3, 1.7, 6)
    for f, right in ((lambda x: k * x**2, 2.0 * k * x), (lambda x: (k * x).astype("float32"), k)):
        assert np.allclose(sparse_jacobian(f, mode=mode)(x).toarray(), np.diag(right), rtol=1e-6)
    with pytest.raises(PatternError, match="pattern of 6 entries"):
        sparse_jacobian(lambda x: k * x.flip(0), pattern=np.eye(6), mode=mode)(x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_comes_as_single(dtype):
    torch = pytest.importorskip("torch")
    x = torch.linspace(-1.0, 1.0, 6).to(getattr(torch, dtype))
    found = sparse_hessian(chain)(x)
    assert found.dtype == np.float32
    assert np.allclose(found.toarray(), hessian(chain)(X).numpy(), rtol=0.0, atol=0.1)  # eight bits of twelve
    with pytest.raises(PatternError, match="pattern of 6 entries"):
        sparse_hessian(lambda x: (x[1:] * x[:-1]).sum(), pattern=np.eye(6))(x)


def test_zero_sizes_give_matrices_of_zero_size():
    assert sparse_hessian(lambda x: (x**2).sum())(np.zeros(0)).shape == (0, 0)
    assert sparse_jacobian(lambda x: x[:0])(np.zeros(3)).shape == (0, 3)
    assert sparse_jacobian(lambda x: ng.zeros(3) + x.sum())(np.zeros(0)).shape == (3, 0)
    assert sparse_hessian(chain, pattern=np.zeros((0, 0)))(np.zeros(0)).shape == (0, 0)


def test_what_was_found_is_told_and_remembered_by_shapes():
    calls = []
    f = sparse_hessian(lambda x: calls.append(1) or chain(x))
    assert f.pattern is f.colors is f.products is None
    f(X)
    assert np.array_equal(f.pattern.toarray(), BAND) and f.products == 3 and sorted(set(f.colors.tolist())) == [0, 1, 2]
    count = len(calls)
    f(X)
    assert len(calls) == count + 1  # a single run
    f(X[:3])
    assert f.pattern.shape == (3, 3) and len(calls) > count + 2


def test_numbers_that_change_do_not_pile_up():
    runs = []
    f = sparse_jacobian(lambda x, k: runs.append(1) or k * x**3)
    f(2.0, 1.0)
    count = len(runs)
    f(3.0, 1.0)
    assert len(runs) == count + 1  # another point, which is not looked at
    for k in range(200):
        assert f(2.0, float(k)).toarray().item() == 12.0 * k
    assert len(f._made) <= 64
    count = len(runs)
    f(2.0, 199.0)
    assert len(runs) == count + 1


def test_a_given_pattern_may_be_one_triangle_sparse_or_larger_than_it_must_be():
    import scipy.sparse

    right = hessian(chain)(X).numpy()
    for pattern in (np.triu(BAND), scipy.sparse.coo_matrix(np.tril(BAND)), scipy.sparse.csr_array(BAND), np.ones((6, 6)), BAND * 2.0):
        assert np.allclose(sparse_hessian(chain, pattern=pattern)(X).toarray(), right, rtol=1e-13)


def test_functions_that_branch_on_values_take_a_pattern():
    f = lambda x: chain(x) if x[0] > 0 else (x**2).sum()
    with pytest.raises(TraceError, match=r"(?s)^sparse_hessian: .*Try ng.where.*Or give pattern="):
        sparse_hessian(f)(X)
    compute = sparse_hessian(f, pattern=BAND)
    assert np.allclose(compute(-X).toarray(), hessian(chain)(-X).numpy(), rtol=1e-13)
    assert np.array_equal(compute(X).toarray(), 2.0 * np.eye(6))


def test_a_pattern_that_lacks_an_entry_is_detected():
    lacking = BAND.copy()
    lacking[2, 3] = lacking[3, 2] = False
    with pytest.raises(PatternError, match=r"^sparse_hessian: got a pattern of 14 entries that does not hold .* Try pattern=None"):
        sparse_hessian(chain, pattern=lacking)(X)
    with pytest.raises(ShapeError, match=r"got a pattern of shape \(6,\); .* Try sparse_hessian\(f\)\(x\) if that is the argument"):
        sparse_hessian(chain, np.ones(6))
    for mode in ("columns", "rows"):
        with pytest.raises(PatternError, match=r"^sparse_jacobian: got a pattern of 5 entries"):
            sparse_jacobian(lambda x: x[1:] * x[:-1], pattern=np.eye(5, 6), mode=mode)(X)
    with pytest.raises(PatternError, match="pattern of 0 entries"):
        sparse_hessian(chain, pattern=np.zeros((6, 6)))(X)


def test_a_closure_that_changed_is_detected():
    factor = [0.0]
    f = sparse_hessian(lambda x: (x**3).sum() + (factor[0] * x[1:] * x[:-1]).sum() if factor[0] else (x**3).sum())
    f(X)
    factor[0] = 1.0
    with pytest.raises(PatternError, match="or make a new sparse_hessian, if what the function closes over has changed"):
        f(X)


def test_rounding_is_no_missing_entry():
    """The curvature of what is constant is rounding, which is another one in each product."""
    f = lambda x: (x.sin() ** 2 + x.cos() ** 2).sum() + 1e6 * (x[1:] - x[:-1]).sum()
    compute = sparse_hessian(f)
    for scale in (1.0, 30.0):
        assert abs(compute(scale * X).toarray()).max() < 1e-10


ERRORS = {
    "not scalar": (lambda: sparse_hessian(lambda x: x**2)(X), ShapeError, r"returned shape \(6,\); expected a 0-dimensional"),
    "whole numbers": (lambda: sparse_hessian(chain)(np.arange(3)), DTypeError, "sparse_hessian: got an argument of dtype int64"),
    "a structure": (lambda: sparse_hessian(chain)({"a": X}), ShapeError, r"got an argument of structure \{'a': \*\}; expected a single"),
    "several outputs": (lambda: sparse_jacobian(lambda x: (x, x))(X), ShapeError, r"returned \(\*, \*\); expected a single Tensor"),
    "several outputs, given": (
        lambda: sparse_jacobian(lambda x: (x, x), pattern=BAND)(X), ShapeError, "returned a tuple; expected a single Tensor"),
    "rows": (lambda: sparse_jacobian(chain, pattern=BAND)(X), ShapeError, "a pattern of 6 rows for an output of 1 entries"),
    "columns": (lambda: sparse_jacobian(chain, pattern=np.ones((1, 5)))(X), ShapeError, r"pattern of shape \(1, 5\) for an argument of 6"),
    "not square": (lambda: sparse_hessian(chain, pattern=np.ones((5, 6))), ShapeError, r"shape \(5, 6\); expected \(n, n\)"),
    "no matrix": (lambda: sparse_jacobian(chain, pattern=np.ones(6)), ShapeError, r"shape \(6,\); expected \(m, n\)"),
    "mode": (lambda: sparse_jacobian(chain, mode="forward"), ArgumentError, "got mode 'forward'; expected one of auto, columns, rows"),
    "argnums": (lambda: sparse_hessian(chain, argnums=(0, 1)), ArgumentError, r"got argnums \(0, 1\); expected one int"),
    "chunk": (lambda: sparse_hessian(chain, chunk_size=0), ShapeError, "sparse_hessian: got chunk_size 0"),
    "mapped": (lambda: vmap(sparse_hessian(chain))(np.ones((2, 6))), LevelError, "got an argument on vmap level 1; expected none"),
    "traced": (lambda: trace(sparse_hessian(chain))(X), LevelError, "got an argument on trace level 1; expected none"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), ERRORS.values(), ids=ERRORS)
def test_errors_say_what_was_got_and_what_was_expected(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_plain_numbers_do_not_make_constants_of_tracked_tensors():
    level = ng.Autodiff(ng.NumpyBackend())
    tracked = level.tensor(X, requires_grad=True)
    with pytest.raises(LevelError, match=r"got an argument on Autodiff level 1; .* Try func\.hessian, func\.hessian_diag"):
        sparse_hessian(chain)(tracked)
    for compute in (sparse_hessian(lambda x: (tracked * x**3).sum()), sparse_jacobian(lambda x: tracked * x**3, mode="rows")):
        with pytest.raises(LevelError, match="got a result on Autodiff level 1"):
            compute(X)
    assert sparse_hessian(lambda x: (tracked.detach() * x**3).sum())(X).nnz == 6


def test_without_scipy_the_error_says_what_to_install():
    program = (
        "import sys; sys.modules['scipy'] = None\n"
        "import numpy as np, nestgrad as ng\n"
        "x = np.ones(300)\n"
        "assert ng.func.hessian_diag(lambda x: (x**3).sum())(x).tolist() == [6.0] * 300\n"
        "try:\n    ng.sparse.sparse_hessian(lambda x: (x**3).sum())\n"
        "except ng.errors.BackendError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("sparse_hessian needs scipy, which is not installed. Try pip install nestgrad[scipy]")


def test_a_chain_of_ten_thousand_takes_well_under_a_second():
    """Pattern, colours and products the first time; products alone the second."""
    x = np.linspace(-1.0, 2.0, 10_000)
    compute, spent = sparse_hessian(chain), []
    for _ in range(2):
        start = time.process_time()
        found = compute(x)
        spent.append(time.process_time() - start)
    assert spent[0] < 1.0 and spent[1] < 0.5
    assert found.nnz == 29_998 and np.isclose(found[0, 0], 12.0 - np.sin(x[0] * x[1]) * x[1] ** 2, rtol=1e-13)


def test_chunks_bound_the_memory_of_a_dense_hessian():
    n = 1500
    tracemalloc.start()
    found = hessian(chain, chunk_size=50)(np.linspace(-1.0, 1.0, n))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shape == (n, n) and peak - 8 * n * n < 60e6
