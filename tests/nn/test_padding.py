"""Pad modes: NumPy's of ``ng.pad``, torch's of ``ng.nn.pad``; they repeat entries, so derivatives add up."""

import numpy as np
import pytest
import torch
from ladder import agree

import nestgrad as ng
from nestgrad.errors import ArgumentError, DTypeError, ShapeError

BACKENDS = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}
RNG = np.random.default_rng(0)
NUMPYS = ("constant", "reflect", "symmetric", "edge", "wrap")
TORCHS = ("constant", "reflect", "replicate", "circular")


@pytest.fixture(params=BACKENDS)
def base(request):
    return BACKENDS[request.param]


@pytest.mark.parametrize("mode", NUMPYS)
@pytest.mark.parametrize("seed", range(10))
def test_modes_are_numpys(seed, mode, base):
    """However far it goes beyond the array."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 5, rng.integers(1, 4))
    x, widths = rng.normal(size=shape), rng.integers(0, 9, (len(shape), 2)).tolist()
    np.testing.assert_array_equal(ng.pad(base.tensor(x), widths, mode=mode).numpy(), np.pad(x, widths, mode))
    np.testing.assert_array_equal(base.tensor(x).pad(2, mode=mode).numpy(), np.pad(x, 2, mode))


@pytest.mark.parametrize("mode", NUMPYS)
def test_the_transpose_adds_up_what_was_repeated(mode, base):
    """<pad(x), y> is linear in x: its gradient is found by padding each unit array."""
    shape, widths = (2, 3), [(1, 3), (4, 0)]
    y = RNG.normal(size=np.pad(np.zeros(shape), widths).shape)
    got = ng.func.grad(lambda x: (ng.pad(x, widths, mode=mode) * y).sum())(base.tensor(np.zeros(shape)))
    units = np.eye(6).reshape(6, *shape)
    np.testing.assert_allclose(got.numpy().ravel(), [(np.pad(e, widths, mode) * y).sum() for e in units], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("mode", TORCHS)
@pytest.mark.parametrize("seed", range(10))
def test_modes_are_torchs(seed, mode, base):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    spaces = rng.integers(3, 6, n)
    x = rng.normal(size=(1, 2, *spaces))
    pad = rng.integers(0 if mode == "circular" else -1, 3, 2 * n).tolist()
    want = torch.nn.functional.pad(torch.tensor(x), pad, mode)
    np.testing.assert_array_equal(ng.nn.pad(base.tensor(x), pad, mode).numpy(), want.numpy())


def test_a_value_is_added_or_entries_taken_away(base):
    x = base.tensor(RNG.normal(size=(2, 3)))
    want = torch.nn.functional.pad(torch.tensor(x.numpy()), (-1, 2, 1, -2), value=7.0)
    assert ng.nn.pad(x, (-1, 2, 1, -2), value=7.0).tolist() == want.tolist()
    assert ng.nn.pad(x, (-3, 0)).shape == (2, 0) and ng.nn.pad(x, ()).tolist() == x.tolist()
    assert ng.nn.pad(base.tensor(np.array([1, 2])), (0, 1), value=3).tolist() == [1, 2, 3]


@pytest.mark.parametrize("mode", TORCHS)
def test_derivatives_to_third_order_are_torchs(mode, base):
    pad = (2, 1, 1, 2) if mode != "constant" else (2, -1, -1, 2)
    agree(base, lambda m, x: m.pad(x.sin(), pad, mode).sin().sum(), [RNG.normal(size=(1, 2, 3, 4))])


@pytest.mark.parametrize("mode", NUMPYS)
def test_vmap_is_the_loop(mode, base):
    xs = RNG.normal(size=(3, 2, 3))
    f = ng.func.grad(lambda x: x.pad([(1, 2), (4, 1)], mode=mode).sin().sum())
    got = ng.func.vmap(f)(base.tensor(xs)).numpy()
    for k in range(3):
        np.testing.assert_allclose(got[k], f(base.tensor(xs[k])).numpy(), rtol=1e-13, atol=1e-13)


X, EMPTY = ng.tensor(np.ones((2, 3))), ng.tensor(np.ones((2, 0)))
BAD = {
    "mode": (lambda: ng.pad(X, 1, mode="mirror"), ArgumentError, r"pad: got mode='mirror'; expected.*one of constant, reflect, symmetric"),
    "mode as value": (lambda: ng.pad(X, 1, "reflect"), ArgumentError, r"pad: got value='reflect'.*Try mode='reflect'"),
    "value": (lambda: ng.pad(X, 1, 2.0, "edge"), ArgumentError, r"got value 2.0 in mode 'edge'"),
    "nothing to repeat": (lambda: ng.pad(EMPTY, 1, mode="edge"), ShapeError, r"got shape \(2, 0\).*entries to repeat along axis 1"),
    "negative": (lambda: ng.pad(X, -1, mode="wrap"), ShapeError, r"non-negative"),
    "dtype": (lambda: ng.nn.pad(ng.tensor([1, 2]), (1, 0), value=0.5), DTypeError, r"got value 0.5 for dtype int64"),
    "odd": (lambda: ng.nn.pad(X, (1, 2, 3)), ShapeError, r"nn.pad: got pad \(1, 2, 3\) for shape \(2, 3\); expected pairs"),
    "too many": (lambda: ng.nn.pad(X, (1,) * 6), ShapeError, r"nn.pad: got pad .*each axis once"),
    "no ints": (lambda: ng.nn.pad(X, (1.5, 0)), ShapeError, r"nn.pad: got pad \(1.5, 0\)"),
    "torch's mode": (lambda: ng.nn.pad(X, (1, 1), "edge"), ArgumentError, r"got mode 'edge'; expected one of constant, reflect, replicate"),
    "too far": (lambda: ng.nn.pad(X, (3, 0), "reflect"), ShapeError, r"got pad \(3, 0\) in mode 'reflect' for an axis of 3.*from -3 to 2"),
    "more than once round": (lambda: ng.nn.pad(X, (0, 4), "circular"), ShapeError,
                             r"in mode 'circular' for an axis of 3.*from 0 to 3"),
    "all taken": (lambda: ng.nn.pad(X, (-2, -1), "replicate"), ShapeError, r"got pad \(-2, -1\) in.*a result with entries"),
    "cut and round": (lambda: ng.nn.pad(X, (1, -1), "circular"), ShapeError, r"got pad \(1, -1\) in mode 'circular'.*from 0 to 3"),
    "taken away": (lambda: ng.nn.pad(X, (-4, 0)), ShapeError, r"got pad \(-4, 0\).*more entries than there are"),
    "taken away at both ends": (lambda: ng.nn.pad(X, (-2, -2)), ShapeError, r"more entries than there are"),
}  # fmt: skip


@pytest.mark.parametrize("call, error, text", BAD.values(), ids=BAD)
def test_bad_input_says_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()
