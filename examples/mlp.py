"""A multilayer perceptron whose parameters are one flat vector: thirty lines to copy.

One vector is what an optimiser wants: SciPy's L-BFGS takes it as it is, and its gradient is one look-up, ``theta.grad(loss.backward())``.
Run as a program, it fits sin(3 x) and checks the second derivative of what it found, N''(x), against the chain rule by hand.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import speed_up
from numpy.typing import NDArray
from scipy.optimize import minimize

import nestgrad as ng
from nestgrad.backends import NumpyBackend
from nestgrad.levels import Autodiff

Array = NDArray[np.float64]


def init(widths: Sequence[int], rng: np.random.Generator) -> Array:
    """Weights after Glorot and Bengio (2010); ``widths`` holds the numbers of inputs, of units in each hidden layer, and of outputs."""
    parts = []
    for n, m in pairwise(widths):
        parts += [rng.normal(0.0, np.sqrt(2.0 / (n + m)), n * m), rng.uniform(-1.0, 1.0, m)]  # biases spread the units over the inputs
    return np.concatenate(parts)


def unpack(theta: ng.Tensor, widths: Sequence[int]) -> Iterator[tuple[ng.Tensor, ng.Tensor]]:
    """Weights of shape (n, m) and biases of shape (m,), layer by layer. Slices are ops, so derivatives flow back into ``theta``."""
    end = 0
    for n, m in pairwise(widths):
        start, middle, end = end, end + n * m, end + n * m + m
        yield theta[start:middle].reshape(n, m), theta[middle:end]


def apply(theta: ng.Tensor, widths: Sequence[int], x: ng.Tensor) -> ng.Tensor:
    """The network at ``x``, a row per sample: tanh after each layer but the last."""
    *hidden, (w, b) = unpack(theta, widths)
    for v, c in hidden:
        x = ng.tanh(x @ v + c)
    return x @ w + b


def curvature_by_hand(layers: Sequence[tuple[Array, Array]], x: Array) -> Array:
    """The second derivative of a network with one input, by the chain rule, from input to output."""
    h, dh, ddh = x, np.ones_like(x), np.zeros_like(x)
    *hidden, (w, _) = layers
    for v, c in hidden:
        h, dh, ddh = np.tanh(h @ v + c), dh @ v, ddh @ v
        slope = 1.0 - h * h
        dh, ddh = slope * dh, slope * ddh - 2.0 * h * slope * dh**2
    return ddh @ w


def main() -> None:
    """Fit a function, then look at the second derivative of the fit."""
    parser = argparse.ArgumentParser(description="Fit a function by a small network.")
    speed_up.option(parser)
    options = parser.parse_args()

    widths = (1, 20, 20, 1)
    S = Autodiff(Autodiff(NumpyBackend()))
    samples = ng.tensor(np.linspace(-1.0, 1.0, 50)[:, None])
    y = ng.sin(3.0 * samples)

    def evaluate(parameters: ng.Tensor) -> tuple[ng.Tensor, ng.Tensor]:
        theta = S.tensor(parameters, requires_grad=True)
        loss = ((apply(theta, widths, samples) - y) ** 2).mean()
        return loss.detach(), theta.grad(loss.backward()).detach()  # numbers: nobody differentiates them once more

    jitted = ng.jit(evaluate)
    chosen = jitted if options.jit else evaluate

    def loss_and_gradient(flat: Array) -> tuple[float, Array]:
        loss, gradient = chosen(ng.tensor(flat))
        return loss.item(), gradient.numpy()

    start = init(widths, np.random.default_rng(0))
    fit = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options={"maxiter": 300, "ftol": 0, "gtol": 0})

    if options.jit:
        speed_up.tell("loss and gradient", evaluate, jitted, ng.tensor(start), calls=50)

    theta, x = S.tensor(fit.x), S.tensor(samples, requires_grad=True)
    curvature = apply(theta, widths, x).wrt(x).wrt(x).numpy()

    layers = [(w.numpy(), b.numpy()) for w, b in unpack(theta, widths)]
    slip = abs(curvature - curvature_by_hand(layers, x.numpy())).max()
    print(f"loss {fit.fun:.1e}; N'' differs by {slip:.1e} from the chain rule by hand")
    assert fit.fun < 1e-6
    assert slip < 1e-11


if __name__ == "__main__":
    main()
