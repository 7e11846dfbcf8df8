"""Shapes, nesting and dtypes of results."""

import numpy as np
import pytest
from user_functions import constant, inputs, numbers, same, tensors, theirs

import nestgrad as ng
from nestgrad import functional

PAIR = [
    ("T -> T", lambda x: x.exp(), ((2, 3),), False),
    ("T -> scalar", lambda x: x.exp().sum(), ((2, 3),), False),
    ("scalar -> T", lambda x: x * constant([1.0, 2.0], x), ((),), False),
    ("scalar -> scalar", lambda x: x.exp(), ((),), False),
    ("(T,) -> T", lambda x: x.exp(), ((2,),), True),
    ("T -> (T,)", lambda x: (x.exp(),), ((2,),), False),
    ("(T,) -> (T,)", lambda x: (x.exp(),), ((2,),), True),
    ("(T, T) -> T", lambda x, y: x.sum() * y, ((2,), (3,)), True),
    ("T -> (T, T)", lambda x: (x.exp(), x.sum()), ((2,),), False),
    ("(T, T) -> (T, T)", lambda x, y: (x.exp(), x.sum() * y), ((2,), (3, 1)), True),
]


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("func,shapes,several", [c[1:] for c in PAIR], ids=[c[0] for c in PAIR])
def test_a_jacobian_is_nested_as_torchs(func, shapes, several, strategy):
    given = inputs(shapes, several)
    same(functional.jacobian(func, tensors(given), strategy=strategy), theirs("jacobian", func, given))


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("shapes,several", [(((),), False), (((2, 2),), False), (((2,),), True), (((2,), (3, 1)), True)])
def test_a_hessian_is_nested_as_torchs(shapes, several, strategy):
    def func(*xs):
        total = xs[0].pow(3).sum()
        for x in xs[1:]:
            total = total * x.exp().sum()
        return total

    given = inputs(shapes, several)
    same(functional.hessian(func, tensors(given), outer_jacobian_strategy=strategy), theirs("hessian", func, given))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("name", ["hessian", "hvp", "vhp"])
def test_an_output_of_one_entry_may_have_axes(name, shape):
    given = numbers(2)
    args = [] if name == "hessian" else [numbers(2, seed=1)]
    func = lambda x: x.pow(3).sum().reshape(shape)
    found = getattr(functional, name)(func, tensors(given), *map(tensors, args))
    same(found, theirs(name, func, given, *args))
    if name != "hessian":
        assert found[0].shape == shape


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("vectorize", [False, True])
def test_nothing_has_a_derivative_of_no_entries(strategy, vectorize):
    """torch raises in the first of these."""
    empty, x = ng.tensor(np.zeros((0, 2))), ng.tensor(numbers(3))
    options = {"strategy": strategy, "vectorize": vectorize}
    j = functional.jacobian(lambda x, e: x * e.sum(), (x, empty), **options)
    assert [b.shape for b in j] == [(3, 3), (3, 0, 2)] and j[0].tolist() == np.zeros((3, 3)).tolist()
    assert functional.jacobian(lambda e: e.sum(), empty, **options).shape == (0, 2)
    assert functional.jacobian(lambda e: e * 2, empty, **options).shape == (0, 2, 0, 2)
    assert functional.jacobian(lambda x: x[:0], x, **options).shape == (0, 3)
    h = functional.hessian(lambda e: e.sum() ** 2, empty, outer_jacobian_strategy=strategy, vectorize=vectorize)
    assert h.shape == (0, 2, 0, 2)


def test_products_with_nothing():
    empty = ng.tensor(np.zeros((0, 2)))
    assert [functional.jvp(lambda e: e.sum(), empty, empty)[k].item() for k in (0, 1)] == [0.0, 0.0]
    assert functional.vjp(lambda e: e.sum(), empty)[1].shape == (0, 2)
    for name in ("hvp", "vhp"):
        assert getattr(functional, name)(lambda e: e.sum() ** 2, empty, empty)[1].shape == (0, 2)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_a_block_has_the_dtype_of_its_input(backend, vectorize, strategy):
    """Of a Jacobian the one that it is by; of a Hessian the first of the two, as torch's documentation says (and torch does not)."""
    b = ng.get_backend(backend)
    x, y = b.tensor(numbers(2), dtype="float32"), b.tensor(numbers(2), dtype="float64")
    name = lambda t: str(t.dtype).removeprefix("torch.")
    j = functional.jacobian(lambda x, y: (x * y, x), (x, y), strategy=strategy, vectorize=vectorize)
    assert [[name(block) for block in row] for row in j] == [["float32", "float64"]] * 2
    h = functional.hessian(lambda x, y: (x * x * y).sum(), (x, y), outer_jacobian_strategy=strategy, vectorize=vectorize)
    assert [[name(block) for block in row] for row in h] == [["float32"] * 2, ["float64"] * 2]
    np.testing.assert_allclose(h[0][1].numpy(), np.diag(2 * x.numpy()), rtol=1e-6)
    for product in (functional.hvp, functional.vhp):
        value, found = product(lambda x, y: (x * x * y).sum(), (x, y), (x, y))
        assert [name(g) for g in found] == ["float32", "float64"] and name(value) == "float64"


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_what_does_not_depend_has_zeros(strategy, vectorize):
    x, y = ng.tensor(numbers(2)), ng.tensor(numbers(3))
    j = functional.jacobian(lambda x, y: (x, x.detach(), ng.tensor([1.0])), (x, y), strategy=strategy, vectorize=vectorize)
    assert [[b.shape for b in row] for row in j] == [[(2, 2), (2, 3)], [(2, 2), (2, 3)], [(1, 2), (1, 3)]]
    assert all(not b.numpy().any() for row in j[1:] for b in row) and not j[0][1].numpy().any()
    h = functional.hessian(lambda x, y: ng.tensor(1.0), (x, y), outer_jacobian_strategy=strategy, vectorize=vectorize)
    assert [[b.shape for b in row] for row in h] == [[(2, 2), (2, 3)], [(3, 2), (3, 3)]]
    assert not any(b.numpy().any() for row in h for b in row)
