"""Each operator by each method, in one to four dimensions, against SymPy."""

import numpy as np
import pytest
import sympy
from fields import FIRST, SCALARS, SECOND, VECTORS, by, close, laplace, ours, points, total, values

import nestgrad as ng
from nestgrad import pde

DIMENSIONS = [1, 2, 3, 4]


@pytest.mark.parametrize("method", FIRST)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_gradient(base, d, method):
    want = values([by(SCALARS[d], i) for i in range(d)], points(d))
    close(pde.gradient(ours(SCALARS[d], d), method)(base.tensor(points(d))), want)


@pytest.mark.parametrize("method", FIRST)
@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("m", [1, 2, 9])
def test_jacobian(base, d, m, method):
    field = [(VECTORS[d] * m)[k] * (k + 1) for k in range(m)]
    want = values([[by(e, i) for i in range(d)] for e in field], points(d))
    close(pde.jacobian(ours(field, d), method)(base.tensor(points(d))), want)


@pytest.mark.parametrize("method", FIRST)
def test_the_jacobian_of_a_matrix_has_the_coordinate_last(base, method):
    field = [VECTORS[3], [by(e, 0) for e in VECTORS[3]]]
    want = values([[[by(e, i) for i in range(3)] for e in row] for row in field], points(3))
    close(pde.jacobian(ours(field, 3), method)(base.tensor(points(3))), want)


@pytest.mark.parametrize("method", FIRST)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_divergence(base, d, method):
    want = values(total([by(VECTORS[d][i], i) for i in range(d)]), points(d))
    close(pde.divergence(ours(VECTORS[d], d), method)(base.tensor(points(d))), want)


@pytest.mark.parametrize("method", FIRST)
def test_the_divergence_of_a_tensor_field_is_that_of_each_row(base, method):
    stress = [[by(e, i) for i in range(3)] for e in VECTORS[3]]
    want = values([total([by(row[j], j) for j in range(3)]) for row in stress], points(3))
    close(pde.divergence(ours(stress, 3), method)(base.tensor(points(3))), want)


@pytest.mark.parametrize("method", FIRST)
def test_curl(base, method):
    f = VECTORS[3]
    want = values([by(f[2], 1) - by(f[1], 2), by(f[0], 2) - by(f[2], 0), by(f[1], 0) - by(f[0], 1)], points(3))
    close(pde.curl(ours(f, 3), method)(base.tensor(points(3))), want)


@pytest.mark.parametrize("method", FIRST)
def test_curl_in_the_plane_is_a_number(base, method):
    f = VECTORS[2]
    close(pde.curl(ours(f, 2), method)(base.tensor(points(2))), values(by(f[1], 0) - by(f[0], 1), points(2)))


@pytest.mark.parametrize("method", SECOND)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_laplacian_and_hessian_diag(base, d, method):
    for field in (SCALARS[d], VECTORS[d], [VECTORS[d], VECTORS[d][::-1]]):
        f, at = ours(field, d), base.tensor(points(d))
        pure = values(_pure(field, d), points(d))
        close(pde.hessian_diag(f, method)(at), pure)
        close(pde.laplacian(f, method)(at), pure.sum(-1))


@pytest.mark.parametrize("method", SECOND)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_value_gradient_laplacian(base, d, method):
    for field in (SCALARS[d], VECTORS[d]):
        u, slope, lap = pde.value_gradient_laplacian(ours(field, d), method)(base.tensor(points(d)))
        close(u, values(field, points(d)))
        close(slope, values(_slopes(field, d), points(d)))
        close(lap, values(laplace(field, d), points(d)))


@pytest.mark.parametrize("method", SECOND)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_biharmonic(base, d, method):
    want = values(laplace(laplace(SCALARS[d], d), d), points(d))
    close(pde.biharmonic(ours(SCALARS[d], d), method)(base.tensor(points(d))), want, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("method", SECOND)
def test_the_biharmonic_operator_keeps_components_apart(base, method):
    want = values(laplace(laplace(VECTORS[2], 2), 2), points(2))
    close(pde.biharmonic(ours(VECTORS[2], 2), method)(base.tensor(points(2))), want, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("method", SECOND)
@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_directional(base, order, method):
    t, v = sympy.Symbol("t"), [0.5, -1.0, 2.0]
    for field in (SCALARS[3], VECTORS[3]):
        along = [e.subs({s: s + t * a for s, a in zip(sympy.symbols("x0:3", real=True), v, strict=True)}) for e in np.ravel([field])]
        want = values([sympy.diff(e, t, order).subs(t, 0) for e in along], points(3))
        found = pde.directional(ours(field, 3), v, order, method)(base.tensor(points(3)))
        close(found, want if isinstance(field, list) else want[:, 0], rtol=1e-10)


@pytest.mark.parametrize("method", SECOND)
def test_a_direction_for_each_point_and_a_coordinate(base, method):
    f, at = ours(SCALARS[2], 2), base.tensor(points(2))
    normals = base.tensor(np.array([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]]))
    slopes = values([by(SCALARS[2], i) for i in range(2)], points(2))
    close(pde.directional(f, normals, 1, method)(at), (slopes * normals.numpy()).sum(1))
    for k in (1, -1, np.int64(1)):
        close(pde.directional(f, k, 3, method)(at), values(by(SCALARS[2], 1, 1, 1), points(2)))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_directions_of_order_four_are_a_cubature(d):
    """The weighted sum of fourth powers along them is that of the length, for all points: as polynomials."""
    vectors, weight = pde.collapsed._EVEN[d - 1]
    s = sympy.symbols(f"s0:{d}")
    powers = sum(weight * sum(a * b for a, b in zip(v, s, strict=True)) ** 4 for v in vectors)
    rest = sympy.Poly(sympy.expand(powers - sum(a * a for a in s) ** 2), *s)
    assert max(abs(float(c)) for c in rest.coeffs()) < 1e-15


@pytest.mark.parametrize("d", [1, 2, 3])
def test_no_fewer_directions_would_do(d):
    """The fourth derivatives of a fourth power, as a matrix over pairs of coordinates, have rank 1; those of the length's have this."""
    s = sympy.symbols(f"s0:{d}")
    pairs = [(i, k) for i in range(d) for k in range(i + 1)]
    power = sum(a * a for a in s) ** 2
    matrix = sympy.Matrix([[sympy.diff(power, *(s[i] for i in (*p, *q))) for q in pairs] for p in pairs])
    assert matrix.rank() == len(pde.collapsed._EVEN[d - 1][0])


@pytest.mark.parametrize("method", SECOND)
def test_more_coordinates_than_are_taken_at_once(base, method):
    """Laplacian of sum of cubes and of a product of neighbours, in 150 dimensions."""
    at = np.random.default_rng(0).normal(size=(2, 150))
    u = lambda p: (p**3).sum() + (p[1:] * p[:-1]).sum() ** 2
    a = np.pad(at, ((0, 0), (1, 0)))[:, :-1] + np.pad(at, ((0, 0), (0, 1)))[:, 1:]
    want = 6.0 * at + 2.0 * a**2
    close(pde.hessian_diag(u, method)(base.tensor(at)), want)
    close(pde.laplacian(u, method)(base.tensor(at)), want.sum(1), rtol=1e-11)


def test_single_precision_stays_single(base):
    at = base.tensor(points(2).astype("float32"))
    for method in SECOND:
        found = pde.laplacian(ours(SCALARS[2], 2), method)(at)
        assert "float32" in str(found.dtype)
        np.testing.assert_allclose(found.numpy(), values(laplace(SCALARS[2], 2), points(2)), rtol=2e-5)
    assert "float32" in str(pde.biharmonic(ours(SCALARS[2], 2))(at).dtype)
    assert "float32" in str(pde.directional(ours(SCALARS[2], 2), [1.0, 2.0], 3)(at).dtype)


def _pure(field, d):
    return [_pure(e, d) for e in field] if isinstance(field, list) else [by(field, i, i) for i in range(d)]


def _slopes(field, d):
    return [_slopes(e, d) for e in field] if isinstance(field, list) else [by(field, i) for i in range(d)]


def test_fields_of_the_reference_are_what_they_say():
    """The compiled field agrees with its expression, so that an error in it would not be taken for one of an operator."""
    for d in DIMENSIONS:
        close(ng.func.vmap(ours(VECTORS[d], d))(points(d)), values(VECTORS[d], points(d)))
