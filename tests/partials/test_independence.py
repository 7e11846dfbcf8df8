"""Labels of programs written by hand: which there are, and that derivatives keep what they promise."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from label_oracle import BASE, assert_labels_hold, carriers

import nestgrad as ng
from nestgrad import func
from nestgrad.backends import TorchBackend
from nestgrad.func.trees import LEAF
from nestgrad.levels.traced.program import Program
from nestgrad.levels.traced.recording import recorded
from nestgrad.ops.table import TABLE
from nestgrad.partials.independence import labels, shrunk, spread
from nestgrad.partials.known import GIVEN, answered

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


def test_data_may_hold_several_labels_in_one_axis():
    """As what a graph keeps of a layer that has merged the axes of its samples."""
    data = RNG.normal(size=(8, 3))
    program = traced(lambda t, m: (t.reshape(8, 3) * m).tanh().reshape(2, 4, 3), T, data)
    found = assert_labels_hold(program, (T, data), [(0,), (0, 0)], seed=4)
    assert carriers(program, found) == [(2, {0: 0, 1: 0}, 0), (4, {0: 1, 1: 0}, 1), (3, {0: 2, 1: 1}, 2)]
    assert [label.inner.get(program.inputs[1]) for label in found] == [4, 1, None]


def test_arrays_are_laid_out_entry_by_entry():
    data = np.arange(24.0).reshape(8, 3)
    program = traced(lambda t, m: (t.reshape(8, 3) * m).tanh().reshape(2, 4, 3), T, data)
    two, four, three = labels(program, [0])
    v = program.inputs[1]
    for cut, expected in (
        ((two,), data.reshape(2, 4, 3)),
        ((four,), data.reshape(2, 4, 3).transpose(1, 0, 2)),
        ((three, two), data.reshape(2, 4, 3).transpose(2, 0, 1)[..., None]),
        ((four, three, two), data.reshape(2, 4, 3).transpose(1, 2, 0)[..., None, None]),
        ((), data),
    ):
        np.testing.assert_array_equal(spread(BASE, v, data, cut), expected)


def test_the_program_of_one_entry():
    program = traced(lambda x, w: (x @ w).tanh().mean() + (w * w).sum(), X, W)
    samples, columns = labels(program, [0, 1])
    assert shrunk(program, [samples]).pretty() == (
        "input v0: float64[1, 3]\n"
        "input v1: float64[3, 2]\n"
        "v2: float64[1, 2] = matmul(v0, v1)\n"
        "v3: float64[1, 2] = tanh(v2)\n"
        "v4: float64[] = mean(v3, axes=(0, 1), keepdims=False)\n"
        "v5: float64[] = per(v4, n=4)\n"
        "v6: float64[3, 2] = mul(v1, v1)\n"
        "v7: float64[] = sum(v6, axes=(0, 1), keepdims=False)\n"
        "v8: float64[] = add(v5, v7)\n"
        "return v8"
    )
    assert shrunk(program, [samples, columns]).inputs[1].shape == (3, 1)


def test_a_value_that_is_known_goes_along():
    """What stands in for what an op would compute, and has the derivative of that."""
    sine = np.sin(X)

    def f(xs):
        b = BASE.dressed
        known = b.run(GIVEN, [b.sin(xs[0]), xs[1]], ())
        return [b.sum(b.run(answered(TABLE["exp"]), [known, xs[2]], ()), (0,))]

    values = [X, sine, np.exp(sine)]
    program = replace(recorded(BASE, "f", values, f), arguments=(LEAF,) * 3, structure=LEAF)
    found = assert_labels_hold(program, values, [(0,), (0, 0)])
    assert carriers(program, found) == [(3, {0: 1, 1: 1, 2: 1}, 0), (4, {0: 0, 1: 0, 2: 0}, None)]


def test_an_op_of_which_nothing_is_known_mixes_all():
    turned = ng.define("turned_about(x)", "linear", lambda b, g: b.flip(g, (0,)), value=lambda b, x: b.flip(x, (0,)))
    assert labels(traced(lambda x: turned(x).sin(), X), [0]) == ()


def test_inputs_that_are_captured_are_like_others():
    S = ng.Autodiff(BASE)
    w = S.tensor(C, requires_grad=True)
    program = traced(lambda x: x.exp() * w[:, None], X)
    (rows, columns) = labels(program, [0])
    assert rows.axes[program.inputs[1]] == 0 and program.inputs[1] not in columns.axes
    one = shrunk(program, [rows])
    assert one.inputs[1].shape == (1, 1) and not one.captured
    np.testing.assert_allclose(func.call(one, X[2:3], C[2:3, None]).numpy(), (np.exp(X) * C[:, None])[2:3])


@pytest.mark.parametrize("name", ["a loss", "by a mask", "a constant that is the same all along", "three axes through a layer of two"])
def test_labels_on_another_backend(name):
    f, args, expected = CASES[name]
    b = TorchBackend(dtype="float64")
    program = traced(f, *(b.tensor(a) for a in args))
    found = labels(program, range(len(args)))
    assert carriers(program, found) == expected
    assert all(1 in shrunk(program, found).inputs[0].shape for _ in found)


def test_a_long_chain():
    """No recursion, and some microseconds for each op."""

    def chain(x):
        for _ in range(5000):
            x = x.sin() * 0.5
        return x.sum()

    program = traced(chain, X)
    found = labels(program, [0])
    assert carriers(program, found) == [(4, {0: 0}, None), (3, {0: 1}, None)]
    assert len(shrunk(program, found).instructions) == len(program.instructions)


def test_a_deep_linear_network():
    """Every layer is a sum, and all that comes after it is linear: as many labels as layers."""

    def network(x, *layers):
        for w in layers:
            x = x @ w
        return x

    program = traced(network, S, *[S] * 400)
    assert len(labels(program, range(401))) == 402
