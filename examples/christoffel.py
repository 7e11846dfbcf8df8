"""Curved spaces from their metrics: Christoffel symbols are first derivatives of a metric, curvature second ones, and nothing else is told.

    Gamma^k_ij   = 1/2 g^kl (d_i g_lj + d_j g_il - d_l g_ij)
    R^k_lij      = d_i Gamma^k_jl - d_j Gamma^k_il + Gamma^k_im Gamma^m_jl - Gamma^k_jm Gamma^m_il
    R_lj = R^k_lkj,    R = g^lj R_lj

``jacfwd`` gives each derivative, and nests. A sphere, a torus, whose metric comes from its embedding by one derivative more, and the
space and time around a black hole are compared with closed forms.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import nestgrad as ng
from nestgrad.func import jacfwd, vmap

Array = NDArray[np.float64]
Metric = Callable[[ng.Tensor], ng.Tensor]


def christoffel(metric: Metric, x: ng.Tensor) -> ng.Tensor:
    """``Gamma[k, i, j]`` at the point ``x``."""
    slopes = jacfwd(metric)(x)  # [l, j, i]: d_i g_lj
    lowered = ng.einsum("lji->lij", slopes) + ng.einsum("ilj->lij", slopes) - ng.einsum("ijl->lij", slopes)
    return 0.5 * ng.einsum("kl,lij->kij", ng.linalg.inv(metric(x)), lowered)


def riemann(metric: Metric, x: ng.Tensor) -> ng.Tensor:
    """``R[k, l, i, j]``: what a vector changes by when it is carried around a small square."""
    gamma = christoffel(metric, x)
    half = ng.einsum("kjli->klij", jacfwd(lambda x: christoffel(metric, x))(x)) + ng.einsum("kim,mjl->klij", gamma, gamma)
    return half - ng.einsum("klij->klji", half)


def ricci(metric: Metric, x: ng.Tensor) -> ng.Tensor:
    """``R[l, j]``."""
    return ng.einsum("klkj->lj", riemann(metric, x))


def scalar(metric: Metric, x: ng.Tensor) -> ng.Tensor:
    """The scalar curvature: twice Gauss's for a surface."""
    return ng.einsum("lj,lj->", ng.linalg.inv(metric(x)), ricci(metric, x))


def sphere(radius: float) -> Metric:
    """In the angle from the pole and the longitude."""
    return lambda x: radius**2 * ng.diag(ng.stack([ng.ones_like(x[0]), ng.sin(x[0]) ** 2]))


def embedded(place: Callable[[ng.Tensor], ng.Tensor]) -> Metric:
    """The metric that a surface has from the space around it: g = J'J with the Jacobian of its parametrisation."""

    def metric(x: ng.Tensor) -> ng.Tensor:
        tangents = jacfwd(place)(x)
        found: ng.Tensor = tangents.mT @ tangents
        return found

    return metric


def torus(x: ng.Tensor) -> ng.Tensor:
    """A tube of radius 1/2 around a circle of radius 2, by the angles around the tube and around the circle."""
    tube, circle = x
    out = 2.0 + 0.5 * ng.cos(tube)
    return ng.stack([out * ng.cos(circle), out * ng.sin(circle), 0.5 * ng.sin(tube)])


def black_hole(mass: float) -> Metric:
    """Schwarzschild's metric in t, r, and the two angles of the sphere."""

    def metric(x: ng.Tensor) -> ng.Tensor:
        _, r, theta, _ = x
        lapse = 1.0 - 2.0 * mass / r
        return ng.diag(ng.stack([-lapse, 1.0 / lapse, r**2, (r * ng.sin(theta)) ** 2]))

    return metric


def main() -> None:
    """Three spaces, and what is known about each."""
    theta = 0.8
    gamma = christoffel(sphere(1.0), ng.tensor([theta, 0.3])).numpy()
    right = np.zeros((2, 2, 2))
    right[0, 1, 1] = -math.sin(theta) * math.cos(theta)
    right[1, 0, 1] = right[1, 1, 0] = 1.0 / math.tan(theta)
    print(f"sphere: Gamma^theta_phi_phi {gamma[0, 1, 1]:.12f}, Gamma^phi_theta_phi {gamma[1, 0, 1]:.12f}")
    assert np.allclose(gamma, right, rtol=1e-14, atol=1e-15)
    radius = 3.0
    curvature = scalar(sphere(radius), ng.tensor([theta, 0.3])).item()
    assert math.isclose(curvature, 2.0 / radius**2, rel_tol=1e-12)

    points = ng.tensor(np.random.default_rng(0).uniform(-math.pi, math.pi, (200, 2)))
    found = vmap(lambda x: scalar(embedded(torus), x))(points).numpy()
    outward = np.cos(points.numpy()[:, 0])
    away = abs(found - 2.0 * outward / (0.5 * (2.0 + 0.5 * outward))).max()
    print(f"torus: scalar curvature between {found.min():.4f} and {found.max():.4f}, {away:.0e} away from the closed form")
    assert away < 1e-11

    mass, x = 1.0, ng.tensor([0.0, 5.0, 1.1, 0.4])
    empty = abs(ricci(black_hole(mass), x).numpy()).max()
    g, r = black_hole(mass)(x).numpy(), riemann(black_hole(mass), x).numpy()
    inverse = np.linalg.inv(g)
    tides = np.einsum("klij,cdef,kc,ld,ie,jf->", r, r, g, inverse, inverse, inverse)
    print(f"black hole: no entry of the Ricci tensor above {empty:.0e}; Kretschmann's invariant {tides:.12f}")
    assert empty < 1e-12
    assert math.isclose(tides, 48.0 * mass**2 / 5.0**6, rel_tol=1e-12)


if __name__ == "__main__":
    main()
