"""Arguments of functions, every wrong kind of them: a typed error in the name of the function, alike on every backend."""

import numpy as np
import pytest

import nestgrad as ng
from nestgrad import Autodiff
from nestgrad.errors import ArgumentError, ConversionError, DTypeError, IndexRangeError, NestgradError, ShapeError

NO_NUMBERS = [None, "a", "1.0", [], (1.0, 2.0), 1j, {}, object(), np.ones(2)]

TAKES_A_NUMBER = {
    "leaky_relu": lambda x, v: ng.nn.leaky_relu(x, v),
    "hardtanh": lambda x, v: ng.nn.hardtanh(x, v, 1.0),
    "hardshrink": lambda x, v: ng.nn.hardshrink(x, v),
    "softshrink": lambda x, v: ng.nn.softshrink(x, v),
    "threshold": lambda x, v: ng.nn.threshold(x, 0.0, v),
    "elu": lambda x, v: ng.nn.elu(x, v),
    "celu": lambda x, v: ng.nn.celu(x, v),
    "softplus": lambda x, v: ng.nn.softplus(x, v),
    "layer_norm": lambda x, v: ng.nn.layer_norm(x, 3, eps=v),
    "batch_norm": lambda x, v: ng.nn.batch_norm(x, np.float32([1, 1, 1]), np.float32([1, 1, 1]), training=True, momentum=v),
    "normalize": lambda x, v: ng.nn.normalize(x, eps=v),
    "pairwise_distance": lambda x, v: ng.nn.pairwise_distance(x, x, eps=v),
    "huber_loss": lambda x, v: ng.nn.huber_loss(x, x, delta=v),
    "smooth_l1_loss": lambda x, v: ng.nn.smooth_l1_loss(x, x, beta=v),
    "gaussian_nll_loss": lambda x, v: ng.nn.gaussian_nll_loss(x, x, x, eps=v),
    "poisson_nll_loss": lambda x, v: ng.nn.poisson_nll_loss(x, x, log_input=False, eps=v),
    "cosine_similarity": lambda x, v: ng.nn.cosine_similarity(x, x, eps=v),
    "cross_entropy": lambda x, v: ng.nn.cross_entropy(x, np.array([0, 1]), label_smoothing=v),
    "var": lambda x, v: ng.var(x, 0, correction=v),
    "std": lambda x, v: ng.std(x, 0, correction=v),
}


@pytest.mark.parametrize("name", TAKES_A_NUMBER)
def test_a_parameter_that_is_no_number_is_told_in_the_name_of_the_function(S, name):
    x = S.tensor([[0.1, 0.2, 0.3], [0.5, 0.4, 0.3]], requires_grad=True)
    for wrong in NO_NUMBERS:
        with pytest.raises(ArgumentError, match=rf"{name}: got .*; expected a real number.* Try a float"):
            TAKES_A_NUMBER[name](x, wrong)


@pytest.mark.parametrize("name", [n for n in TAKES_A_NUMBER if n != "cross_entropy"])
def test_a_parameter_that_depends_on_variables_is_no_constant(S, name):
    x = S.tensor([[0.1, 0.2, 0.3], [0.5, 0.4, 0.3]], requires_grad=True)
    with pytest.raises(ConversionError, match="would silently make a constant of it"):
        TAKES_A_NUMBER[name](x, x[0, 0])


@pytest.mark.parametrize("name", TAKES_A_NUMBER)
def test_numbers_of_numpy_are_numbers_and_change_no_dtype(base, name):
    x = Autodiff(base).tensor([[0.1, 0.2, 0.3], [0.5, 0.4, 0.3]], dtype="float32", requires_grad=True)
    right, got = (TAKES_A_NUMBER[name](x, v) for v in (0.5, np.float32(0.5)))
    if name == "batch_norm":
        right, got = right[1], got[1]
    assert str(got.dtype) == str(right.dtype) and "float32" in str(got.dtype)
    assert np.array_equal(got.numpy(), right.numpy())


TAKES_AN_INT = {
    "triu": lambda x, k: ng.triu(x, k),
    "rot90": lambda x, k: ng.rot90(x, k),
    "tril": lambda x, k: ng.tril(x, k),
    "diagonal": lambda x, k: ng.diagonal(x, k),
    "diag_embed": lambda x, k: ng.diag_embed(x, k),
    "round": lambda x, k: ng.round(x, k),
    "topk": lambda x, k: ng.topk(x, k),
    "kthvalue": lambda x, k: ng.kthvalue(x, k),
    "local_response_norm": lambda x, k: ng.nn.local_response_norm(x[None], k),
    "avg_pool1d": lambda x, k: ng.nn.avg_pool1d(x[None], 2, stride=k),
    "conv1d": lambda x, k: ng.nn.conv1d(x[None], np.ones((1, 2, 2)), padding=k),
    "max_pool1d": lambda x, k: ng.nn.max_pool1d(x[None], k),
    "adaptive_avg_pool1d": lambda x, k: ng.nn.adaptive_avg_pool1d(x[None], k),
}


@pytest.mark.parametrize("name", TAKES_AN_INT)
def test_an_argument_that_is_no_int_or_a_huge_one_is_told_in_the_name_of_the_function(S, name):
    x = S.tensor([[0.1, 0.2, 0.3], [0.5, 0.4, 0.3]], requires_grad=True)
    for wrong in [1.5, "a", [], (1.5,), 1j, {}, np.float32(0.5), 10**30, -(10**30), 10**12]:
        with pytest.raises(NestgradError, match=rf"^{name}: got ") as caught:
            TAKES_AN_INT[name](x, wrong)
        assert isinstance(caught.value, (ArgumentError, ShapeError))


ONE_AXIS = {
    "concat": lambda x, k: ng.concat([x, x], k),
    "stack": lambda x, k: ng.stack([x, x], k),
    "argmax": lambda x, k: ng.argmax(x, k),
    "prelu": lambda x, k: ng.nn.prelu(x, np.ones(3), k),
    "softmax": lambda x, k: ng.softmax(x, k),
    "cumsum": lambda x, k: ng.cumsum(x, k),
    "flatten": lambda x, k: ng.flatten(x, k),
    "unflatten": lambda x, k: ng.unflatten(x, k, (3, 1)),
    "swapaxes": lambda x, k: ng.swapaxes(x, k, 1),
    "cross": lambda x, k: ng.cross(x, x, k),
}


@pytest.mark.parametrize("name", ONE_AXIS)
@pytest.mark.parametrize("axis", ["", "a", (), (0, 1), 1.5, 7, -7, 1j, {}])
def test_what_is_no_axis_is_a_shape_error(S, name, axis):
    x = S.tensor([[0.1, 0.2, 0.3], [0.5, 0.4, 0.3]], requires_grad=True)
    with pytest.raises(ShapeError, match=rf"{name}: got axis "):
        ONE_AXIS[name](x, axis)


@pytest.mark.parametrize("wrong", [None, "a", [1.0], object(), {}, 1j], ids=lambda v: type(v).__name__)
def test_what_is_no_array_is_told_in_the_name_of_the_function(S, wrong):
    x = S.tensor([1.0, 2.0])
    for name in ("sin", "cbrt", "lgamma", "sort", "cumsum", "median", "flip", "ravel", "tile", "topk", "hypot", "add", "multiply"):
        f = getattr(ng, name)
        rest = {"tile": [2], "topk": [1], "hypot": [x], "add": [x], "multiply": [x]}.get(name, [])
        with pytest.raises(DTypeError, match=rf"^({name}|mul): got "):
            f(wrong, *rest)
    for name in ("gelu", "silu", "softsign", "dropout"):
        with pytest.raises(DTypeError, match=rf"^{name}: got "):
            getattr(ng.nn, name)(wrong)


@pytest.mark.parametrize("name", ["concat", "stack", "hstack", "vstack", "dstack", "column_stack"])
@pytest.mark.parametrize("wrong", [None, 5, object()], ids=lambda v: type(v).__name__)
def test_what_is_no_list_of_arrays_is_told(S, name, wrong):
    with pytest.raises(DTypeError, match=rf"{name}: got a \w+; expected a list or tuple of Tensors"):
        getattr(ng, name)(wrong)


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
def test_what_is_joined_has_the_backend_and_dtype_of_the_tensors(base, name):
    x = Autodiff(base).tensor([1.0, 2.0], dtype="float32", requires_grad=True)
    array = base.asarray([3.0, 4.0], "float32")
    for joined in (getattr(ng, name)([array, x]), getattr(ng, name)([x, x.b.base.asarray([3.0, 4.0], "float32")])):
        assert "float32" in str(joined.dtype) and joined.level == x.level and joined.b.base == base


@pytest.mark.parametrize("keepdims", [0, 1, np.int64(1), np.bool_(True), None])
def test_keepdims_is_a_truth_value_on_every_backend(S, keepdims):
    x = S.tensor([[0.1, 0.2, 0.3], [0.5, 0.4, 0.3]], requires_grad=True)
    for name in ("sum", "mean", "prod", "max", "min", "var", "std", "norm", "logsumexp", "argmax", "any", "ptp", "count_nonzero", "median"):
        right, got = (getattr(ng, name)(x, 0, keepdims=k).numpy() for k in (bool(keepdims), keepdims))
        assert right.shape == got.shape and np.array_equal(right, got), name


def test_ints_beyond_64_bits_are_floats_or_an_error(S):
    x = S.tensor([1.0, 2.0], requires_grad=True)
    for f in (ng.add, ng.maximum, ng.less, ng.xlogy, ng.remainder, ng.power):
        for huge in (10**30, -(10**30)):
            try:
                value = f(x, huge).numpy()
            except NestgradError as error:
                assert "64 bits" in str(error) or "got int 1" in str(error) or "got int -1" in str(error)
            else:
                assert np.array_equal(value, f(x, float(huge)).numpy(), equal_nan=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda a, t: ng.put(a, np.array([0]), t[0, :1]),
        lambda a, t: ng.index_add(a, 0, np.array([0]), t[:1]),
        lambda a, t: ng.index_copy(a, 0, np.array([0]), t[:1]),
        lambda a, t: ng.compress(t[:, 0] > 0.2, a, 0),
        lambda a, t: ng.trapezoid(a, t),
        lambda a, t: ng.cumulative_trapezoid(a, t),
        lambda a, t: ng.take_along_axis(a, t.argsort(0), 0),
    ],
)
def test_an_array_beside_a_tensor_is_one_over_its_backend(S, base, call):
    raw = base.asarray([[0.1, 0.2, 0.4], [0.5, 0.3, 0.9]])
    t = S.tensor([[0.1, 0.2, 0.3], [0.5, 0.6, 0.7]], requires_grad=True)
    got, right = call(raw, t), call(S.tensor(raw), t)
    assert got.b.base == base and np.array_equal(got.numpy(), right.numpy()) and got.level == right.level


@pytest.mark.parametrize("name", ["erf", "erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "lgamma", "digamma", "sinc"])
def test_half_precision_stays_half_precision(name):
    x = Autodiff(ng.NumpyBackend()).tensor([0.25, 0.5], dtype="float16", requires_grad=True)
    y = getattr(ng, name)(x)
    assert str(y.dtype) == "float16" and str(y.wrt(x).dtype) == "float16"
    wide = getattr(ng, name)(ng.tensor(x.numpy(), dtype="float64"))
    assert np.allclose(y.numpy().astype(float), wide.numpy(), rtol=2e-3)


def test_lgamma_is_infinite_at_minus_infinity(S):
    assert ng.lgamma(S.tensor([-np.inf, np.inf])).tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("name", ["index_add", "index_copy"])
def test_positions_out_of_range_are_told_in_the_name_of_the_function(S, name):
    x = S.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for place in (3, -4):
        with pytest.raises(IndexRangeError, match=rf"^{name}: got index {place} for an axis of size 3"):
            getattr(ng, name)(x, 0, np.array([place]), 1.0)


def test_a_bias_that_would_widen_the_result_does_not_fit(S):
    x = S.tensor([[1.0, 2.0]], requires_grad=True)
    with pytest.raises(ShapeError, match=r"nn.linear: got bias of shape \(2,\) for weight of shape \(1, 2\); expected \(n_out,\)"):
        ng.nn.linear(x, np.ones((1, 2)), np.ones(2))


def test_huge_orders_and_counts_do_not_hang():
    """They are refused, or what they give is known at once."""
    huge = 10**12
    for call in (lambda: ng.polygamma(huge, 1.0), lambda: ng.tensor(1.0).polygamma(huge)):
        with pytest.raises(ng.errors.OrderError, match="polygamma: got n = 1000000000000; expected an int from 0 to 1000"):
            call()
    with pytest.raises(ng.errors.ArgumentError, match="got 1000000000000 sections of 3 entries; expected at least one, and not so many"):
        ng.array_split(ng.arange(3), huge)
    assert ng.diff(ng.tensor([1.0, 2.0, 4.0]), huge).shape == (0,)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: ng.digitize(x, -x), ArgumentError, r"digitize: got bins \[-1.0, -2.0, -4.0\]; expected them in increasing order"),
        (lambda x: ng.func.vmap(lambda b: ng.digitize(b, b))(ng.stack([x, -x])), ArgumentError, "digitize: got bins .* increasing order"),
        (lambda x: ng.trapezoid(x, ng.zeros((2, 2))), ShapeError, r"trapezoid: got places of shape \(2, 2\) for shape \(3,\); expected 3 "),
        (lambda x: ng.trapezoid(x, x[None, :1]), ShapeError, r"trapezoid: got places of shape \(1, 1\) for shape \(3,\); expected 3 along"),
        (lambda x: ng.cumulative_trapezoid(x.reshape(3, 1), x[:, None].mT, axis=0), ShapeError, r"expected 3 along axis 0"),
    ],
)
def test_bins_and_places_that_do_not_fit_are_told(S, function, error, text):
    with pytest.raises(error, match=text):
        function(S.tensor([1.0, 2.0, 4.0], requires_grad=True))
