"""Normalisation against formulas in fifty digits, derivatives of four orders included, and values against PyTorch's."""

import math

import numpy as np
import pytest
import torch
from mpmath import mp

import nestgrad as ng
from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.func import grad, jvp, taylor, vmap

BACKENDS = [ng.NumpyBackend(), ng.TorchBackend(dtype="float64")]
every_backend = pytest.mark.parametrize("base", BACKENDS, ids=repr)
RNG = np.random.default_rng(5)
torchs = torch.nn.functional


def on(base, *arrays):
    return [None if a is None else base.tensor(a) for a in arrays]


def normal(*shape):
    return RNG.normal(size=shape)


# which entries have one mean, how the scale is spread, and the functions


def rows(shape):
    return np.arange(math.prod(shape)).reshape(-1, shape[-1]).tolist()


def channels(shape, samples, groups):
    """Flat positions with one mean: per sample or over all, and per group of channels."""
    places = np.arange(math.prod(shape)).reshape(shape[0], groups, -1)
    return places.reshape(-1, places.shape[-1]).tolist() if samples else places.swapaxes(0, 1).reshape(groups, -1).tolist()


def along(shape, axis):
    """For each flat position its place along ``axis``."""
    return np.broadcast_to(np.arange(shape[axis]).reshape(-1, *(1,) * (len(shape) - 1 - axis)), shape).ravel().tolist()


LINE, GRID = (2, 3), (2, 4, 3)
NORMS = {
    "layer": (lambda x, w, z: ng.nn.layer_norm(x, 3, w, z, 0.01), LINE, rows(LINE), along(LINE, 1), True),
    "rms": (lambda x, w, z: ng.nn.rms_norm(x, 3, w, 0.01), LINE, rows(LINE), along(LINE, 1), False),
    "group": (lambda x, w, z: ng.nn.group_norm(x, 2, w, z, 0.01), GRID, channels(GRID, True, 2), along(GRID, 1), True),
    "instance": (lambda x, w, z: ng.nn.instance_norm(x, weight=w, bias=z, eps=0.01), GRID, channels(GRID, True, 4), along(GRID, 1), True),
    "batch": (
        lambda x, w, z: ng.nn.batch_norm(x, None, None, w, z, True, eps=0.01)[0], GRID, channels(GRID, False, 4), along(GRID, 1), True,
    ),
    "batch of lines": (
        lambda x, w, z: ng.nn.batch_norm(x, None, None, w, z, True, eps=0.01)[0], LINE, channels(LINE, False, 3), along(LINE, 1), True,
    ),
}  # fmt: skip
every_norm = pytest.mark.parametrize("name", NORMS)


def by_formula(name, x, w, z, eps="0.01"):
    """All entries in fifty digits, from numbers of mpmath."""
    _, _, groups, place, centred = NORMS[name]
    out = [mp.mpf(0)] * len(x)
    for group in groups:
        mean = mp.fsum(x[k] for k in group) / len(group) if centred else mp.mpf(0)
        square = mp.fsum((x[k] - mean) ** 2 for k in group) / len(group)
        for k in group:
            out[k] = (x[k] - mean) / mp.sqrt(square + mp.mpf(float(eps))) * w[place[k]] + (z[place[k]] if centred else 0)
    return out


def points(name, equal):
    """A point and a direction in x, scale and shift, and weights of the answer. With ``equal``, entries of one mean are equal."""
    _, shape, groups, place, _ = NORMS[name]
    rng, size = np.random.default_rng(11), 1 + max(place)
    x, *rest = [rng.normal(size=n) for n in (math.prod(shape), size, size, math.prod(shape), size, size, math.prod(shape))]
    if equal:
        for group in groups:
            x[group] = x[group[0]]
    return x, *rest


def along_a_line(name, equal):
    """Derivatives of orders 0 to 4 of a weighted sum along a line, in fifty digits."""
    x, w, z, dx, dw, dz, c = points(name, equal)
    with mp.workdps(50):

        def f(t):
            moved = [[mp.mpf(p) + t * mp.mpf(d) for p, d in zip(a, e, strict=True)] for a, e in ((x, dx), (w, dw), (z, dz))]
            return mp.fsum(mp.mpf(k) * v for k, v in zip(c, by_formula(name, *moved), strict=True))

        return [float(d * mp.factorial(k)) for k, d in enumerate(mp.taylor(f, 0, 4))]


def in_tensors(name, equal, base):
    f, shape, *_ = NORMS[name]
    x, w, z, dx, dw, dz, c = points(name, equal)
    x, dx, c = (a.reshape(shape) for a in (x, dx, c))
    c = base.tensor(c)
    return lambda *args: (f(*args) * c).sum(), tuple(on(base, x, w, z)), tuple(on(base, dx, dw, dz))


@every_backend
@pytest.mark.parametrize("equal", [False, True], ids=["ordinary", "equal entries"])
@every_norm
def test_four_orders_are_those_of_the_formula(name, equal, base):
    """By nested reverse mode, by nested forward mode and from one series; equal entries have variance 0, which eps makes smooth."""
    f, point, direction = in_tensors(name, equal, base)
    want = along_a_line(name, equal)
    scale = max(map(abs, want))  # sums of terms of that size

    def down(g):
        n = (0, 1, 2) if NORMS[name][-1] else (0, 1)
        return lambda *xs: sum((d * v).sum() for d, v in zip(grad(g, argnums=n)(*xs), direction, strict=False))

    def tangent(g):
        return lambda *xs: jvp(g, xs, direction)[1]

    back, ahead = f, f
    for order in range(5):
        assert back(*point).item() == pytest.approx(want[order], abs=1e-12 * scale)
        assert ahead(*point).item() == pytest.approx(want[order], abs=1e-12 * scale)
        back, ahead = down(back), tangent(ahead)
    series = taylor(lambda args: f(*args), point, direction, 4)
    assert [c.item() * math.factorial(k) for k, c in enumerate(series)] == pytest.approx(want, abs=1e-12 * scale)


@every_backend
@every_norm
def test_without_eps_ordinary_entries_are_right_and_equal_ones_are_nan(name, base):
    """There is no limit at variance 0: neither a value nor a derivative is made up."""
    f = {
        "layer": lambda x: ng.nn.layer_norm(x, 3, eps=0.0), "rms": lambda x: ng.nn.rms_norm(x, 3, eps=0.0),
        "group": lambda x: ng.nn.group_norm(x, 2, eps=0.0), "instance": lambda x: ng.nn.instance_norm(x, eps=0.0),
        "batch": lambda x: ng.nn.batch_norm(x, training=True, eps=0.0)[0],
        "batch of lines": lambda x: ng.nn.batch_norm(x, training=True, eps=0.0)[0],
    }[name]  # fmt: skip
    shape = NORMS[name][1]
    x = points(name, False)[0]
    ones, zeros = [mp.mpf(1)] * 9, [mp.mpf(0)] * 9
    want = np.array([float(v) for v in by_formula(name, [mp.mpf(v) for v in x], ones, zeros, 0.0)]).reshape(shape)
    np.testing.assert_allclose(f(base.tensor(x.reshape(shape))).numpy(), want, rtol=1e-12)
    equal = base.tensor(np.zeros(shape))
    assert np.isnan(f(equal).numpy()).all() and np.isnan(grad(lambda v: (f(v) ** 2).sum())(equal).numpy()).all()


@every_backend
@every_norm
def test_a_batch_is_each_sample_by_itself(name, base):
    f, shape, *_, place, _ = NORMS[name]
    xs, ws, zs = normal(3, *shape), normal(3, 1 + max(place)), normal(3, 1 + max(place))
    every = vmap(f)(*on(base, xs, ws, zs)).numpy()
    shared = vmap(f, in_axes=(0, None, None))(*on(base, xs, ws[0], zs[0])).numpy()
    scales = vmap(f, in_axes=(None, 0, 0))(*on(base, xs[0], ws, zs)).numpy()
    for k in range(3):
        np.testing.assert_allclose(every[k], f(*on(base, xs[k], ws[k], zs[k])).numpy(), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(shared[k], f(*on(base, xs[k], ws[0], zs[0])).numpy(), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(scales[k], f(*on(base, xs[0], ws[k], zs[k])).numpy(), rtol=1e-12, atol=1e-13)


# values and gradients of larger arrays, as PyTorch has them

PEERS = {
    "layer_norm": (lambda x: ng.nn.layer_norm(x, (5, 4)), lambda x: torchs.layer_norm(x, (5, 4)), (2, 6, 5, 4)),
    "layer_norm of all axes": (lambda x: ng.nn.layer_norm(x, (3, 4)), lambda x: torchs.layer_norm(x, (3, 4)), (3, 4)),
    "layer_norm of the only axis": (lambda x: ng.nn.layer_norm(x, 4), lambda x: torchs.layer_norm(x, (4,)), (4,)),
    "group_norm without further axes": (lambda x: ng.nn.group_norm(x, 2), lambda x: torchs.group_norm(x, 2), (3, 6)),
    "rms_norm": (lambda x: ng.nn.rms_norm(x, (5, 4)), lambda x: torchs.rms_norm(x, (5, 4)), (2, 6, 5, 4)),
    "group_norm": (lambda x: ng.nn.group_norm(x, 3), lambda x: torchs.group_norm(x, 3), (2, 6, 5, 4)),
    "instance_norm": (ng.nn.instance_norm, torchs.instance_norm, (2, 6, 5, 4)),
    "batch_norm": (lambda x: ng.nn.batch_norm(x, training=True)[0], lambda x: torchs.batch_norm(x, None, None, training=True), (2, 6, 5)),
    "local_response_norm": (
        lambda x: ng.nn.local_response_norm(x, 3, 0.5, 0.7, 2.0), lambda x: torchs.local_response_norm(x, 3, 0.5, 0.7, 2.0), (2, 6, 5)),
    "an even number of channels": (
        lambda x: ng.nn.local_response_norm(x, 4, 0.5), lambda x: torchs.local_response_norm(x, 4, 0.5), (2, 6, 5, 4)),
    **{f"normalize {p}": (lambda x, p=p: ng.nn.normalize(x, p), lambda x, p=p: torchs.normalize(x, p), (2, 6, 5))
       for p in (1.0, 2.0, 3.0, 2.5, math.inf)},
    "normalize two axes": (lambda x: ng.nn.normalize(x, axis=(0, -1)), lambda x: torchs.normalize(x, dim=(0, -1)), (2, 6, 5)),
}  # fmt: skip


@every_backend
@pytest.mark.parametrize("name", PEERS)
def test_values_and_gradients_are_those_of_pytorch(name, base):
    ours, theirs, shape = PEERS[name]
    x, c = normal(*shape), normal(*shape)
    variable = torch.tensor(x, requires_grad=True)
    y = theirs(variable)
    (g,) = torch.autograd.grad((y * torch.tensor(c)).sum(), variable)
    np.testing.assert_allclose(ours(base.tensor(x)).numpy(), y.detach().numpy(), rtol=1e-11, atol=1e-13)
    found = grad(lambda v: (ours(v) * base.tensor(c)).sum())(base.tensor(x))
    np.testing.assert_allclose(found.numpy(), g.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("training", [True, False])
@every_backend
def test_batch_norm_returns_what_pytorch_writes_into_its_arguments(base, training):
    x, mean, var, w, z = normal(5, 3, 2), normal(3), RNG.uniform(0.5, 2.0, 3), normal(3), normal(3)
    given = [torch.tensor(v) for v in (x, mean, var, w, z)]
    want = torchs.batch_norm(*given, training=training, momentum=0.3)
    tensors = on(base, x, mean, var, w, z)
    out, new_mean, new_var = ng.nn.batch_norm(*tensors, training=training, momentum=0.3)
    for found, right in ((out, want), (new_mean, given[1]), (new_var, given[2])):
        np.testing.assert_allclose(found.numpy(), right.numpy(), rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(tensors[1].numpy(), mean)
    assert ng.nn.batch_norm(tensors[0], training=True)[1:] == (None, None)


def test_new_running_statistics_depend_on_the_argument_until_they_are_cut():
    x = ng.tensor(normal(4, 2))
    f = lambda v: ng.nn.batch_norm(v, np.zeros(2), np.ones(2), training=True, momentum=0.5)[2].sum()
    far = x.numpy() - x.numpy().mean(0)
    np.testing.assert_allclose(grad(f)(x).numpy(), far / 3, rtol=1e-12)


@every_backend
def test_at_the_origin_normalize_is_x_over_eps(base):
    for p in (1.0, 2.0, 3.0, math.inf):
        f = lambda x, p=p: (ng.nn.normalize(x, p, 0, eps=0.5) * base.tensor([1.0, 3.0])).sum()
        x = base.tensor([0.0, 0.0])
        assert grad(f)(x).tolist() == [2.0, 6.0]
        assert grad(lambda x, f=f: grad(f)(x).sum())(x).tolist() == [0.0, 0.0]
    assert ng.nn.normalize(base.tensor([0.0, 0.0]), axis=0).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("base", [ng.NumpyBackend("float32"), ng.TorchBackend()], ids=repr)
def test_the_dtype_stays_and_integers_become_floats(base):
    x = base.tensor(normal(4, 6).astype("float32"))
    for y in (ng.nn.layer_norm(x, 6, np.ones(6, "float32")), ng.nn.rms_norm(x, 6), ng.nn.group_norm(x, 2), ng.nn.normalize(x),
              ng.nn.batch_norm(x, training=True)[0]):  # fmt: skip
        assert y.dtype == x.dtype
    assert ng.nn.layer_norm(base.tensor([[1, 3]]), 2, eps=0.0).tolist() == [[-1.0, 1.0]]


@every_backend
def test_a_scale_in_another_dtype_or_arrays_without_entries_are_no_trouble(base):
    x, w = normal(4, 6), normal(6)
    got = ng.nn.layer_norm(base.tensor(x.astype("float32"), dtype="float32"), 6, base.tensor(w))
    np.testing.assert_allclose(got.numpy(), ng.nn.layer_norm(base.tensor(x), 6, base.tensor(w)).numpy(), rtol=1e-4, atol=1e-5)
    empty = base.tensor(np.zeros((0, 6)))
    assert ng.nn.layer_norm(empty, 6).shape == (0, 6) and ng.nn.rms_norm(empty, 6).shape == (0, 6)
    assert grad(lambda v: ng.nn.layer_norm(v, 6).sum())(empty).shape == (0, 6)


REFUSALS = {
    "sizes of no axes": (lambda x: ng.nn.layer_norm(x, 5), ShapeError, r"layer_norm: got normalized_shape 5 and x of shape \(2, 4, 3\)"),
    "no sizes": (lambda x: ng.nn.layer_norm(x, ()), ShapeError, "expected the sizes of its last axes"),
    "more than there are": (lambda x: ng.nn.rms_norm(x, (1, 2, 4, 3)), ShapeError, "rms_norm: got normalized_shape"),
    "a weight": (lambda x: ng.nn.layer_norm(x, 3, np.ones(2)), ShapeError, r"layer_norm: got weight of shape \(2,\); expected \(3,\)"),
    "a bias": (lambda x: ng.nn.layer_norm(x, 3, None, np.ones((1, 3))), ShapeError, r"got bias of shape \(1, 3\); expected \(3,\)"),
    "a channel's": (lambda x: ng.nn.batch_norm(x, training=True, weight=np.ones(3)), ShapeError, r"batch_norm: got weight .*\(4,\)"),
    "running": (lambda x: ng.nn.batch_norm(x, np.ones(3), np.ones(4)), ShapeError, r"got running_mean of shape \(3,\); expected \(4,\)"),
    "no running": (lambda x: ng.nn.batch_norm(x), ArgumentError, "got no running_mean .* Try training=True"),
    "groups": (lambda x: ng.nn.group_norm(x, 3), ArgumentError, "group_norm: got 3 groups for 4 channels"),
    "no groups": (lambda x: ng.nn.group_norm(x, 0), ArgumentError, "expected a positive int that divides them"),
    "few axes": (lambda x: ng.nn.group_norm(x[0, 0], 1), ShapeError, r"group_norm: got x of shape \(3,\); expected \(N, C, \.\.\.\)"),
    "an instance": (lambda x: ng.nn.instance_norm(x[0]), ShapeError, r"instance_norm: got x of shape \(4, 3\); expected \(N, C, L"),
    "one value": (lambda x: ng.nn.batch_norm(x[:1, :, 0], training=True), ShapeError, "one entry for each channel in training"),
    "one in a group": (lambda x: ng.nn.group_norm(x[:, :, 0], 4), ShapeError, "one entry for each group of a sample"),
    "one in an instance": (lambda x: ng.nn.instance_norm(x[:, :, :1]), ShapeError, "one entry for each channel of a sample"),
    "a power": (lambda x: ng.nn.normalize(x, -1.0), ArgumentError, r"normalize: got p=-1.0; expected a positive number"),
    "an axis": (lambda x: ng.nn.normalize(x, axis=4), ShapeError, "axis 4"),
    "a size": (lambda x: ng.nn.local_response_norm(x, 0), ArgumentError, "local_response_norm: got size=0"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_input_is_named(name):
    f, error, text = REFUSALS[name]
    with pytest.raises(error, match=text):
        f(ng.tensor(np.ones((2, 4, 3))))
