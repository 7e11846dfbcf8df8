"""Shapes: the methods against NumPy's functions, their derivatives, and what does not fit."""

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import DTypeError, LevelError, ShapeError

X = np.arange(24.0).reshape(2, 3, 4)

METHODS = {
    "reshape": (lambda x: x.reshape(4, 6), lambda x: x.reshape(4, 6)),
    "reshape tuple": (lambda x: x.reshape((3, 8)), lambda x: x.reshape(3, 8)),
    "reshape array": (lambda x: x.reshape(np.array([3, 8])), lambda x: x.reshape(3, 8)),
    "reshape one": (lambda x: x.reshape(24), lambda x: x.reshape(24)),
    "reshape -1": (lambda x: x.reshape(2, -1, 2), lambda x: x.reshape(2, -1, 2)),
    "reshape many": (lambda x: x.reshape(1, 2, 1, 12), lambda x: x.reshape(1, 2, 1, 12)),
    "flatten": (lambda x: x.flatten(), np.ravel),
    "ravel": (lambda x: x.T.ravel(), lambda x: x.T.ravel()),
    "permute": (lambda x: x.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1)),
    "permute tuple": (lambda x: x.permute((1, 0, -1)), lambda x: x.transpose(1, 0, 2)),
    "transpose": (lambda x: x.transpose(), np.transpose),
    "transpose axes": (lambda x: x.transpose(0, 2, 1), lambda x: x.transpose(0, 2, 1)),
    "swapaxes": (lambda x: x.swapaxes(0, -1), lambda x: x.swapaxes(0, -1)),
    "expand_dims": (lambda x: x.expand_dims(1), lambda x: np.expand_dims(x, 1)),
    "expand_dims last": (lambda x: x.expand_dims(-1), lambda x: np.expand_dims(x, -1)),
    "expand_dims several": (lambda x: x.expand_dims((0, -1, 2)), lambda x: np.expand_dims(x, (0, -1, 2))),
    "squeeze": (lambda x: x[:, :1, None].squeeze(), lambda x: x[:, :1, None].squeeze()),
    "squeeze one": (lambda x: x[:1, :1].squeeze(-2), lambda x: x[:1, :1].squeeze(-2)),
    "squeeze two": (lambda x: x[:1, :1].squeeze((0, 1)), lambda x: x[:1, :1].squeeze((0, 1))),
    "broadcast_to": (lambda x: x.broadcast_to(5, 2, 3, 4), lambda x: np.broadcast_to(x, (5, 2, 3, 4))),
    "broadcast_to from 1": (lambda x: x[:, :1].broadcast_to((2, 7, 4)), lambda x: np.broadcast_to(x[:, :1], (2, 7, 4))),
    "broadcast_to nothing": (lambda x: x[:1].broadcast_to((0, 3, 4)), lambda x: np.broadcast_to(x[:1], (0, 3, 4))),
    "pad": (lambda x: x.pad([(1, 0), (0, 2), (0, 0)]), lambda x: np.pad(x, [(1, 0), (0, 2), (0, 0)])),
    "pad int": (lambda x: x.pad(1), lambda x: np.pad(x, 1)),
    "pad pair": (lambda x: x.pad((1, 2)), lambda x: np.pad(x, (1, 2))),
    "pad value": (lambda x: x.pad(1, 2.5), lambda x: np.pad(x, 1, constant_values=2.5)),
    "concat": (lambda x: ng.concat([x, x[:1], x * 2]), lambda x: np.concatenate([x, x[:1], x * 2])),
    "concat last": (lambda x: ng.concat((x, np.ones((2, 3, 1))), axis=-1), lambda x: np.concatenate([x, np.ones((2, 3, 1))], -1)),
    "concat one": (lambda x: ng.concatenate([x], 1), lambda x: x),
    "concat of nothing": (lambda x: ng.concat([x, x[:0]]), lambda x: x),
    "stack": (lambda x: ng.stack([x, 2 * x]), lambda x: np.stack([x, 2 * x])),
    "stack last": (lambda x: ng.stack([x, x, x * x], axis=-1), lambda x: np.stack([x, x, x * x], -1)),
    "stack middle": (lambda x: ng.stack([x, np.ones((2, 3, 4))], 1), lambda x: np.stack([x, np.ones((2, 3, 4))], 1)),
    "stack numbers": (lambda x: ng.stack([x[0, 0, 1], 2.0, x.sum()]), lambda x: np.stack([x[0, 0, 1], 2.0, x.sum()])),
}


@pytest.mark.parametrize(("method", "oracle"), METHODS.values(), ids=METHODS)
def test_values_and_derivatives(method, oracle, check_derivatives):
    check_derivatives(method, oracle, X)


def test_of_one_number(check_derivatives):
    for method, oracle in (
        (lambda x: x.reshape(()), lambda x: x), (lambda x: x.reshape(1, 1), lambda x: x.reshape(1, 1)), (lambda x: x.T, lambda x: x),
        (lambda x: x.permute(()), lambda x: x), (lambda x: x.squeeze(), lambda x: x), (lambda x: x.expand_dims(0), lambda x: x.reshape(1)),
        (lambda x: x.flatten(), lambda x: x.reshape(1)), (lambda x: x.broadcast_to(()), lambda x: x), (lambda x: x.pad([]), lambda x: x),
        (lambda x: x.broadcast_to(2), lambda x: np.broadcast_to(x, 2)),
    ):  # fmt: skip
        check_derivatives(method, oracle, 1.5)


def test_empty_arrays(stack):
    x = stack.tensor(np.zeros((0, 3)), requires_grad=True)
    assert x.reshape(3, 0).shape == (3, 0) and x.reshape(-1, 3).shape == (0, 3) and x.T.shape == (3, 0)
    assert x.pad(1).tolist() == np.zeros((2, 5)).tolist() and x.pad(1).wrt(x).shape == (0, 3)
    assert ng.concat([x, x]).shape == (0, 3) and ng.stack([x, x]).shape == (2, 0, 3)


def test_padding_takes_any_number(base):
    x = base.tensor([1.0])
    for value in (np.inf, -np.inf, np.nan, -2.0, 3):
        np.testing.assert_array_equal(x.pad(1, value).numpy(), [value, 1.0, value])
    whole = base.tensor([1])
    assert whole.pad(1, 7).tolist() == [7, 1, 7] and whole.pad(1, 7.0).dtype == whole.dtype
    assert base.tensor([True]).pad(1).tolist() == [False, True, False]
    with pytest.raises(DTypeError, match=r"pad: got value 0.5 for dtype .*int64"):
        whole.pad(1, 0.5)


def test_concat_promotes_and_stack_keeps(base):
    single, double, whole = (base.tensor([1, 2], dtype=d) for d in ("float32", "float64", "int64"))
    assert ng.concat([single, double]).dtype == double.dtype == ng.concat([whole, double]).dtype
    assert ng.stack([single[0], 2.0, 3]).dtype == single.dtype  # numbers are weak
    assert ng.stack([whole[0], 2]).dtype == whole.dtype
    assert ng.stack([whole[0], 2.5]).tolist() == [1.0, 2.5]
    assert ng.stack([single[0], base.tensor(0.1)]).tolist() == [1.0, 0.1]  # a Tensor without axes is none, even if NumPy has a float there


def test_gradients_of_mixed_dtypes_come_in_each_ones_own(stack):
    single = stack.tensor([1.0, 2.0], requires_grad=True, dtype="float32")
    double = stack.tensor([3.0], requires_grad=True)
    y = (ng.concat([single, double]) ** 2).sum()
    grads = y.backward()
    assert grads.wrt(single).dtype == single.dtype and grads.wrt(single).tolist() == [2.0, 4.0]
    assert grads.wrt(double).dtype == double.dtype and grads.wrt(double).tolist() == [6.0]


WRONG = {
    "reshape": (lambda x: x.reshape(5, 5), r"reshape: got \(5, 5\) for shape \(2, 3, 4\); expected a shape with 24 entries"),
    "reshape two unknown": (lambda x: x.reshape(-1, -1), r"reshape: got \(-1, -1\)"),
    "reshape no fit": (lambda x: x.reshape(-1, 5), r"24 entries"),
    "reshape by nothing": (lambda x: x.reshape(-1, 0), r"24 entries"),
    "reshape negative": (lambda x: x.reshape(-2, -12), r"24 entries"),
    "reshape float": (lambda x: x.reshape(4.0, 6), r"reshape: got \(4.0, 6\); expected ints"),
    "reshape none": (lambda x: x.reshape(None), r"expected ints"),
    "permute": (lambda x: x.permute(0, 1), r"permute: got axes \(0, 1\) for shape \(2, 3, 4\)"),
    "permute twice": (lambda x: x.permute(0, 1, 1), r"each axis once"),
    "permute beyond": (lambda x: x.permute(0, 1, 3), r"got axis 3"),
    "swapaxes": (lambda x: x.swapaxes(0, 3), r"swapaxes: got axis 3"),
    "squeeze": (lambda x: x.squeeze(1), r"squeeze: got axis 1 of shape \(2, 3, 4\), whose size is 3"),
    "expand_dims": (lambda x: x.expand_dims(4), r"expand_dims: got axis 4"),
    "expand_dims twice": (lambda x: x.expand_dims((0, 0)), r"each axis once"),
    "broadcast_to": (lambda x: x.broadcast_to(2, 3, 5), r"broadcast_to: got \(2, 3, 5\) for shape \(2, 3, 4\)"),
    "broadcast_to fewer": (lambda x: x.broadcast_to(3, 4), r"broadcast_to: got \(3, 4\)"),
    "broadcast_to unknown": (lambda x: x.broadcast_to(-1, 3, 4), r"broadcast_to"),
    "pad few": (lambda x: x.pad([(1, 1)]), r"pad: got widths \(\(1, 1\),\) for shape"),
    "pad negative": (lambda x: x.pad(-1), r"non-negative"),
    "pad text": (lambda x: x.pad("ab"), r"pad: got widths 'ab'"),
    "concat shapes": (lambda x: ng.concat([x, x[:, :2]]), r"concat: got shapes \[\(2, 3, 4\), \(2, 2, 4\)\]"),
    "concat ranks": (lambda x: ng.concat([x, x[0]]), r"concat: got shapes"),
    "concat axis": (lambda x: ng.concat([x, x], 3), r"concat: got axis 3"),
    "concat numbers": (lambda x: ng.concat([x.sum(), 1.0]), r"0-dimensional.*Try stack"),
    "concat nothing": (lambda x: ng.concat([]), r"concat: got no arrays"),
    "stack shapes": (lambda x: ng.stack([x, x[:1]]), r"stack: got shapes"),
    "stack axis": (lambda x: ng.stack([x, x], 4), r"stack: got axis 4"),
    "stack nothing": (lambda x: ng.stack([]), r"stack: got no arrays"),
}


@pytest.mark.parametrize(("call", "match"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_named(call, match, base):
    with pytest.raises(ShapeError, match=match):
        call(base.tensor(X))


def test_two_libraries_do_not_concatenate():
    torch = pytest.importorskip("torch")
    with pytest.raises(LevelError, match=r"different base backends"):
        ng.concat([ng.tensor([1.0]), ng.tensor(torch.ones(1))])
