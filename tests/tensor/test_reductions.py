"""Reductions: NumPy's values over every form of axis, empty arrays and special entries; derivatives by differences."""

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import ShapeError

X = np.array([[[0.5, -1.5], [2.5, 0.7], [1.1, -0.2]], [[3.0, 1.25], [-0.75, 0.1], [0.9, 2.2]]])
AXES = [None, 0, 1, -1, (0,), (0, 2), (-1, 0), (2, 1, 0), (), np.int64(1), [0, 1]]


def _lse(x, axis=None, keepdims=False):
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


def _norm(x, axis=None, keepdims=False):
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


SMOOTH = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min, "var": np.var, "norm": _norm, "logsumexp": _lse}


@pytest.mark.parametrize("axis", AXES, ids=repr)
@pytest.mark.parametrize("name", SMOOTH)
def test_over_every_form_of_axis(name, axis, check_derivatives):
    plain = tuple(axis) if isinstance(axis, list) else axis
    for keepdims in (False, True):
        check_derivatives(
            lambda x, k=keepdims: getattr(x, name)(axis=axis, keepdims=k),
            lambda x, k=keepdims: SMOOTH[name](x, axis=plain, keepdims=k),
            np.abs(X) if isinstance(axis, tuple) and not axis else X,  # over no axes the norm is abs, which has a kink
        )


@pytest.mark.parametrize("name", SMOOTH)
def test_of_one_number(name, check_derivatives):
    check_derivatives(lambda x: getattr(x, name)(), SMOOTH[name], 1.5)
    check_derivatives(lambda x: getattr(x, name)(keepdims=True), SMOOTH[name], 1.5)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis, check_derivatives):
    def softmax(x):
        return np.exp(x) / np.exp(x).sum(axis, keepdims=True)

    check_derivatives(lambda x: x.softmax(axis), softmax, X)
    check_derivatives(lambda x: x.log_softmax(axis), lambda x: np.log(softmax(x)), X)


@pytest.mark.parametrize("correction", [0, 1, 2])
def test_variance_with_correction(correction, check_derivatives):
    def variance(x):
        return np.var(x, 1, ddof=correction, keepdims=True)

    check_derivatives(lambda x: x.var(axis=1, correction=correction, keepdims=True), variance, X)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, np.int64(2)], ids=repr)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_are_constants(name, axis, stack):
    x = stack.tensor(X, requires_grad=True)
    for keepdims in (False, True):
        got = getattr(x, name)(axis, keepdims=keepdims)
        want = getattr(np, name)(X, axis, keepdims=keepdims)
        assert got.level == 0 and "int64" in str(got.dtype) and got.shape == want.shape
        np.testing.assert_array_equal(got.numpy(), want)
    assert getattr(stack.tensor([2.0, 2.0, 1.0, 1.0]), name)().item() == {"argmax": 0, "argmin": 2}[name]


@pytest.mark.parametrize("axis", AXES, ids=repr)
@pytest.mark.parametrize("name", ["any", "all"])
def test_any_and_all(name, axis, base):
    plain = tuple(axis) if isinstance(axis, list) else axis
    for data in (X > 0, X > -9, X > 9, X, np.arange(12).reshape(2, 3, 2)):
        for keepdims in (False, True):
            got = getattr(base.tensor(data), name)(axis, keepdims)
            want = getattr(np, name)(data, plain, keepdims=keepdims)
            assert got.shape == want.shape
            np.testing.assert_array_equal(got.numpy(), want)
    assert not base.tensor([]).any() and base.tensor([]).all()


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (3, 0, 2)])
def test_empty_arrays(shape, stack):
    a = np.zeros(shape)
    x = stack.tensor(a, requires_grad=True)
    axes = [None, *range(len(shape)), tuple(range(len(shape)))]
    for axis in axes:
        for name in ("sum", "prod"):
            y = getattr(x, name)(axis)
            np.testing.assert_array_equal(y.numpy(), getattr(np, name)(a, axis))
            assert y.wrt(x).shape == shape
        assert x.norm(axis).numpy().tolist() == np.sqrt(np.sum(a, axis)).tolist()
        lengths = [shape[k] for k in ([axis] if isinstance(axis, int) else range(len(shape)))]
        for name in ("mean", "var"):
            y = getattr(x, name)(axis)
            assert y.shape == np.sum(a, axis).shape and (np.isnan(y.numpy()).all() if 0 in lengths else True)
        for name in ("max", "min", "argmax", "argmin", "logsumexp"):
            if isinstance(axis, tuple) and "arg" in name:
                continue
            if 0 in lengths:
                with pytest.raises(ShapeError, match=r"expected at least one entry"):
                    getattr(x, name)(axis)
            else:
                assert getattr(x, name)(axis).size == 0
    assert x.softmax(0).shape == x.log_softmax(0).shape == shape


def test_nan_and_infinity_are_as_in_numpy(base):
    a = np.array([[1.0, np.nan, 2.0], [np.inf, 1.0, -np.inf]])
    for name in ("sum", "max", "min", "prod", "argmax", "argmin"):
        for axis in (0, 1):
            np.testing.assert_array_equal(getattr(base.tensor(a), name)(axis).numpy(), getattr(np, name)(a, axis))
    assert base.tensor([-np.inf, -np.inf]).logsumexp().item() == -np.inf
    assert base.tensor([1e4, 1e4]).logsumexp().item() == 1e4 + np.log(2.0)
    assert base.tensor([1e4, 0.0]).softmax().tolist() == [1.0, 0.0]


def test_ties_share_the_derivative(stack):
    x = stack.tensor([2.0, 1.0, 2.0], requires_grad=True)
    for y in (x.max(), x.amax(), ng.max(x)):
        np.testing.assert_array_equal(y.wrt(x).numpy(), [0.5, 0.0, 0.5])
    np.testing.assert_array_equal(x.min().wrt(x).numpy(), [0.0, 1.0, 0.0])


def test_products_with_zeros_are_exact_at_every_order(stack):
    x = stack.tensor([0.0, 3.0, 0.0, 2.0], requires_grad=True)
    first = x.prod().wrt(x)
    np.testing.assert_array_equal(first.numpy(), np.zeros(4))
    second = first[0].wrt(x)
    np.testing.assert_array_equal(second.numpy(), [0.0, 0.0, 6.0, 0.0])


def test_norm_at_the_origin_has_derivative_zero(stack):
    x = stack.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    first = x.norm(axis=1).wrt(x)
    np.testing.assert_array_equal(first.numpy(), [[0.0, 0.0], [0.6, 0.8]])
    second = first[:, 0].wrt(x).numpy()
    assert np.isnan(second[0]).all()  # there is none
    np.testing.assert_allclose(second[1], [0.64 / 5, -0.48 / 5], rtol=1e-14)


def test_integers_and_booleans(base):
    mask, whole = base.tensor([[True, False], [True, True]]), base.tensor([[3, 4], [5, 6]], dtype="int32")
    for x in (mask, whole):
        a = x.numpy()
        for name in ("sum", "prod"):
            got = getattr(x, name)(0)
            assert "int64" in str(got.dtype)
            np.testing.assert_array_equal(got.numpy(), getattr(np, name)(a, 0))
        for name in ("mean", "var", "norm", "logsumexp"):
            got = getattr(x, name)(0)
            assert got.dtype == base.default_dtype
            np.testing.assert_allclose(got.numpy(), SMOOTH[name](a.astype(float), 0), rtol=1e-15)  # rounding of one sum
        for name in ("max", "min"):
            assert getattr(x, name)(0).dtype == x.dtype
            np.testing.assert_array_equal(getattr(x, name)(0).numpy(), getattr(np, name)(a, 0))
        np.testing.assert_array_equal(x.argmax(1).numpy(), a.argmax(1))
        np.testing.assert_allclose(x.softmax(0).numpy().sum(0), [1.0, 1.0], rtol=1e-15)
    assert base.tensor([200, 200], dtype="uint8").prod().item() == 40000


@pytest.mark.parametrize("name", [*SMOOTH, "any", "all"])
def test_wrong_axes_are_named(name, base):
    x = base.tensor(X)
    for axis, match in (
        (3, r"got axis 3 of an array with 3 axes"), (-4, r"axis -4"), ((0, 0), r"each axis once"), ((0, -3), r"each axis once"),
        (0.5, r"expected an int, a tuple of ints, or None"), ("x", r"expected an int"), ((0, None), r"expected an int"),
    ):  # fmt: skip
        with pytest.raises(ShapeError, match=rf"{name}: .*{match}"):
            getattr(x, name)(axis)
    with pytest.raises(ShapeError, match=rf"{name}: got axis 0 of an array with 0 axes"):
        getattr(base.tensor(1.0), name)(0)
