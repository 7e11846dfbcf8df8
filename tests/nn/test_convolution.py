"""Convolutions and their transposes: values and derivatives are torch's, at every order by the kernels of convolution."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
from ladder import agree
from scipy import signal

import nestgrad as ng
from nestgrad.errors import ArgumentError, DTypeError, ShapeError
from nestgrad.testing import check_grads

BACKENDS = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}
RNG = np.random.default_rng(0)

# name, shape of the input, of the weight, options
CALLS = {
    "line": ("conv1d", (2, 2, 5), (3, 2, 2), {}),
    "line, strided": ("conv1d", (2, 4, 6), (4, 2, 2), {"stride": 2, "padding": 1, "groups": 2}),
    "plane": ("conv2d", (1, 2, 4, 4), (2, 2, 2, 2), {"padding": (1, 0)}),
    "plane, dilated": ("conv2d", (1, 2, 5, 4), (2, 1, 2, 2), {"stride": (1, 2), "dilation": (2, 1), "groups": 2, "padding": 1}),
    "plane, no samples": ("conv2d", (2, 3, 4), (2, 2, 2, 2), {}),
    "plane, same": ("conv2d", (1, 1, 3, 4), (1, 1, 2, 3), {"padding": "same", "dilation": (3, 1)}),
    "plane, valid": ("conv2d", (1, 1, 3, 4), (2, 1, 2, 3), {"padding": "valid"}),
    "space": ("conv3d", (1, 1, 2, 3, 3), (2, 1, 2, 2, 1), {"stride": (1, 2, 2), "padding": 1}),
    "line, transposed": ("conv_transpose1d", (2, 2, 3), (2, 2, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    "plane, transposed": ("conv_transpose2d", (1, 2, 2, 3), (2, 1, 2, 2), {"stride": (2, 1), "groups": 2, "dilation": (1, 2)}),
    "plane, transposed, no samples": ("conv_transpose2d", (2, 2, 3), (2, 1, 2, 2), {"padding": 1}),
    "more output padding than stride": ("conv_transpose1d", (1, 1, 3), (1, 2, 2), {"dilation": 3, "output_padding": 2, "padding": 1}),
    "output padding beyond the padding": ("conv_transpose1d", (1, 1, 3), (1, 2, 2), {"dilation": 3, "output_padding": 2}),
    "space, transposed": ("conv_transpose3d", (1, 2, 1, 2, 2), (2, 1, 1, 2, 2),
                          {"stride": 2, "padding": (0, 1, 0), "output_padding": (1, 0, 0)}),
}  # fmt: skip


def arrays(name, x, w, options, bias=True):
    out = w[1] * options.get("groups", 1) if "transpose" in name else w[0]
    return [RNG.normal(size=s) for s in ((x, w, (out,)) if bias else (x, w))]


@pytest.fixture(params=BACKENDS)
def base(request):
    return BACKENDS[request.param]


every_call = pytest.mark.parametrize("name, x, w, options", CALLS.values(), ids=CALLS)


# values


@every_call
@pytest.mark.parametrize("bias", [False, True], ids=["plain", "bias"])
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_values_are_torchs(name, x, w, options, bias, base):
    given = arrays(name, x, w, options, bias)
    got = getattr(ng.nn, name)(*map(base.tensor, given), **options)
    want = getattr(torch.nn.functional, name)(*map(torch.tensor, given), **options)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("seed", range(60))
def test_random_calls_are_torchs(seed, base):
    """Ranks, sizes, groups and empty batches drawn at random; what torch refuses is refused."""
    rng = np.random.default_rng(seed)
    n, groups = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    lead = [(), (0,), (1,), (3,)][rng.integers(4)]
    inside, outside = groups * int(rng.integers(1, 3)), groups * int(rng.integers(1, 3))
    spaces, kernel = rng.integers(1, 7, n).tolist(), rng.integers(1, 4, n).tolist()
    options = {"stride": int(rng.integers(1, 3)), "padding": rng.integers(0, 3, n).tolist(), "dilation": rng.integers(1, 3, n).tolist()}
    x = rng.normal(size=(*lead, inside, *spaces))
    for name, shape, more in (
        (f"conv{n}d", (outside, inside // groups), {}),
        (f"conv_transpose{n}d", (inside, outside // groups), {"output_padding": rng.integers(0, 2, n).tolist()}),
    ):
        w = rng.normal(size=(*shape, *kernel))
        call = {**options, **more, "groups": groups}
        if "transpose" in name and 0 in lead:
            continue  # torch checks its numbers only where there are samples
        try:
            want = getattr(torch.nn.functional, name)(torch.tensor(x), torch.tensor(w), **call)
        except RuntimeError:
            with pytest.raises((ShapeError, ArgumentError)):
                getattr(ng.nn, name)(base.tensor(x), base.tensor(w), **call)
            continue
        got = getattr(ng.nn, name)(base.tensor(x), base.tensor(w), **call)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape, kernel", [((7,), (3,)), ((4, 6), (3, 2)), ((3, 4, 5), (2, 1, 3))])
def test_one_channel_is_scipys_correlation(shape, kernel, base):
    x, w = RNG.normal(size=shape), RNG.normal(size=kernel)
    n = len(shape)
    got = getattr(ng.nn, f"conv{n}d")(base.tensor(x[None]), base.tensor(w[None, None]))
    np.testing.assert_allclose(got.numpy()[0], signal.correlate(x, w, "valid"), rtol=1e-12, atol=1e-13)
    full = getattr(ng.nn, f"conv_transpose{n}d")(base.tensor(x[None]), base.tensor(w[None, None]))
    np.testing.assert_allclose(full.numpy()[0], signal.convolve(x, w, "full"), rtol=1e-12, atol=1e-13)


def test_float32_stays_float32():
    for base in (ng.NumpyBackend("float32"), ng.TorchBackend()):
        x, w = base.tensor(np.ones((1, 2, 5), "f4")), base.tensor(np.ones((3, 2, 2), "f4"))
        assert "float32" in str(ng.nn.conv1d(x, w).dtype)
        assert "float32" in str(ng.func.grad(lambda w, x=x: ng.nn.conv1d(x, w).sum())(w).dtype)


def test_a_kernel_on_many_samples_goes_in_parts():
    """More columns than NumPy's room for them."""
    x, w = RNG.normal(size=(40, 8, 32, 32)), RNG.normal(size=(4, 4, 3, 3))
    got = ng.nn.conv2d(ng.tensor(x), ng.tensor(w), padding=1, groups=2).numpy()
    np.testing.assert_allclose(got, torch.conv2d(torch.tensor(x), torch.tensor(w), padding=1, groups=2).numpy(), rtol=1e-12, atol=1e-12)
    agree(BACKENDS["numpy"], lambda m, x, w: m.conv2d(x, w, padding=1, groups=2).square().sum(), [x, w], 1)


# derivatives


@every_call
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_derivatives_to_third_order_are_torchs(name, x, w, options, base):
    """Where the output is padded torch has no third order, which is checked by differences."""
    f = lambda m, x, w, b: getattr(m, name)(x.sin(), w.tanh(), b, **options).sin().sum()
    given = arrays(name, x, w, options)
    if "output_padding" not in options:
        agree(base, f, given)
    else:
        agree(base, f, given, 2)
        check_grads(lambda *xs: f(ng.nn, *xs), [base.tensor(a) for a in given], 3, stack=base)


def test_no_samples_have_derivatives(base):
    """An empty batch: zeros for the weight, none for the input."""
    for f in (lambda x, w: ng.nn.conv2d(x, w, padding=1), lambda x, w: ng.nn.conv_transpose2d(x, w)):
        x, w = base.tensor(np.zeros((0, 2, 3, 3))), base.tensor(np.ones((2, 2, 2, 2)))
        gx, gw = ng.func.grad(lambda x, w, f=f: (f(x, w) ** 2).sum(), (0, 1))(x, w)
        assert gx.shape == (0, 2, 3, 3) and gw.tolist() == np.zeros((2, 2, 2, 2)).tolist()


def test_checked_by_differences_in_all_arguments():
    x, w, bias = (ng.tensor(a) for a in arrays("conv2d", (1, 2, 3, 3), (2, 1, 2, 2), {"groups": 2}))
    check_grads(lambda x, w, b: ng.nn.conv2d(x, w, b, groups=2).sin().sum(), [x, w, bias], 3, stack=BACKENDS["numpy"])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_transpose_is_the_transpose(n, base):
    """<conv(x), y> is <x, conv_transpose(y)>."""
    options = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    w = base.tensor(RNG.normal(size=(4, 1, *(3,) * n)))
    x, y = base.tensor(RNG.normal(size=(2, 2, *(5,) * n))), base.tensor(RNG.normal(size=(2, 4, *(3,) * n)))
    left = (getattr(ng.nn, f"conv{n}d")(x, w, **options) * y).sum()
    right = (x * getattr(ng.nn, f"conv_transpose{n}d")(y, w, **options)).sum()
    assert left.item() == pytest.approx(right.item(), rel=1e-12)


def test_products_with_the_hessian_are_jaxs(base):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    x, w, u, v = (RNG.normal(size=s) for s in ((2, 4, 5, 4), (2, 2, 2, 3), (2, 4, 5, 4), (2, 2, 2, 3)))

    def f(x, w):
        return ng.nn.conv2d(x, w, stride=(2, 1), padding=(1, 2), dilation=(2, 1), groups=2).tanh().square().sum()

    def of_jax(x, w):
        y = jax.lax.conv_general_dilated(x, w, (2, 1), [(1, 1), (2, 2)], rhs_dilation=(2, 1), feature_group_count=2)
        return jax.numpy.sum(jax.numpy.tanh(y) ** 2)

    with jax.enable_x64(True):
        want = jax.jvp(jax.grad(of_jax, (0, 1)), (x, w), (u, v))[1]
    got = ng.func.jvp(ng.func.grad(f, (0, 1)), tuple(map(base.tensor, (x, w))), tuple(map(base.tensor, (u, v))))[1]
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine.numpy(), np.asarray(theirs), rtol=1e-10, atol=1e-12)


class Counting(ng.TorchBackend):
    """Counts the ops that could compute a convolution."""

    def __init__(self):
        super().__init__(dtype="float64")
        self.calls = Counter()

    def __getattribute__(self, name):
        if name in ("conv", "conv_input", "conv_weight", "matmul", "product", "einsum", "windows", "from_windows", "put", "getitem"):
            self.calls[name] += 1
        return super().__getattribute__(name)


def test_every_order_runs_on_kernels_of_convolution():
    base = Counting()
    x, w = base.tensor(RNG.normal(size=(1, 2, 4, 4))), base.tensor(RNG.normal(size=(2, 2, 2, 2)))
    third = lambda x, w: ng.func.grad(lambda x, w: ng.func.grad(lambda x, w: ng.func.grad(
        lambda x, w: ng.nn.conv2d(x, w).sin().sum())(x, w).sin().sum(), 1)(x, w).sin().sum())(x, w)  # fmt: skip
    assert third(x, w).shape == (1, 2, 4, 4)
    assert set(base.calls) == {"conv", "conv_input", "conv_weight"}


# samples of a batch


@pytest.mark.parametrize("on", [on for on in product([None, 0], repeat=3) if any(k == 0 for k in on)], ids=str)
@pytest.mark.parametrize("name", ["plane, dilated", "plane, transposed", "line, strided", "plane, no samples"])
def test_vmap_is_the_loop(name, on, base):
    """Gradients, so that all three convolutions run on samples; whichever arguments have them."""
    function, x, w, options = CALLS[name]
    given = [np.stack([a * s for s in (1.0, 0.5, -1.5)]) for a in arrays(function, x, w, options)]
    f = ng.func.grad(lambda x, w, b: getattr(ng.nn, function)(x, w, b, **options).sin().sum(), (0, 1, 2))
    args = [base.tensor(a if k == 0 else a[0]) for a, k in zip(given, on, strict=True)]
    got = ng.func.vmap(f, in_axes=on)(*args)
    for k in range(3):
        want = f(*(base.tensor(a[k if here == 0 else 0]) for a, here in zip(given, on, strict=True)))
        for g, right in zip(got, want, strict=True):
            np.testing.assert_allclose(g[k].numpy(), right.numpy(), rtol=1e-12, atol=1e-12)


# bad input


def ones(*shape):
    return ng.tensor(np.ones(shape))


BAD = {
    "rank": (lambda: ng.nn.conv2d(ones(4, 4), ones(1, 1, 2, 2)), ShapeError, r"conv2d: got an input of shape \(4, 4\); expected \(samples"),
    "weight's rank": (lambda: ng.nn.conv1d(ones(1, 4), ones(1, 2)), ShapeError,
                      r"conv1d: got a weight of shape \(1, 2\); expected \(channels out"),
    "no channels out": (lambda: ng.nn.conv1d(ones(1, 4), ones(0, 1, 2)), ShapeError, r"got a weight of shape \(0, 1, 2\)"),
    "channels": (lambda: ng.nn.conv1d(ones(3, 4), ones(2, 2, 2)), ShapeError,
                 r"got 3 channels, a weight of shape \(2, 2, 2\) and groups=1"),
    "groups": (lambda: ng.nn.conv1d(ones(3, 4), ones(2, 1, 2), groups=2), ShapeError, r"got groups=2 for 3 channels.*divides"),
    "groups of the weight": (lambda: ng.nn.conv1d(ones(4, 4), ones(3, 2, 2), groups=2), ShapeError, r"got groups=2.*\(3, 2, 2\)"),
    "no groups": (lambda: ng.nn.conv1d(ones(3, 4), ones(2, 3, 2), groups=0), ShapeError, r"got groups=0"),
    "bias": (lambda: ng.nn.conv1d(ones(1, 4), ones(2, 1, 2), ones(3)), ShapeError, r"got a bias of shape \(3,\); expected \(2,\)"),
    "kernel too large": (lambda: ng.nn.conv2d(ones(1, 3, 3), ones(1, 1, 2, 4)), ShapeError,
                         r"got spatial sizes \(3, 3\).*kernel of \(2, 4\).*not larger than the padded input"),
    "dilated too far": (lambda: ng.nn.conv1d(ones(1, 3), ones(1, 1, 2), dilation=3), ShapeError, r"dilation \(3,\)"),
    "stride": (lambda: ng.nn.conv1d(ones(1, 3), ones(1, 1, 2), stride=0), ArgumentError, r"got stride 0; expected an int from 1 on"),
    "dilation": (lambda: ng.nn.conv2d(ones(1, 3, 3), ones(1, 1, 2, 2), dilation=(1, -1)), ArgumentError,
                 r"got dilation \(1, -1\).*, or 2 of them"),
    "padding": (lambda: ng.nn.conv1d(ones(1, 3), ones(1, 1, 2), padding=-1), ArgumentError, r"got padding -1; expected an int from 0 on"),
    "padding's number": (lambda: ng.nn.conv2d(ones(1, 3, 3), ones(1, 1, 2, 2), padding=(1, 1, 1)), ArgumentError,
                         r"got padding \(1, 1, 1\)"),
    "padding's word": (lambda: ng.nn.conv1d(ones(1, 3), ones(1, 1, 2), padding="full"), ArgumentError,
                       r"got padding 'full'; expected 'same', 'valid'"),
    "same, strided": (lambda: ng.nn.conv1d(ones(1, 3), ones(1, 1, 2), padding="same", stride=2), ArgumentError,
                      r"'same' and stride \(2,\)"),
    "stride's type": (lambda: ng.nn.conv1d(ones(1, 3), ones(1, 1, 2), stride=1.5), ArgumentError, r"got stride 1.5"),
    "dtypes": (lambda: ng.nn.conv1d(ones(1, 3), ones(1, 1, 2).astype("float32")), DTypeError,
               r"an input of float64 and a weight of float32"),
    "integers": (lambda: ng.nn.conv1d(ones(1, 3).astype("int64"), ones(1, 1, 2).astype("int64")), DTypeError,
                 r"input of int64.*one floating dtype"),
    "a number": (lambda: ng.nn.conv1d(ones(1, 3), 2.0), ShapeError, r"conv1d: got a number; expected arrays"),
    "transposed channels": (lambda: ng.nn.conv_transpose1d(ones(2, 3), ones(1, 2, 2)), ShapeError, r"got 2 channels.*go in first"),
    "output padding": (lambda: ng.nn.conv_transpose1d(ones(1, 3), ones(1, 1, 2), output_padding=1), ArgumentError,
                       r"got output_padding \(1,\).*smaller"),
    "cut away": (lambda: ng.nn.conv_transpose1d(ones(1, 2), ones(1, 1, 2), padding=2), ShapeError,
                 r"a result of sizes \(-1,\).*at least one entry"),
}  # fmt: skip


@pytest.mark.parametrize("call, error, text", BAD.values(), ids=BAD)
def test_bad_input_says_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()
