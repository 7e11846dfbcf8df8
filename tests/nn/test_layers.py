"""Layers without state, against PyTorch's and plain indexing."""

import numpy as np
import pytest
import torch

import nestgrad as ng
from nestgrad.errors import ArgumentError, DTypeError, IndexRangeError, LevelError, ShapeError, TraceError
from nestgrad.func import call, grad, trace, vmap

BACKENDS = [ng.NumpyBackend(), ng.TorchBackend(dtype="float64")]
every_backend = pytest.mark.parametrize("base", BACKENDS, ids=repr)
RNG = np.random.default_rng(9)
torchs = torch.nn.functional


def normal(*shape):
    return RNG.normal(size=shape)


MAPS = {
    "linear": (ng.nn.linear, torchs.linear, [(5, 4), (3, 4), (3,)]),
    "linear without bias": (ng.nn.linear, torchs.linear, [(2, 5, 4), (3, 4)]),
    "linear of a vector": (ng.nn.linear, torchs.linear, [(4,), (3, 4), (3,)]),
    "linear of one output": (ng.nn.linear, torchs.linear, [(2, 5, 4), (4,)]),
    "bilinear": (ng.nn.bilinear, torchs.bilinear, [(5, 4), (5, 2), (3, 4, 2), (3,)]),
    "bilinear without bias": (ng.nn.bilinear, torchs.bilinear, [(2, 5, 4), (2, 5, 2), (3, 4, 2)]),
    "pixel_shuffle": (lambda x: ng.nn.pixel_shuffle(x, 2), lambda x: torchs.pixel_shuffle(x, 2), [(2, 8, 3, 2)]),
    "pixel_shuffle of one": (lambda x: ng.nn.pixel_shuffle(x, 3), lambda x: torchs.pixel_shuffle(x, 3), [(9, 3, 2)]),
    "pixel_unshuffle": (lambda x: ng.nn.pixel_unshuffle(x, 2), lambda x: torchs.pixel_unshuffle(x, 2), [(2, 3, 4, 6)]),
}  # fmt: skip


@every_backend
@pytest.mark.parametrize("name", MAPS)
def test_values_gradients_and_second_derivatives_are_those_of_pytorch(name, base):
    ours, theirs, shapes = MAPS[name]
    arrays = [normal(*s) for s in shapes]
    variables = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = theirs(*variables)
    c = normal(*y.shape)
    first = torch.autograd.grad((y.sin() * torch.tensor(c)).sum(), variables, create_graph=True)
    second = torch.autograd.grad(sum((g**2).sum() for g in first), variables)
    xs, n = [base.tensor(a) for a in arrays], tuple(range(len(arrays)))
    down = grad(lambda *v: (ours(*v).sin() * base.tensor(c)).sum(), argnums=n)
    twice = grad(lambda *v: sum((g * g).sum() for g in down(*v)), argnums=n)
    np.testing.assert_allclose(ours(*xs).numpy(), y.detach().numpy(), rtol=1e-12, atol=1e-13)
    for found, want in zip((*down(*xs), *twice(*xs)), (*first, *second), strict=True):
        np.testing.assert_allclose(found.numpy(), want.detach().numpy(), rtol=1e-10, atol=1e-11)


def test_the_weight_of_nn_linear_is_the_transpose_of_that_of_linear():
    x, w, z = (ng.tensor(normal(*s)) for s in ((5, 4), (3, 4), (3,)))
    np.testing.assert_allclose(ng.nn.linear(x, w, z).numpy(), ng.linear(x, w.mT, z).numpy(), rtol=1e-14)


@every_backend
def test_pixel_unshuffle_undoes_pixel_shuffle(base):
    x = base.tensor(normal(2, 8, 3, 5))
    assert ng.nn.pixel_unshuffle(ng.nn.pixel_shuffle(x, 2), 2).tolist() == x.tolist()


@every_backend
def test_embedding_takes_rows_and_adds_up_their_derivatives(base):
    w, i = normal(5, 3), np.array([[1, 4], [1, 0]])
    f = lambda w: ng.nn.embedding(i, w)
    assert f(base.tensor(w)).tolist() == w[i].tolist()
    g = grad(lambda w: (f(w) ** 3).sum())(base.tensor(w)).numpy()
    np.testing.assert_allclose(g, 3 * w**2 * np.array([1, 2, 0, 0, 1])[:, None], rtol=1e-13)
    assert ng.nn.embedding(2, base.tensor(w[:, 0])).item() == w[2, 0]


@every_backend
@pytest.mark.parametrize("padding", [1, -4])
def test_no_derivative_goes_to_the_padding(padding, base):
    w, i = base.tensor(normal(5, 3)), [[1, 4], [1, 0]]
    there = torch.tensor(w.numpy(), requires_grad=True)
    y = torchs.embedding(torch.tensor(i), there, padding)
    (want,) = torch.autograd.grad((y**3).sum(), there)
    f = lambda w: (ng.nn.embedding(i, w, padding) ** 3).sum()
    assert f(w).item() == pytest.approx((y**3).sum().item(), rel=1e-13)
    np.testing.assert_allclose(grad(f)(w).numpy(), want.numpy(), rtol=1e-13)
    twice = grad(lambda w: grad(f)(w).sum())(w).numpy()
    np.testing.assert_allclose(twice, 6 * w.numpy() * np.array([1, 0, 0, 0, 1])[:, None], rtol=1e-13)


@every_backend
def test_indices_may_differ_by_the_sample_or_be_traced(base):
    w, rows = normal(5, 3), np.array([[1, 4], [1, 0], [3, 3]])
    got = vmap(lambda i, w: ng.nn.embedding(i, w, 1), in_axes=(0, None))(base.tensor(rows), base.tensor(w))
    assert got.tolist() == w[rows].tolist()
    assert vmap(lambda i: ng.nn.one_hot(i, 5))(base.tensor(rows)).tolist() == np.eye(5, dtype=int)[rows].tolist()
    program = trace(lambda i: ng.nn.embedding(i, base.tensor(w)))(base.tensor(rows[0]))
    assert call(program, base.tensor(rows[2])).tolist() == w[rows[2]].tolist()
    hot = trace(lambda i: ng.nn.one_hot(i, 5))(base.tensor(rows[0]))
    assert call(hot, base.tensor(rows[2])).tolist() == np.eye(5, dtype=int)[rows[2]].tolist()
    for late in (program, hot):
        with pytest.raises(IndexRangeError):
            call(late, base.tensor(np.array([5, 0])))


@every_backend
def test_one_hot(base):
    i = base.tensor(np.array([[2, 0], [1, 1]]))
    for n in (-1, 3, 4):
        y = ng.nn.one_hot(i, n)
        assert y.tolist() == torchs.one_hot(torch.tensor(i.numpy()), n).tolist() and str(y.dtype).endswith("int64")
    assert ng.nn.one_hot(base.tensor(np.zeros((0, 2), int)), 3).shape == (0, 2, 3)


W = np.ones((5, 3))
REFUSALS = {
    "linear": (lambda: ng.nn.linear(np.ones((2, 3)), np.ones((3, 4))), ShapeError, r"nn.linear: got .*\(n_out, n_in\).* Try ng.linear"),
    "bilinear": (lambda: ng.nn.bilinear(W, W, np.ones((2, 3, 4))), ShapeError, r"bilinear: got x \(5, 3\), y \(5, 3\) and weight"),
    "bilinear leads": (lambda: ng.nn.bilinear(W, W[:4], np.ones((2, 3, 3))), ShapeError, r"expected \(\.\.\., n\), \(\.\.\., m\)"),
    "index": (lambda: ng.nn.embedding([5], W), IndexRangeError, "embedding: got index 5 for an axis of size 5"),
    "negative index": (lambda: ng.nn.embedding([0, -1], W), IndexRangeError, "embedding: got index -1; expected from 0 to 4"),
    "index of floats": (lambda: ng.nn.embedding([0.5], W), DTypeError, "embedding: got positions of floats; expected whole numbers"),
    "no rows": (lambda: ng.nn.embedding([0], 1.0), ShapeError, "embedding: got a weight without axes"),
    "padding": (lambda: ng.nn.embedding([0], W, 5), IndexRangeError, "got padding_idx 5; expected an int from -5 to 4"),
    "class": (lambda: ng.nn.one_hot([0, 3], 3), IndexRangeError, "one_hot: got index 3"),
    "negative class": (lambda: ng.nn.one_hot([-1, 2], 3), IndexRangeError, "one_hot: got index -1; expected from 0 to 2"),
    "classes": (lambda: ng.nn.one_hot([0], 0), ArgumentError, "one_hot: got num_classes=0; expected a positive int"),
    "no classes": (lambda: ng.nn.one_hot(np.zeros(0, int)), ArgumentError, "-1 with some indices"),
    "classes of a batch": (lambda: vmap(ng.nn.one_hot)(ng.tensor([0, 1])), LevelError, "one_hot: .*differs by the sample"),
    "classes of a trace": (lambda: trace(ng.nn.one_hot)(ng.tensor([0, 1])), TraceError, "entries must be known"),
    "channels": (lambda: ng.nn.pixel_shuffle(np.ones((6, 2, 2)), 2), ShapeError, r"pixel_shuffle: .* C a multiple of 4"),
    "height": (lambda: ng.nn.pixel_unshuffle(np.ones((6, 3, 2)), 2), ShapeError, r"pixel_unshuffle: .* H and W multiples of 2"),
    "factor": (lambda: ng.nn.pixel_shuffle(np.ones((6, 3, 2)), 0), ArgumentError, "pixel_shuffle: got factor 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_input_is_named(name):
    f, error, text = REFUSALS[name]
    with pytest.raises(error, match=text):
        f()
