"""Poisson's equation in ten dimensions by a neural network and the forward Laplacian: -Delta u = f in the unit ball, u = 0 on the sphere.

    python examples/poisson_ten_dimensions.py
    python examples/poisson_ten_dimensions.py --jit
    python examples/poisson_ten_dimensions.py --points 2000 --steps 300 --tolerance 1e-4

No grid reaches ten dimensions: eleven points along each axis would be 2.6e10. A network asks for a thousand points at random. What costs is
the Laplacian, ten second derivatives at each point. ``pde.laplacian`` carries value, gradient and Laplacian through one run of the network
(Li et al., "A computational framework for neural network-based variational Monte Carlo with Forward Laplacian", Nature Machine
Intelligence 6 (2024) 209); the trace of the Hessian by two reverse passes is the same number, and slower.

The solution is known, since f is made for it: with s = sum_i a_i sin(x_i + x_(i+1)), which couples each coordinate to the next,

    u = (1 - |x|^2) s,   f = -Delta u = 2 d s + 4 x . grad s + 2 (1 - |x|^2) s.

The network is trained by Levenberg-Marquardt steps; a row of the Jacobian of the residuals is a gradient through the forward Laplacian.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import mlp
import numpy as np
import speed_up
from numpy.typing import NDArray

import nestgrad as ng
from nestgrad import pde
from nestgrad.func import value_and_grad, vmap

Array = NDArray[np.float64]

D = 10
WIDTHS = (D, 32, 1)
COUPLINGS = np.random.default_rng(0).normal(size=D - 1)


def exact(x: Array) -> Array:
    """The solution at points of shape (n, D)."""
    found: Array = (1 - (x**2).sum(axis=1)) * (np.sin(x[:, :-1] + x[:, 1:]) @ COUPLINGS)
    return found


def load(x: Array) -> Array:
    """f, by hand: Delta s = -2 s, since each sine sees two coordinates."""
    pairs = x[:, :-1] + x[:, 1:]
    s, along_x = np.sin(pairs) @ COUPLINGS, (pairs * np.cos(pairs)) @ COUPLINGS
    found: Array = 2 * D * s + 4 * along_x + 2 * (1 - (x**2).sum(axis=1)) * s
    return found


def in_ball(n: int, rng: np.random.Generator) -> Array:
    """Points of even density in the unit ball, of shape (n, D)."""
    x = rng.normal(size=(n, D))
    found: Array = x / np.linalg.norm(x, axis=1, keepdims=True) * rng.random((n, 1)) ** (1 / D)
    return found


def trial(x: ng.Tensor, theta: ng.Tensor) -> ng.Tensor:
    """u at one point: a network times what vanishes on the sphere."""
    return (1 - x @ x) * mlp.apply(theta, WIDTHS, x)[0]


def laplacians(theta: ng.Tensor, x: ng.Tensor) -> ng.Tensor:
    """Of the trial solution, at points of shape (n, D)."""
    return pde.laplacian(trial)(x, theta)


def rows(theta: ng.Tensor, x: ng.Tensor) -> tuple[ng.Tensor, ng.Tensor]:
    """The same, and their Jacobian, of shape (n, parameters)."""
    of_one = value_and_grad(lambda theta, x: pde.laplacian(trial)(x, theta))
    found: tuple[ng.Tensor, ng.Tensor] = vmap(of_one, in_axes=(None, 0), chunk_size=250)(theta, x)
    return found


def train(points: Array, theta: Array, laplacians: Callable[..., Any] = laplacians, rows: Callable[..., Any] = rows) -> Iterator[Array]:
    """Parameters, each better than those before, by Levenberg and Marquardt's method.

    The damping follows how much of what was promised a step has gained: Nielsen's rule, in Madsen, Nielsen and Tingleff, "Methods for
    Non-Linear Least Squares Problems", 2nd ed. (2004), sec. 3.2.
    """
    x, f = ng.tensor(points), load(points)
    damping, growth = float(len(points)), 2.0
    while damping < 1e15:
        values, jacobian = (found.numpy() for found in rows(ng.tensor(theta), x))
        now = values + f
        slope, gram = jacobian.T @ now, jacobian.T @ jacobian
        step = -np.linalg.solve(gram + damping * np.eye(theta.size), slope)
        after = laplacians(ng.tensor(theta + step), x).numpy() + f
        gain = (now @ now - after @ after) / (step @ (damping * step - slope))
        if gain > 0:
            theta, damping, growth = theta + step, damping * max(1 / 3, 1 - (2 * gain - 1) ** 3), 2.0
            yield theta
        else:
            damping, growth = damping * growth, 2 * growth


def timed(f: Callable[[], ng.Tensor], repeats: int = 5) -> tuple[Array, float]:
    """What it gives, and the seconds of the best of some runs."""
    found, times = f().numpy(), []
    for _ in range(repeats):
        began = time.perf_counter()
        f()
        times.append(time.perf_counter() - began)
    return found, min(times)


def compare_methods(points: Array, theta: Array) -> float:
    """Print the time of the Laplacian by each method; how far they are apart, relative to the largest value."""
    arguments = ng.tensor(points), ng.tensor(theta)
    found = {method: timed(partial(pde.laplacian(trial, method), *arguments)) for method in ("taylor", "forward", "reverse")}
    print(f"Laplacian at {len(points)} points: " + ", ".join(f"{name} {1e3 * t:.1f} ms" for name, (_, t) in found.items()))
    right, _ = found["reverse"]
    return float(max(abs(values - right).max() for values, _ in found.values()) / abs(right).max())


def main() -> None:
    """Compare methods, train, and compare with the solution at other points."""
    parser = argparse.ArgumentParser(description="Poisson's equation in ten dimensions by a neural network.")
    parser.add_argument("--points", type=int, default=1000, help="where the equation is asked for (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="of training (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the points and the first parameters (default: %(default)s)")
    parser.add_argument("--tolerance", type=float, default=4e-3, help="relative error that must be reached (default: %(default)s)")
    speed_up.option(parser)
    options = parser.parse_args()

    rng = np.random.default_rng(options.seed)
    points, elsewhere, theta = in_ball(options.points, rng), in_ball(10_000, rng), mlp.init(WIDTHS, rng)
    apart = compare_methods(points, theta)

    jitted = ng.jit(rows)
    began, steps = time.perf_counter(), 0
    path = train(points, theta, ng.jit(laplacians), jitted) if options.jit else train(points, theta)
    for better in islice(path, options.steps):
        theta, steps = better, steps + 1
    print(f"{steps} steps in {time.perf_counter() - began:.1f} s, for {theta.size} parameters")
    if options.jit:
        speed_up.tell("Jacobian", rows, jitted, ng.tensor(theta), ng.tensor(points))
    right = exact(elsewhere)
    error = np.linalg.norm(vmap(trial, in_axes=(0, None))(elsewhere, ng.tensor(theta)).numpy() - right) / np.linalg.norm(right)
    print(f"relative L2 error {error:.1e} at {len(elsewhere)} other points")
    assert apart < 1e-12
    assert error < options.tolerance, f"the error is {error:.1e}, expected less than {options.tolerance:g}; try more --steps or --points"


if __name__ == "__main__":
    main()
