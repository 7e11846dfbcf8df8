"""Labels of programs written by hand: which there are, and that derivatives keep what they promise."""

from typing import Any

import numpy as np
import pytest
from label_oracle import assert_labels_hold, carriers

import nestgrad as ng
from nestgrad import func
from nestgrad.levels.traced.program import Program
from nestgrad.partials.independence import labels

RNG = np.random.default_rng(3)
X, Y, Z = (RNG.normal(size=(4, 3)) for _ in range(3))
W, B, C = RNG.normal(size=(3, 2)), RNG.normal(size=3), RNG.normal(size=4)
Q, K, V = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))
T, U = RNG.normal(size=(2, 4, 3)), RNG.normal(size=(5, 3))
S = RNG.normal(size=(3, 3))
IMAGE, KERNEL = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 3, 2))


def traced(f: Any, *args: Any) -> Program:
    program: Program = func.trace(f)(*args)
    return program


CASES: dict[str, tuple[Any, tuple[Any, ...], list[Any]]] = {
    # what it is, its arguments, and its labels: size, axis by input, axis of the output
    "each entry": (lambda x, y: x.sin() * y, (X, Y), [(4, {0: 0, 1: 0}, 0), (3, {0: 1, 1: 1}, 1)]),
    "a bias": (lambda x, b: (x + b).exp(), (X, B), [(4, {0: 0}, 0), (3, {0: 1, 1: 0}, 1)]),
    "a product": (lambda x, w: x @ w, (X, W), [(4, {0: 0}, 0), (2, {1: 1}, 1), (3, {0: 1, 1: 0}, None)]),
    "a product and then": (lambda x, w: (x @ w).tanh(), (X, W), [(4, {0: 0}, 0), (2, {1: 1}, 1)]),
    "two layers": (lambda x, w, v: (x @ w).tanh() @ v, (X, W, W.T), [(4, {0: 0}, 0), (3, {2: 1}, 1), (2, {1: 1, 2: 0}, None)]),
    "softmax of rows": (lambda x: ng.softmax(x, axis=1), (X,), [(4, {0: 0}, 0)]),
    "attention": (lambda q, k, v: ng.softmax(q @ k.T, axis=1) @ v, (Q, K, V), [(4, {0: 0}, 0), (2, {2: 1}, 1)]),
    "attention of values that are shared": (lambda q, k: ng.softmax(q @ k.T, axis=1) @ k, (Q, K), [(4, {0: 0}, 0)]),
    "with itself": (lambda x: x @ x.T, (X,), [(3, {0: 1}, None)]),
    "with itself, and then": (lambda x: (x @ x.T).sin(), (X,), []),
    "itself turned": (lambda x: (x + x.T).sin(), (S,), []),
    "outer": (lambda x: (x[:, None] * x[None, :]).sin(), (B,), []),
    "the mean, used later": (lambda x: (x - x.mean(0)).square(), (X,), [(3, {0: 1}, 1)]),
    "the mean, in the end": (lambda x: x.sin().mean(0), (X,), [(3, {0: 1}, 0), (4, {0: 0}, None)]),
    "a sum of products": (lambda x, y: (x.sin() * y.exp()).sum(), (X, Y), [(4, {0: 0, 1: 0}, None), (3, {0: 1, 1: 1}, None)]),
    "a loss": (
        lambda x, w: ((x @ w).tanh() ** 2).sum(1).mean() + (w**4).sum(), (X, W), [(4, {0: 0}, None), (2, {1: 1}, None)],
    ),
    "the root of a loss": (lambda x, w: ((x @ w).tanh() ** 2).mean().sqrt(), (X, W), []),
    "a sum times a parameter": (
        lambda x, w: x.exp().sum() * w.sin().sum(), (X, B), [(4, {0: 0}, None), (3, {0: 1}, None), (3, {1: 0}, None)],
    ),
    "a sum times itself": (lambda x: x.exp().sum() * x.sum(), (B,), []),
    "sums of sums": (lambda x, y: (x.exp().sum(1) * y).sum() * 0.5, (X, C), [(4, {0: 0, 1: 0}, None), (3, {0: 1}, None)]),
    "a sum that gates": (lambda x: ng.where(x.sum() > 0.0, x.exp().sum(), x.sin().sum()), (B,), []),
    "a sum without derivative": (lambda x: x.exp() * x.sum().detach(), (B,), []),
    "a sum that is kept": (lambda x: x.sum(1, keepdims=True).sin() * x, (X,), [(4, {0: 0}, 0)]),
    "a dot product": (lambda x, y: x @ y, (B, B[::-1].copy()), [(3, {0: 0, 1: 0}, None)]),
    "a diamond": (lambda x: x.sin() * x + x.cos(), (X,), [(4, {0: 0}, 0), (3, {0: 1}, 1)]),
    "a diamond through a sum": (lambda x: (x.sin() + x.sum(0)).exp(), (X,), [(3, {0: 1}, 1)]),
    "axes merged and parted": (lambda x: x.reshape(12).sin().reshape(4, 3).exp(), (X,), [(4, {0: 0}, 0), (3, {0: 1}, 1)]),
    "axes merged": (lambda x: x.reshape(12).sin().sum(), (X,), [(4, {0: 0}, None), (3, {0: 1}, None)]),
    "axes merged askew": (lambda x: x.reshape(2, 6).sin().sum(), (X.T.copy(),), []),
    "axes merged for good": (lambda x: x.reshape(12).sin(), (X,), []),
    "axes of size 1": (lambda x: x.reshape(4, 1, 3, 1).sin(), (X,), [(4, {0: 0}, 0), (3, {0: 1}, 2)]),
    "three axes through a layer of two": (
        lambda x, w: (x.reshape(8, 3) @ w.T).tanh().reshape(2, 4, 5), (T, U), [(2, {0: 0}, 0), (4, {0: 1}, 1), (5, {1: 0}, 2)],
    ),
    "a mean over merged axes": (lambda x: x.reshape(8, 3).exp().mean(), (T,), [(2, {0: 0}, None), (4, {0: 1}, None), (3, {0: 2}, None)]),
    "turned": (lambda x: x.transpose(2, 0, 1).exp(), (T,), [(3, {0: 2}, 0), (2, {0: 0}, 1), (4, {0: 1}, 2)]),
    "a row": (lambda x: x[:, 0].exp(), (X,), [(4, {0: 0}, 0)]),
    "rows shifted": (lambda x: x[1:] * x[:-1], (X,), [(3, {0: 1}, 1)]),
    "put together": (lambda x, y: ng.concat([x, y.exp()], axis=1), (X, Y), [(4, {0: 0, 1: 0}, 0)]),
    "side by side": (lambda x, y: ng.stack([x, y.exp()], axis=1), (X, Y), [(4, {0: 0, 1: 0}, 0), (3, {0: 1, 1: 1}, 2)]),
    "in parts": (lambda x: ng.split(x.exp(), 2, axis=0)[0] * 2.0, (X,), [(3, {0: 1}, 1)]),
    "running": (lambda x: x.cumsum(0).sin(), (X,), [(3, {0: 1}, 1)]),
    "repeated": (lambda x: ng.broadcast_to(x, (4, 3)).exp(), (B,), [(4, {}, 0), (3, {0: 0}, 1)]),
    "what the output does not depend on": (lambda x, y: y.exp(), (X, B), [(3, {1: 0}, 0), (4, {0: 0}, None), (3, {0: 1}, None)]),
    "by a mask": (lambda x: ng.where(x > 0.0, x.exp(), 0.5 * x), (X,), [(4, {0: 0}, 0), (3, {0: 1}, 1)]),
    "by the greatest of each row": (lambda x: ng.take_along_axis(x.exp(), ng.argmax(x, axis=1)[:, None], 1), (X,), [(4, {0: 0}, 0)]),
    "einsum": (
        lambda x, t: ng.einsum("ij,kij->ki", x, t).tanh(), (X, T), [(2, {1: 0}, 0), (4, {0: 0, 1: 1}, 1)],
    ),
    "normalised": (lambda x, b: ng.nn.layer_norm(x, 3, b, b), (X, B), [(4, {0: 0}, 0)]),
    "a convolution": (lambda x, w: ng.nn.conv1d(x, w).tanh(), (IMAGE, KERNEL), [(2, {0: 0}, 0), (2, {1: 0}, 1)]),
    "a constant with entries of its own": (lambda x: x * np.arange(3.0), (X,), [(4, {0: 0}, 0)]),
    "a constant that is the same all along": (lambda x: (x * np.ones(3)).exp(), (X,), [(4, {0: 0}, 0), (3, {0: 1}, 1)]),
    "the input": (lambda x: x, (X,), [(4, {0: 0}, 0), (3, {0: 1}, 1)]),
    "no entries": (lambda x: x.exp().reshape(0), (X[:0],), []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_labels(name):
    f, args, expected = CASES[name]
    program = traced(f, *args)
    assert carriers(program, labels(program, range(len(args)))) == expected


@pytest.mark.parametrize("name", CASES)
def test_derivatives_vanish_off_the_labels_and_are_those_of_one_entry_on_them(name):
    f, args, _ = CASES[name]
    program, numbers = traced(f, *args), range(len(args))
    keys = [(i,) for i in numbers] + [(i, j) for i in numbers for j in numbers if j >= i]
    assert_labels_hold(program, args, keys)
