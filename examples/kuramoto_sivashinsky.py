"""The Kuramoto-Sivashinsky equation, u_t + u u_x + u_xx + u_xxxx = 0: flame fronts, thin films, the beginning of turbulence.

    python examples/kuramoto_sivashinsky.py
    python examples/kuramoto_sivashinsky.py --jit
    python examples/kuramoto_sivashinsky.py --features 800 --points 26 --out wave.png

Four derivatives in x come from one Taylor series in x, u_t from one pass of forward mode over it (``terms``). Kudryashov's wave solves the
equation exactly (Phys. Lett. A 147 (1990) 287):

    u = c + 15/19 sqrt(11/19) (11 T^3 - 9 T),   T = tanh(k (x - c t)),   k = sqrt(11/19) / 2,

so that its residual is zero to rounding. Then a network u = sum_k w_k phi_k(x, t) finds the wave from its first moment and from u and u_x
at the two ends: phi_k is tanh of random weights times (x, t), and the last layer w is found by Newton's method (Gauss's for the sum of
squares). The equation is quadratic in u, and it is differentiated as it is written: the Jacobian is its pushforward, of one feature after
the other.
"""

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
import speed_up
from numpy.typing import NDArray

import nestgrad as ng
from nestgrad.func import jvp, linearize, taylor, vmap

Array = NDArray[np.float64]
Field = Callable[[ng.Tensor, ng.Tensor], ng.Tensor]
"""A function of points x and t of shape (n, 1), with a row for each of them."""

Linearized = Callable[[Sequence[ng.Tensor], ng.Tensor], tuple[ng.Tensor, ng.Tensor]]

K, SPEED = np.sqrt(11 / 19) / 2, 1.0
END, LAST = 10.0, 2.0
"""The wave is looked for on [-END, END] x [0, LAST]."""


def wave(x: ng.Tensor, t: ng.Tensor) -> ng.Tensor:
    """The exact solution."""
    z = ng.tanh(K * (x - SPEED * t))
    u: ng.Tensor = SPEED + 15 / 19 * np.sqrt(11 / 19) * (11 * z**3 - 9 * z)
    return u


def terms(u: Field, x: ng.Tensor, t: ng.Tensor) -> tuple[ng.Tensor, ...]:
    """u, u_t, u_x, u_xx and u_xxxx."""

    def along_x(t: ng.Tensor) -> tuple[ng.Tensor, ...]:
        return taylor(lambda x: u(x, t), x, ng.ones_like(x), order=4)

    (c0, c1, c2, _, c4), (u_t, *_) = jvp(along_x, (t,), (ng.ones_like(t),))
    return c0, u_t, c1, 2 * c2, 24 * c4


def equation(u: ng.Tensor, u_t: ng.Tensor, u_x: ng.Tensor, u_xx: ng.Tensor, u_xxxx: ng.Tensor) -> ng.Tensor:
    """What is zero for a solution."""
    return u_t + u * u_x + u_xx + u_xxxx


def features(n: int, seed: int) -> Field:
    """``n`` functions of x and t, in columns."""
    rng = np.random.default_rng(seed)
    # As steep as the wave and flatter, and each with its front somewhere between the ends.
    a, b, front = rng.uniform(-0.7, 0.7, n), rng.uniform(-1, 1, n), rng.uniform(-END, END, n)
    by_x, by_t, bias = map(ng.tensor, (a, b, -a * front))
    return lambda x, t: ng.tanh(x * by_x + t * by_t + bias)


def gauss(n: int, start: float, end: float) -> tuple[ng.Tensor, Array]:
    """Gauss's points, of shape (n, 1), and the roots of weights with which sums of squares are means."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return ng.tensor(start + (end - start) * (nodes[:, None] + 1) / 2), np.sqrt(weights / 2)


def conditions(u: Field, n: int) -> Array:
    """What is known: u at the first moment, u and u_x at both ends, all rows below each other, weighted as means."""
    x, over_x = gauss(3 * n, -END, END)
    t, over_t = gauss(n, 0, LAST)
    rows = [over_x[:, None] * u(x, 0 * t[:1]).numpy()]
    for end in (-END, END):
        series = taylor(lambda x: u(x, t), ng.full_like(t, end), ng.ones_like(t), order=1)
        rows += [over_t[:, None] * c.numpy() for c in series]
    return 10 * np.concatenate(rows)  # more than the equation: what is wrong there is wrong everywhere


def linearized(columns: Sequence[ng.Tensor], w: ng.Tensor) -> tuple[ng.Tensor, ng.Tensor]:
    """The residual of the network, a row for each point, and its Jacobian by ``w``, whose columns are pushforwards of features."""
    r, pushforward = linearize(equation, *(column @ w for column in columns))
    jacobian = vmap(lambda *feature: pushforward(*feature), in_axes=1, out_axes=1)(*(column[..., None] for column in columns))
    return r, jacobian[..., 0]


def terms_at_points(phi: Field, n: int) -> tuple[ng.Tensor, ...]:
    """The terms of all features, which are columns, where the equation is asked for."""
    (x, _), (t, _) = gauss(3 * n, -END, END), gauss(n, 0, LAST)
    return terms(phi, ng.repeat(x, n, axis=0), ng.tile(t, (3 * n, 1)))


def solve(phi: Field, columns: Sequence[ng.Tensor], n: int, linearized: Linearized = linearized, most: int = 20) -> tuple[Array, int]:
    """The last layer of the network, and the number of Newton's steps."""
    (_, over_x), (_, over_t) = gauss(3 * n, -END, END), gauss(n, 0, LAST)
    weight = np.outer(over_x, over_t).reshape(-1, 1)
    known, given = conditions(phi, n), conditions(wave, n)
    w, steps, change = np.zeros((known.shape[1], 1)), 0, 1.0
    while change > 1e-7 and steps < most:
        r, jacobian = (found.numpy() for found in linearized(columns, ng.tensor(w)))
        matrix = np.concatenate([weight * jacobian, known])
        left = np.concatenate([weight * r, known @ w - given])
        size = np.linalg.norm(matrix, axis=0)  # columns of one length: how large a feature is says nothing
        move = -np.linalg.lstsq(matrix / size, left, rcond=1e-14)[0] / size[:, None]
        w, steps, change = w + move, steps + 1, float(np.linalg.norm(known @ move) / np.linalg.norm(given))
    return w, steps


def picture(path: str, x: Array, t: Array, u: Array, right: Array) -> None:
    """The wave by the network, its first and last moment beside the exact ones, and the error."""
    import matplotlib

    matplotlib.use("Agg")  # draws into files, needs no screen
    from matplotlib import pyplot

    figure, (left, middle, last) = pyplot.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
    image = left.pcolormesh(t, x, u, cmap="viridis", rasterized=True)
    figure.colorbar(image, ax=left)
    left.set(title="network $u(x, t)$", xlabel="$t$", ylabel="$x$")
    for k, colour in ((0, "tab:blue"), (-1, "tab:orange")):
        middle.plot(x[:, k], u[:, k], color=colour, linewidth=2, label=f"$t$ = {t[0, k]:g}")
        middle.plot(x[::8, k], right[::8, k], "o", color=colour, markersize=4, markerfacecolor="white")
    middle.plot([], [], "o", color="gray", markersize=4, markerfacecolor="white", label="exact")
    middle.legend(frameon=False)
    middle.set(title="network and exact solution", xlabel="$x$", ylabel="$u$")
    size = abs(u - right).max()
    image = last.pcolormesh(t, x, u - right, cmap="PuOr", vmin=-size, vmax=size, rasterized=True)
    figure.colorbar(image, ax=last, format="%.0e")
    last.set(title="error: network - exact", xlabel="$t$", ylabel="$x$")
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


def main() -> None:
    """The residual of the exact wave; the wave by a network."""
    parser = argparse.ArgumentParser(description="A wave of the Kuramoto-Sivashinsky equation by a network with random features.")
    parser.add_argument("--features", type=int, default=600, help="units of the hidden layer (default: %(default)s)")
    parser.add_argument("--points", type=int, default=20, help="in time, and three times as many in space (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the hidden layer (default: %(default)s)")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="relative error that must be reached (default: %(default)s)")
    parser.add_argument("--out", help="file for a picture")
    speed_up.option(parser)
    options = parser.parse_args()

    x, t = np.meshgrid(np.linspace(-END, END, 201), np.linspace(0, LAST, 41), indexing="ij")
    columns = ng.tensor(x.reshape(-1, 1)), ng.tensor(t.reshape(-1, 1))
    left = abs(equation(*terms(wave, *columns)).numpy()).max()
    print(f"residual of the exact wave at {x.size} points: at most {left:.1e}")

    jitted = ng.jit(linearized)
    began = time.perf_counter()
    phi = features(options.features, options.seed)
    at_points = terms_at_points(phi, options.points)
    w, steps = solve(phi, at_points, options.points, jitted if options.jit else linearized)
    seconds = time.perf_counter() - began
    u, right = (phi(*columns).numpy() @ w).reshape(x.shape), wave(*columns).numpy().reshape(x.shape)
    error = np.linalg.norm(u - right) / np.linalg.norm(right)
    print(f"network: relative L2 error {error:.1e} after {steps} Newton steps, {seconds:.1f} s")
    if options.jit:
        speed_up.tell("Jacobian", linearized, jitted, at_points, ng.tensor(w))
    if options.out:
        picture(options.out, x, t, u, right)
    assert left < 1e-12
    assert error < options.tolerance, f"the error is {error:.1e}, expected less than {options.tolerance:g}; try more --points, --features"


if __name__ == "__main__":
    main()
