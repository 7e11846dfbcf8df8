"""The vector ``v``: its nesting, shapes and dtypes."""

import itertools

import numpy as np
import pytest
import torch
from user_functions import numbers, same, tensors, theirs

import nestgrad as ng
from nestgrad import functional
from nestgrad.errors import FunctionalTypeError, LevelError

X, V = numbers(2, 2), numbers(2, 2, seed=1)
ALONG = ("jvp", "hvp", "vhp")


def cubes(*xs):
    return sum(x.pow(3).sum() for x in xs)


@pytest.mark.parametrize("bare_v", [False, True])
@pytest.mark.parametrize("bare_x", [False, True])
@pytest.mark.parametrize("name", [*ALONG, "vjp"])
def test_one_vector_may_be_bare_or_a_tuple(name, bare_x, bare_v):
    func = (lambda x: x.sin()) if name == "vjp" else cubes
    x, v = X if bare_x else (X,), V if bare_v else (V,)
    same(getattr(functional, name)(func, tensors(x), tensors(v)), theirs(name, func, x, v))


@pytest.mark.parametrize("name", ALONG)
def test_it_may_be_left_out_for_one_entry(name):
    for x in (np.array(2.0), np.array([2.0]), (np.array([[2.0]]),)):
        same(getattr(functional, name)(cubes, tensors(x)), theirs(name, cubes, x))


def test_vjp_takes_one_for_one_output():
    for func in (cubes, lambda x: (x.sum().reshape(1, 1),)):
        same(functional.vjp(func, tensors(X)), theirs("vjp", func, X))


@pytest.mark.parametrize("mode", ["forward", "reversed"])
def test_the_modes_of_jvp_agree_with_vjp(mode):
    """<u, J v> = <J' u, v>."""
    func = lambda x, y: (x @ y, (x * y).sin().sum())
    given, v = tensors((X, V)), tensors((numbers(2, 2, seed=2), numbers(2, 2, seed=3)))
    u = tensors((numbers(2, 2, seed=4), np.array(0.3)))
    forward = functional.jvp(func, given, v, mode=mode)[1]
    back = functional.vjp(func, given, u)[1]
    dot = lambda a, b: sum((p * q).sum().item() for p, q in zip(a, b, strict=True))
    assert dot(u, forward) == pytest.approx(dot(back, v), rel=1e-14)


@pytest.fixture(params=itertools.product(("numpy", "torch"), (*ALONG, "vjp")), ids="-".join)
def along(request):
    """The name of a function; a backend; and the derivative of cubes at X, as a function of the dtype of X and of the vector."""
    backend, name = request.param
    b = ng.get_backend(backend)
    func = (lambda x: x.pow(3)) if name == "vjp" else cubes

    def derivative(dtype, v):
        x = b.tensor(X, dtype=dtype)
        found = getattr(functional, name)(func, x, v)[1]
        assert found.dtype == x.dtype
        return found.numpy()

    return name, b, derivative


def test_it_is_cast_where_nothing_is_lost(along):
    _, b, derivative = along
    rows = [[1, 0], [0, 3]]
    exact = derivative("float64", b.tensor(rows, dtype="float64"))
    for v in (*(b.tensor(rows, dtype=dtype) for dtype in ("int64", "int8", "float32")), np.array(rows)):
        np.testing.assert_array_equal(derivative("float64", v), exact)
    truth = derivative("float64", b.tensor([[True, False], [False, True]]))
    np.testing.assert_array_equal(truth, derivative("float64", b.tensor(np.eye(2))))


def test_it_is_not_cast_where_precision_would_be_lost(along):
    """torch casts without a word."""
    name, b, derivative = along
    with pytest.raises(FunctionalTypeError, match=rf"{name}: got v of dtype \S*float64, and \S*float32, .* would lose precision\. "
                                                  r"Try v.astype\('float32'\)") as error:  # fmt: skip
        derivative("float32", b.tensor(V, dtype="float64"))
    assert isinstance(error.value, TypeError)
    with pytest.raises(FunctionalTypeError, match=rf"{name}: got v of dtype \S*int64, and \S*float32, .* would lose precision"):
        derivative("float32", b.tensor([[2**24 + 1, 0], [0, 1]]))
    assert np.isfinite(derivative("float32", b.tensor([[2**24, 0], [0, 1]]))).all()


def test_each_entry_has_the_dtype_of_its_input():
    x, y = ng.tensor(X, dtype="float32"), ng.tensor(X)
    v = (ng.tensor(V, dtype="float32"), ng.tensor(V, dtype="float32"))
    _, found = functional.hvp(lambda x, y: (x * x * y).sum(), (x, y), v)
    assert [g.dtype for g in found] == [np.float32, np.float64]
    with pytest.raises(FunctionalTypeError, match="got v of dtype float64, and float32"):
        functional.hvp(lambda x, y: (x * x * y).sum(), (x, y), (v[1].astype("float64"), v[1]))


def test_a_vector_of_another_backend_is_refused():
    with pytest.raises(LevelError, match=r"jvp: got a tangent over torch\S* for argument 0 over numpy; expected one base backend"):
        functional.jvp(cubes, ng.tensor(X), ng.TorchBackend(dtype="float64").tensor(V))


def test_a_vector_is_no_variable_unless_asked():
    S = ng.Autodiff(ng.NumpyBackend())
    v = S.tensor(V, requires_grad=True)
    for name in ALONG:
        assert getattr(functional, name)(cubes, ng.tensor(X), v)[1].level == 0
    for name in ALONG:
        product = getattr(functional, name)(cubes, ng.tensor(X), v, create_graph=True)[1]
        expected = 3 * X**2 if name == "jvp" else 6 * X
        np.testing.assert_allclose(product.sum().wrt(v).numpy(), expected, rtol=1e-14)


def test_a_vector_stays_as_it_was():
    v = V.copy()
    functional.jvp(lambda x: x, X, v)[1][:] = 0
    assert np.array_equal(v, V)
    t = torch.tensor(V)
    functional.jvp(lambda x: x, torch.tensor(X), t)[1].zero_()
    assert np.array_equal(t.numpy(), V)
