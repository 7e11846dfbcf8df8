"""Functions that cannot be differentiated as they are, and say so."""

import numpy as np
import pytest
import torch
from user_functions import ALL, SECOND, numbers

import nestgrad as ng
from nestgrad import functional
from nestgrad.errors import ConversionError, FunctionalError, LevelError, ShapeError

X = ng.tensor(numbers(2))


def call(name, func, **kwargs):
    args = [] if name in ("jacobian", "hessian", "vjp") else [X]
    return getattr(functional, name)(func, X, *args, **kwargs)


def assigns(x):
    x[0] = 1.0
    return x.sum()


@pytest.mark.parametrize("func", [assigns, lambda x: x.add_(1).sum(), lambda x: x.zero_()], ids=["x[0] = 1", "x.add_(1)", "x.zero_()"])
@pytest.mark.parametrize("name", ALL)
def test_writing_into_an_input(name, func):
    with pytest.raises(RuntimeError) as theirs:
        args = [] if name in ("jacobian", "hessian", "vjp") else [torch.ones(2)]
        getattr(torch.autograd.functional, name)(func, torch.tensor(X.numpy()), *args)
    said = "a leaf Variable that requires grad is being used in an in-place operation."
    assert str(theirs.value).startswith(said) or "view of a leaf Variable" in str(theirs.value)
    with pytest.raises(FunctionalError, match=rf"^{said} The function given to {name} would write into a Tensor, .* Try an operation"):
        call(name, func)


def test_other_mistakes_of_the_function_are_its_own():
    with pytest.raises(AttributeError, match=r"^'Tensor' object has no attribute 'exponential'$"):
        functional.hessian(lambda x: x.exponential(), X)
    with pytest.raises(AttributeError, match=r"^'list' object has no attribute 'sort_'$"):
        functional.jacobian(lambda x: [].sort_(), X)
    with pytest.raises(ZeroDivisionError):
        functional.jacobian(lambda x: x * (1 // 0), X)
    with pytest.raises(ShapeError):
        functional.jacobian(lambda x: x.reshape(3), X)


@pytest.mark.parametrize(
    ("func", "way"),
    [
        (lambda x: x.unsqueeze(0), r"ng\.expand_dims\(\.\.\.\) or x\.expand_dims\(\)"),
        (lambda x: x.sort(), r"ng\.sort\(\.\.\.\)"),
        (lambda x: x.det(), r"ng\.linalg\.det\(\.\.\.\)"),
        (lambda x: x.double(), r"x\.astype\('float64'\)"),
        (lambda x: x.t(), r"x\.T"),
    ],
    ids=["unsqueeze", "sort", "det", "double", "t"],
)
def test_methods_of_torch_that_are_otherwise_here(func, way):
    with pytest.raises(AttributeError, match=rf"^'Tensor' object has no attribute '\w+'\. Try {way}$"):
        functional.hessian(func, torch.tensor(X.numpy()))


def test_writing_into_the_array_that_came_in_changes_nothing():
    """Inputs are copied."""
    a = numbers(2)
    before = a.copy()

    def func(x):
        a[:] = 100.0
        return x.pow(3).sum()

    assert np.array_equal(functional.hessian(func, a), np.diag(6 * before))


@pytest.mark.parametrize("options", [{"strategy": "forward-mode"}, {"strict": True}, {"strict": True, "strategy": "forward-mode"}])
def test_a_function_that_returns_something_else_in_another_call(options):
    for first, second in [
        (lambda x: x, lambda x: (x,)), (lambda x: x, lambda x: x.sum()), (lambda x: (x, x), lambda x: (x,)),
        (lambda x: x, lambda x: x.astype("float32")),
    ]:  # fmt: skip
        calls = iter([first, second, second, second])
        with pytest.raises(FunctionalError, match=r"function given to jacobian returned a \w+ of .* in one call and a .* in another"):
            functional.jacobian(lambda x, calls=calls: next(calls)(x), X, **options)


def test_what_is_said_about_the_two_calls():
    calls = iter([lambda x: x, lambda x: (x, x.sum())])
    said = r"returned a Tensor of shape \(2,\) in float64 in one call and a tuple of 2 \(shape \(2,\) in float64, shape \(\) in float64\)"
    with pytest.raises(FunctionalError, match=rf"{said} in another; .* Try vectorize=True"):
        functional.jacobian(lambda x: next(calls)(x), X, strategy="forward-mode")


@pytest.mark.parametrize("name", ALL)
def test_constants_give_zeros_or_are_refused_by_strict(name):
    """As in torch: rounding and detached values have no derivative."""
    for func in (lambda x: x.detach().sum(), lambda x: x.floor().sum(), lambda x: (x > 0).astype("float64").sum()):
        found = call(name, func)
        assert not (found[1] if isinstance(found, tuple) else found).numpy().any()
        with pytest.raises(FunctionalError, match=r"Output 0 of the user-provided function does not require gradients\."):
            call(name, func, strict=True)


@pytest.mark.parametrize("name", ALL)
def test_an_output_that_was_taken_out_of_the_level(name):
    """Forward mode refuses at once."""
    with pytest.raises(LevelError, match=r"the output was taken out of the level of this .* Make a variable|cannot leave it this way"):
        call(name, lambda x: x.pow(2).inner().sum())


@pytest.mark.parametrize("name", ALL)
def test_an_output_over_another_backend(name):
    with pytest.raises(LevelError, match=rf"{name}: output 0 .* is over torch and the inputs over numpy, so it cannot depend .* Try"):
        call(name, lambda x: ng.TorchBackend().tensor(1.0))


@pytest.mark.parametrize("name", ALL)
def test_leaving_for_numbers(name):
    for leave in (lambda x: ng.tensor(float(x.sum())), lambda x: ng.tensor(np.sin(np.asarray(x))).sum()):
        with pytest.raises(ConversionError, match=r"would silently make a constant of it|NumPy does not know its levels"):
            call(name, leave)


def test_a_branch_on_values_needs_one_pass_for_each():
    func = lambda x: (x * 2 if x.sum() > 0 else x).sin()
    expected = np.diag(2 * np.cos(2 * X.numpy()))
    for strategy in ("reverse-mode", "forward-mode"):
        for vectorize in (False, True):
            np.testing.assert_allclose(functional.jacobian(func, X, vectorize=vectorize, strategy=strategy).numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize("name", SECOND)
def test_kinks_have_the_derivatives_of_the_conventions(name):
    found = call(name, lambda x: (x - x.detach()).abs().sum())
    assert not (found[1] if isinstance(found, tuple) else found).numpy().any()
