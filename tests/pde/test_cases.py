"""What users of other tools ran into: values computed by SymPy, mpmath and JAX, in every method and over every backend."""

import numpy as np
import pytest
from fields import FIRST, SECOND

import nestgrad as ng
from nestgrad import pde


@pytest.mark.parametrize("method", SECOND)
def test_the_laplacian_of_a_vector_field_keeps_its_components_apart(base, method):
    points = base.tensor([[0.2, 3.1], [0.9, 3.7]])
    field = lambda x: ng.stack([x[0] ** 2 + x[1] ** 2, x[0] ** 2 - x[1] ** 2])
    np.testing.assert_allclose(pde.laplacian(field, method)(points).numpy(), [[4.0, 0.0], [4.0, 0.0]], atol=1e-14)


@pytest.mark.parametrize("method", SECOND)
def test_one_input_and_two_outputs_per_sample(base, method):
    t = base.tensor([[0.1], [0.5], [2.0]])
    y = lambda t: ng.stack([t[0].sin(), t[0] ** 3])
    first = [[0.9950041652780258, 0.03], [0.8775825618903728, 0.75], [-0.4161468365471424, 12.0]]
    second = [[-0.09983341664682815, 0.6], [-0.479425538604203, 3.0], [-0.9092974268256817, 12.0]]
    np.testing.assert_allclose(pde.directional(y, 0, 1, method)(t).numpy(), first, rtol=1e-12)
    np.testing.assert_allclose(pde.directional(y, 0, 2, method)(t).numpy(), second, rtol=1e-12)
    if method != "taylor":
        np.testing.assert_allclose(pde.jacobian(y, method)(t)[..., 0].numpy(), first, rtol=1e-12)


@pytest.mark.parametrize("method", FIRST)
def test_coupling_within_a_point_is_seen_and_between_points_there_is_none(base, method):
    """A function of one point cannot couple samples: what cumsum couples are the components of the output."""
    x = base.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
    found = pde.jacobian(lambda x: x.cumsum(0) ** 2, method)(x)
    assert found[0].tolist() == [[2.0, 0.0, 0.0], [6.0, 6.0, 0.0], [12.0, 12.0, 12.0]]
    alone = pde.jacobian(lambda x: x.cumsum(0) ** 2, method)(x[1])
    np.testing.assert_allclose(found[1].numpy(), alone.numpy(), rtol=1e-15)
    down = x[:, :1].numpy()  # three samples of one coordinate, of which nothing is accumulated
    assert pde.jacobian(lambda x: x.cumsum(0) ** 2, method)(down).numpy()[:, 0, 0].tolist() == (2.0 * down[:, 0]).tolist()


@pytest.mark.parametrize("method", SECOND)
def test_only_the_diagonal_of_the_hessian_and_not_summed(base, method):
    u = lambda x: x[0].sin() * (x[1] * x[2]).exp() + x[0] ** 3 * x[2]
    want = [1.9771370041748446, 0.26332271398822377, 0.029258079332024865]
    found = pde.hessian_diag(u, method)(base.tensor([[0.3, -0.4, 1.2], [0.3, -0.4, 1.2]]))
    np.testing.assert_allclose(found.numpy(), [want, want], rtol=1e-12)


@pytest.mark.parametrize("operator", [pde.hessian_diag, pde.laplacian], ids=lambda f: f.__name__)
@pytest.mark.parametrize("method", ["auto", "forward", "taylor"])
def test_of_many_coordinates_no_array_has_all_pairs(peak, operator, method):
    """A matrix of 2000 by 2000 would take 32 MB."""
    x = ng.tensor(np.linspace(-1.0, 1.0, 2000))
    found, taken = peak(lambda: operator(lambda x: (x**3).sum() + x.prod(), method)(x))
    want = 6.0 * np.linspace(-1.0, 1.0, 2000)
    np.testing.assert_allclose(found.numpy(), want if operator is pde.hessian_diag else want.sum(), atol=1e-10)
    assert taken < 24e6


@pytest.mark.parametrize("method", SECOND)
def test_gamma_is_not_summed_with_cross_terms(base, method):
    z = lambda x: (x[0] * x[1]) ** 2
    points = base.tensor([[1.5, -2.0], [1.5, -2.0]])
    np.testing.assert_allclose(pde.hessian_diag(z, method)(points).numpy(), [[8.0, 4.5]] * 2, rtol=1e-13)
    if method != "taylor":
        cross = pde.gradient(lambda x: pde.gradient(z, method)(x)[0], method)(points)
        np.testing.assert_allclose(cross.numpy(), [[8.0, -12.0]] * 2, rtol=1e-13)


@pytest.mark.parametrize("method", SECOND)
def test_local_kinetic_energy(base, method):
    r = base.tensor([[0.3, -0.4, 1.2], [0.3, -0.4, 1.2]])
    decay = lambda x: (-((x * x).sum() ** 0.5)).exp()
    shaped = lambda x: decay(x) * (1.0 + x[0] * x[2] / 3.0)
    for psi, want in [(decay, 0.26923076923076916), (shaped, 0.4340659340659341)]:
        energy = -0.5 * pde.laplacian(psi, method)(r) / ng.func.vmap(psi)(r)
        np.testing.assert_allclose(energy.numpy(), [want] * 2, rtol=1e-12)
        _, slope, lap = pde.value_gradient_laplacian(lambda x, psi=psi: psi(x).log(), method)(r)
        np.testing.assert_allclose((-0.5 * (lap + (slope * slope).sum(1))).numpy(), [want] * 2, rtol=1e-12)
