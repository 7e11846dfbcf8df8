"""The Laplacian on curved surfaces, by two routes that share nothing but the function: on a sphere and on a torus.

    python examples/laplace_beltrami.py

In coordinates q of a surface X(q) with the metric g = X' X'^T, the Laplace-Beltrami operator is

    Delta_S f = 1 / sqrt(det g) div_q (sqrt(det g) g^-1 grad_q f).

Written so, it differentiates products of derivatives: operators in operators. The other route never sees coordinates: of a function that
is continued into space, constant along the normals, the ordinary Laplacian on the surface is Delta_S f.

Spherical harmonics are eigenfunctions, Delta_S Y_lm = -l (l + 1) Y_lm. Of the embedding itself Delta_S X is twice the mean curvature times
the normal, on any surface.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre, polynomial
from numpy.typing import NDArray

import nestgrad as ng
from nestgrad import pde
from nestgrad.func import vmap

Array = NDArray[np.float64]
Map = Callable[[ng.Tensor], ng.Tensor]

DEGREES = 8
MAJOR, MINOR = 2.0, 0.7


@dataclass(frozen=True)
class Surface:
    """A surface in space.

    Attributes:
        embedding: The point at coordinates q, of shape (2,), in space, of shape (3,).
        foot: The point of the surface below a point in space, along a normal.
    """

    embedding: Map
    foot: Map


def sphere(q: ng.Tensor) -> ng.Tensor:
    """The unit sphere: q is the angle from the pole, and the longitude."""
    return ng.stack([q[0].sin() * q[1].cos(), q[0].sin() * q[1].sin(), q[0].cos()])


def torus(q: ng.Tensor) -> ng.Tensor:
    """The torus: q is the angle around the tube, 0 outside, and the longitude."""
    rho = MAJOR + MINOR * q[0].cos()
    return ng.stack([rho * q[1].cos(), rho * q[1].sin(), MINOR * q[0].sin()])


def foot_on_torus(x: ng.Tensor) -> ng.Tensor:
    """From the nearest point of the circle within the tube, as far as its radius."""
    flat = ng.stack([x[0], x[1], 0 * x[2]])
    centre = MAJOR * flat / (flat @ flat).sqrt()
    out = x - centre
    return centre + MINOR * out / (out @ out).sqrt()


SPHERE = Surface(sphere, lambda x: x / (x @ x).sqrt())
TORUS = Surface(torus, foot_on_torus)


def by_coordinates(f: Map, surface: Surface) -> Map:
    """Delta_S f at each of many coordinates; f, of a point of the surface in space, has any shape."""

    def root_of_metric(q: ng.Tensor) -> tuple[ng.Tensor, ng.Tensor]:
        """sqrt(det g), and its product with the inverse of g."""
        slopes = pde.jacobian(surface.embedding)(q)
        g = slopes.T @ slopes
        root = (g[0, 0] * g[1, 1] - g[0, 1] * g[1, 0]).sqrt()
        return root, ng.stack([ng.stack([g[1, 1], -g[0, 1]]), ng.stack([-g[1, 0], g[0, 0]])]) / root

    def flux(q: ng.Tensor) -> ng.Tensor:
        slopes: ng.Tensor = pde.jacobian(lambda q: f(surface.embedding(q)))(q)
        return slopes @ root_of_metric(q)[1]

    return vmap(lambda q: pde.divergence(flux)(q) / root_of_metric(q)[0])


def by_normals(f: Map, surface: Surface) -> Map:
    """Delta_S f at each of many points of the surface in space."""
    return pde.laplacian(lambda x: f(surface.foot(x)))


def harmonic(p: ng.Tensor, degree: int, m: int) -> ng.Tensor:
    """A real spherical harmonic at a point of the sphere, not normalised: Re or Im (x + i y)^|m| times the |m|-th derivative of the
    Legendre polynomial at z, relative to that at 1."""
    coefficients = polynomial.polyder(legendre.leg2poly([0] * degree + [1]), abs(m))
    around, im = ng.ones_like(p[0]), ng.zeros_like(p[0])
    for _ in range(abs(m)):
        around, im = around * p[0] - im * p[1], around * p[1] + im * p[0]
    found = ng.zeros_like(p[0])
    for c in coefficients[::-1]:
        found = found * p[2] + c / coefficients.sum()
    return found * (im if m < 0 else around)


def harmonics(p: ng.Tensor) -> ng.Tensor:
    """Those of all degrees, one after the other."""
    return ng.stack([harmonic(p, degree, m) for degree in range(DEGREES) for m in range(-degree, degree + 1)])


def by_hand_on_torus(q: Array) -> Array:
    """Delta_S of sin(2 theta) cos(3 phi): f_tt / r^2 - sin(theta) f_t / (r rho) + f_pp / rho^2 with rho = R + r cos(theta)."""
    theta, phi = q.T
    rho = MAJOR + MINOR * np.cos(theta)
    along_tube = -4 * np.sin(2 * theta) / MINOR**2 - 2 * np.sin(theta) * np.cos(2 * theta) / (MINOR * rho)
    found: Array = (along_tube - 9 * np.sin(2 * theta) / rho**2) * np.cos(3 * phi)
    return found


def wave_on_torus(p: ng.Tensor) -> ng.Tensor:
    """sin(2 theta) cos(3 phi) of a point in space."""
    rho = (p[0] ** 2 + p[1] ** 2).sqrt()
    along, around = p[0] / rho, (rho - MAJOR) / MINOR
    return 2 * around * p[2] / MINOR * (4 * along**3 - 3 * along)


def curvature_of_torus(q: Array) -> Array:
    """The inner normal times the sum of the principal curvatures, 1 / r and cos(theta) / rho, which is twice the mean curvature."""
    theta, phi = q.T
    normal = np.stack([np.cos(theta) * np.cos(phi), np.cos(theta) * np.sin(phi), np.sin(theta)], axis=1)
    curvature = 1 / MINOR + np.cos(theta) / (MAJOR + MINOR * np.cos(theta))
    found: Array = -curvature[:, None] * normal
    return found


def main() -> None:
    """Spherical harmonics, a wave on the torus, and mean curvatures, by both routes."""
    rng = np.random.default_rng(0)
    q = ng.tensor(rng.uniform([0.3, -np.pi], [np.pi - 0.3, np.pi], (50, 2)))  # the poles have no longitude
    theta = ng.tensor(rng.uniform(-np.pi, np.pi, (50, 2)))
    x, y = vmap(sphere)(q), vmap(torus)(theta)
    eigenvalues = -np.array([degree * (degree + 1) for degree in range(DEGREES) for _ in range(2 * degree + 1)])
    checks: list[tuple[str, Map, Surface, ng.Tensor, ng.Tensor, Array]] = [
        (f"{len(eigenvalues)} spherical harmonics", harmonics, SPHERE, q, x, eigenvalues * vmap(harmonics)(x).numpy()),
        ("mean curvature of the sphere", lambda p: p, SPHERE, q, x, -2 * x.numpy()),
        ("wave on the torus", wave_on_torus, TORUS, theta, y, by_hand_on_torus(theta.numpy())),
        ("mean curvature of the torus", lambda p: p, TORUS, theta, y, curvature_of_torus(theta.numpy())),
    ]
    for name, f, surface, at, point, right in checks:
        size = abs(right).max()
        inner = abs(by_coordinates(f, surface)(at).numpy() - right).max() / size
        outer = abs(by_normals(f, surface)(point).numpy() - right).max() / size
        print(f"{name}: off by {inner:.1e} in coordinates and by {outer:.1e} along normals, relative to {size:.3g}")
        assert max(inner, outer) < 1e-12


if __name__ == "__main__":
    main()
