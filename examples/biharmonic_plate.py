"""The bending of a square plate under an even load, Delta^2 w = 1: an equation of fourth order, solved in one step.

    python examples/biharmonic_plate.py
    python examples/biharmonic_plate.py --jit
    python examples/biharmonic_plate.py --features 1000 --tolerance 5e-8 --out plate.png

The plate is [-1/2, 1/2]^2; load and stiffness are 1. On its edges w = 0; a simply supported plate may turn there, w_nn = 0, a clamped one
may not, w_n = 0.

The trial solution is a network with one hidden layer, of which only the last layer is learned: w = sum_k c_k phi_k, where the phi_k are
tanh of random weights times (x^2, y^2), made symmetric in x and y as the plate is. A factor that vanishes on the edges holds w = 0, and
its square w_n = 0.

* Simply supported: what is left to ask for, Delta^2 w = 1 inside and w_nn = 0 on an edge, is linear in c, which is a least squares
  solution. It is compared with Navier's double series, summed in closed form in one of its indices (Levy's solution: Timoshenko and
  Woinowsky-Krieger, "Theory of Plates and Shells", 2nd ed. (1959), art. 30).
* Clamped: fourth derivatives are unbounded in the corners, and what the equation leaves at points says little. But w has the least energy
  of all that keep w = w_n = 0, the integral of (Delta w)^2 / 2 - w, in which there are second derivatives only; it is a parabola in c.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import speed_up
from numpy.typing import NDArray

import nestgrad as ng
from nestgrad import pde
from nestgrad.func import vmap

Array = NDArray[np.float64]
Field = Callable[[ng.Tensor], ng.Tensor]
Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]

CLAMPED_CENTRE = 0.0012653191
"""The deflection of the clamped plate in the middle, for which there is no closed form: by polynomials of degree 26, of least energy.

Art. 44 of Timoshenko and Woinowsky-Krieger has 0.00126."""

POISSON_RATIO = 0.3


def features(n: int, power: int, seed: int) -> Field:
    """``n`` functions of a point of the plate, as one field of shape (n,), that vanish on the edges, with a power of 2 so do slopes."""
    rng = np.random.default_rng(seed)
    a, b = ng.tensor(rng.uniform(-4, 4, (2, n))), ng.tensor(rng.uniform(-4, 4, n))

    def field(p: ng.Tensor) -> ng.Tensor:
        q = 4 * p * p
        on_edges = ((1 - q[0]) * (1 - q[1])) ** power
        return on_edges * (ng.tanh(q @ a + b) + ng.tanh(q[::-1] @ a + b))

    return field


def quadrature(n: int) -> tuple[Array, Array, Array, Array]:
    """Points and weights of an eighth of the plate, which stands for all of it, and of half an edge: Gauss's, ``n`` for half an edge."""
    nodes, weights = np.polynomial.legendre.leggauss(2 * n)
    nodes, weights = nodes[n:] / 2, weights[n:] / 2
    x, y = np.meshgrid(nodes, nodes, indexing="ij")
    inside = x >= y  # those on the diagonal stand for four, others for eight
    weight = (np.outer(weights, weights) * np.where(x > y, 8, 4))[inside]
    return np.stack([x[inside], y[inside]], axis=1), weight, np.stack([np.full(n, 0.5), nodes], axis=1), weights


def simply_supported(phi: Field, n: int, wrap: Wrapper) -> Array:
    """The coefficients that leave least of the equation inside and of w_nn on the edges."""
    points, weight, edge, along_edge = quadrature(n)
    inside = np.sqrt(weight)[:, None] * wrap(pde.biharmonic(phi))(points).numpy()
    turning = np.sqrt(along_edge)[:, None] * wrap(pde.directional(phi, 0, order=2))(edge).numpy()
    matrix = np.concatenate([inside, turning])
    load = np.concatenate([np.sqrt(weight), np.zeros(n)])
    size = np.linalg.norm(matrix, axis=0)  # columns of one length: how large a feature is says nothing
    found: Array = np.linalg.lstsq(matrix / size, load, rcond=1e-12)[0] / size
    return found


def clamped(phi: Field, n: int, wrap: Wrapper) -> Array:
    """The coefficients of least energy: |A c|^2 / 2 - b c, with the Laplacians in A and the integrals of the features in b."""
    points, weight, _, _ = quadrature(n)
    matrix = np.sqrt(weight)[:, None] * wrap(pde.laplacian(phi))(points).numpy()
    size = np.linalg.norm(matrix, axis=0)
    _, s, v = np.linalg.svd(matrix / size, full_matrices=False)
    v = v[s > 1e-10 * s[0]] / s[s > 1e-10 * s[0], None]  # beyond, features are the same to rounding
    found: Array = v.T @ (v @ ((weight @ vmap(phi)(points).numpy()) / size)) / size
    return found


def levy(x: Array, y: Array, terms: int = 60) -> Array:
    """The simply supported plate: a beam's deflection in x, less a series that brings it to 0 at y = -1/2 and 1/2.

    Inside, its terms go down by exp(-pi) and faster; at y = 1/2, where they do not, the sum is 0.
    """
    x, y = x + 0.5, abs(y)
    w: Array = (x**4 - 2 * x**3 + x) / 24
    for m in range(1, 2 * terms, 2):
        alpha = m * np.pi / 2
        # cosh and sinh of 2 alpha y over cosh alpha, which itself would overflow
        up, down = np.exp(alpha * (2 * y - 1)), np.exp(-alpha * (2 * y + 1))
        cosh, sinh = (up + down) / (1 + np.exp(-2 * alpha)), (up - down) / (1 + np.exp(-2 * alpha))
        w = w - 4 / (m * np.pi) ** 5 * ((1 + alpha / 2 * np.tanh(alpha)) * cosh - alpha * y * sinh) * np.sin(m * np.pi * x)
    return w


def moment_in_the_middle(terms: int = 30) -> float:
    """-(w_xx + nu w_yy) in the middle of the simply supported plate; by symmetry (1 + nu) / 2 times -Delta w, which is a membrane's
    deflection under the same load: a series again."""
    m = np.arange(1, 2 * terms, 2)
    signs = np.where(m % 4 == 1, 1, -1)
    membrane = 1 / 8 - (4 * signs / ((m * np.pi) ** 3 * np.cosh(m * np.pi / 2))).sum()
    return float((1 + POISSON_RATIO) / 2 * membrane)


def bending_moment(w: Field, points: Array) -> Array:
    """-(w_xx + nu w_yy) at each point."""
    found: Array = -(pde.hessian_diag(w)(points).numpy() @ [1, POISSON_RATIO])
    return found


def picture(path: str, w: Field) -> None:
    """Deflection and bending moment of the simply supported plate, and the error."""
    import matplotlib

    matplotlib.use("Agg")  # draws into files, needs no screen
    from matplotlib import pyplot

    line = np.linspace(-0.5, 0.5, 81)
    x, y = np.meshgrid(line, line, indexing="ij")
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    deflection = vmap(w)(points).numpy().reshape(x.shape)
    moment = bending_moment(w, points).reshape(x.shape)
    shown: list[tuple[str, Array, str]] = [
        ("deflection $w$", deflection, "viridis"),
        (r"bending moment $-(w_{xx} + \nu w_{yy})$", moment, "magma"),
        ("error: network - series", deflection - levy(x, y), "PuOr"),
    ]
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for axis, (title, values, colours) in zip(axes, shown, strict=True):
        size = abs(values).max()
        image = axis.pcolormesh(x, y, values, cmap=colours, vmin=-size if colours == "PuOr" else None, vmax=size, rasterized=True)
        figure.colorbar(image, ax=axis)
        axis.set(title=title, xlabel="$x$", ylabel="$y$", aspect="equal")
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def main() -> None:
    """Solve both plates and compare."""
    parser = argparse.ArgumentParser(description="The bending of a square plate by a network with random features.")
    parser.add_argument("--features", type=int, default=600, help="units of the hidden layer (default: %(default)s)")
    parser.add_argument("--points", type=int, default=30, help="along half an edge (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the hidden layer (default: %(default)s)")
    parser.add_argument("--tolerance", type=float, default=1e-7, help="relative error that must be reached (default: %(default)s)")
    parser.add_argument("--out", help="file for a picture")
    speed_up.option(parser)
    options = parser.parse_args()

    def deflection(solve: Callable[[Field, int, Wrapper], Array], power: int) -> Field:
        began = time.perf_counter()
        phi = features(options.features, power, options.seed)
        c = ng.tensor(solve(phi, options.points, ng.jit if options.jit else lambda f: f))
        name = solve.__name__.replace("_", " ")
        print(f"{name}: {(phi(middle) @ c).item():.11f} in the middle, found in {time.perf_counter() - began:.1f} s")
        return lambda p: phi(p) @ c

    middle = ng.tensor([0.0, 0.0])
    w = deflection(simply_supported, power=1)
    x, y = np.meshgrid(np.linspace(-0.5, 0.5, 51), np.linspace(-0.5, 0.5, 51), indexing="ij")
    right = levy(x, y)
    everywhere = np.linalg.norm(vmap(w)(np.stack([x.ravel(), y.ravel()], axis=1)).numpy() - right.ravel()) / np.linalg.norm(right)
    errors = {
        "deflection in the middle": w(middle).item() / levy(np.zeros(1), np.zeros(1)).item() - 1,
        "deflection in the L2 norm": everywhere,
        "moment in the middle": bending_moment(w, middle.numpy()[None]).item() / moment_in_the_middle() - 1,
        "clamped plate in the middle": deflection(clamped, power=2)(middle).item() / CLAMPED_CENTRE - 1,
    }
    print("relative errors: " + ", ".join(f"{name} {abs(error):.1e}" for name, error in errors.items()))
    if options.jit:
        biharmonic = pde.biharmonic(features(options.features, 1, options.seed))
        speed_up.tell("biharmonic of all features", biharmonic, ng.jit(biharmonic), ng.tensor(quadrature(options.points)[0]))
    if options.out:
        picture(options.out, w)
    error = max(map(abs, errors.values()))
    assert error < options.tolerance, f"the error is {error:.1e}, expected less than {options.tolerance:g}; try more --features"


if __name__ == "__main__":
    main()
