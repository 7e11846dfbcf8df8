"""Cases once more, by all that could serve: ``functional``, ``func``, ``pde``, ``sparse``, ``optimize`` and ``linalg``."""

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from orders import check
from scipy.optimize import minimize
from test_captures import W, X, _chain, _cross_entropy
from test_fields import DIAGONAL, _u
from test_sciences import (
    ACCELERATIONS,
    EVIDENCE,
    GREEKS,
    ORBITALS,
    PARTICLES,
    PENALTY,
    _call,
    _critic,
    _energy,
    _lagrangian,
    _log_joint,
    _loss,
    _rosenbrock,
)  # fmt: skip

import nestgrad as ng
from nestgrad import func, functional, optimize, pde
from nestgrad.errors import FunctionalError

JACOBIANS = [{"strategy": s, "vectorize": v} for s in ("reverse-mode", "forward-mode") for v in (False, True)]
HESSIANS = [{"outer_jacobian_strategy": o["strategy"], "vectorize": o["vectorize"]} for o in JACOBIANS]
jacobians = pytest.mark.parametrize("options", JACOBIANS, ids=str)
hessians = pytest.mark.parametrize("options", HESSIANS, ids=str)
modes = pytest.mark.parametrize("mode", ["forward", "reversed"])


@hessians
def test_09_the_laplacian_of_a_vector_field_is_a_trace_for_each_component(base, options):
    parts = (lambda p: p[0] ** 2 + p[1] ** 2, lambda p: p[0] ** 2 - p[1] ** 2)
    trace = lambda f, p: functional.hessian(f, p, **options).trace()
    check([[trace(f, base.tensor(p)).item() for f in parts] for p in ([0.2, 3.1], [0.9, 3.7])], [[4.0, 0.0], [4.0, 0.0]], atol=1e-14)


@modes
def test_10_one_input_and_two_outputs_by_products_with_ones(base, mode):
    t = base.tensor([[0.1], [0.5], [2.0]])
    ones = base.tensor(np.ones((3, 1)))
    y = lambda t: ng.concat([t.sin(), t**3], axis=1)
    once = lambda t: functional.jvp(y, t, ones, create_graph=True, mode=mode)[1]
    check(once(t), [[0.9950041652780258, 0.03], [0.8775825618903728, 0.75], [-0.4161468365471424, 12.0]])
    check(functional.jvp(once, t, ones, mode=mode)[1], [[-0.09983341664682815, 0.6], [-0.479425538604203, 3], [-0.9092974268256817, 12.0]])


@jacobians
def test_11_a_jacobian_shows_how_samples_couple(base, options):
    found = functional.jacobian(lambda x: x.cumsum(0) ** 2, base.tensor([1.0, 2.0, 3.0]), **options)
    check(found, [[2.0, 0.0, 0.0], [6.0, 6.0, 0.0], [12.0, 12.0, 12.0]])


@pytest.mark.parametrize(("k", "right"), [(1, [0.0, 0.0, 0.0]), (2, [0.0, 0.0, 2.0]), (3, [0.0, 0.0, 12.0])])
def test_12_relu_has_no_curvature(base, k, right):
    x, u = base.tensor([-1.0, 0.0, 2.0]), lambda x: (x.relu() ** k).sum()
    for options in HESSIANS:
        check(functional.hessian(u, x, **options), np.diag(right))
    check(func.hessian_diag(u)(x), right)
    check([func.derivative(u, (i, i))(x).item() for i in range(3)], right)


def test_12_a_differential_operator_warns_of_fields_without_curvature(base):
    x = base.tensor([[-1.0], [0.5], [2.0]])
    with pytest.warns(pde.PiecewiseLinearWarning, match="relu"):
        check(pde.laplacian(lambda x: x.relu()[0])(x), np.zeros(3))
    check(pde.laplacian(lambda x: (x.relu() ** 3)[0])(x), [0.0, 3.0, 12.0])


def test_13_the_diagonal_of_the_hessian_alone(base):
    p = base.tensor([0.3, -0.4, 1.2])
    u = lambda p: _u(p[0], p[1], p[2])
    check(func.hessian_diag(u)(p), DIAGONAL)
    check(func.hessian_diag(u, chunk_size=1)(p), DIAGONAL)
    check(pde.hessian_diag(u)(p), DIAGONAL)
    check([func.derivative(_u, (i, i), argnums=(0, 1, 2))(0.3, -0.4, 1.2).item() for i in range(3)], DIAGONAL)


def test_13_the_diagonal_of_a_big_hessian_does_not_take_a_matrix():
    """Nor for something coupled, whose colours are few; a matrix would take 32 MB."""
    n = 2000
    values = np.linspace(-1.0, 1.0, n)
    tracemalloc.start()
    found = func.hessian_diag(_chain)(ng.tensor(values))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    u = values[:-1] * values[1:]
    right = 12.0 * values**2 - np.append(np.sin(u) * values[1:] ** 2, 0.0) - np.insert(np.sin(u) * values[:-1] ** 2, 0, 0.0)
    check(found, right, atol=1e-13)
    assert peak < 8 * n * n / 4


def test_16_and_24_what_has_zeros_among_its_factors_by_all_options(base):
    x = base.tensor([2.0, 3.0, 0.0, 0.0])
    right = np.zeros((4, 4))
    right[2, 3] = right[3, 2] = 6.0
    for options in HESSIANS:
        check(functional.hessian(lambda x: x.prod(), x, **options), right)
    powers = lambda x: (x ** np.array([1.0, 2.0, 3.0, 4.0])).sum()
    assert [func.derivative(powers, (0,) * n)(base.tensor(0.0)).item() for n in range(1, 6)] == [1.0, 2.0, 6.0, 24.0, 0.0]


def test_26_the_hessian_of_a_determinant_at_the_identity(base):
    d = np.eye(3)
    right = np.einsum("ij,kl->ijkl", d, d) - np.einsum("il,jk->ijkl", d, d)
    for options in HESSIANS:
        check(functional.hessian(ng.linalg.det, base.tensor(d), **options), right, atol=1e-14)


def test_25_a_determinant_by_all_compositions(base):
    det = lambda t: ng.linalg.det(ng.stack([ng.stack([t + 1.0, t * t]), ng.stack([t * 0.0 + 2.0, 3.0 * t - 1.0])]))
    for outer, inner in itertools.product((func.jacrev, func.jacfwd), repeat=2):
        check(outer(inner(det))(base.tensor(0.7)), 2.0)
    check(func.derivative(det, (0, 0))(base.tensor(0.7)), 2.0)
    assert math.isclose(functional.hessian(det, base.tensor(0.7)).item(), 2.0)


TANGENT = [
    [3.366317482617261, 0.2629241647352512, -0.5258483294705024, 1.921770427638591],
    [0.2629241647352512, 1.0292137960816945, 0.911967792285783, 0.3213517568986404],
    [-0.5258483294705024, 0.911967792285783, 1.1168551843267782, -0.6427035137972807],
    [1.921770427638591, 0.3213517568986404, -0.6427035137972807, 4.534869325885044],
]


def _by_det(F: Any) -> Any:
    return ng.linalg.det(F).log()


def _by_slogdet(F: Any) -> Any:
    return ng.linalg.slogdet(F)[1]


@pytest.mark.parametrize("log_of_volume", [_by_det, _by_slogdet])
def test_34_a_material_tangent(base, log_of_volume):
    def energy(F: Any) -> Any:
        log = log_of_volume(F)
        return ((F * F).sum() - 2.0 - 2.0 * log) / 2.0 + log**2

    F = base.tensor([[1.1, 0.2], [-0.1, 0.9]])
    for options in HESSIANS:
        check(functional.hessian(energy, F, **options).reshape(4, 4), TANGENT)
    for outer, inner in itertools.product((func.jacrev, func.jacfwd), repeat=2):
        check(outer(inner(energy))(F).reshape(4, 4), TANGENT)
    check(func.hessian_diag(energy)(F).reshape(4), np.diag(TANGENT))
    check(optimize.hessian_operator(energy, F) @ np.eye(4), TANGENT)


@hessians
def test_49_strict_refuses_a_hessian_by_what_was_not_used(base, options):
    w, captured = base.tensor(W), base.tensor(W)
    z = np.exp(np.array(W) @ np.array(X))
    p = z / z.sum()
    right = np.einsum("ab,c,d->acbd", np.diag(p) - np.outer(p, p), X, X)
    check(functional.hessian(_cross_entropy, w, strict=True, **options), right)
    assert not functional.hessian(lambda w: _cross_entropy(captured), w, **options).numpy().any()
    with pytest.raises(FunctionalError, match="does not require gradients"):
        functional.hessian(lambda w: _cross_entropy(captured), w, strict=True, **options)


ROWS = {
    0: [0.047757333074, -0.107453999415, 0, 0, 0.119393332684, 0],
    3: [0, 0, -0.717411301909, 1.614175429296, 0, -1.793528254773],
    5: [0, 0, 0.797123668788, -1.793528254773, 0, 1.992809171971],
}


def test_50_one_flat_matrix_for_a_set_of_parameters(base):
    def loss(w: Any, b: Any) -> Any:
        return ((w @ np.array([0.4, -0.9]) + b).tanh() ** 2).sum()

    params = base.tensor([[0.5, -0.3], [0.8, 0.1]]), base.tensor([0.1, -0.2])
    c = optimize.scipy_callables(lambda p: loss(*p), params)
    found = [c.hess(c.x0), optimize.hessian_operator(lambda p: loss(*p), params) @ np.eye(6)]
    for options in HESSIANS:
        (ww, wb), (bw, bb) = functional.hessian(loss, params, **options)
        found.append(np.block([[ww.numpy().reshape(4, 4), wb.numpy().reshape(4, 2)], [bw.numpy().reshape(2, 4), bb.numpy()]]))
    for matrix in found:
        assert matrix.shape == (6, 6)
        for k, row in ROWS.items():  # printed to twelve decimal places
            check(matrix[k], np.array(row, float), rtol=0, atol=1e-12)


def test_53_a_sparse_hessian_has_its_nonzeros_from_three_products(base):
    hessian = ng.sparse.sparse_hessian(_chain)
    found = hessian(base.tensor(np.linspace(-1.0, 1.0, 50)))
    assert (found.nnz, hessian.products) == (148, 3)
    check([found[0, 0], found[49, 49], found[0, 1], found[24, 25]], [11.246747454039268] * 2 + [-0.21111732307350262, 0.9999997398002178])
    check(found.trace(), 190.33339597292587)
    check(found.toarray(), func.hessian(_chain)(base.tensor(np.linspace(-1.0, 1.0, 50))), atol=1e-14)


@pytest.mark.parametrize(
    ("f", "n", "right"),
    [(lambda x: 1.0 / (1.0 - x), 20, 2432902008176640000.0), (lambda x: x.sin().exp(), 8, 217.0), (lambda x: x.sin().exp(), 12, 5973.0)],
    ids=["1/(1-x)", "exp sin, 8", "exp sin, 12"],
)
def test_54_high_orders_as_one_partial_derivative(base, f, n, right):
    check(func.derivative(f, (0,) * n)(base.tensor(0.0)), right)
    check(pde.directional(lambda x: f(x[0]), 0, n)(base.tensor([[0.0], [0.0]])), [right] * 2)


@modes
def test_54_the_eighth_derivative_by_products(base, mode):
    g = lambda x: x.sin().exp()
    for k in range(6):
        g = lambda x, g=g, k=k: functional.jvp(g, x, create_graph=k < 5, mode=mode)[1]
    check(g(base.tensor(0.3)), func.derivative(lambda x: x.sin().exp(), (0,) * 6)(base.tensor(0.3)))


def test_55_gamma_is_not_summed_with_cross_terms(base):
    z, x, y = lambda x, y: (x * y) ** 2, base.tensor(1.5), base.tensor(-2.0)
    for options in HESSIANS:
        (xx, xy), (yx, yy) = functional.hessian(z, (x, y), **options)
        assert [h.item() for h in (xx, xy, yx, yy)] == [8.0, -12.0, -12.0, 4.5]
    assert [func.derivative(z, axes, argnums=(0, 1))(x, y).item() for axes in ((0, 0), (0, 1), (1, 0), (1, 1))] == [8.0, -12.0, -12.0, 4.5]
    assert [h.item() for h in func.hessian_diag(z, argnums=(0, 1))(x, y)] == [8.0, 4.5]


@pytest.mark.parametrize(("right", "path"), GREEKS.values(), ids=GREEKS)
def test_56_each_greek_is_one_partial_derivative(base, right, path):
    market = [base.tensor(v) for v in (100.0, 0.25, 0.75)]
    check(func.derivative(_call, path, argnums=(0, 1, 2))(*market), right)
    check(func.derivative(_call, path[::-1], argnums=(0, 1, 2))(*market), right)


@hessians
def test_56_all_greeks_of_second_order(base, options):
    market = tuple(base.tensor(v) for v in (100.0, 0.25, 0.75))
    found = functional.hessian(_call, market, **options)
    for name in ("gamma", "vanna", "volga", "charm"):
        right, (i, j) = GREEKS[name]
        check(found[i][j], right)
        check(found[j][i], right)


@jacobians
def test_57_christoffel_symbols_by_an_inverse(base, options):
    def metric(q: Any) -> Any:
        return ng.diagonal(ng.stack([ng.stack([q[0] * 0.0 + 1.0, q[0].sin() ** 2])] * 2), 0) * np.eye(2)

    q = base.tensor([0.8, 0.3])
    d = functional.jacobian(metric, q, **options)  # d[i, j, k] = d g_ij / d q_k
    lowered = (d + d.swapaxes(1, 2) - ng.moveaxis(d, 2, 0)) / 2.0
    right = np.zeros((2, 2, 2))
    right[0, 1, 1] = -0.49978680152075255
    right[1, 0, 1] = right[1, 1, 0] = 0.9712146006504744
    check(ng.einsum("mk,kij->mij", ng.linalg.inv(metric(q)), lowered), right, atol=1e-15)


@hessians
def test_58_a_lagrangian_gives_accelerations(base, options):
    q, v = base.tensor([0.5, -0.3]), base.tensor([0.7, -1.1])
    (_, _), (coupling, mass) = functional.hessian(_lagrangian, (q, v), **options)
    force = functional.vjp(lambda q: _lagrangian(q, v), q)[1] - coupling @ v
    check(ng.linalg.solve(mass, force), ACCELERATIONS)


@pytest.mark.parametrize(("psi", "right"), ORBITALS.values(), ids=ORBITALS)
def test_59_the_local_kinetic_energy(base, psi, right):
    r, log = base.tensor([0.3, -0.4, 1.2]), lambda r: psi(r).log()
    check(-0.5 * func.hessian_diag(psi)(r).sum() / psi(r), right)
    check(-0.5 * sum(func.derivative(psi, (i, i))(r) for i in range(3)) / psi(r), right)
    _, gradient, laplacian = pde.value_gradient_laplacian(log)(r)
    check(-0.5 * (laplacian + (gradient * gradient).sum()), right)
    for options in HESSIANS:
        check(-0.5 * functional.hessian(psi, r, **options).trace() / psi(r), right)


def test_61_scipy_takes_the_callables_as_they_are(base):
    c = optimize.scipy_callables(_rosenbrock, base.tensor([-1.2, 1.0, 0.7]))
    product = c.hessp(c.x0, np.array([1.0, -1.0, 0.5]))
    assert product.dtype == np.float64
    check(product, [850.0, -842.0, 500.0])
    for product in (functional.hvp, functional.vhp):
        check(product(_rosenbrock, base.tensor(c.x0), base.tensor([1.0, -1.0, 0.5]))[1], [850.0, -842.0, 500.0])
    check(minimize(c.fun, c.x0, jac=c.jac, hessp=c.hessp, method="trust-ncg").x, np.ones(3), rtol=1e-6)
    check(minimize(c.fun, c.x0, jac=c.jac, hess=c.hess, method="trust-exact", options={"gtol": 1e-8}).x, np.ones(3), rtol=1e-6)


@hessians
def test_62_a_log_determinant_of_a_hessian_is_differentiated_twice(base, options):
    f, s = base.tensor([0.4, -0.2]), base.tensor(1.5)
    evidence = lambda s: ng.linalg.slogdet(-functional.hessian(lambda f: _log_joint(f, s), f, create_graph=True, **options))[1] / 2.0
    check(functional.vjp(evidence, s)[1], EVIDENCE[0])
    check(functional.hessian(evidence, s, **options), EVIDENCE[1])
    check([func.derivative(evidence, (0,) * n)(s).item() for n in (1, 2)], EVIDENCE)


def test_63_a_gradient_penalty(base):
    w, x = base.tensor([[0.5, -0.3], [0.8, 0.1]]), base.tensor([0.4, -0.9])

    def penalty(w: Any, how: Any) -> Any:
        return (how(lambda x: _critic(w, x), x).norm() - 1.0) ** 2

    ways = [lambda f, x: functional.vjp(f, x, create_graph=True)[1], lambda f, x: pde.gradient(f)(x)]
    ways += [lambda f, x, o=o: functional.jacobian(f, x, create_graph=True, **o) for o in JACOBIANS]
    for how, options in itertools.product(ways, JACOBIANS):
        check(functional.jacobian(lambda w, how=how: penalty(w, how), w, **options), PENALTY)
    c = optimize.scipy_callables(lambda w: penalty(w, ways[0]), w)
    check(c.jac(c.x0).reshape(2, 2), PENALTY)


def test_64_the_gradient_through_a_gradient_step(base):
    q = base.tensor(1.3)
    step = lambda q, slope: _loss(q - 0.05 * slope(q))
    through = lambda q: step(q, lambda q: functional.vjp(_loss, q, create_graph=True)[1])
    check(functional.vjp(through, q)[1], -0.021638171352896366)
    check(func.derivative(lambda q: step(q, func.derivative(_loss, (0,))), (0,))(q), -0.021638171352896366)
    for approximate in (
        lambda q: step(q, lambda q: functional.vjp(_loss, q)[1]),  # without create_graph it is a constant
        lambda q: step(q, lambda q: func.stop_gradient(func.grad(_loss)(q))),
    ):
        check(functional.jacobian(approximate, q), 4.0 * 0.9606**3 - 2.0)


def test_65_a_loss_of_energy_and_forces(base):
    p, k = base.tensor(PARTICLES), base.tensor(2.5)
    ways = [lambda e, p: functional.vjp(e, p, create_graph=True), lambda e, p: (e(p), functional.jacobian(e, p, create_graph=True))]
    for how in ways:

        def loss(k: Any, how: Any = how) -> Any:
            energy, force = how(lambda p: _energy(p, k), p)
            return energy**2 + (force * force).sum()

        check([func.derivative(loss, (0,) * n)(k).item() for n in (1, 2)], [14.23812293782896, 16.4297715019829])
        for options in HESSIANS:
            check(functional.hessian(loss, k, **options), 16.4297715019829)
