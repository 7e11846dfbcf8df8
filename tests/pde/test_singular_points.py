"""Where one derivative is infinite, the others are what they are: nothing times infinity is taken for a number."""

import numpy as np
import pytest
from fields import FIRST, SECOND

import nestgrad as ng
from nestgrad import pde

AT = np.array([[2.0, 0.0], [1.0, 4.0]])
ROOTS = lambda x: ng.stack([x[0] ** 2, x[1].sqrt(), x[0] * x[0] + x[1] ** 1.5])


@pytest.mark.parametrize("method", FIRST)
def test_first_derivatives_beside_an_infinite_one(base, method):
    at = base.tensor(AT)
    jacobian = [[[4.0, 0.0], [0.0, np.inf], [4.0, 0.0]], [[2.0, 0.0], [0.0, 0.25], [2.0, 3.0]]]
    np.testing.assert_allclose(pde.jacobian(ROOTS, method)(at).numpy(), jacobian, rtol=1e-14)
    np.testing.assert_allclose(pde.gradient(lambda x: ROOTS(x)[1], method)(at).numpy(), [[0.0, np.inf], [0.0, 0.25]])
    swapped = lambda x: ng.stack([x[0] + x[1].sqrt(), 3.0 * x[1]])  # infinite by the other coordinate
    assert pde.divergence(swapped, method)(at).tolist() == [4.0, 4.0]
    rows = pde.divergence(lambda x: ng.stack([swapped(x), 2.0 * swapped(x)]), method)(at)
    assert rows.tolist() == [[4.0, 8.0], [4.0, 8.0]]
    assert pde.curl(lambda x: ng.stack([x[0].sqrt() * 2.0, x[0] - x[1].sqrt()]), method)(at).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("method", SECOND)
def test_second_derivatives_beside_an_infinite_one(base, method):
    at = base.tensor(AT)
    pure = [[[2.0, 0.0], [0.0, -np.inf], [2.0, np.inf]], [[2.0, 0.0], [0.0, -1 / 32], [2.0, 3 / 8]]]
    np.testing.assert_allclose(pde.hessian_diag(ROOTS, method)(at).numpy(), pure, rtol=1e-14)
    np.testing.assert_allclose(pde.laplacian(ROOTS, method)(at).numpy(), np.sum(pure, -1), rtol=1e-14)
    for order, want in [(1, [[4.0, 0.0, 4.0], [2.0, 0.0, 2.0]]), (2, [[2.0, 0.0, 2.0]] * 2), (3, [[0.0] * 3] * 2)]:
        for direction in (0, [1.0, 0.0]):
            np.testing.assert_allclose(pde.directional(ROOTS, direction, order, method)(at).numpy(), want, atol=1e-14)


@pytest.mark.parametrize("method", SECOND)
def test_a_direction_may_be_tracked_and_rest(base, method):
    """The derivative of v . grad u by v is grad u, also where v is 0."""
    v = ng.Autodiff(base).tensor([0.0, 1.0], requires_grad=True)
    found = pde.directional(lambda x: x[0] ** 3 * x[1], v, 1, method)(base.tensor(AT))
    np.testing.assert_allclose(found.detach().numpy(), [8.0, 1.0])
    np.testing.assert_allclose(found.wrt(v).numpy(), [0.0 + 12.0, 9.0])


@pytest.mark.parametrize("method", SECOND)
def test_a_radial_field_at_the_origin(base, method):
    """Written with the sum of squares, it is smooth there: the softened potential."""
    soft = lambda x: (1.0 + (x * x).sum()) ** -0.5
    at = base.tensor(np.zeros((2, 3)))
    np.testing.assert_allclose(pde.laplacian(soft, method)(at).numpy(), [-3.0, -3.0], rtol=1e-14)
    np.testing.assert_allclose(pde.biharmonic(soft, method)(at).numpy(), [45.0, 45.0], rtol=1e-12)
