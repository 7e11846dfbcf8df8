"""Determinants at matrices of every rank: Taylor coefficients by exact rational arithmetic, and derivatives by nested modes."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from nestgrad import func
from nestgrad.backends import TorchBackend
from nestgrad.backends.derived.linalg import Linalg
from nestgrad.backends.numpy import NumpyBackend
from nestgrad.linalg import det

ORDER = 6
SIZES = [(n, rank, True) for n in range(1, 6) for rank in range(n + 1)]
SIZES += [(n, rank, False) for n, ranks in ((3, (1, 2)), (5, (1, 2, 4)), (7, (3, 4, 6))) for rank in ranks]  # but for rounding errors


def exact(a: np.ndarray, step: np.ndarray, order: int = ORDER) -> list[float]:
    """The coefficients of ``det(a + t step)``, with nothing rounded but the results: row by row, over all sets of columns."""
    n = len(a)
    table = {0: [Fraction(1)]}
    for i in range(n):
        new: dict[int, list[Fraction]] = {}
        for columns, p in table.items():
            for j in (j for j in range(n) if not columns >> j & 1):
                sign = -1 if (columns >> j).bit_count() % 2 else 1
                into = new.setdefault(columns | 1 << j, [Fraction(0)] * (i + 2))
                for k, c in enumerate(p):
                    into[k] += sign * c * Fraction(float(a[i, j]))
                    into[k + 1] += sign * c * Fraction(float(step[i, j]))
        table = new
    found = [float(c) for c in table[(1 << n) - 1]]
    return (found + [0.0] * order)[: order + 1]


def of_rank(n: int, rank: int, whole: bool = True) -> np.ndarray:
    """A matrix of whole numbers, or one whose rank is that but for rounding errors."""
    rng = np.random.default_rng(10 * n + rank)
    if whole:
        return (rng.integers(-3, 4, (n, rank)) @ rng.integers(-3, 4, (rank, n))).astype(float)
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n))


def direction(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, n))


def coefficients(backend: Any, a: Any, step: Any, order: int = ORDER) -> Any:
    """Of ``det(a + t step)``, along the first axis."""
    with np.errstate(all="ignore"):  # the infinite ones
        found = func.taylor(det, backend.tensor(a), backend.tensor(step), order=order)
    return np.stack([np.asarray(c.numpy(), float) for c in found])


def agree(got: Any, want: Any, lost: bool, tolerance: float = 3e-14) -> None:
    """All of them, to rounding errors of the largest; or those up to the third, while all others say that they are none."""
    got, want = np.asarray(got), np.asarray(want)
    kept = 4 if lost else len(want)
    scale = max(np.abs(want).max(), 1.0)
    assert np.abs(got[:kept] - want[:kept]).max() <= tolerance * scale, f"got {got}, expected {want}"
    assert not np.isfinite(got[kept:]).any()


@pytest.mark.parametrize(("n", "rank", "whole"), SIZES)
def test_taylor_coefficients_are_right_at_every_rank(double, n, rank, whole):
    a, step = of_rank(n, rank, whole), direction(n)
    agree(coefficients(double, a, step), exact(a, step), lost=n > 3 and np.linalg.matrix_rank(a) < n - 3)


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
def test_nested_reverse_mode_is_right_to_third_order_at_every_rank(double, nest, rank):
    a, step = of_rank(4, rank), direction(4)
    x = nest(double, 3).tensor(a, requires_grad=True)
    y, want = det(x), exact(a, step)
    for factorial, k in ((1, 1), (2, 2), (6, 3)):
        y = (y.wrt(x) * step).sum()
        assert y.item() == pytest.approx(factorial * want[k], rel=1e-13, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("mode", ["forward twice", "reverse twice", "forward over reverse", "reverse over forward"])
def test_the_hessian_at_the_identity_by_all_compositions(double, n, mode):
    d = np.eye(n)
    outer, inner = {
        "forward twice": (func.jacfwd, func.jacfwd), "reverse twice": (func.jacrev, func.jacrev),
        "forward over reverse": (func.jacfwd, func.jacrev), "reverse over forward": (func.jacrev, func.jacfwd),
    }[mode]  # fmt: skip
    got = outer(inner(det))(double.tensor(d)).numpy()
    np.testing.assert_allclose(got, np.einsum("ij,kl->ijkl", d, d) - np.einsum("il,jk->ijkl", d, d), atol=1e-14)


@pytest.mark.parametrize("n", [4, 5])
def test_the_gradient_is_the_matrix_of_cofactors(double, n):
    """By minors, each an exact determinant; at a matrix of rank n - 1."""
    a = of_rank(n, n - 1)
    minor = lambda i, j: np.delete(np.delete(a, i, 0), j, 1)
    want = [[(-1) ** (i + j) * exact(minor(i, j), minor(i, j))[0] for j in range(n)] for i in range(n)]
    np.testing.assert_allclose(func.grad(det)(double.tensor(a)).numpy(), want, rtol=0, atol=1e-13 * np.abs(want).max())


def test_matrices_of_all_ranks_in_one_stack(double):
    """Each has an order of elimination of its own."""
    a, step = np.stack([of_rank(5, rank) for rank in range(6)]).reshape(2, 3, 5, 5), direction(5)
    got = coefficients(double, a, np.broadcast_to(step, a.shape)).reshape(ORDER + 1, 6)
    for rank in range(6):
        agree(got[:, rank], exact(of_rank(5, rank), step), lost=rank < 2)


def test_matrices_of_all_ranks_in_a_batch(double):
    a, step = np.stack([of_rank(5, rank) for rank in range(6)]), double.tensor(direction(5))
    slope = func.vmap(func.grad(lambda x: (func.grad(det)(x) * step).sum()))(double.tensor(a))
    for rank in range(6):
        want = 2 * exact(of_rank(5, rank), direction(5))[2]
        assert (slope[rank] * step).sum().item() == pytest.approx(want, rel=1e-13, abs=1e-10)


def test_a_program_orders_each_matrix_anew(double):
    """What was traced at one matrix is right at others, of other ranks: the order is computed, not kept."""
    step = double.tensor(direction(5))
    second = lambda x: (func.grad(lambda v: (func.grad(det)(v) * step).sum())(x) * step).sum()
    program = func.trace(second)(double.tensor(np.eye(5)))
    for rank in (2, 3, 4, 5):
        a = of_rank(5, rank)
        want = 2 * exact(a, direction(5))[2]
        assert func.call(program, double.tensor(a)).item() == pytest.approx(want, rel=1e-13, abs=1e-10)


@pytest.mark.parametrize("rank", [0, 12, 14, 16, 18])
def test_larger_matrices_which_are_eliminated_one_by_one(double, rank):
    """Coefficients below n less the rank are 0, and the next one is a minor times the singular values."""
    n = 18
    rng = np.random.default_rng(rank)
    u, v = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    sizes = np.where(np.arange(n) < rank, np.linspace(1.0, 2.0, n), 0.0)
    step = rng.normal(size=(n, n))
    # det(u s v' + t step) = det(u) det(v) det(s + t u' step v), of which the order n - rank is the product of s times a minor
    inner = u.T @ step @ v
    first = np.prod(sizes[:rank]) * np.linalg.det(inner[rank:, rank:]) * np.linalg.det(u) * np.linalg.det(v)
    got = coefficients(double, u @ np.diag(sizes) @ v.T, step, 4)
    if n - rank < 4:
        assert got[n - rank] == pytest.approx(first, rel=1e-13)
    np.testing.assert_allclose(got[: min(n - rank, 4)], 0.0, atol=1e-11)  # roundings of coefficients up to 2e4
    assert np.isfinite(got[4]) == (n - rank <= 3)


@pytest.mark.parametrize("backend", [NumpyBackend("float32"), TorchBackend()], ids=repr)
def test_single_precision(backend):
    for n, rank in ((3, 1), (4, 2), (5, 2), (5, 5), (5, 1)):
        a, step = of_rank(n, rank).astype("float32"), direction(n).astype("float32")
        agree(coefficients(backend, a, step), exact(a, step), lost=n > 3 and rank < n - 3, tolerance=2e-5)  # some 170 roundings


@pytest.mark.parametrize("scales", [(1e20, 1.0, 1.0, 1.0, 1.0), (1.0, 1e-5, 1e-10, 1e-15, 1e-20), (1e10, 1.0, 1e-10, 1.0, 1e5)], ids=str)
def test_rows_of_different_size_are_no_sign_of_a_lower_rank(double, scales):
    """To rounding errors of each derivative itself, up to the fourth."""
    a, step = np.diag(scales) @ (np.eye(5) + 0.3 * direction(5)), direction(5)
    got, want = coefficients(double, a, step, 4), exact(a, step, 4)
    np.testing.assert_allclose(got, want, rtol=1e-13)


def test_rounding_errors_of_large_numbers_are_no_pivots(double):
    """What is left of two nearly equal large rows is noise, but greater than all that counts."""
    a = np.eye(6) + 0.3 * direction(6)
    a[:2, 2:] = a[2:, :2] = 0.0
    a[:2, :2] = 1e20
    a[1, 1] += 2e4
    step = direction(6)
    got, want = coefficients(double, a, step, 3), exact(a, step, 3)
    np.testing.assert_allclose(got[1:], want[1:], rtol=1e-13)


@pytest.mark.parametrize("n", [5, 20])
def test_no_matrices_have_no_gradients(double, n):
    assert func.grad(lambda x: det(x).sum())(double.tensor(np.zeros((0, n, n)))).shape == (0, n, n)
    assert func.grad(lambda x: det(x).sum())(double.tensor(np.zeros((2, 0, n, n)))).shape == (2, 0, n, n)


def test_fifty_digits(fifty_digits):
    """The defaults for a backend without LAPACK, at ranks n and n - 3."""
    for rank in (5, 2):
        a, step = of_rank(5, rank), direction(5)
        got = func.taylor(det, fifty_digits.tensor(a), fifty_digits.tensor(step), order=4)
        want = exact(a, step, 4)
        for g, w in zip(got, want, strict=True):
            assert float(g.b.read(g.value)) == pytest.approx(w, rel=1e-15, abs=1e-40)


# the order of elimination


@pytest.mark.parametrize("n", [4, 6, 9, 16, 20])
def test_the_order_is_even_and_says_what_its_pivots_are_worth(double, n):
    for rank, worth in ((n, 0), (n - 3, 0), (n - 4, 2), (0, 2)):
        u = np.linalg.qr(direction(n))[0]
        a = u @ np.diag(np.where(np.arange(n) < rank, 1.5, 0.0)) @ u.T
        rows, columns, words = double.to_numpy(double.pivots(double.asarray(a)))
        assert sorted(rows) == sorted(columns) == list(range(n))
        assert np.linalg.det(np.eye(n)[rows]) == pytest.approx(np.linalg.det(np.eye(n)[columns]))
        assert words[n - 4] == worth
        if worth == 0:
            assert np.linalg.cond(a[np.ix_(rows[:-3], columns[:-3])]) < 50 * n


def test_what_is_left_of_a_pivot_is_vague(double):
    for n in (5, 17):
        u = np.linalg.qr(direction(n))[0]
        for small, worth in ((1e-2, 0), (1e-7, 1), (1e-17, 2)):
            a = u @ np.diag([1.5] * (n - 4) + [small] * 4) @ u.T
            assert double.to_numpy(double.pivots(double.asarray(a)))[2, n - 4] == worth


def test_kernels_choose_as_the_defaults_do(double):
    """The libraries' for large matrices and the default, where the matrix is not far from a singular one."""
    u = np.linalg.qr(direction(20))[0]
    a = u @ np.diag(np.logspace(0, -12, 20)) @ np.linalg.qr(u.T + u)[0]
    x = double.asarray(a)
    np.testing.assert_array_equal(double.to_numpy(double.pivots(x)), double.to_numpy(Linalg.pivots(double, x)))
