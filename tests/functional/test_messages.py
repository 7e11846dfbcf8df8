"""Errors say what torch says, in a class of the same kind, and then why, and what to do."""

import re

import numpy as np
import pytest
import torch
from user_functions import ALL, SECOND, numbers, tensors, torched

import nestgrad as ng
from nestgrad import functional
from nestgrad.errors import ArgumentError, DTypeError, FunctionalError, FunctionalTypeError, NestgradError

X, Y = numbers(2, 2), numbers(2, 2, seed=1)


def scalar(*xs):
    """Of any number of inputs."""
    return sum(x.pow(3).sum() for x in xs)


def raised(name, library, func, given, *args, **kwargs):
    """The error of one library."""
    convert, room = (torched, torch.autograd.functional) if library == "torch" else (tensors, functional)
    args = [convert(a) if isinstance(a, (tuple, np.ndarray)) else a for a in args]
    with pytest.raises(Exception) as error:
        getattr(room, name)(func, convert(given) if isinstance(given, (tuple, np.ndarray)) else given, *args, **kwargs)
    return error.value


def sizes(text):
    """torch.Size as a tuple."""
    return re.sub(r"torch\.Size\((\[.*?\])\)", lambda m: str(tuple(int(n) for n in re.findall(r"\d+", m[1]))), text)


def compare(name, func, given, *args, way="Try", theirs=None, **kwargs):
    """Assert that our error begins as torch's does, is of the same kind, and has a way out."""
    expected = raised(name, "torch", theirs or func, given, *args, **kwargs)
    found = raised(name, "nestgrad", func, given, *args, **kwargs)
    assert isinstance(found, NestgradError)
    assert isinstance(found, type(expected)), (type(found), type(expected))
    said, why = str(found), sizes(str(expected))
    assert said.startswith(why), f"\n{said}\n{why}"
    assert way in said[len(why) :] and len(said) > len(why) + 20
    return said


OTHERS = [[1.0], {"a": 1.0}, 1.0, None, "x"]


@pytest.mark.parametrize("given", OTHERS, ids=[type(x).__name__ for x in OTHERS])
@pytest.mark.parametrize("name", ALL)
def test_inputs_that_are_no_tensor(name, given):
    said = compare(name, scalar, given)
    assert f"The inputs given to {name} must be" in said and f"has type {type(given)}" in said


@pytest.mark.parametrize("name", ALL)
def test_the_way_out_fits_what_came(name):
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            return np.array(X)

    with pytest.raises(TypeError, match=rf"has type <class 'function'>\. The function comes first\. Try {name}\(func, inputs\)"):
        getattr(functional, name)(ng.tensor(X), scalar)
    with pytest.raises(TypeError, match=r"has type <class '.*Foreign'>\. Try np\.asarray\(x\)$"):
        getattr(functional, name)(scalar, Foreign())
    for out, way in (([1.0], r"tuple\(\.\.\.\)"), ({}, r"nestgrad\.func, whose"), (None, "operations of nestgrad in it")):
        with pytest.raises(TypeError, match=rf"function given to {name} .* must be made of them\. Try {way}"):
            getattr(functional, name)(lambda *_, out=out: out, ng.tensor(X), *([] if name in ("jacobian", "hessian") else [ng.tensor(Y)]))


@pytest.mark.parametrize("name", ALL)
def test_a_tuple_with_something_else_in_it(name):
    for room, x in ((torch.autograd.functional, torch.tensor(X)), (functional, ng.tensor(X))):
        with pytest.raises(TypeError, match=f"The inputs given to {name} must be .* the value at index 1 has type <class 'float'>"):
            getattr(room, name)(scalar, (x, 1.0))


@pytest.mark.parametrize("name", ALL)
def test_an_empty_tuple(name):
    with pytest.raises(FunctionalTypeError, match=rf"inputs given to {name} .* are an empty tuple\. .* Try \(x,\)"):
        getattr(functional, name)(scalar, ())
    if name not in SECOND:
        with pytest.raises(FunctionalTypeError, match=rf"outputs of the user-provided function given to {name} .* empty tuple"):
            getattr(functional, name)(lambda x: (), ng.tensor(X), *([ng.tensor(X)] if name == "jvp" else []))


@pytest.mark.parametrize("out", [[1.0], 1.0, None, {"a": 1}], ids=["list", "float", "None", "dict"])
@pytest.mark.parametrize("name", ALL)
def test_outputs_that_are_no_tensor(name, out):
    args = [Y] if name not in ("jacobian", "hessian") else []
    said = compare(name, lambda x: out, X, *args)
    assert f"The outputs of the user-provided function given to {name} must be" in said and "Tensors of nestgrad" in said


@pytest.mark.parametrize("name", ALL)
def test_a_tuple_of_outputs_with_something_else_in_it(name):
    args = [Y] if name not in ("jacobian", "hessian") else []
    compare(name, lambda x: (x.sum(), 1.0), X, *args)


@pytest.mark.parametrize("name", ALL)
def test_an_array_of_numpy_is_no_output(name):
    args = [ng.tensor(Y)] if name not in ("jacobian", "hessian") else []
    with pytest.raises(FunctionalTypeError, match=rf"function given to {name} .* has type <class 'numpy.ndarray'>\. .* made of them"):
        getattr(functional, name)(lambda x: x.numpy(), ng.tensor(X), *args)


@pytest.mark.parametrize("name", SECOND)
def test_several_numbers(name):
    args = [Y] if name != "hessian" else []
    said = compare(name, lambda x: x.exp().sum(dim=1), X, *args)
    assert f"function given to {name} should contain a single element" in said and ".sum()" in said
    compare(name, lambda x: (x.sum(), x.sum()), X, *args)
    said = compare(name, lambda x: (x.sum(),), X, *args)
    assert f"The function given to {name} should return a single Tensor" in said and "Try jacobian" in said


@pytest.mark.parametrize("name", ["jvp", "hvp", "vhp"])
def test_a_vector_that_is_left_out(name):
    said = compare(name, scalar, X, way="Try v=")
    assert "if the input to the user-provided function is a single Tensor with a single element." in said
    compare(name, scalar, (X[:1, :1], X[:1, :1]), way="Try v=")


def test_a_vector_that_vjp_needs():
    said = compare("vjp", lambda x: x.exp(), X, way="Try v=")
    assert "if the user-provided function returns a single Tensor with a single element." in said
    compare("vjp", lambda x: (x.sum(), x.sum()), X, way="Try v=")


@pytest.mark.parametrize("v", [[1.0], 1.0, {"a": 1.0}], ids=["list", "float", "dict"])
@pytest.mark.parametrize("name", ["jvp", "vjp", "hvp", "vhp"])
def test_a_vector_that_is_no_tensor(name, v):
    assert f"The v given to {name} must be" in compare(name, scalar, X, v)


@pytest.mark.parametrize("name", ["jvp", "hvp", "vhp"])
def test_a_vector_of_another_shape(name):
    said = compare(name, scalar, X, numbers(3))
    assert said.startswith("v has invalid size: should be (2, 2) but got (3,).")
    compare(name, scalar, X, numbers(1, 2))
    said = compare(name, scalar, (X, Y), (X, numbers(3)))
    assert said.startswith("Entry 1 in v has invalid size: should be (2, 2) but got (3,).")
    compare(name, scalar, (X,), numbers(3))


@pytest.mark.parametrize("name", ["jvp", "hvp", "vhp"])
def test_a_vector_of_another_length(name):
    assert compare(name, scalar, (X, Y), (X,)).startswith("v is a tuple of invalid length: should be 2 but got 1.")
    compare(name, scalar, (X, Y), X)
    assert compare(name, scalar, X, (X, Y)).startswith("The given v should contain a single Tensor.")


def test_a_vector_that_does_not_fit_outputs():
    compare("vjp", lambda x: x.exp(), X, numbers(3))
    compare("vjp", lambda x: (x, x), X, (X,))
    compare("vjp", lambda x: (x, x), X, (X, numbers(3)))
    compare("vjp", lambda x: x, X, (X, X))


@pytest.mark.parametrize("name,word", [("jacobian", "strategy"), ("hessian", "outer_jacobian_strategy")])
def test_a_strategy_that_there_is_not(name, word):
    """torch asserts."""
    for wrong in ("forward", None):
        said = str(raised(name, "torch", scalar, X, **{word: wrong})).split(" Hint")[0]
        with pytest.raises(ArgumentError, match=rf"{re.escape(said)} Got {wrong!r}\. .* Try \"forward-mode\"") as error:
            getattr(functional, name)(scalar, ng.tensor(X), **{word: wrong})
        assert isinstance(error.value, ValueError)


def test_a_mode_that_there_is_not():
    with pytest.raises(ArgumentError, match=r'Expected mode to be either "forward" or "reversed"\. Got \'reverse\'\..* Try "forward"'):
        functional.jvp(scalar, ng.tensor(X), ng.tensor(X), mode="reverse")


@pytest.mark.parametrize("dtype", ["int64", "int32", "bool"])
@pytest.mark.parametrize("name", ALL)
def test_inputs_that_are_whole_numbers(name, dtype):
    """torch raises a RuntimeError, and names no dtype."""
    for x in (np.ones(2, dtype), ng.tensor(np.ones(2, dtype)), torch.tensor(np.ones(2, dtype))):
        with pytest.raises(DTypeError, match=rf"only Tensors of floating point dtype can require gradients, .* given to {name} has dtype "
                                             rf"(torch\.)?{dtype}, .* Try x.astype\('float64'\)") as error:  # fmt: skip
            getattr(functional, name)(scalar, x)
        assert isinstance(error.value, TypeError)


@pytest.mark.parametrize("name", ALL)
def test_outputs_that_are_whole_numbers(name):
    """torch gives zeros without a word, or asks for gradients."""
    x, args = ng.tensor(X), [] if name in ("jacobian", "hessian") else [ng.tensor(X)]
    with pytest.raises(DTypeError, match=rf"Output 0 of the .* given to {name} has dtype int64, .* Try y.astype"):
        getattr(functional, name)(lambda x: x.argmax(), x, *args)
    with pytest.raises(FunctionalError, match=r"Output 0 of the user-provided function does not require gradients. .* its dtype is int64"):
        getattr(functional, name)(lambda x: x.argmax(), x, *args, strict=True)


@pytest.mark.parametrize("name", ALL)
def test_complex_inputs(name):
    with pytest.raises(DTypeError, match=f"{name}: got complex numbers; expected real ones"):
        getattr(functional, name)(scalar, np.ones(2, complex))


@pytest.mark.parametrize("name", ALL)
def test_each_class_is_the_builtin_that_torch_raises(name):
    assert issubclass(FunctionalError, RuntimeError) and issubclass(FunctionalTypeError, TypeError)
    with pytest.raises(TypeError):
        getattr(functional, name)(scalar, [ng.tensor(X)])
    args = [] if name in ("jacobian", "hessian") else [ng.tensor(X)]
    with pytest.raises(RuntimeError):
        getattr(functional, name)(lambda x: x.detach().sum(), ng.tensor(X), *args, strict=True)
