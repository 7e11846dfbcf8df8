"""Solutions, inverses and logarithms of determinants: values and derivatives by other routes, and what singular matrices give."""

from typing import Any

import mpmath
import numpy as np
import pytest
from frozen_backend import FrozenBackend

import nestgrad as ng
from nestgrad import func
from nestgrad.backends import NumpyBackend
from nestgrad.errors import DTypeError, ShapeError, SingularMatrixError
from nestgrad.linalg import det, inv, slogdet, solve

mp = mpmath.mp.clone()
mp.dps = 60


BASES = {"numpy": NumpyBackend(), "torch": ng.get_backend("torch", dtype="float64"), "frozen": FrozenBackend()}


def matrix(*shape: int, seed: int = 0) -> np.ndarray:
    """Far from a singular one."""
    return np.random.default_rng(seed).uniform(-1, 1, shape) + 2.0 * np.eye(shape[-1])


def sides(*shape: int) -> np.ndarray:
    return np.random.default_rng(9).uniform(-1, 1, shape)


# values


SHAPES = {
    "a vector": ((3, 3), (3,)),
    "columns": ((3, 3), (3, 2)),
    "a stack and a vector": ((2, 4, 3, 3), (3,)),
    "a stack and columns": ((2, 3, 3), (3, 3)),
    "one matrix and many": ((3, 3), (4, 3, 1)),
    "stacks that broadcast": ((2, 1, 3, 3), (4, 3, 2)),
    "one row": ((1, 1), (1,)),
    "no rows": ((0, 0), (0, 2)),
    "no columns": ((2, 3, 3), (3, 0)),
    "no matrices": ((0, 3, 3), (3, 2)),
}


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
@pytest.mark.parametrize("case", SHAPES)
def test_solutions_are_numpys(base, case):
    """A right side with one axis is a vector, any other is columns: NumPy's rule from version 2 on."""
    left, right = SHAPES[case]
    a, b = matrix(*left), sides(*right)
    got = solve(base.tensor(a), base.tensor(b))
    want = np.linalg.solve(a, b)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 1, 5, 5), (1, 1), (0, 0), (2, 0, 0), (0, 4, 4)], ids=str)
def test_inverses_and_determinants_are_numpys(base, shape):
    a = matrix(*shape, seed=2)
    a[..., :1, :] *= -1.0
    x = base.tensor(a)
    assert slogdet(x)._fields == np.linalg.slogdet(a)._fields
    pairs = [(inv(x), np.linalg.inv(a)), (det(x), np.linalg.det(a)), *zip(slogdet(x), np.linalg.slogdet(a), strict=True)]
    for got, want in pairs:
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-13, atol=1e-14)


def test_whole_numbers_become_floating(double):
    a = double.tensor([[2, 1], [1, 1]])
    assert det(a).item() == 1.0
    np.testing.assert_allclose(inv(a).numpy(), [[1.0, -1.0], [-1.0, 2.0]], rtol=1e-14)
    np.testing.assert_allclose(solve(a, double.tensor([1, 0])).numpy(), [1.0, -1.0], rtol=1e-14)
    assert slogdet(a)[1].item() == pytest.approx(0.0, abs=1e-15)


def test_plain_arrays_beside_tensors(double):
    a, b = matrix(3, 3), sides(3)
    want = np.linalg.solve(a, b)
    for got in (solve(a, b), solve(double.tensor(a), b), solve(a, double.tensor(b))):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-13)


def test_precisions_mix(double):
    a = double.tensor(matrix(3, 3).astype("float32"), dtype="float32")
    x = solve(a, double.tensor(sides(3)))
    assert "64" in str(x.dtype)
    np.testing.assert_allclose(x.numpy(), np.linalg.solve(matrix(3, 3).astype("float32").astype(float), sides(3)), rtol=1e-13)


# derivatives


def test_printed_derivatives(double):
    """Worked out by sympy: the Hessian of a determinant, and the Jacobians of a solution by matrix and right side."""
    hessian = func.hessian(det)(double.tensor([[1.3, 0.4], [-0.7, 0.9]])).numpy()
    right = np.zeros((2, 2, 2, 2))
    right[0, 0, 1, 1] = right[1, 1, 0, 0] = 1.0
    right[0, 1, 1, 0] = right[1, 0, 0, 1] = -1.0
    np.testing.assert_allclose(hessian, right, atol=1e-15)
    a, b = double.tensor([[3.0, 1.0], [0.5, 2.0]]), double.tensor([1.0, -2.0])
    np.testing.assert_allclose(solve(a, b).numpy(), [0.7272727272727273, -1.1818181818181819], rtol=1e-14)
    by_matrix = [
        [[-0.2644628099173554, 0.4297520661157025], [0.1322314049586777, -0.21487603305785125]],
        [[0.06611570247933884, -0.10743801652892562], [-0.39669421487603307, 0.6446280991735537]],
    ]
    by_side = [[0.36363636363636365, -0.18181818181818182], [-0.09090909090909091, 0.5454545454545454]]
    for jacobian in (func.jacrev, func.jacfwd):
        np.testing.assert_allclose(jacobian(solve)(a, b).numpy(), by_matrix, rtol=1e-13)
        np.testing.assert_allclose(jacobian(solve, 1)(a, b).numpy(), by_side, rtol=1e-13)


ORDER = 4


def _along(t: Any, a: np.ndarray, step: np.ndarray) -> Any:
    return mp.matrix(a.tolist()) + t * mp.matrix(step.tolist())


FUNCTIONS = {
    "solve": (lambda x, y: solve(x, y), lambda x, y: mp.lu_solve(x, y)),
    "inv": (lambda x, y: inv(x) @ y, lambda x, y: mp.inverse(x) * y),
    "slogdet": (lambda x, y: slogdet(x)[1] * y, lambda x, y: y * mp.log(abs(mp.det(x)))),
    "det": (lambda x, y: det(x) * y, lambda x, y: y * mp.det(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("way", ["nested reverse", "taylor"])
def test_derivatives_along_a_line_are_mpmaths_to_fourth_order(backend, nest, name, way):
    """To twelve digits in double precision, to forty with fifty."""
    ours, theirs = FUNCTIONS[name]
    a, step, b, change = matrix(4, 4), sides(4, 4), sides(4, 1), sides(4, 4)[:, :1]
    weights = [1.0, -2.0, 0.5, 3.0]
    f = lambda t: mp.fsum(w * v for w, v in zip(weights, theirs(_along(t, a, step), _along(t, b, change)), strict=True))
    want = [mp.mpf(v) for v in mp.diffs(f, 0, ORDER)]
    tensors = [backend.tensor(v.tolist()) for v in (a, step, b, change)]
    along = lambda t: (ours(tensors[0] + t * tensors[1], tensors[2] + t * tensors[3])[:, 0] * backend.tensor(weights)).sum()
    if way == "taylor":
        series = func.taylor(along, backend.tensor(0.0), backend.tensor(1.0), order=ORDER)
        found = [c * float(mp.factorial(k)) for k, c in enumerate(series)]
    else:
        t = nest(backend, ORDER).tensor(0.0, requires_grad=True)
        found = [along(t)]
        for _ in range(ORDER):
            found.append(found[-1].wrt(t))
    tolerance = mp.mpf("1e-40") if backend.name == "mpmath" else mp.mpf("1e-12")
    for g, w in zip(found, want, strict=True):
        got = mp.mpf(np.asarray(g.b.read(g.value)).reshape(-1).tolist()[0])
        assert abs(got - w) <= tolerance * max(map(abs, want)), f"got {got}, expected {mpmath.nstr(w, 20)}"


def test_one_matrix_with_a_batch_of_right_sides_is_factorised_once():
    counted: list[tuple[int, ...]] = []

    class Counting(NumpyBackend):
        def solve(self, x: Any, y: Any) -> Any:
            counted.append(x.shape)
            return super().solve(x, y)

    base = Counting()
    a, b = base.tensor(matrix(3, 3)), base.tensor(sides(50, 3))
    got = func.vmap(lambda v: solve(a, v))(b)
    assert counted == [(3, 3)]
    np.testing.assert_allclose(got.numpy(), np.linalg.solve(matrix(3, 3), sides(50, 3).T).T, rtol=1e-13)


def test_the_laplacians_of_a_logarithm_of_a_determinant_and_of_a_solution(double):
    """Minus the sum of the squares of the inverse's entries; and that of a solution, by the derivative of the inverse."""
    a = matrix(3, 3)
    inverse = np.linalg.inv(a)
    directions = double.tensor(np.eye(9).reshape(9, 3, 3))
    _, _, total = func.jets(lambda x: slogdet(x)[1], double.tensor(a), directions)
    assert 2 * total.item() == pytest.approx(-sum(inverse[j, i] ** 2 for i in range(3) for j in range(3)), rel=1e-13)
    _, _, total = func.jets(lambda x: (solve(x, sides(3)) * sides(3)).sum(), double.tensor(a), directions)
    # the second derivative by entry (i, j) of x^-1 b is 2 (x^-1)_ji of x^-1 e_i (x^-1 b)_j
    b, x = sides(3), np.linalg.solve(a, sides(3))
    want = sum(2 * (b @ inverse[:, i]) * inverse[j, i] * x[j] for i in range(3) for j in range(3))
    assert 2 * total.item() == pytest.approx(want, rel=1e-12)


# singular matrices


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
CALLS = {"solve": lambda a: solve(a, np.ones(2)), "inv": inv}


@pytest.mark.parametrize("name", CALLS)
def test_a_singular_matrix_is_refused(backend, name):
    stack = np.stack([np.eye(2), SINGULAR])
    with pytest.raises(SingularMatrixError, match=rf"{name}: got a singular matrix of shape \(2, 2\); expected .*Try x \+ c"):
        CALLS[name](backend.tensor(SINGULAR.tolist()))
    with pytest.raises(SingularMatrixError, match=rf"{name}: got a singular matrix in a stack of shape \(2, 2, 2\)"):
        CALLS[name](backend.tensor(stack.tolist()))
    with pytest.raises(ArithmeticError, match="singular"):
        func.grad(lambda a: CALLS[name](a).sum())(backend.tensor(SINGULAR.tolist()))


def test_the_logarithm_of_a_singular_matrix(backend):
    """The value is there, in a stack beside others; a derivative there is not, and is refused."""
    with np.errstate(divide="ignore"):
        sign, logabsdet = slogdet(backend.tensor([SINGULAR.tolist(), [[0.0, 1.0], [1.0, 0.0]]]))
    assert sign.tolist() == [0.0, -1.0] and logabsdet.tolist() == [-np.inf, 0.0]
    with np.errstate(divide="ignore"), pytest.raises(SingularMatrixError, match="got a singular matrix"):
        func.grad(lambda a: slogdet(a)[1])(backend.tensor(SINGULAR.tolist()))


def test_the_sign_is_a_constant(double, nest):
    x = nest(double, 1).tensor(matrix(2, 2), requires_grad=True)
    sign, logabsdet = slogdet(x)
    assert not sign.tracked_on() and logabsdet.tracked_on()


def test_what_is_no_number_stays_none(double):
    a = matrix(4, 4)
    a[1, 2] = np.nan
    with np.errstate(invalid="ignore"):
        assert np.isnan(det(double.tensor(a)).item()) and np.isnan(func.grad(det)(double.tensor(a)).numpy()).any()
        assert np.isnan(solve(double.tensor(a), sides(4)).numpy()).any()


# refusals


@pytest.mark.parametrize("name", ng.linalg.__all__)
def test_functions_of_other_libraries_name_ours(name):
    a = ng.tensor(matrix(2, 2))
    given = (a, a) if name == "solve" else (a,)
    with pytest.raises(ng.errors.ConversionError, match=rf"np.linalg.{name} of a Tensor: .*Try ng.linalg.{name}\(...\)"):
        getattr(np.linalg, name)(*given)


REFUSED = {
    "det of a vector": (lambda: det(np.ones(3)), ShapeError, r"det: got shape \(3,\); expected square matrices in the last two axes"),
    "det of rows": (lambda: det(np.ones((2, 3))), ShapeError, r"det: got shape \(2, 3\)"),
    "inv of rows": (lambda: inv(np.ones((4, 2, 3))), ShapeError, r"inv: got shape \(4, 2, 3\)"),
    "slogdet of a number": (lambda: slogdet(2.0), ShapeError, r"slogdet: got shape \(\)"),
    "solve with rows": (lambda: solve(np.ones((2, 3)), np.ones(2)), ShapeError, r"solve: got shape \(2, 3\)"),
    "solve for a number": (lambda: solve(np.eye(2), 1.0), ShapeError, r"solve: got a of shape \(2, 2\) and b of shape \(\)"),
    "solve for another size": (lambda: solve(np.eye(2), np.ones(3)), ShapeError, r"expected b of shape \(2,\), or \(..., 2, k\)"),
    "a stack of vectors": (lambda: solve(np.ones((5, 3, 3)), np.ones((5, 3))), ShapeError, r"Try b\[..., None\] for a stack of vectors"),
    "stacks that do not fit": (lambda: solve(matrix(2, 3, 3), np.ones((4, 3, 1))), ShapeError, r"solve: got shape \(2, 3, 3\), shape"),
    "complex numbers": (lambda: det(np.eye(2) * 1j), DTypeError, "complex"),
}


@pytest.mark.parametrize("call", [det, inv, slogdet, lambda a: solve(a, a)], ids=["det", "inv", "slogdet", "solve"])
def test_half_precision_is_refused(double, call):
    """Neither library has it, from four rows on."""
    with pytest.raises(DTypeError, match=r"(det|inv|slogdet|solve): got shape \(4, 4\).*; the backend refuses these dtypes"):
        call(double.tensor(np.eye(4), dtype="float16"))


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case):
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        call()
