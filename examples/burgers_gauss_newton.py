"""Burgers' equation to more than six digits: the network of burgers.py, trained by Levenberg-Marquardt steps in place of L-BFGS.

    python examples/burgers_gauss_newton.py
    python examples/burgers_gauss_newton.py --jit
    python examples/burgers_gauss_newton.py --nu 0.00318309886 --points 4000 --tolerance 1e-5 --no-compare --out shock.png

L-BFGS sees the loss as one number. It is a sum of squares, |r(p)|^2 with a residual r_i for each point, and the Jacobian J of r by all
parameters p says far more: the step d that minimises |r + J d|^2 + lambda |d|^2 solves

    (J'J + lambda) d = -J'r,

which is Newton's method but for the curvature of r. That curvature bends the path along which r goes down: a second solve with the same
matrix, (J'J + lambda) a = -J' r''[d, d], corrects d by a / 2 (geodesic acceleration: Transtrum and Sethna, arXiv:1201.5885). All
derivatives are exact. In r, u_x and u_xx are two Taylor coefficients in x, and u_t the tangent in t of the pass that computes them; a row
of J is a gradient through all of this, and vmap makes one pass of all rows; r''[d, d] is a Taylor coefficient along d.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import mlp
import numpy as np
import speed_up
from burgers import WIDTHS, command_line, conclude, draw_error, grid, heading, trial
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

import nestgrad as ng
from nestgrad.backends import Backend
from nestgrad.compiled import Jitted
from nestgrad.func import call, jvp, taylor, trace, value_and_grad, vmap

Array = NDArray[np.float64]
SIZE = mlp.init(WIDTHS, np.random.default_rng(0)).size
Function = Callable[..., Any]
History = list[tuple[float, Array]]
"""Parameters on the way, and after how many seconds they were reached."""


def residual(theta: ng.Tensor, x: ng.Tensor, t: ng.Tensor, nu: float) -> ng.Tensor:
    """What the equation leaves at the points ``x``, ``t`` of shape (n, 1): 0 for a solution."""

    def along_x(t: ng.Tensor) -> tuple[ng.Tensor, ...]:
        return taylor(lambda x: trial(theta, x, t), x, ng.ones_like(x), order=2)

    (u, u_x, half_u_xx), (u_t, *_) = jvp(along_x, (t,), (ng.ones_like(t),))
    left: ng.Tensor = u_t + u * u_x - 2.0 * nu * half_u_xx
    return left


def gauss_points(n: int) -> tuple[Array, Array, Array]:
    """About ``n`` points x, t and weights, each of shape (n, 1): Gauss's on a grid, ten times denser at x = 0, where the front forms, than
    on average. Sums over them are means over the square to many digits, so that no step can win by what happens between the points."""
    m = max(1, round(math.sqrt(n / 2)))
    (z, over_z), (s, over_s) = np.polynomial.legendre.leggauss(2 * m), np.polynomial.legendre.leggauss(m)
    x, t = np.meshgrid(0.1 * z + 0.9 * z**3, (s + 1) / 2, indexing="ij")
    weight = np.outer(over_z * (0.1 + 2.7 * z**2), over_s) / 4  # dx/dz: the map is that of burgers.points
    return x.reshape(-1, 1), t.reshape(-1, 1), weight.reshape(-1, 1)


class Residuals:
    """The residuals at all points as a function of the parameters, and its derivatives: arrays in, arrays out.

    The sum of their squares is the mean of the squared residual over the square. What a call computes is written down once, as a program
    in which no derivative is left. ``wrap`` may do more for the functions that run these programs: ``nestgrad.jit`` optimises them.
    """

    def __init__(self, backend: Backend, nu: float, n: int, wrap: Callable[[Function], Function] = lambda f: f) -> None:
        x, t, weight = (backend.tensor(points) for points in gauss_points(n))
        scale = weight.sqrt()
        theta = backend.tensor(np.zeros(SIZE))

        def at_all(theta: ng.Tensor) -> ng.Tensor:
            return (scale * residual(theta, x, t, nu))[:, 0]

        def rows(theta: ng.Tensor) -> tuple[ng.Tensor, ng.Tensor]:
            # A point is a batch of one: a row of the Jacobian is its gradient.
            of_one = value_and_grad(lambda theta, x, t, scale: (scale * residual(theta, x, t, nu)).sum())
            found: tuple[ng.Tensor, ng.Tensor]
            found = vmap(of_one, in_axes=(None, 0, 0, 0), chunk_size=1000)(theta, *(p.reshape(-1, 1, 1) for p in (x, t, scale)))
            return found

        def written_down(f: Function, *at: ng.Tensor) -> Function:
            return wrap(partial(call, trace(f)(*at)))

        self.tensor = backend.tensor
        self.values = written_down(at_all, theta)
        self.rows = written_down(rows, theta)
        self.curvature = written_down(lambda theta, step: 2.0 * taylor(at_all, theta, step, order=2)[2], theta, theta)
        self.slope = written_down(value_and_grad(lambda theta: (at_all(theta) ** 2).sum()), theta)

    def __call__(self, theta: Array) -> Array:
        """Shape (n,)."""
        found: Array = self.values(self.tensor(theta)).numpy()
        return found

    def linearized(self, theta: Array) -> tuple[Array, Array]:
        """The residuals, and their Jacobian, of shape (n, parameters)."""
        r, jacobian = self.rows(self.tensor(theta))
        return r.numpy(), jacobian.numpy()

    def second(self, theta: Array, step: Array) -> Array:
        """The second derivative along ``step``: r''[d, d]."""
        found: Array = self.curvature(self.tensor(theta), self.tensor(step)).numpy()
        return found

    def loss_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """The sum of squares, and its gradient: all that L-BFGS wants to know."""
        loss, gradient = self.slope(self.tensor(theta))
        return loss.item(), gradient.numpy()


def levenberg_marquardt(r: Residuals, theta: Array) -> Iterator[Array]:
    """Parameters, each better than those before, until no step makes them better.

    The damping follows the quotient of what a step gains and what the linear model promised: Nielsen's rule, in Madsen, Nielsen and
    Tingleff, "Methods for Non-Linear Least Squares Problems", 2nd ed. (2004), sec. 3.2.
    """
    damping, growth = 1e-2, 2.0
    while True:
        now, jacobian = r.linearized(theta)
        gram, slope = jacobian.T @ jacobian, jacobian.T @ now
        # Less than the rounding of the Gram matrix would not keep it positive.
        least = np.finfo(np.float64).eps * np.trace(gram)
        while True:
            damping = max(damping, least)
            factor = cho_factor(gram + damping * np.eye(theta.size), check_finite=False)
            step = -cho_solve(factor, slope)
            bend = -cho_solve(factor, jacobian.T @ r.second(theta, step))
            after = r(theta + step + bend / 2)
            won = now @ now - after @ after
            # A path that bends by more than this is not known well enough from its beginning.
            if won > 0 and np.linalg.norm(bend) <= 0.75 * np.linalg.norm(step):
                break
            damping, growth = damping * growth, 2.0 * growth
            if damping > 1e10:
                return
        theta, gain = theta + step + bend / 2, won / (step @ (damping * step - slope))
        damping, growth = damping * max(1 / 3, 1 - (2 * gain - 1) ** 3), 2.0
        yield theta


def gauss_newton(r: Residuals, theta: Array, steps: int) -> History:
    """As many steps of Levenberg's and Marquardt's method."""
    began = time.perf_counter()
    return [(0.0, theta), *((time.perf_counter() - began, found) for found in islice(levenberg_marquardt(r, theta), steps))]


def lbfgs(r: Residuals, theta: Array, seconds: float) -> History:
    """As many seconds of L-BFGS on the same sum of squares, with the options of burgers.py."""
    began = time.perf_counter()
    history = [(0.0, theta)]

    def after_step(intermediate_result: Any) -> None:
        history.append((time.perf_counter() - began, intermediate_result.x.copy()))
        if history[-1][0] > seconds:
            raise StopIteration

    options = {"maxiter": 10**6, "maxfun": 10**7, "maxcor": 50, "ftol": 0, "gtol": 0}
    minimize(r.loss_and_gradient, theta, jac=True, method="L-BFGS-B", options=options, callback=after_step)
    return history


def values(theta: Array, x: Array, t: Array) -> Array:
    """The network's solution on a grid."""
    found: Array = trial(ng.tensor(theta), ng.tensor(x.reshape(-1, 1)), ng.tensor(t.reshape(-1, 1))).numpy().reshape(x.shape)
    return found


def relative_error(theta: Array, x: Array, t: Array, right: Array) -> float:
    """In the L2 norm over a grid."""
    return float(np.linalg.norm(values(theta, x, t) - right) / np.linalg.norm(right))


def picture(path: str, x: Array, t: Array, right: Array, histories: dict[str, History], title: str) -> None:
    """The errors over time, and the field of the first history's last error."""
    import matplotlib

    matplotlib.use("Agg")  # draws into files, needs no screen
    from matplotlib import pyplot

    figure, (left, last) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    figure.suptitle(title)

    coarse = x[::4, ::4], t[::4, ::4], right[::4, ::4]
    for (name, history), colour in zip(histories.items(), ("tab:blue", "tab:orange"), strict=False):
        some = history[:: max(1, len(history) // 100)]
        left.semilogy([when for when, _ in some], [relative_error(theta, *coarse) for _, theta in some], color=colour, label=name)
    left.legend(frameon=False)
    left.set(title="relative $L_2$ error", xlabel="seconds", xlim=(0, None))

    draw_error(figure, last, x, t, values(next(iter(histories.values()))[-1][1], x, t) - right)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def main() -> None:
    """Solve, compare, draw."""
    parser = command_line(steps=150, tolerance=1e-6, out="burgers_gauss_newton.png")
    parser.add_argument("--compare", action=argparse.BooleanOptionalAction, default=True, help="give L-BFGS as many seconds")
    options = parser.parse_args()

    backend = ng.get_backend(options.backend, dtype="float64")
    plain = Residuals(backend, options.nu, options.points)
    r = Residuals(backend, options.nu, options.points, wrap=ng.jit) if options.jit else plain
    start = mlp.init(WIDTHS, np.random.default_rng(options.seed))
    path = gauss_newton(r, start, options.steps)
    histories = {"Levenberg-Marquardt": path}
    (seconds, theta), steps = path[-1], len(path) - 1
    print(f"{steps} steps in {seconds:.1f} s, {1e3 * seconds / max(steps, 1):.0f} ms each, for {theta.size} parameters")
    if isinstance(r.rows, Jitted):
        speed_up.tell("Jacobian", plain.rows, r.rows, backend.tensor(theta))

    x, t, right = grid(options.nu)
    if options.compare:
        histories["L-BFGS"] = lbfgs(r, start, seconds)
        print(f"L-BFGS in as many seconds: relative error {relative_error(histories['L-BFGS'][-1][1], x, t, right):.1e}")
    error = relative_error(theta, x, t, right)
    picture(options.out, x, t, right, histories, heading(options.nu, error))
    conclude(error, options)


if __name__ == "__main__":
    main()
