"""Cases E: finance, geometry, physics, chemistry, optimisation. The right values come from sympy, mpmath or jax."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from orders import check
from scipy.optimize import minimize

import nestgrad as ng
from nestgrad.func import grad


def _variables(S: Any, *values: Any) -> list[Any]:
    return [S.tensor(v, requires_grad=True) for v in values]


def test_55_gamma_is_not_summed_with_cross_terms(stack):
    x, y = _variables(stack(2), 1.5, -2.0)
    z = (x * y) ** 2
    check([z.wrt(x).wrt(x).item(), z.wrt(x).wrt(y).item(), z.wrt(y).wrt(y).item()], [8.0, -12.0, 4.5])


def test_55_a_seed_of_ones_over_both_gives_their_sum_and_rows_tell_them_apart(stack):
    p = stack(2).tensor([1.5, -2.0], requires_grad=True)
    g = ((p[0] * p[1]) ** 2).wrt(p)
    check(g.wrt(p), [8.0 - 12.0, -12.0 + 4.5])
    check([g[k].wrt(p).numpy() for k in (0, 1)], [[8.0, -12.0], [-12.0, 4.5]])


def _call(spot, sigma, tau, strike=105.0, rate=0.02):
    root = sigma * ng.sqrt(tau)
    up = (ng.log(spot / strike) + (rate + sigma * sigma / 2.0) * tau) / root
    normal = lambda d: (ng.erf(d / math.sqrt(2.0)) + 1.0) / 2.0
    return spot * normal(up) - strike * ng.exp(-rate * tau) * normal(up - root)


GREEKS = {
    "delta": (0.4809310808423547, (0,)),
    "vega": (34.50993964631771, (1,)),
    "gamma": (0.01840530114470278, (0, 0)),
    "vanna": (0.4213169571385252, (0, 1)),
    "volga": (1.7447011864568516, (1, 1)),
    "charm": (0.10703009514582643, (0, 2)),  # d2/dS dtau, which is minus the charm
}


def test_56_second_order_greeks_of_a_call(stack):
    market = _variables(stack(2), 100.0, 0.25, 0.75)
    price = _call(*market)
    check(price, 7.156417844372693)
    for right, path in GREEKS.values():
        u = price
        for k in path:
            u = u.wrt(market[k])
        check(u, right)


@pytest.mark.parametrize(("right", "path"), GREEKS.values(), ids=GREEKS)
def test_56_the_greeks_by_transforms_in_either_order(right, path):
    for order in (path, path[::-1]):
        f: Callable[..., Any] = _call
        for k in order:
            f = grad(f, k)
        check(f(100.0, 0.25, 0.75), right)


def test_57_christoffel_symbols_of_the_sphere(stack):
    q = stack(1).tensor([0.8, 0.3], requires_grad=True)
    metric = ng.stack([ng.stack([q[0] * 0.0 + 1.0, q[1] * 0.0]), ng.stack([q[0] * 0.0, q[0].sin() ** 2])])
    d = np.stack([np.stack([metric[i, j].wrt(q).numpy() for j in (0, 1)]) for i in (0, 1)])  # d[i, j, k] = d g_ij / d q_k
    inverse = np.linalg.inv(metric.numpy())
    lowered = (d + d.swapaxes(1, 2) - np.moveaxis(d, 2, 0)) / 2.0
    right = np.zeros((2, 2, 2))
    right[0, 1, 1] = -0.49978680152075255
    right[1, 0, 1] = right[1, 1, 0] = 0.9712146006504744
    check(np.einsum("mk,kij->mij", inverse, lowered), right, atol=1e-15)


def _lagrangian(q, v):
    (m1, m2), (l1, l2), g = (1.0, 0.5), (1.0, 1.5), 9.81
    kinetic = (m1 + m2) * l1**2 * v[0] ** 2 / 2.0 + m2 * l2**2 * v[1] ** 2 / 2.0 + m2 * l1 * l2 * v[0] * v[1] * (q[0] - q[1]).cos()
    return kinetic + (m1 + m2) * g * l1 * q[0].cos() + m2 * g * l2 * q[1].cos()


ACCELERATIONS = [-7.029420962407496, 5.432001639482279]


def _solve(mass, force):
    (a, b), (c, d) = mass
    det = a * d - b * c
    return [(d * force[0] - b * force[1]) / det, (a * force[1] - c * force[0]) / det]


def test_58_a_lagrangian_gives_accelerations(stack):
    q, v = _variables(stack(2), [0.5, -0.3], [0.7, -1.1])
    lagrangian = _lagrangian(q, v)
    momentum = lagrangian.wrt(v)
    mass = [momentum[k].wrt(v).tolist() for k in (0, 1)]
    coupling = np.array([momentum[k].wrt(q).numpy() for k in (0, 1)])
    check(_solve(mass, lagrangian.wrt(q).numpy() - coupling @ v.numpy()), ACCELERATIONS)


def _motion(base):
    """Mass and force, by transforms."""
    q, v = base.tensor([0.5, -0.3]), base.tensor([0.7, -1.1])
    mass, coupling = (ng.stack([grad(lambda q, v, k=k: grad(_lagrangian, 1)(q, v)[k], wrt)(q, v) for k in (0, 1)]) for wrt in (1, 0))
    return mass, grad(_lagrangian)(q, v) - coupling @ v


def test_58_the_same_by_transforms(base):
    mass, force = _motion(base)
    check(_solve(mass.tolist(), force.numpy()), ACCELERATIONS)


def test_58_the_same_with_solve(base):
    check(ng.linalg.solve(*_motion(base)), ACCELERATIONS)


def _slater(r):
    return (-(r * r).sum().sqrt()).exp()


ORBITALS = {
    "s": (_slater, 0.26923076923076916),
    "deformed": (lambda r: _slater(r) * (1.0 + r[0] * r[2] / 3.0), 0.4340659340659341),
}


def _laplacian(f, r):
    g = f.wrt(r)
    return sum(g[k].wrt(r)[k] for k in range(3))


@pytest.mark.parametrize(("psi", "right"), ORBITALS.values(), ids=ORBITALS)
def test_59_the_local_kinetic_energy(stack, psi, right):
    r = stack(2).tensor([0.3, -0.4, 1.2], requires_grad=True)
    p = psi(r)
    check(-0.5 * _laplacian(p, r) / p, right)
    f = p.log()
    g = f.wrt(r)
    check(-0.5 * (_laplacian(f, r) + (g * g).sum()), right)


def _rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def _scipy_parts(base):
    """(fun, jac, hessp): NumPy in, NumPy float64 out; hessp takes the point first."""
    fun = lambda x: _rosenbrock(base.tensor(x)).item()
    jac = lambda x: grad(_rosenbrock)(base.tensor(x)).numpy()
    hessp = lambda x, p: grad(lambda v: (grad(_rosenbrock)(v) * p).sum())(base.tensor(x)).numpy()
    return fun, jac, hessp


def test_61_a_hessian_vector_product_for_scipy(base):
    _, _, hessp = _scipy_parts(base)
    product = hessp(np.array([-1.2, 1.0, 0.7]), np.array([1.0, -1.0, 0.5]))
    assert product.dtype == np.float64
    check(product, [850.0, -842.0, 500.0])


def test_61_trust_ncg_finds_the_minimum(base):
    fun, jac, hessp = _scipy_parts(base)
    found = minimize(fun, np.array([-1.2, 1.0, 0.7]), jac=jac, hessp=hessp, method="trust-ncg")
    check(found.x, np.ones(3), rtol=1e-6)


def _log_joint(f, s):
    """log p(f | s) with K = s [[1, .5], [.5, 1]] + .1 I, whose inverse is written out."""
    a, b = s + 0.1, s * 0.5
    quadratic = (a * f[0] ** 2 - 2.0 * b * f[0] * f[1] + a * f[1] ** 2) / (a * a - b * b)
    return -ng.softplus(-f[0]) - ng.softplus(f[1]) - quadratic / 2.0


def _evidence(s, rows):
    h = rows(lambda f: _log_joint(f, s))
    return ng.log(h[0][0] * h[1][1] - h[0][1] * h[1][0]) / 2.0


EVIDENCE = [-0.44649518304229163, 0.3445809736108659]


def test_62_the_derivative_of_a_log_determinant_of_a_hessian_by_transforms(base):
    f = base.tensor([0.4, -0.2])
    rows = lambda p: [grad(lambda v, k=k: grad(p)(v)[k])(f) for k in (0, 1)]
    evidence, s = lambda s: _evidence(s, rows), base.tensor(1.5)
    check([grad(evidence)(s).item(), grad(grad(evidence))(s).item()], EVIDENCE)


def test_62_the_derivative_of_a_log_determinant_of_a_hessian_on_four_levels(stack):
    f, s = _variables(stack(4), [0.4, -0.2], 1.5)

    def rows(p):
        g = p(f).wrt(f)
        return [g[k].wrt(f) for k in (0, 1)]

    first = _evidence(s, rows).wrt(s)
    check([first.item(), first.wrt(s).item()], EVIDENCE)


def test_62_the_same_with_slogdet(base):
    f, s = base.tensor([0.4, -0.2]), base.tensor(1.5)
    rows = lambda s: ng.stack([grad(lambda v, k=k: grad(_log_joint)(v, s)[k])(f) for k in (0, 1)])
    evidence = lambda s: ng.linalg.slogdet(-rows(s))[1] / 2.0
    check([grad(evidence)(s).item(), grad(grad(evidence))(s).item()], EVIDENCE)


PENALTY = [[0.26166616597461756, 1.0022284965956294], [-0.0787699849061804, -0.9127136284257968]]


def _critic(w, x):
    return np.array([1.2, -0.7]) @ (w @ x).tanh()


def test_63_a_gradient_penalty_on_levels(stack):
    w, x = _variables(stack(2), [[0.5, -0.3], [0.8, 0.1]], [0.4, -0.9])
    g = _critic(w, x).wrt(x)
    check(((g.norm() - 1.0) ** 2).wrt(w), PENALTY)


def test_63_a_gradient_penalty_by_transforms(base):
    penalty = lambda w: (grad(_critic, 1)(w, base.tensor([0.4, -0.9])).norm() - 1.0) ** 2
    check(grad(penalty)(base.tensor([[0.5, -0.3], [0.8, 0.1]])), PENALTY)


def _loss(q):
    return q**4 - 2.0 * q


def test_64_the_gradient_through_a_gradient_step(stack):
    q = stack(2).tensor(1.3, requires_grad=True)
    check(_loss(q - 0.05 * _loss(q).wrt(q)).wrt(q), -0.021638171352896366)
    check(grad(lambda q: _loss(q - 0.05 * grad(_loss)(q)))(1.3), -0.021638171352896366)


def test_64_a_detached_step_gives_the_first_order_approximation(stack):
    """The known approximation leaves out the second order on purpose, so detach() must do that and nothing else may."""
    q = stack(2).tensor(1.3, requires_grad=True)
    check(_loss(q - 0.05 * _loss(q).wrt(q).detach()).wrt(q), 4.0 * 0.9606**3 - 2.0)


def _energy(p, k):
    distance = lambda i: ((p[i] - p[0]) ** 2).sum().sqrt()
    return k * (distance(1) - 1.0) ** 2 + k * k * (distance(2) - 1.0) ** 4


PARTICLES = [[0.0, 0.0], [1.1, 0.1], [0.3, 1.4]]


def test_65_a_loss_of_energy_and_forces_on_three_levels(stack):
    p, k = _variables(stack(3), PARTICLES, 2.5)
    e = _energy(p, k)
    force = e.wrt(p)
    first = (e * e + (force * force).sum()).wrt(k)
    check([first.item(), first.wrt(k).item()], [14.23812293782896, 16.4297715019829])


def test_65_a_loss_of_energy_and_forces_by_transforms(base):
    def loss(k):
        force = grad(_energy)(base.tensor(PARTICLES), k)
        return _energy(base.tensor(PARTICLES), k) ** 2 + (force * force).sum()

    k = base.tensor(2.5)
    check([grad(loss)(k).item(), grad(grad(loss))(k).item()], [14.23812293782896, 16.4297715019829])
