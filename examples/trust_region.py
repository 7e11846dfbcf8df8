"""A rubber band on a sphere, by trust-region Newton methods: SciPy asks for products with the Hessian, and gets each for two gradients.

Points x_1 ... x_(n-1) between two fixed ones are pulled together by springs along straight lines: E = sum |x_(i+1) - x_i|^2. A band the
long way round, three quarters of the equator, is in balance but can slip off: the Hessian has one negative eigenvalue there. (Morse's
theorem counts one such direction for each half circle that is full.) Newton's own method would stay at such a point. A trust region uses
the negative curvature to leave, and ends at the short way, where each of the n springs spans the n-th part of a quarter of the circle.

A point is given by its stereographic projection: where the line to it from the south pole meets the plane of the equator. On the equator
itself that map keeps lengths, so that the Hessian has there the eigenvalues that it has on the sphere.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import nestgrad as ng
from nestgrad.optimize import scipy_callables

Array = NDArray[np.float64]
SPRINGS = 50


def on_sphere(y: ng.Tensor) -> ng.Tensor:
    """Points in space for rows of ``y``, points of the plane: the circle of radius 1 is the equator, its middle the north pole."""
    square = (y * y).sum(axis=1, keepdims=True)
    return ng.concat([2.0 * y, 1.0 - square], axis=1) / (1.0 + square)


def energy(y: ng.Tensor) -> ng.Tensor:
    """Of a band through the rows of ``y`` between two fixed points of the equator, at longitudes 0 and -90 degrees, or 270."""
    band = on_sphere(ng.concat([ng.tensor([[1.0, 0.0]]), y, ng.tensor([[0.0, -1.0]])]))
    return ((band[1:] - band[:-1]) ** 2).sum()


def equator(angle: float) -> Array:
    """Points that divide the arc from longitude 0 to ``angle`` evenly, without its ends."""
    at = np.linspace(0.0, angle, SPRINGS + 1)[1:-1]
    return np.stack([np.cos(at), np.sin(at)], axis=1)


def spectrum(angle: float) -> Array:
    """The Hessian's eigenvalues on an even arc, by hand. With s = angle / n and c_k = cos(k pi / n) they are 4 (cos s - c_k) for motions
    off the equator, and 4 cos s (1 - c_k) along it."""
    s, c = angle / SPRINGS, np.cos(math.pi * np.arange(1, SPRINGS) / SPRINGS)
    return np.sort(np.concatenate([4.0 * (math.cos(s) - c), 4.0 * math.cos(s) * (1.0 - c)]))


def main() -> None:
    """From beside the saddle to the minimum, by two methods."""
    long_way, short_way = 1.5 * math.pi, -0.5 * math.pi
    band = scipy_callables(energy, ng.tensor(equator(long_way)))
    eigenvalues = np.linalg.eigvalsh(band.hess(band.x0))
    print(f"the long way: gradient {abs(band.jac(band.x0)).max():.0e}; {eigenvalues.size} eigenvalues, the lowest ", end="")
    print(f"{eigenvalues[0]:.6f} and {eigenvalues[1]:.6f}")
    assert abs(band.jac(band.x0)).max() < 1e-14
    assert np.allclose(eigenvalues, spectrum(long_way), rtol=0, atol=1e-13)
    assert (eigenvalues < 0).sum() == 1

    start = (1.0 - 1e-6) * band.x0  # a nudge to the north
    least = SPRINGS * (2.0 * math.sin(short_way / (2 * SPRINGS))) ** 2
    for method in ("trust-ncg", "trust-krylov"):
        # Steps of some 1e-8 change the energy by less than its rounding, and a trust region could not tell any more what they gain.
        found = minimize(band.fun, start, jac=band.jac, hessp=band.hessp, method=method, options={"gtol": 1e-7, "maxiter": 500})
        away = abs(found.x.reshape(-1, 2) - equator(short_way)).max()
        print(f"{method}: {found.nit} steps, {found.nhev} products; energy {found.fun:.12f}; {away:.0e} away from the short way")
        assert found.success, found.message
        assert math.isclose(found.fun, least, rel_tol=1e-12)
        assert away < 1e-6


if __name__ == "__main__":
    main()
