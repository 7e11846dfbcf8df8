"""``interpolate``: torch's values, positions and derivatives, linear in the image."""

import numpy as np
import pytest
import torch
from ladder import agree

import nestgrad as ng
from nestgrad.errors import ArgumentError, ShapeError

BACKENDS = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}
RNG = np.random.default_rng(0)
LINEAR = ["linear", "bilinear", "trilinear"]

# spatial shape, options
CALLS = {
    "nearest, doubled": ((3, 4), {"scale_factor": 2}),
    "nearest, halved": ((6, 4), {"size": (3, 2)}),
    "nearest, uneven": ((5,), {"size": 7}),
    "nearest, by a factor": ((5,), {"scale_factor": 1.7}),
    "nearest, shrunk unevenly": ((7, 5), {"size": (4, 3)}),
    "nearest, exact": ((4, 5), {"size": (6, 3), "mode": "nearest-exact"}),
    "linear": ((4,), {"size": 7, "mode": "linear", "align_corners": False}),
    "linear, corners": ((4,), {"size": 7, "mode": "linear", "align_corners": True}),
    "linear, by a factor": ((4,), {"scale_factor": 1.6, "mode": "linear"}),
    "bilinear": ((3, 4), {"size": (5, 2), "mode": "bilinear"}),
    "bilinear, to one entry": ((3, 4), {"size": 1, "mode": "bilinear", "align_corners": True}),
    "bilinear, from one entry": ((1, 2), {"size": (3, 3), "mode": "bilinear"}),
    "trilinear": ((2, 3, 2), {"size": (3, 2, 4), "mode": "trilinear", "align_corners": True}),
    "bicubic": ((4, 5), {"size": (7, 3), "mode": "bicubic", "align_corners": False}),
    "bicubic, corners": ((4, 3), {"scale_factor": (1.5, 2), "mode": "bicubic", "align_corners": True}),
    "area": ((5, 4), {"size": (3, 2), "mode": "area"}),
}
every_call = pytest.mark.parametrize("spaces, options", CALLS.values(), ids=CALLS)


@pytest.fixture(params=BACKENDS)
def base(request):
    return BACKENDS[request.param]


@every_call
def test_values_are_torchs(spaces, options, base):
    x = RNG.normal(size=(2, 3, *spaces))
    want = torch.nn.functional.interpolate(torch.tensor(x), **options).numpy()
    np.testing.assert_allclose(ng.nn.interpolate(base.tensor(x), **options).numpy(), want, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("seed", range(60))
def test_random_calls_are_torchs(seed, base):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    modes = ["nearest", "nearest-exact", "area", LINEAR[n - 1], *(["bicubic"] if n == 2 else [])]
    options = {"mode": modes[rng.integers(len(modes))]}
    if options["mode"] in (*LINEAR, "bicubic"):
        options["align_corners"] = bool(rng.integers(2))
    spaces = rng.integers(2, 7, n)
    if rng.integers(2):
        options["size"] = rng.integers(1, 10, n).tolist()
    else:  # where a factor keeps a size, torch takes the nearest entry in a plane in one way and elsewhere in another
        factors = rng.choice([0.5, 1.5, 1.7, 2.0, 3.0], n)
        options["scale_factor"] = [2.0 if np.floor(f * m) == m else float(f) for f, m in zip(factors, spaces, strict=True)]
    x = rng.normal(size=(1, 2, *spaces))
    want = torch.nn.functional.interpolate(torch.tensor(x), **options).numpy()
    np.testing.assert_allclose(ng.nn.interpolate(base.tensor(x), **options).numpy(), want, rtol=1e-13, atol=1e-13)


def test_an_axis_that_keeps_its_size_stays_as_it_is(base):
    x = base.tensor(RNG.normal(size=(1, 1, 3, 2)))
    for mode in ("nearest", "bilinear"):
        got = ng.nn.interpolate(x, scale_factor=1.3, mode=mode)
        assert got.tolist() == x.tolist()
        assert got.numpy().tolist() == torch.nn.functional.interpolate(torch.tensor(x.numpy()), scale_factor=1.3, mode=mode).tolist()


@every_call
def test_derivatives_to_third_order_are_torchs(spaces, options, base):
    agree(base, lambda m, x: m.interpolate(x.sin(), **options).sin().sum(), [RNG.normal(size=(1, 2, *spaces))])


@every_call
def test_vmap_is_the_loop(spaces, options, base):
    xs = RNG.normal(size=(3, 1, 2, *spaces))
    f = ng.func.grad(lambda x: ng.nn.interpolate(x, **options).sin().sum())
    got = ng.func.vmap(f)(base.tensor(xs)).numpy()
    for k in range(3):
        np.testing.assert_allclose(got[k], f(base.tensor(xs[k])).numpy(), rtol=1e-13, atol=1e-13)


def test_dtypes(base):
    whole = base.tensor(np.arange(4).reshape(1, 1, 4))
    assert ng.nn.interpolate(whole, 2).tolist() == [[[0, 2]]] and "int64" in str(ng.nn.interpolate(whole, 2).dtype)
    assert ng.nn.interpolate(whole, 2, mode="linear").tolist() == [[[0.5, 2.5]]]
    x = base.tensor(np.ones((1, 1, 4), "f4"))
    assert all("float32" in str(ng.nn.interpolate(x, 7, mode=mode).dtype) for mode in ("nearest", "linear", "area"))


def ones(*shape):
    return ng.tensor(np.ones(shape))


BAD = {
    "rank": (lambda: ng.nn.interpolate(ones(4, 4), 2), ShapeError,
             r"interpolate: got shape \(4, 4\); expected \(samples, channels, \*spatial"),
    "empty": (lambda: ng.nn.interpolate(ones(1, 1, 0), 2), ShapeError, r"got shape \(1, 1, 0\).*none of them empty"),
    "mode": (lambda: ng.nn.interpolate(ones(1, 1, 4), 2, mode="cubic"), ArgumentError,
             r"got mode 'cubic' for 1 spatial axes; expected one of"),
    "mode's rank": (lambda: ng.nn.interpolate(ones(1, 1, 4), 2, mode="bilinear"), ArgumentError, r"got mode 'bilinear'.*'linear'"),
    "corners": (lambda: ng.nn.interpolate(ones(1, 1, 4), 2, align_corners=True), ArgumentError,
                r"got align_corners=True in mode 'nearest'"),
    "neither": (lambda: ng.nn.interpolate(ones(1, 1, 4)), ArgumentError, r"got size=None and scale_factor=None; expected one of them"),
    "both": (lambda: ng.nn.interpolate(ones(1, 1, 4), 2, 2.0), ArgumentError, r"got size=2 and scale_factor=2.0"),
    "size": (lambda: ng.nn.interpolate(ones(1, 1, 4), 0), ArgumentError, r"got size 0; expected an int from 1 on"),
    "factor": (lambda: ng.nn.interpolate(ones(1, 1, 4), scale_factor=-1.0), ArgumentError,
               r"got scale_factor -1.0; expected a positive number"),
    "factors": (lambda: ng.nn.interpolate(ones(1, 1, 4, 4), scale_factor=(1, 2, 3)), ArgumentError,
                r"got scale_factor \(1, 2, 3\).*or 2 of them"),
    "to nothing": (lambda: ng.nn.interpolate(ones(1, 1, 4), scale_factor=0.1), ShapeError, r"which gives \(0,\); expected at least one"),
}  # fmt: skip


@pytest.mark.parametrize("call, error, text", BAD.values(), ids=BAD)
def test_bad_input_says_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()
