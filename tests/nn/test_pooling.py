"""Pooling: values, positions and derivatives are torch's; of equal entries the first has the derivative."""

import numpy as np
import pytest
import torch
from ladder import agree

import nestgrad as ng
from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.testing import check_grads

BACKENDS = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}
RNG = np.random.default_rng(0)

# name, shape of the input, parameters
CALLS = {
    "line": ("max_pool1d", (2, 2, 5), {"kernel_size": 2}),
    "line, overlapping": ("max_pool1d", (2, 6), {"kernel_size": 3, "stride": 1, "padding": 1}),
    "line, dilated": ("max_pool1d", (1, 2, 7), {"kernel_size": 2, "stride": 2, "dilation": 2, "padding": 1, "ceil_mode": True}),
    "plane": ("max_pool2d", (1, 2, 4, 4), {"kernel_size": 2}),
    "plane, padded": ("max_pool2d", (2, 4, 5), {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0), "ceil_mode": True}),
    "space": ("max_pool3d", (1, 1, 3, 3, 4), {"kernel_size": (2, 3, 2), "stride": 1}),
    "mean of a line": ("avg_pool1d", (2, 6), {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False}),
    "mean of a plane": ("avg_pool2d", (1, 2, 5, 4), {"kernel_size": 2, "ceil_mode": True}),
    "padded mean": ("avg_pool2d", (2, 5, 4), {"kernel_size": (3, 2), "stride": (2, 1), "padding": 1, "ceil_mode": True}),
    "padded mean, entries": ("avg_pool2d", (2, 5, 4), {"kernel_size": 3, "stride": 3, "padding": 1,
                            "ceil_mode": True, "count_include_pad": False}),
    "sum over a number": ("avg_pool2d", (2, 5, 4), {"kernel_size": 2, "divisor_override": 3}),
    "mean of a space": ("avg_pool3d", (1, 3, 4, 3), {"kernel_size": 2, "stride": 1, "padding": 1, "divisor_override": 5}),
    "parts of a line": ("adaptive_max_pool1d", (2, 5), {"output_size": 3}),
    "parts of a plane": ("adaptive_max_pool2d", (2, 5, 4), {"output_size": (3, None)}),
    "parts of a space": ("adaptive_max_pool3d", (2, 3, 4, 5), {"output_size": 2}),
    "means of parts of a line": ("adaptive_avg_pool1d", (2, 5), {"output_size": 3}),
    "means of parts of a plane": ("adaptive_avg_pool2d", (1, 2, 5, 4), {"output_size": (3, 2)}),
    "means of even parts": ("adaptive_avg_pool2d", (1, 2, 4, 6), {"output_size": (2, 3)}),
    "more parts than entries": ("adaptive_avg_pool3d", (2, 3, 2, 2), {"output_size": (5, 1, None)}),
}  # fmt: skip


@pytest.fixture(params=BACKENDS)
def base(request):
    return BACKENDS[request.param]


every_call = pytest.mark.parametrize("name, shape, params", CALLS.values(), ids=CALLS)


def refused(name, shape, params):
    """What torch itself does not do, or does with numbers that are none: means of windows larger than a space, windows of padding alone."""
    n = int(name[-2])
    size = np.broadcast_to(params.get("kernel_size", 1), n)
    larger = name == "avg_pool3d" and (size > shape[-3:]).any()
    dilation, padding = (np.broadcast_to(params.get(k, d), n) for k, d in (("dilation", 1), ("padding", 0)))
    return larger or ((dilation > 1) & (padding > 0)).any()


# values


@every_call
def test_values_and_positions_are_torchs(name, shape, params, base):
    x = RNG.normal(size=shape)
    more = {"return_indices": True} if "max" in name else {}
    got = getattr(ng.nn, name)(base.tensor(x), **params, **more)
    want = getattr(torch.nn.functional, name)(torch.tensor(x), **params, **more)
    if not more:
        got, want = (got,), (want,)
    for g, right in zip(got, want, strict=True):
        np.testing.assert_allclose(g.numpy(), right.numpy(), rtol=1e-13, atol=1e-14)
    if more:
        assert "int64" in str(got[1].dtype)
        np.testing.assert_array_equal(getattr(ng.nn, name)(base.tensor(x), **params).numpy(), got[0].numpy())


@pytest.mark.parametrize("seed", range(60))
def test_random_calls_are_torchs(seed, base):
    """Ranks, sizes, paddings and empty batches drawn at random; what torch refuses is refused."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    shape = (*[(1,), (0, 2), (2, 2)][rng.integers(3)], *rng.integers(1, 7, n).tolist())
    x = rng.normal(size=shape)
    window = {"kernel_size": rng.integers(1, 4, n).tolist(), "stride": [None, 1, 2, 3][rng.integers(4)], "ceil_mode": bool(rng.integers(2)),
              "padding": rng.integers(0, 2, n).tolist()}  # fmt: skip
    calls = [
        (f"max_pool{n}d", {**window, "dilation": int(rng.integers(1, 3)), "return_indices": True}),
        (f"avg_pool{n}d", {**window, "count_include_pad": bool(rng.integers(2))}),
        (f"adaptive_max_pool{n}d", {"output_size": rng.integers(1, 8, n).tolist(), "return_indices": True}),
        (f"adaptive_avg_pool{n}d", {"output_size": rng.integers(1, 8, n).tolist()}),
    ]
    for name, params in calls:
        if refused(name, shape, params):
            continue
        try:
            want = getattr(torch.nn.functional, name)(torch.tensor(x), **params)
        except RuntimeError:
            with pytest.raises(ShapeError):
                getattr(ng.nn, name)(base.tensor(x), **params)
            continue
        got = getattr(ng.nn, name)(base.tensor(x), **params)
        for g, right in zip(*((got, want) if isinstance(want, tuple) else ((got,), (want,))), strict=True):
            np.testing.assert_allclose(g.numpy(), right.numpy(), rtol=1e-13, atol=1e-13, err_msg=f"{name}{params}")


def test_windows_larger_than_the_space_have_means(base):
    """Which torch computes for lines and planes only."""
    x = RNG.normal(size=(2, 1, 2, 3))
    got = ng.nn.avg_pool3d(base.tensor(x), 3, 1, 1)
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (1, 1)))
    want = np.lib.stride_tricks.sliding_window_view(wide, (3, 3, 3), (1, 2, 3)).mean((-1, -2, -3))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13, atol=1e-15)
    check_grads(lambda x: ng.nn.avg_pool3d(x, 3, 1, 1).sin().sum(), [base.tensor(x)], 2, stack=base)


def test_a_dilated_window_takes_its_own_entries_at_the_edge(base):
    x = np.array([[5.0, 1.0, 9.0, 2.0, 7.0]])
    values, positions = ng.nn.max_pool1d(base.tensor(x), 2, 1, 1, 2, return_indices=True)
    assert values.tolist() == [[1.0, 9.0, 2.0, 9.0, 2.0]]
    assert positions.tolist() == [[1, 2, 3, 2, 3]]


# conventions


@pytest.mark.parametrize("name", ["max_pool2d", "adaptive_max_pool2d"])
def test_of_equal_entries_the_first_has_the_derivative(name, base):
    x = ng.Autodiff(base).tensor(np.ones((1, 2, 4)), requires_grad=True)
    y = getattr(ng.nn, name)(x, *((2,) if name == "max_pool2d" else ((1, 2),)))
    assert y.sum().wrt(x).tolist() == [[[1.0, 0.0, 1.0, 0.0], [0.0] * 4]]


def test_padding_has_no_say(base):
    """Not even where all entries are the smallest that there are."""
    for dtype, least in (("float64", -np.inf), ("int64", np.iinfo("int64").min)):
        x = base.tensor(np.full((1, 3, 3), least, dtype))
        values, positions = ng.nn.max_pool2d(x, 3, 2, 1, return_indices=True)
        assert (values.numpy() == least).all() and values.dtype == x.dtype
        assert positions.tolist() == [[[0, 1], [3, 4]]]


def test_nan_is_the_greatest(base):
    x = np.array([[1.0, np.nan, 2.0, 3.0]])
    np.testing.assert_array_equal(ng.nn.max_pool1d(base.tensor(x), 2, 1).numpy(), [[np.nan, np.nan, 3.0]])
    np.testing.assert_array_equal(ng.nn.adaptive_max_pool1d(base.tensor(x), 2).numpy(), [[np.nan, 3.0]])


def test_whole_numbers(base):
    x = base.tensor(np.array([[1, 5, 2, 4]]))
    assert ng.nn.max_pool1d(x, 2).tolist() == [[5, 4]] and ng.nn.adaptive_max_pool1d(x, 1).tolist() == [[5]]
    assert ng.nn.avg_pool1d(x, 2).tolist() == [[3.0, 3.0]] and ng.nn.adaptive_avg_pool1d(x, 3).tolist() == [[3.0, 3.5, 3.0]]


def test_positions_are_constants(base):
    x = ng.Autodiff(base).tensor(RNG.normal(size=(1, 4)), requires_grad=True)
    values, positions = ng.nn.max_pool1d(x, 2, return_indices=True)
    assert values.tracked_on() and not positions.tracked_on() and not positions.marks


def test_float32_stays_float32():
    for base in (ng.NumpyBackend("float32"), ng.TorchBackend()):
        x = base.tensor(RNG.normal(size=(1, 5, 5)).astype("f4"))
        for f in (lambda x: ng.nn.max_pool2d(x, 2), lambda x: ng.nn.avg_pool2d(x, 2, padding=1, count_include_pad=False),
                  lambda x: ng.nn.adaptive_avg_pool2d(x, 3), lambda x: ng.nn.adaptive_max_pool2d(x, 3)):  # fmt: skip
            assert "float32" in str(f(x).dtype) and "float32" in str(ng.func.grad(lambda x, f=f: f(x).square().sum())(x).dtype)


# derivatives


@every_call
def test_derivatives_to_third_order_are_torchs(name, shape, params, base):
    """The pooled values stand inside other functions, so one that had lost its derivative would show."""
    f = lambda m, x: (getattr(m, name)(x.sin() * x, **params).sin() * getattr(m, name)(x, **params)).sum()
    agree(base, f, [RNG.normal(size=shape)])


def test_checked_by_differences(base):
    x = base.tensor(RNG.normal(size=(2, 7)))
    check_grads(lambda x: (ng.nn.max_pool1d(x, 3, 2, 1).exp() * ng.nn.adaptive_max_pool1d(x.square(), 4)).sum(), [x], 3, stack=base)


@every_call
def test_vmap_is_the_loop(name, shape, params, base):
    xs = RNG.normal(size=(3, *shape))
    f = ng.func.grad(lambda x: getattr(ng.nn, name)(x, **params).sin().sum())
    got = ng.func.vmap(f)(base.tensor(xs)).numpy()
    for k in range(3):
        np.testing.assert_allclose(got[k], f(base.tensor(xs[k])).numpy(), rtol=1e-13, atol=1e-13)


# bad input


def ones(*shape):
    return ng.tensor(np.ones(shape))


BAD = {
    "rank": (lambda: ng.nn.max_pool2d(ones(4), 2), ShapeError,
             r"max_pool2d: got an input of shape \(4,\); expected \(samples, channels, height, width\)"),
    "kernel": (lambda: ng.nn.max_pool1d(ones(1, 4), 0), ArgumentError, r"got kernel_size 0; expected an int from 1 on"),
    "kernel's number": (lambda: ng.nn.avg_pool2d(ones(1, 4, 4), (1, 2, 3)), ArgumentError, r"got kernel_size \(1, 2, 3\)"),
    "stride": (lambda: ng.nn.avg_pool1d(ones(1, 4), 2, 0), ArgumentError, r"got stride 0"),
    "dilation": (lambda: ng.nn.max_pool1d(ones(1, 4), 2, dilation=-1), ArgumentError, r"got dilation -1"),
    "padding": (lambda: ng.nn.max_pool1d(ones(1, 4), 2, padding=2), ShapeError, r"got padding \(2,\), kernel size \(2,\).*at most half"),
    "negative padding": (lambda: ng.nn.avg_pool1d(ones(1, 4), 2, padding=-1), ArgumentError, r"got padding -1"),
    "too large": (lambda: ng.nn.avg_pool2d(ones(1, 4, 1), 2), ShapeError,
                  r"got spatial sizes \(4, 1\), kernel size \(2, 2\).*a smaller kernel_size"),
    "nothing there": (lambda: ng.nn.max_pool1d(ones(1, 0), 1), ShapeError, r"got spatial sizes \(0,\)"),
    "padding alone": (lambda: ng.nn.max_pool1d(ones(1, 1), 2, 1, 1, 2), ShapeError,
                      r"max_pool1d: got 1 entries.*in the padding altogether"),
    "divisor": (lambda: ng.nn.avg_pool2d(ones(1, 4, 4), 2, divisor_override=0), ArgumentError,
                r"got divisor_override=0; expected an int other than 0"),
    "parts": (lambda: ng.nn.adaptive_avg_pool1d(ones(1, 4), 0), ArgumentError, r"got output_size \(0,\); expected an int"),
    "parts' number": (lambda: ng.nn.adaptive_max_pool2d(ones(1, 4, 4), (1, 2, 3)), ArgumentError, r"got output_size \(1, 2, 3\)"),
    "parts of nothing": (lambda: ng.nn.adaptive_max_pool1d(ones(1, 0), 1), ShapeError,
                         r"got spatial sizes \(0,\); expected at least one entry"),
}  # fmt: skip


@pytest.mark.parametrize("call, error, text", BAD.values(), ids=BAD)
def test_bad_input_says_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()
