"""Softmax regression by Newton's method: the Hessian is two transforms, and a few steps end at the last digit.

The model sorts points into three classes by the largest of three linear scores. Its loss is convex, so that Newton's method finds the one
minimum. It is compared with SciPy's root of the gradient, and the Hessian with its closed form; both are written down by hand.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root

import nestgrad as ng
from nestgrad.func import grad, hessian

Array = NDArray[np.float64]
CLASSES, RIDGE = 3, 0.01


def data(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Three overlapping clouds: points with a column of ones, of shape (n, 3), and their classes, one row of 0 and 1 each."""
    kinds = rng.integers(0, CLASSES, n)
    centres = np.array([[0.0, 1.0], [1.0, -0.5], [-1.0, -0.5]])
    points = centres[kinds] + 0.8 * rng.normal(size=(n, 2))
    return np.column_stack([points, np.ones(n)]), np.eye(CLASSES)[kinds]


def loss(w: ng.Tensor, x: ng.Tensor, y: ng.Tensor) -> ng.Tensor:
    """Mean cross-entropy with a ridge; ``w`` is flat, a row of scores' weights for each column of ``x``."""
    scores = x @ w.reshape(x.shape[1], CLASSES)
    return -(y * ng.log_softmax(scores, axis=-1)).sum(axis=-1).mean() + 0.5 * RIDGE * (w * w).sum()


def probabilities(w: Array, x: Array) -> Array:
    """By hand."""
    scores = x @ w.reshape(x.shape[1], CLASSES)
    powers: Array = np.exp(scores - scores.max(axis=1, keepdims=True))
    total: Array = powers.sum(axis=1, keepdims=True)
    return powers / total


def gradient_by_hand(w: Array, x: Array, y: Array) -> Array:
    """``x' (p - y) / n`` and the ridge's share."""
    return (x.T @ (probabilities(w, x) - y)).ravel() / len(x) + RIDGE * w


def hessian_by_hand(w: Array, x: Array) -> Array:
    """The mean of the Kronecker products of ``x x'`` and ``diag p - p p'``, and the ridge's share."""
    p = probabilities(w, x)
    spread = np.einsum("ij,jk->ijk", p, np.eye(CLASSES)) - np.einsum("ij,ik->ijk", p, p)
    mean: Array = np.einsum("ia,ib,ijk->ajbk", x, x, spread).reshape(w.size, w.size) / len(x)
    return mean + RIDGE * np.eye(w.size)


def main() -> None:
    """Newton's method from zero, and what it has found."""
    inputs, classes = data(200, np.random.default_rng(0))
    x, y = ng.tensor(inputs), ng.tensor(classes)
    w = np.zeros(inputs.shape[1] * CLASSES)
    steps, g, h = 0, np.ones_like(w), np.eye(w.size)
    while abs(g).max() > 1e-12 and steps < 20:
        g, h = (f(loss)(ng.tensor(w), x, y).numpy() for f in (grad, hessian))
        w, steps = w - np.linalg.solve(h, g), steps + 1
    found = root(gradient_by_hand, np.zeros_like(w), args=(inputs, classes), tol=1e-13)
    hits = (probabilities(w, inputs).argmax(axis=1) == classes.argmax(axis=1)).mean()
    away = abs(w - found.x).max()
    print(f"{steps} steps; loss {loss(ng.tensor(w), x, y).item():.6f}; {hits:.0%} of the points; {away:.0e} away from SciPy's")
    assert steps <= 8
    assert away < 1e-9
    assert abs(h - hessian_by_hand(w, inputs)).max() < 1e-14


if __name__ == "__main__":
    main()
