"""``strict``: which functions it refuses, and what it says, beside torch."""

import numpy as np
import pytest
import torch
from user_functions import ALL, SECOND, constant, tensors, torched

import nestgrad as ng
from nestgrad import functional
from nestgrad.errors import FunctionalError

X, V = np.array([1.0, 2.0]), np.array([0.5, -1.0])
M = np.array([[2.0, 1.0], [1.0, 3.0]])


FUNCTIONS = {
    "input 1 is not used": lambda x, y: x.pow(3).sum(),
    "input 0 is not used": lambda x, y: y.pow(3).sum(),
    "constant": lambda x: constant(1.0, x),
    "detached": lambda x: x.detach().sum(),
    "linear": lambda x: (2 * x).sum(),
    "linear in one input": lambda x, y: x.pow(3).sum() + (3 * y).sum(),
    "linear in one input, coupled": lambda x, y: (x.pow(3) * y).sum(),
    "quadratic": lambda x: x.pow(2).sum(),
    "cubic": lambda x: x.pow(3).sum(),
    "coupled": lambda x, y: (x.pow(2) * y.exp()).sum(),
    "a sum of two": lambda x, y: x.pow(3).sum() + y.pow(3).sum(),
    "bilinear": lambda x, y: (x * y).sum(),
}
VECTORS = {
    "output 1 is constant": lambda x: (x.exp(), constant(1.0, x)),
    "an output for each input": lambda x, y: (x.exp(), y.exp()),
    "no output for input 1": lambda x, y: (x.exp(), x.sin()),
    "linear, and not": lambda x: (x.exp(), 2 * x),
}

# torch finds a Hessian constant, and refuses it with create_graph, by how it is written: that of x * x, and not that of x.pow(2).
CONSTANT_HESSIANS = [("bilinear", name, True) for name in ("hvp", "vhp")]
# torch names the number of the output, which is another than that of the input.
OTHER_NUMBER = [("linear in one input", "jacobian", True), ("linear, and not", "jacobian", True)]

CASES = [
    (case, name, create_graph)
    for case in (*FUNCTIONS, *VECTORS)
    for name in ALL
    for create_graph in (False, True)
    if name not in SECOND or case in FUNCTIONS
]


def outcome(room, convert, case, name, create_graph):
    """``None``, or what is said."""
    func = {**FUNCTIONS, **VECTORS}[case]
    n = func.__code__.co_argcount
    spread = lambda x: convert((x,) * n if n > 1 else x)
    if name in ("jacobian", "hessian"):
        args = []
    elif name == "vjp":
        out = func(*torched((X,) * n))
        args = [convert(tuple(np.ones(y.shape) for y in out) if isinstance(out, tuple) else np.ones(out.shape))]
    else:
        args = [spread(V)]
    try:
        getattr(room, name)(func, spread(X), *args, create_graph=create_graph, strict=True)
    except RuntimeError as error:
        return str(error)
    return None


@pytest.mark.parametrize("case,name,create_graph", CASES)
def test_strict_refuses_what_torch_does_and_says_the_same(case, name, create_graph):
    expected = outcome(torch.autograd.functional, torched, case, name, create_graph)
    found = outcome(functional, tensors, case, name, create_graph)
    if (case, name, create_graph) in CONSTANT_HESSIANS:
        assert expected is not None and found is None
        return
    if (case, name, create_graph) in OTHER_NUMBER:
        wrong, right = {"linear in one input": (0, 1), "linear, and not": (1, 0)}[case]
        assert f"independent of input {wrong}." in expected
        expected = expected.replace(f"independent of input {wrong}.", f"independent of input {right}.")
    assert (found is None) == (expected is None), (found, expected)
    if expected is not None:
        assert found.startswith(expected) and "Try" in found[len(expected) :], (found, expected)


def refused(name, func, given, *args, match, **kwargs):
    with pytest.raises(FunctionalError, match=match):
        getattr(functional, name)(func, tensors(given), *map(tensors, args), strict=True, **kwargs)


def test_the_table():
    """What the four situations are called, once in words."""
    unused = FUNCTIONS["input 1 is not used"]
    refused("jacobian", unused, (X, X), match=r"^Output 0 of the user-provided function is independent of input 1\. .* strict mode\. Try")
    refused("hessian", unused, (X, X), match=r"^While computing the hessian, .* with respect to input 1 is independent")
    for name in ("hvp", "vhp", "jvp"):
        refused(name, unused, (X, X), (V, V), match=r"^The output of the user-provided function is independent of input 1\. .* captured")
    refused("vjp", unused, (X, X), match=r"^The output of the user-provided function is independent of input 1\.")
    for name in ALL:
        args = [V] if name in ("jvp", "hvp", "vhp") else []
        refused(name, FUNCTIONS["constant"], X, *args, match=r"^Output 0 .* does not require gradients\. .* Try strict=False for zeros")
    linear = FUNCTIONS["linear"]
    for name in SECOND:
        args = [] if name == "hessian" else [V]
        refused(name, linear, X, *args, match=r"^While computing the hessian, .* linear function for example\)\. .* Try strict")
    for name in ("jacobian", "vjp", "jvp"):
        args = [V] if name == "jvp" else []
        refused(name, linear, X, *args, create_graph=True, match=r"^The jacobian .* independent of input 0\. .* create_graph=True\. .* Try")


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_strict_does_not_ask_how_it_is_computed(strategy, vectorize):
    """torch has it for one of the four."""
    for case, func in {**FUNCTIONS, **VECTORS}.items():
        n = func.__code__.co_argcount
        given = tensors((X,) * n if n > 1 else X)
        for create_graph in (False, True):
            expected = outcome(functional, tensors, case, "jacobian", create_graph)
            options = {"create_graph": create_graph, "strict": True, "vectorize": vectorize}
            if expected is None:
                functional.jacobian(func, given, strategy=strategy, **options)
            else:
                with pytest.raises(FunctionalError) as error:
                    functional.jacobian(func, given, strategy=strategy, **options)
                assert str(error.value) == expected
            if case in FUNCTIONS:
                expected = outcome(functional, tensors, case, "hessian", create_graph)
                if expected is None:
                    functional.hessian(func, given, outer_jacobian_strategy=strategy, **options)
                else:
                    with pytest.raises(FunctionalError) as error:
                        functional.hessian(func, given, outer_jacobian_strategy=strategy, **options)
                    assert str(error.value) == expected


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_quadratic_function_is_allowed_however_it_is_written(create_graph):
    ways = [lambda x: x.pow(2).sum(), lambda x: (x * x).sum(), lambda x: x @ constant(M, x) @ x, lambda x: x.sum() ** 2]
    for func in ways:
        x, v = ng.tensor(X), ng.tensor(V)
        functional.hessian(func, x, strict=True, create_graph=create_graph)
        for product in (functional.hvp, functional.vhp):
            product(func, x, v, strict=True, create_graph=create_graph)


def test_a_derivative_that_is_zero_is_none_that_is_missing():
    """The graph counts, not the number."""
    assert functional.jacobian(lambda x: 0 * x, ng.tensor(X), strict=True).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_gradient_that_does_not_change_is_refused_where_torch_gives_zeros():
    relu = lambda x: ng.nn.relu(x).sum()
    refused("hessian", relu, X, match="While computing the hessian")
    assert functional.hessian(relu, ng.tensor(X)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_what_depends_on_a_tensor_from_outside_alone_is_constant_in_the_inputs():
    w = ng.Autodiff(ng.NumpyBackend()).tensor(X, requires_grad=True)
    x = ng.tensor(X)
    with pytest.raises(FunctionalError, match=r"Output 0 of the user-provided function is independent of input 0\."):
        functional.jacobian(lambda x: w * 2, x, strict=True)
    for name in SECOND:
        with pytest.raises(FunctionalError, match=r"While computing the hessian, found that .* input 0 is independent"):
            getattr(functional, name)(lambda x: (w * x).sum(), x, *([x] if name != "hessian" else []), strict=True)


def test_a_linear_function_with_a_tracked_factor_has_something_to_differentiate():
    w = ng.Autodiff(ng.NumpyBackend()).tensor(X, requires_grad=True)
    j = functional.jacobian(lambda x: w * x, ng.tensor(V), strict=True, create_graph=True)
    assert j.sum().wrt(w).tolist() == [1.0, 1.0]
