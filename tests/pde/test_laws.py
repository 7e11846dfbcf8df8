"""Laws of vector calculus, for random fields at random points; and closed forms that mathematical physics knows."""

import numpy as np
import pytest
from fields import FIRST, SECOND
from hypothesis import given, settings, strategies as st

import nestgrad as ng
from nestgrad import pde

numbers = st.floats(-2.0, 2.0, allow_subnormal=False).map(lambda a: round(a, 6))


def vectors(d: int) -> st.SearchStrategy:
    return st.lists(numbers, min_size=d, max_size=d).map(np.array)


def field(waves: list[np.ndarray], amplitudes: np.ndarray):
    """A sum of waves, of bounded derivatives, with products of coordinates between."""
    return lambda x: sum(a * ((x * k).sum() + x[0] * x[1]).sin() for a, k in zip(amplitudes, waves, strict=True))


@st.composite
def scalar_fields(draw, d=3):
    return field(draw(st.lists(vectors(d), min_size=2, max_size=2)), draw(vectors(2)))


@st.composite
def vector_fields(draw, d=3):
    parts = [draw(scalar_fields(d)) for _ in range(d)]
    return lambda x: ng.stack([part(x) for part in parts])


batches = st.lists(vectors(3), min_size=1, max_size=3).map(np.stack)
few = settings(max_examples=12, deadline=None, derandomize=True)


def same(a, b):
    """Up to rounding: the fields and their derivatives are of the size of 1 to 100."""
    a, b = a.numpy(), b if isinstance(b, float) else b.numpy()
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@few
@given(scalar_fields(), batches, st.sampled_from(FIRST), st.sampled_from(FIRST))
def test_the_curl_of_a_gradient_is_zero(u, at, inner, outer):
    same(pde.curl(pde.gradient(u, inner), outer)(at), 0.0)


@few
@given(vector_fields(), batches, st.sampled_from(FIRST), st.sampled_from(FIRST))
def test_the_divergence_of_a_curl_is_zero(f, at, inner, outer):
    same(pde.divergence(pde.curl(f, inner), outer)(at), 0.0)


@few
@given(scalar_fields(), batches, st.sampled_from(FIRST), st.sampled_from(SECOND))
def test_the_divergence_of_a_gradient_is_the_laplacian(u, at, first, second):
    same(pde.divergence(pde.gradient(u, first), first)(at), pde.laplacian(u, second)(at))


@few
@given(vector_fields(), batches, st.sampled_from(SECOND))
def test_the_curl_of_a_curl_is_the_gradient_of_the_divergence_less_the_laplacian(f, at, method):
    same(pde.curl(pde.curl(f))(at) + pde.laplacian(f, method)(at), pde.gradient(pde.divergence(f))(at))


@few
@given(scalar_fields(), scalar_fields(), batches, st.sampled_from(SECOND))
def test_the_laplacian_of_a_product(u, v, at, method):
    laplacian = lambda f: pde.laplacian(f, method)(at)
    value = lambda f: ng.func.vmap(f)(at)
    mixed = (pde.gradient(u)(at) * pde.gradient(v)(at)).sum(1)
    same(laplacian(lambda x: u(x) * v(x)), value(u) * laplacian(v) + value(v) * laplacian(u) + 2.0 * mixed)


@few
@given(scalar_fields(), scalar_fields(), numbers, batches, st.sampled_from(SECOND))
def test_operators_are_linear(u, v, a, at, method):
    for operator in (pde.laplacian, pde.hessian_diag, pde.biharmonic, lambda f, m: pde.directional(f, [1.0, -0.5, 2.0], 3, m)):
        same(operator(lambda x: u(x) + a * v(x), method)(at), operator(u, method)(at) + a * operator(v, method)(at))


@few
@given(scalar_fields(), batches, vectors(3), st.sampled_from(SECOND))
def test_turning_space_turns_the_gradient_and_leaves_laplacian_and_biharmonic(u, at, axis, method):
    turn = np.linalg.qr(np.outer(axis, [1.0, 2.0, 3.0]) + np.eye(3))[0]
    turned = lambda x: u(ng.tensor(turn) @ x)
    same(pde.laplacian(turned, method)(at), pde.laplacian(u, method)(at @ turn.T))
    same(pde.biharmonic(turned, method)(at), pde.biharmonic(u, method)(at @ turn.T))
    same(pde.gradient(turned)(at), pde.gradient(u)(at @ turn.T) @ turn)


@few
@given(scalar_fields(), batches, vectors(3), st.integers(1, 4), st.sampled_from(SECOND))
def test_a_directional_derivative_is_homogeneous_in_the_direction(u, at, v, order, method):
    derivative = lambda v: pde.directional(u, v, order, method)(at)
    same(derivative(-2.0 * v), (-2.0) ** order * derivative(v))
    if order == 1:
        same(derivative(v), (pde.gradient(u)(at) * v).sum(1))


def _power(x, k):
    """(x0 + i x1)^k as a pair."""
    a, b = 1.0, 0.0
    for _ in range(k):
        a, b = a * x[0] - b * x[1], a * x[1] + b * x[0]
    return a, b


AT = np.random.default_rng(0).uniform(0.4, 1.5, size=(4, 3))
RADIUS = np.sqrt((AT**2).sum(1))


@pytest.mark.parametrize("method", SECOND)
@pytest.mark.parametrize("k", [2, 3, 6])
def test_harmonic_and_biharmonic_polynomials(base, k, method):
    at = base.tensor(AT[:, :2])
    for part in (0, 1):
        np.testing.assert_allclose(pde.laplacian(lambda x, i=part: _power(x, k)[i], method)(at).numpy(), 0.0, atol=1e-11)
        lifted = lambda x, i=part: (x * x).sum() * _power(x, k)[i]
        want = 4.0 * (k + 1) * ng.func.vmap(lambda x, i=part: _power(x, k)[i])(at)  # the Laplacian of r^2 h, with h homogeneous
        np.testing.assert_allclose(pde.laplacian(lifted, method)(at).numpy(), want.numpy(), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(pde.biharmonic(lifted, method)(at).numpy(), 0.0, atol=1e-9)


@pytest.mark.parametrize("method", SECOND)
def test_plane_waves_are_eigenfunctions(base, method):
    k = base.tensor([1.5, -0.5, 2.0])
    wave = lambda x: ng.stack([(k * x).sum().cos(), (k * x).sum().sin()])
    at = base.tensor(AT)
    u, size = ng.func.vmap(wave)(at), 2.25 + 0.25 + 4.0
    np.testing.assert_allclose(pde.laplacian(wave, method)(at).numpy(), -size * u.numpy(), rtol=1e-12)
    np.testing.assert_allclose(pde.biharmonic(wave, method)(at).numpy(), size**2 * u.numpy(), rtol=1e-11)


@pytest.mark.parametrize("method", SECOND)
def test_gaussian_and_fundamental_solutions(base, method):
    at = base.tensor(AT)
    r2, u = RADIUS**2, np.exp(-(RADIUS**2) / 2.0)
    gauss = lambda x: (-0.5 * (x * x).sum()).exp()
    np.testing.assert_allclose(pde.laplacian(gauss, method)(at).numpy(), (r2 - 3.0) * u, rtol=1e-12)
    np.testing.assert_allclose(pde.biharmonic(gauss, method)(at).numpy(), (r2**2 - 10.0 * r2 + 15.0) * u, rtol=1e-10, atol=1e-12)
    radius = lambda x: (x * x).sum().sqrt()
    np.testing.assert_allclose(pde.laplacian(lambda x: 1.0 / radius(x), method)(at).numpy(), 0.0, atol=1e-12)
    np.testing.assert_allclose(pde.laplacian(radius, method)(at).numpy(), 2.0 / RADIUS, rtol=1e-12)
    np.testing.assert_allclose(pde.biharmonic(radius, method)(at).numpy(), 0.0, atol=1e-9)
    flat = base.tensor(AT[:, :2])
    thin = lambda x: (x * x).sum() * (x * x).sum().log()
    np.testing.assert_allclose(pde.biharmonic(thin, method)(flat).numpy(), 0.0, atol=1e-9)


def test_a_heat_kernel_solves_the_heat_equation(base):
    """In (t, x, y): derivatives by single coordinates, first and second."""
    kernel = lambda p: (-(p[1] ** 2 + p[2] ** 2) / (4.0 * p[0])).exp() / p[0]
    at = base.tensor(AT)
    diffusion = pde.hessian_diag(kernel)(at)[:, 1:].sum(1)
    np.testing.assert_allclose(pde.directional(kernel, 0)(at).numpy(), diffusion.numpy(), rtol=1e-10)


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("first", FIRST)
def test_the_gradient_of_a_laplacian(base, first, second):
    """Third derivatives, of exp(a . x) in closed form."""
    a = np.array([0.7, -1.1, 0.4])
    wave = lambda x: (x * base.tensor(a)).sum().exp()
    found = pde.gradient(pde.laplacian(wave, second), first)(base.tensor(AT))
    np.testing.assert_allclose(found.numpy(), np.exp(AT @ a)[:, None] * a * (a @ a), rtol=1e-12)
