"""Operators on operators, in transforms and traces, with other arguments, and in chunks."""

import numpy as np
import pytest
import sympy
from fields import FIRST, OPERATORS, SCALARS, SECOND, X, by, close, laplace, ours, points, total, values

import nestgrad as ng
from nestgrad import pde

FIELD = lambda x, a=1.0, b=0.5: ng.stack([(a * x[0]).sin() * x[1] ** 2, (b * x[0] * x[1]).exp()])
OF_FIELD = {
    **OPERATORS,
    "gradient": lambda f, **options: pde.gradient(lambda x, *a, **k: f(x, *a, **k)[0], **options),
}
"""Each operator on a field of two components: the gradient on the first."""


def parts(found):
    return [x.numpy() for x in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("name", OF_FIELD)
def test_many_points_are_each_point_alone_and_chunks_are_the_whole(base, name):
    at = base.tensor(points(2, 7))
    whole = parts(OF_FIELD[name](FIELD)(at))
    alone = [parts(OF_FIELD[name](FIELD)(p)) for p in at]
    for k, part in enumerate(whole):
        np.testing.assert_allclose(part, np.stack([one[k] for one in alone]), rtol=1e-12, atol=1e-13)
    for size in (1, 3, 100):
        for part, chunked in zip(whole, parts(OF_FIELD[name](FIELD, chunk_size=size)(at)), strict=True):
            np.testing.assert_allclose(part, chunked, rtol=1e-12, atol=1e-13)


def test_a_chunk_is_as_many_points_as_are_asked_for(base):
    seen = []
    f = lambda x: seen.append(1) or (x**3).sum()
    pde.laplacian(f, chunk_size=4)(base.tensor(points(2, 10)))
    assert len(seen) == 3


@pytest.mark.parametrize("name", OF_FIELD)
def test_other_arguments_reach_the_field_unmapped(base, name):
    at = base.tensor(points(2, 3))
    bound = parts(OF_FIELD[name](lambda x: FIELD(x, 2.0, -1.0))(at))
    for given in (OF_FIELD[name](FIELD)(at, 2.0, b=-1.0), OF_FIELD[name](FIELD)(at, base.tensor(2.0), b=base.tensor(-1.0))):
        for part, want in zip(parts(given), bound, strict=True):
            np.testing.assert_allclose(part, want, rtol=1e-14)


@pytest.mark.parametrize("name", OF_FIELD)
def test_arrays_go_to_the_backend_of_what_the_field_holds_or_is_given(base, name):
    scale = base.tensor(2.0)
    for found in (OF_FIELD[name](lambda x: FIELD(x, scale))(points(2)), OF_FIELD[name](FIELD)(points(2), scale)):
        for part in found if isinstance(found, tuple) else (found,):
            assert part.b.base == base


@pytest.mark.parametrize("method", FIRST)
def test_a_flux_with_a_variable_coefficient(base, method):
    k, u = sympy.exp(X[0]) + X[1] ** 2, SCALARS[2]
    want = values(total([by(k * by(u, i), i) for i in range(2)]), points(2))
    ku, uu = ours(k, 2), ours(u, 2)
    flux = lambda x: ku(x) * pde.gradient(uu, method)(x)
    close(pde.divergence(flux, method)(base.tensor(points(2))), want)


@pytest.mark.parametrize("inner", SECOND)
@pytest.mark.parametrize("outer", SECOND)
def test_operators_of_each_method_on_those_of_each_other(base, inner, outer):
    u = SCALARS[2]
    twice = pde.laplacian(pde.laplacian(ours(u, 2), inner), outer)
    close(twice(base.tensor(points(2))), values(laplace(laplace(u, 2), 2), points(2)), rtol=1e-10, atol=1e-11)
    mixed = pde.directional(pde.directional(ours(u, 2), 0, 2, inner), 1, 2, outer)
    close(mixed(base.tensor(points(2))), values(by(u, 0, 0, 1, 1), points(2)), rtol=1e-10, atol=1e-11)


def test_linear_elasticity(base):
    """The divergence of the stress of a displacement: (lambda + mu) grad div u + mu laplacian u for constant coefficients."""
    lam, mu = 1.3, 0.7
    displacement = ours([sympy.sin(X[0] * X[1]), sympy.exp(X[1]) * X[0] ** 2], 2)

    def stress(x):
        j = pde.jacobian(displacement)(x)
        strain = 0.5 * (j + j.T)
        return lam * ng.trace(strain) * ng.eye(2, backend=base) + 2.0 * mu * strain

    at = base.tensor(points(2))
    want = (lam + mu) * pde.gradient(pde.divergence(displacement))(at) + mu * pde.laplacian(displacement)(at)
    np.testing.assert_allclose(pde.divergence(stress)(at).numpy(), want.numpy(), rtol=1e-11)


@pytest.mark.parametrize("name", OF_FIELD)
def test_a_traced_operator_is_a_program_without_levels(base, name):
    at, other = base.tensor(points(2, 3)), base.tensor(points(2, 3) + 0.1)
    program = ng.func.trace(OF_FIELD[name](FIELD))(at)
    for part, want in zip(parts(ng.func.call(program, other)), parts(OF_FIELD[name](FIELD)(other)), strict=True):
        np.testing.assert_allclose(part, want, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("method", SECOND)
def test_operators_are_mapped_and_pushed_forward(base, method):
    """Over wave numbers, by vmap; and along one, by jvp."""
    at, k = base.tensor(points(2)), base.tensor([1.0, 2.0, 3.0])
    wave = lambda x, k: (k * x[0]).sin() * x[1]
    lap = lambda k: pde.laplacian(wave, method)(at, k)
    x, y = points(2).T
    mapped = ng.func.vmap(lap)(k).numpy()
    np.testing.assert_allclose(mapped, [-(n**2) * np.sin(n * x) * y for n in (1.0, 2.0, 3.0)], rtol=1e-12)
    moved = ng.func.jvp(lap, 2.0, 1.0)[1].numpy()
    np.testing.assert_allclose(moved, (-4.0 * np.sin(2.0 * x) - 4.0 * x * np.cos(2.0 * x)) * y, rtol=1e-12)


def test_code_in_the_imperative_style_inside(base):
    """A field that takes derivatives of its own, by levels from outside."""
    stack = ng.Autodiff(base)

    def speed(x):
        x = stack.tensor(x, requires_grad=True)
        return (x[0] ** 3 * x[1] ** 2).wrt(x)[0]

    at = points(2)
    found = pde.laplacian(speed)(base.tensor(at))
    np.testing.assert_allclose(found.numpy(), 6.0 * at[:, 1] ** 2 + 6.0 * at[:, 0] ** 2, rtol=1e-13)
