"""Bad input: every mistake is a typed error that tells what came, what was expected and what to try, alike on every backend."""

import numpy as np
import pytest

import nestgrad as ng
from nestgrad import Autodiff, NumpyBackend, TorchBackend
from nestgrad.errors import (
    BackendError,
    ConversionError,
    DTypeError,
    ImmutableError,
    IndexRangeError,
    LevelError,
    NestgradError,
    NotConnectedError,
    NotTrackedError,
    ShapeError,
)
from nestgrad.func import grad, value_and_grad, vjp

MISTAKES = {
    "shapes": [
        ("x + np.ones(4)", ShapeError, r"add: got shape \(3,\), shape \(4,\); sizes 3 and 4 on axis -1 do not broadcast"),
        ("np.ones((3, 2)) * m", ShapeError, r"mul: got shape \(3, 2\), shape \(2, 3\); sizes 2 and 3 on axis -1 do not broadcast"),
        ("m < np.ones(4)", ShapeError, r"lt: got shape \(2, 3\), shape \(4,\); sizes 3 and 4"),
        ("ng.where(np.ones(4) > 0, m, m)", ShapeError, r"where: got .* sizes 4 and 3 on axis -1 do not broadcast"),
        ("m @ m", ShapeError, r"matmul: got .*the last axis of the first \(3\) must equal the second-to-last of the second \(2\)"),
        ("x @ np.ones(4)", ShapeError, r"matmul: got .*the last axis of the first \(3\) must equal"),
        ("m @ 5.0", ShapeError, r"matmul: got shapes \(2, 3\) and \(\); expected at least one axis each\. Try x \* y"),
        ("ng.linear(m, np.ones((2, 2)))", ShapeError, r"the last axis of the first \(3\) must equal"),
        ("ng.linear(m, np.ones((3, 2)), np.ones(3))", ShapeError, r"linear: got shape \(2, 3\), shape \(3, 2\), shape \(3,\)"),
        ("m.reshape(5)", ShapeError, r"reshape: got \(5,\) for shape \(2, 3\); expected a shape with 6 entries"),
        ("m.reshape(-1, -1)", ShapeError, r"reshape: got \(-1, -1\) .*expected a shape with 6 entries"),
        ("m.reshape(2.0, 3.0)", ShapeError, r"reshape: got \(2\.0, 3\.0\); expected ints"),
        ("m.broadcast_to(3, 3)", ShapeError, r"broadcast_to: got \(3, 3\) for shape \(2, 3\); expected"),
        ("m.squeeze(0)", ShapeError, r"squeeze: got axis 0 of shape \(2, 3\), whose size is 2; expected 1"),
        ("m.pad([(1, -1), (0, 0)])", ShapeError, r"pad: got widths .*expected one pair of non-negative ints"),
        ("ng.concat([m, x])", ShapeError, r"concat: got shapes \[\(2, 3\), \(3,\)\]; expected"),
        ("ng.concat([])", ShapeError, r"concat: got no arrays; expected at least one"),
        ("ng.stack([m, x])", ShapeError, r"stack: got shapes .*expected one shape"),
        ("ng.zeros((2, -1))", ShapeError, r"got shape \(2, -1\); expected non-negative sizes"),
        ("ng.einsum('ij,jk', m, m)", ShapeError, r"einsum: got 'ij,jk' for shapes .*'j' is 3 in one and 2 in another"),
        ("ng.einsum('ij,jk', m)", ShapeError, r"einsum: got 'ij,jk' and 1 operands; expected 2"),
        ("ng.einsum('ij->k', m)", ShapeError, r"einsum: got 'ij->k'; expected letters of the output .*\['k'\]"),
        ("ng.einsum(5, m)", ShapeError, r"einsum: got a int first; expected subscripts"),
        ("m.item()", ShapeError, r"item: got shape \(2, 3\); expected exactly one entry"),
        ("bool(m > 0.0)", ShapeError, r"got shape \(2, 3\); expected exactly one entry\. Try x\.any\(\) or x\.all\(\)"),
        ("len(m.sum())", ShapeError, r"len: got a 0-dimensional tensor; expected an axis\. Try x\.item\(\)"),
        ("m.at[0].set(np.ones(2))", ShapeError, r"index_set: got shape \(2, 3\), shape \(2,\)"),
    ],
    "axes": [
        ("m.sum(2)", ShapeError, r"sum: got axis 2 of an array with 2 axes; expected an int from -2 to 1"),
        ("m.mean(-3)", ShapeError, r"mean: got axis -3 of an array with 2 axes"),
        ("m.prod((0, -2))", ShapeError, r"prod: got axis \(0, -2\); expected each axis once"),
        ("m.max(1.5)", ShapeError, r"max: got axis 1\.5; expected an int, a tuple of ints, or None"),
        ("m.argmax(2)", ShapeError, r"argmax: got axis 2 of an array with 2 axes"),
        ("m.softmax(None)", ShapeError, r"softmax: got axis None; expected one axis\. Try \.flatten\(\)"),
        ("m.log_softmax((0, 1))", ShapeError, r"log_softmax: got axis \(0, 1\); expected one axis"),
        ("m.permute(0)", ShapeError, r"permute: got axes \(0,\) for shape \(2, 3\); expected each axis once"),
        ("m.swapaxes(0, 3)", ShapeError, r"swapaxes: got axis 3"),
        ("m.expand_dims(5)", ShapeError, r"expand_dims: got axis 5 of an array with 3 axes"),
        ("ng.stack([m, m], 5)", ShapeError, r"stack: got axis 5"),
        ("ng.concat([m, m], 2)", ShapeError, r"concat: got axis 2"),
    ],
    "indices": [
        ("m[5]", IndexRangeError, r"getitem: got index 5 for an axis of size 2"),
        ("m[0, 0, 0]", IndexRangeError, r"getitem: got 3 indices for shape \(2, 3\); expected at most one per axis"),
        ("m['a']", IndexRangeError, r"getitem: got an index of type str; expected an int, slice, array or mask"),
        ("m[1.5]", IndexRangeError, r"getitem: got an index of type float"),
        ("m[[5]]", IndexRangeError, r"getitem: got .*index 5 is out of bounds for (axis|dimension) 0 with size 2"),
        ("m[np.array([0.5])]", IndexRangeError, r"got 1 axes of dtype .*float64 as an index; expected integers"),
        ("m[np.array([True, False, True])]", IndexRangeError, r"got a mask of shape \(3,\) for axes of shape \(2,\)"),
        ("m[::0]", IndexRangeError, r"expected a step other than 0"),
        ("m.at[5].add(1.0)", IndexRangeError, r"got index 5 for an axis of size 2"),
        ("m.at[[0, 0]].set(1.0)", ShapeError, r"at\[\.\.\.\]\.set: got an index that names an entry twice; .*Try at\[\.\.\.\]\.add"),
    ],
    "dtypes": [
        ("S.tensor([1, 2], requires_grad=True)", DTypeError, r"got dtype .*int64; expected a floating one.*Try dtype='float64'"),
        ("S.tensor([True], requires_grad=True)", DTypeError, r"requires_grad: got dtype .*bool; expected a floating one"),
        ("m.astype('int64').require_grad([S])", DTypeError, r"got dtype .*int64; expected a floating one"),
        ("S.tensor([1.0], dtype='foo')", DTypeError, r"unknown dtype 'foo'; try 'float32'"),
        ("grad(lambda v: v * v)(1)", DTypeError, r"grad: got an argument of dtype .*int64; expected a floating one\. Try a float"),
        ("grad(lambda v: v * v)(True)", DTypeError, r"grad: got an argument of dtype .*bool; expected a floating one"),
        ("vjp(lambda v: v * v, S.tensor([1, 2]))", DTypeError, r"vjp: got an argument of dtype .*int64"),
        ("NumpyBackend('int64')", DTypeError, r"default dtype must be floating, got int64"),
        ("S.tensor(1j)", DTypeError, r"complex numbers; expected real ones"),
        ("NumpyBackend().asarray(np.array([1j]), 'float64')", DTypeError, r"complex numbers \(complex128\); expected real ones"),
    ],
    "data": [
        ("S.tensor('a')", DTypeError, r"asarray: got str 'a'.*expected numbers"),
        ("S.tensor(None)", DTypeError, r"asarray: got NoneType None.*expected numbers"),
        ("S.tensor({1: 2})", DTypeError, r"asarray: got dict \{1: 2\}.*expected numbers"),
        ("S.tensor(np.array([1, 2], object))", DTypeError, r"asarray: got ndarray .*expected numbers"),
        ("S.tensor([[1.0], [1.0, 2.0]])", ShapeError, r"the lists are ragged, and an array needs rows of equal lengths"),
        ("S.tensor([x, x])", ConversionError, r"tensor: got a list with Tensors in it, whose levels would be lost\. Try ng\.stack"),
        ("S.tensor([[m[0, 0], 1.0]])", ConversionError, r"got a list with Tensors in it"),
        ("S.tensor((x[0], 2.0))", ConversionError, r"got a list with Tensors in it"),
        ("np.array([x[0], x[1]])", ConversionError, r"would silently make a constant of it\. Try x\.numpy\(\)"),
        ("ng.Tensor([1.0])", ConversionError, r"Tensor: got a call of the class; .*Try stack\.tensor\(data\)"),
        ("x + [1.0, 2.0, 3.0]", DTypeError, r"add: got a list; expected a Tensor, a number or an array .*Try tensor\(\[\.\.\.\]\)"),
        ("(1.0, 2.0, 3.0) * x", DTypeError, r"mul: got a tuple; expected"),
        ("x == [1.0, 2.0, 3.0]", DTypeError, r"eq: got a list; expected"),
        ("ng.sin([1.0])", DTypeError, r"got a list; expected a Tensor, a number or an array"),
        ("ng.sin(None)", DTypeError, r"got a NoneType; expected a Tensor, a number or an array"),
        ("ng.maximum(m, 'a')", DTypeError, r"maximum: got a str; expected"),
        ("m.at[0].set('a')", DTypeError, r"got a str; expected"),
        ("m.at[0].set(None)", DTypeError, r"got a NoneType; expected"),
        ("m.__setitem__(0, 1.0)", ImmutableError, r"Try y = x\.at\[index\]\.set\(value\)"),
    ],
    "empty arrays": [
        ("e.max()", ShapeError, r"max: got shape \(0, 3\); expected at least one entry along axis None"),
        ("e.min(0)", ShapeError, r"min: got shape \(0, 3\); expected at least one entry along axis 0"),
        ("e.argmax()", ShapeError, r"argmax: got shape \(0, 3\)"),
        ("e.logsumexp()", ShapeError, r"logsumexp: got shape \(0, 3\)"),
        ("e[0]", IndexRangeError, r"getitem: got index 0 for an axis of size 0"),
        ("e.item()", ShapeError, r"item: got shape \(0, 3\); expected exactly one entry"),
    ],
    "seeds": [
        ("m.backward(gradient=np.ones(2))", ShapeError, r"backward: got a gradient of shape \(2,\) for a root of shape \(2, 3\)"),
        ("m.backward(gradient=1.0)", ShapeError, r"backward: got a gradient of shape \(\) for a root of shape \(2, 3\)"),
        ("m.sum().backward(gradient=x)", ShapeError, r"got a gradient of shape \(3,\) for a root of shape \(\)"),
        ("m.backward(gradient='a')", DTypeError, r"asarray: got str 'a'.*expected numbers"),
        ("vjp(lambda v: v * v, x)[1](np.ones(2))", ShapeError, r"got a gradient of shape \(2,\) for a root of shape \(3,\)"),
    ],
    "look-ups": [
        ("c.backward()", NotTrackedError, r"backward: a value of shape \(2,\) depends on nothing that requires gradients\. Try"),
        ("(x > 0.0).backward()", NotTrackedError, r"was it detached, or made by a comparison\?"),
        ("x.detach().backward()", NotTrackedError, r"depends on nothing that requires gradients"),
        ("c.grad(x.backward())", NotTrackedError, r"grad: this tensor of shape \(2,\) is tracked on no level\. Try stack\.tensor"),
        ("x.backward()[c]", NotTrackedError, r"is tracked on no level"),
        ("x.backward().get(c)", NotTrackedError, r"is tracked on no level"),
        ("x.backward().remove(c)", NotTrackedError, r"is tracked on no level"),
        ("x.backward().replace(c, c)", NotTrackedError, r"is tracked on no level"),
        ("x.backward(wrt=[c])", NotTrackedError, r"is tracked on no level"),
        ("x.backward(wrt=[1.0])", NotTrackedError, r"grad: got a float, which is tracked on no level; expected a Tensor"),
        ("x.backward(wrt=5)", NotTrackedError, r"grad: got a int, which is tracked on no level; expected a Tensor"),
        ("x.backward()[0]", NotTrackedError, r"got a int"),
        ("5 in x.backward()", NotTrackedError, r"got a int"),
        ("x.wrt(None)", NotTrackedError, r"got a NoneType"),
        ("x.grad(None)", LevelError, r"grad: got a NoneType; expected the Gradients of a backward pass\. Try x\.grad\(y\.backward\(\)\)"),
        ("x.grad(x)", LevelError, r"grad: got a Tensor; expected the Gradients"),
        ("x.grad_replace(None, x)", LevelError, r"grad_replace: got a NoneType; expected the Gradients"),
        ("m.grad(x.backward())", NotConnectedError, r"this tensor of shape \(2, 3\)\. Was it created anew.*Try grads\.get"),
        ("x.backward(wrt=[x])[m]", NotTrackedError, r"computed with wrt=\[\.\.\.\] or closed, .*Try to add it to wrt"),
        ("x.backward().replace(x, 1.0)", ShapeError, r"replace: got a value of shape \(\); expected the tensor's, \(3,\)"),
    ],
    "levels": [
        ("base.tensor([1.0], requires_grad=True)", LevelError, r"requires_grad: .* is a base backend and tracks nothing\. Try Autodiff"),
        ("S.tensor([1.0], requires_grad=True, levels=[3])", LevelError, r"levels: got 3; expected numbers from 1 \(innermost\) to 2"),
        ("S.tensor([1.0], requires_grad=True, levels=[0])", LevelError, r"levels: got 0; expected numbers from 1"),
        ("S.tensor([1.0], requires_grad=True, levels=[])", LevelError, r"levels: got none; expected at least one level"),
        ("S.tensor([1.0], requires_grad=True, levels=2)", LevelError, r"levels: got 2; expected a list\. Try levels=\[2\]"),
        ("S.tensor([1.0], levels=[1])", LevelError, r"tensor: got levels without requires_grad=True"),
        ("c.require_grad()", LevelError, r"require_grad: this tensor is a constant on every level, .*Try stack\.tensor"),
        ("c.require_grad(S)", LevelError, r"levels: got Autodiff\(.*; expected a list"),
        ("c.require_grad([5])", LevelError, r"levels: got 5; expected Autodiff levels"),
        ("x.detach('a')", LevelError, r"detach: got level 'a'; expected an Autodiff level or a number from 1 on"),
        ("x.detach(0)", LevelError, r"detach: got level 0; expected"),
        ("Autodiff(5)", LevelError, r"Autodiff: expected a backend or a level to wrap, got int"),
        ("x + other", LevelError, r"add: got tensors over different base backends, .* they cannot meet\. Try one backend for both"),
        ("x @ other", LevelError, r"matmul: got tensors over different base backends"),
        ("x < other", LevelError, r"lt: got tensors over different base backends"),
        ("ng.concat([x, other])", LevelError, r"different base backends"),
        ("S.tensor(other)", LevelError, r"tensor: got a Tensor over .* different base backends cannot share a graph\. Try"),
        ("x.backward(gradient=other)", LevelError, r"backward: got a gradient over .* for a root over .*; expected one base backend"),
        ("grad(lambda v: (v * other).sum())(x)", LevelError, r"mul: got tensors over different base backends"),
    ],
    "backends": [
        ("ng.get_backend('foo')", BackendError, r"no backend is called 'foo'; known: numpy, torch"),
        ("TorchBackend('foo')", BackendError, r"TorchBackend: got device 'foo'; expected such as 'cpu'"),
        ("S.from_numpy([1.0])", BackendError, r"from_numpy: got a list; expected an array of numpy\. Try tensor\(data\), which copies"),
        ("S.from_torch(np.ones(2))", BackendError, r"from_torch: got a ndarray; expected an array of torch"),
    ],
    "transforms": [
        ("grad(lambda v: v)(np.ones(2))", ShapeError, r"returned shape \(2,\); expected a 0-dimensional tensor\. Try \.sum"),
        ("grad(lambda v: None)(1.0)", LevelError, r"grad: the function returned a NoneType; expected a Tensor"),
        ("grad(lambda v: [v])(1.0)", LevelError, r"grad: the function returned a list; expected a Tensor"),
        ("grad(lambda v: v)(['one'])", DTypeError, r"grad: got a str; expected a Tensor, a number or an array"),
        ("grad(lambda v: v)([])", ShapeError, r"grad: got argument 0 without any Tensor, array or number to differentiate by"),
        ("grad(lambda v: v)()", ShapeError, r"grad: got argnums 0 for 0 positional arguments"),
        ("grad(lambda v: v, 1)(1.0)", ShapeError, r"grad: got argnums 1 for 1 positional arguments; expected the numbers of some"),
        ("grad(lambda v: v, ())(1.0)", ShapeError, r"grad: got argnums \(\) for 1 positional"),
        ("grad(lambda v: v, 'a')(1.0)", ShapeError, r"grad: got argnums 'a' for 1 positional"),
        ("value_and_grad(lambda v: v, 1.5)(1.0)", ShapeError, r"grad: got argnums 1\.5 for 1 positional"),
        ("grad(lambda v: v, has_aux=True)(1.0)", LevelError, r"grad: with has_aux the function must return \(output, aux\), got Tensor"),
        ("vjp(lambda v: v)", ShapeError, r"vjp: got argnums \(\) for 0 positional arguments"),
    ],
}  # fmt: skip
"""By kind: what is written, its error, and what the message says."""

CASES = [pytest.param(*case, id=f"{kind}: {case[0]}") for kind, cases in MISTAKES.items() for case in cases]


def _names(base, S):
    """What the mistakes are written with."""
    other = TorchBackend(dtype="float64") if base.name == "numpy" else NumpyBackend()
    return {
        "m": S.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True),
        "x": S.tensor([1.0, 2.0, 3.0], requires_grad=True),
        "c": S.tensor([1.0, 2.0]),
        "e": S.tensor(np.zeros((0, 3)), requires_grad=True),
        "other": Autodiff(other).tensor([1.0, 2.0, 3.0], requires_grad=True),
        "base": base, "S": S, "ng": ng, "np": np, "grad": grad, "vjp": vjp, "value_and_grad": value_and_grad,
        "Autodiff": Autodiff, "NumpyBackend": NumpyBackend, "TorchBackend": TorchBackend,
    }  # fmt: skip


@pytest.mark.parametrize(("written", "error", "words"), CASES)
def test_a_mistake_is_a_typed_error_that_says_what_to_do(base, S, written, error, words):
    names = _names(base, S)
    with pytest.raises(error, match=words) as caught:
        eval(written, names)  # the literals of the table above
    assert type(caught.value) is error
    assert isinstance(caught.value, NestgradError)


@pytest.mark.parametrize("written", ["x + None", "x - 'a'", "x < None", "x @ {}", "x ** object()"])
def test_operands_of_unknown_types_are_left_to_python(base, S, written):
    """The other operand may know what to do, so Python asks it, and says that neither does."""
    with pytest.raises(TypeError, match="'Tensor'"):
        eval(written, _names(base, S))


VALUES = {
    "e.sum()": 0.0, "e.prod()": 1.0, "e.norm()": 0.0, "e.sum(0)": [0.0] * 3, "e.prod(0)": [1.0] * 3, "e.T": np.zeros((3, 0)),
    "(e + 1.0).sum()": 0.0, "(e @ np.ones((3, 2))).sum()": 0.0, "np.ones((2, 0)) @ e": np.zeros((2, 3)), "e.softmax()": np.zeros((0, 3)),
    "e.reshape(3, 0, 5)": np.zeros((3, 0, 5)), "e[:0]": np.zeros((0, 3)), "ng.concat([e, m])": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
    "e.max(1)": np.zeros(0), "m[1:1]": np.zeros((0, 3)), "m[[]]": np.zeros((0, 3)), "m[m > 9.0]": np.zeros(0),
}  # fmt: skip


@pytest.mark.parametrize(("written", "right"), VALUES.items(), ids=VALUES)
def test_empty_arrays_have_values_and_derivatives_of_their_shape(base, S, written, right):
    names = _names(base, S)
    y = eval(written, names)
    assert np.array_equal(y.numpy(), right)
    x = names["e" if "e" in written.replace("reshape", "") else "m"]
    g = y.wrt(x)
    assert g.shape == x.shape and g.wrt(x).shape == x.shape


def test_nothing_half_done_is_left_behind(base, S):
    """After each mistake the same tensors work, and the same Gradients answers."""
    names = _names(base, S)
    x = names["x"]
    y = (x**3).sum()
    grads = y.backward()
    for cases in MISTAKES.values():
        for written, error, _ in cases:
            with pytest.raises(error):
                eval(written, names)
    assert x.grad(grads).tolist() == [3.0, 12.0, 27.0]
    assert y.wrt(x).wrt(x).tolist() == [6.0, 12.0, 18.0]
    assert grad(lambda v: (v**3).sum())(x).tolist() == [3.0, 12.0, 27.0]
