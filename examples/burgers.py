"""Burgers' equation by a neural network: u_t + u u_x = nu u_xx on [-1, 1] x [0, 1], u(x, 0) = -sin(pi x), u(-1, t) = u(1, t) = 0.

    python examples/burgers.py
    python examples/burgers.py --jit
    python examples/burgers.py --nu 0.00318309886 --points 2000 --steps 5000 --tolerance 5e-3 --out shock.png

The equation reads as on paper (``residual``). Three levels hold three derivatives: u_x and u_t use up the outermost, u_xx the one under
it, and the gradient of the loss by all parameters, which goes through u_xx, the innermost.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import mlp
import numpy as np
import speed_up
from numpy.typing import NDArray
from scipy.optimize import minimize

import nestgrad as ng
from nestgrad.levels import Autodiff

try:
    from tqdm import tqdm
except ImportError:  # only the bar is missed
    tqdm = None

Array = NDArray[np.float64]

Evaluate = Callable[[ng.Tensor, ng.Tensor, ng.Tensor], tuple[ng.Tensor, ng.Tensor]]

WIDTHS = (2, 20, 20, 20, 1)


def trial(theta: ng.Tensor, x: ng.Tensor, t: ng.Tensor) -> ng.Tensor:
    """u at the points ``x``, ``t`` of shape (n, 1). Initial and boundary values hold whatever the network says: t (1 - x^2) is 0 there."""
    # The solution is steeper in x than in t. Stretched inputs spare the first layer from growing large weights.
    network = mlp.apply(theta, WIDTHS, ng.concat([5 * x, 2 * t - 1], axis=1))
    return t * (1 - x * x) * network - ng.sin(np.pi * x)


def residual(theta: ng.Tensor, x: ng.Tensor, t: ng.Tensor, nu: float) -> ng.Tensor:
    """What the equation leaves at the points: 0 for a solution."""
    u = trial(theta, x, t)
    # u has a row per point and each row knows its own x alone, so the gradient of the sum, which backward() gives, is u_x row by row.
    grads = u.backward()
    u_x, u_t = x.grad(grads), t.grad(grads)
    u_xx = x.grad(u_x.backward())
    return u_t + u * u_x - nu * u_xx


def points(n: int, seed: int) -> tuple[Array, Array, Array]:
    """x, t and weights, each of shape (n, 1): evenly scattered, ten times denser at x = 0, where the front forms, than on average."""
    # Multiples of powers of the plastic number, mod 1, cover the square evenly: M. Roberts' R2 sequence.
    z, t = (np.random.default_rng(seed).random((2, 1)) + np.outer([0.7548776662466927, 0.5698402909980532], np.arange(n))) % 1
    z = 2 * z[:, None] - 1
    x = 0.1 * z + 0.9 * z**3
    return x, t[:, None], 0.1 + 2.7 * z**2  # dx/dz: with it the mean over the points is the mean over the square


def training(S: Autodiff, nu: float, n: int, seed: int) -> tuple[Evaluate, tuple[ng.Tensor, ng.Tensor, ng.Tensor]]:
    """Loss and gradient as a function of the parameters, x and t; and these where the training starts."""
    x, t, weights = map(S.base.tensor, points(n, seed))

    def evaluate(*numbers: ng.Tensor) -> tuple[ng.Tensor, ng.Tensor]:
        theta, x, t = (S.tensor(p, requires_grad=True) for p in numbers)
        r = residual(theta, x, t, nu)
        loss = (weights * r * r).mean()
        return loss.detach(), theta.grad(loss.backward()).detach()  # numbers: nobody differentiates them once more

    return evaluate, (S.base.tensor(mlp.init(WIDTHS, np.random.default_rng(seed))), x, t)


def solve(S: Autodiff, evaluate: Evaluate, start: tuple[ng.Tensor, ng.Tensor, ng.Tensor], steps: int) -> tuple[Array, int]:
    """Train the network; its parameters, and how often the loss was evaluated."""
    theta, x, t = start
    bar: Any = tqdm(total=steps, unit="step", disable=None) if tqdm else None  # None: no bar where nobody watches

    def loss_and_gradient(parameters: Array) -> tuple[float, Array]:
        loss, gradient = evaluate(S.base.tensor(parameters), x, t)
        return loss.item(), gradient.numpy()

    def after_step(intermediate_result: Any) -> None:
        if bar is not None:
            bar.set_postfix_str(f"loss {intermediate_result.fun:.2e}", refresh=False)
            bar.update()

    # Tolerances of 0: an ill-conditioned loss improves by little for long. maxcor is how many steps the Hessian is made of.
    options = {"maxiter": steps, "maxfun": 10 * steps, "maxcor": 50, "ftol": 0, "gtol": 0}
    found = minimize(loss_and_gradient, theta.numpy(), jac=True, method="L-BFGS-B", options=options, callback=after_step)
    if bar is not None:
        bar.close()
    return found.x, found.nfev


def solution(S: Autodiff, theta: Array, x: Array, t: Array) -> Array:
    """The network with these parameters, at arrays of points."""
    values: Array = trial(S.tensor(theta), S.tensor(x.reshape(-1, 1)), S.tensor(t.reshape(-1, 1))).numpy()
    return values.reshape(x.shape)


def exact(x: Array, t: Array, nu: float, n: int = 100) -> Array:
    """The solution by the Cole-Hopf formula, u = -E[sin(pi y) f(y)] / E[f(y)] with y normal around x with variance 2 nu t and
    f(y) = exp(-cos(pi y) / (2 pi nu)), by Gauss-Hermite quadrature: Basdevant et al., Computers & Fluids 14 (1986) 23."""
    nodes, weights = np.polynomial.hermite.hermgauss(n)
    y = x[..., None] - np.sqrt(4 * nu * t)[..., None] * nodes
    log_f = -np.cos(np.pi * y) / (2 * np.pi * nu)
    f = weights * np.exp(log_f - log_f.max(axis=-1, keepdims=True))  # f itself would overflow for small nu
    u: Array = -(np.sin(np.pi * y) * f).sum(axis=-1) / f.sum(axis=-1)
    return u


def draw_error(figure: Any, axes: Any, x: Array, t: Array, error: Array) -> None:
    """A field of errors, with colours that are white where there is none."""
    size = abs(error).max()
    image = axes.pcolormesh(t, x, error, cmap="PuOr", vmin=-size, vmax=size, rasterized=True)
    figure.colorbar(image, ax=axes, format="%.0e")
    axes.set(title="error: network - exact", xlabel="$t$", ylabel="$x$")


def picture(path: str, x: Array, t: Array, u: Array, right: Array, title: str) -> None:
    """The solution ``u`` on a grid, three moments of it beside the exact solution ``right``, and their difference."""
    import matplotlib

    matplotlib.use("Agg")  # draws into files, needs no screen
    from matplotlib import pyplot

    figure, (left, middle, last) = pyplot.subplots(1, 3, figsize=(14, 4), layout="constrained")
    figure.suptitle(title)

    image = left.pcolormesh(t, x, u, cmap="RdBu_r", vmin=-1, vmax=1, rasterized=True)
    figure.colorbar(image, ax=left)
    left.set(title="network $u(x, t)$", xlabel="$t$", ylabel="$x$")

    moments = (0.25, 0.5, 1.0)
    for moment, colour in zip(moments, ("tab:blue", "tab:orange", "tab:green"), strict=True):
        k = int(np.argmin(abs(t[0] - moment)))
        middle.plot(x[:, k], u[:, k], color=colour, linewidth=2, label=f"$t$ = {moment:g}")
        middle.plot(x[::20, k], right[::20, k], "o", color=colour, markersize=4, markerfacecolor="white")
        left.axvline(moment, color="black", linewidth=0.8, linestyle=":")
    middle.plot([], [], "o", color="gray", markersize=4, markerfacecolor="white", label="exact")
    middle.legend(loc="upper right", frameon=False)
    middle.set(title="network and exact solution", xlabel="$x$", ylabel="$u$", xlim=(-1, 1))

    draw_error(figure, last, x, t, u - right)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def command_line(steps: int, tolerance: float, out: str) -> argparse.ArgumentParser:
    """The options, with defaults that are a method's own."""
    parser = argparse.ArgumentParser(description="Solve Burgers' equation with a small neural network.")
    parser.add_argument("--backend", default="numpy", choices=("numpy", "torch"), help="where numbers live (default: %(default)s)")
    parser.add_argument("--nu", type=float, default=0.05, help="viscosity (default: %(default)s)")
    parser.add_argument("--points", type=int, default=1000, help="where the equation is asked for (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=steps, help="of training (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn at random (default: %(default)s)")
    parser.add_argument("--tolerance", type=float, default=tolerance, help="relative error that must be reached (default: %(default)s)")
    parser.add_argument("--out", default=out, help="file for the picture (default: %(default)s)")
    speed_up.option(parser)
    return parser


def grid(nu: float) -> tuple[Array, Array, Array]:
    """Points x and t where solutions are compared, and the exact one."""
    x, t = np.meshgrid(np.linspace(-1, 1, 401), np.linspace(0, 1, 101), indexing="ij")
    return x, t, exact(x, t, nu)


def heading(nu: float, error: float) -> str:
    """Of a picture."""
    return rf"Burgers' equation, $\nu$ = {nu:.4g}: relative $L_2$ error {error:.1e}"


def conclude(error: float, options: argparse.Namespace) -> None:
    """Tell the error, and ask whether it is small enough."""
    print(f"relative L2 error {error:.2e}; picture in {options.out}")
    assert error < options.tolerance, f"the error is {error:.2e}, expected less than {options.tolerance:g}; try more --steps or --points"


def main() -> None:
    """Solve, compare, draw."""
    options = command_line(steps=1000, tolerance=1e-3, out="burgers.png").parse_args()

    S = Autodiff(Autodiff(Autodiff(ng.get_backend(options.backend, dtype="float64"))))
    evaluate, start = training(S, options.nu, options.points, options.seed)
    jitted = ng.jit(evaluate)
    began = time.perf_counter()
    theta, evaluations = solve(S, jitted if options.jit else evaluate, start, options.steps)
    seconds = time.perf_counter() - began
    print(f"{evaluations} evaluations in {seconds:.1f} s, {1e3 * seconds / evaluations:.1f} ms each")
    if options.jit:
        speed_up.tell("loss and gradient", evaluate, jitted, *start)

    x, t, right = grid(options.nu)
    u = solution(S, theta, x, t)
    error = float(np.linalg.norm(u - right) / np.linalg.norm(right))
    picture(options.out, x, t, u, right, heading(options.nu, error))
    conclude(error, options)


if __name__ == "__main__":
    main()
