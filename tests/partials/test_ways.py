"""However a partial derivative is computed, it is the same: forward, in reverse by whichever slot, along a curve, in parts."""

from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import TraceError
from nestgrad.partials import runs
from nestgrad.partials.blocks import Block
from nestgrad.partials.independence import labels
from nestgrad.partials.runs import numbers
from nestgrad.partials.structure import Leg
from nestgrad.partials.ways import Key, Terms, Way

RNG = np.random.default_rng(7)


def attention(x: Any, y: Any) -> Any:
    return ng.softmax(x @ y, axis=-1) @ y.T


FUNCTIONS: dict[str, tuple[Any, tuple[tuple[int, ...], ...], int]] = {
    "elementwise": (lambda x, y: (x * y).sin() * x, ((2, 3), (3,)), 3),
    "a layer": (lambda x, w: (x @ w).tanh(), ((3, 2), (2, 2)), 3),
    "a loss": (lambda x, w: ((x @ w).tanh() ** 2).mean(), ((3, 2), (2, 2)), 3),
    "a loss with a penalty": (lambda x, w: ((x @ w).tanh() ** 2).sum() + (w**4).sum(), ((3, 2), (2,)), 3),
    "two sums": (lambda x, y: x.exp().sum() * 2.0 - (y.sin() * y).sum(), ((3,), (2,)), 3),
    "attention": (attention, ((3, 2), (2, 3)), 2),
    "columns": (lambda x, w: (x.T @ w).sin().sum(axis=0), ((2, 3), (2, 2)), 2),
    "a square twice": (lambda x, w: (w @ w @ x).exp(), ((2,), (2, 2)), 2),
    "numbers": (lambda x, y: (x * y).exp() * y, ((), ()), 4),
    "a sum in between": (lambda x, y: (x - x.mean(axis=0, keepdims=True)).tanh() * y, ((3, 2), (2,)), 2),
}


def terms_of(f: Any, args: list[Any]) -> Terms:
    program = ng.func.trace(f)(*args)
    return Terms.of(program, labels(program, range(len(args))))


def dense(terms: Terms, key: Key, data: Any) -> Any:
    if data is None:
        return 0.0
    legs = [Leg(label.size, label.out, tuple(terms.carried[leaf].get(label) for leaf in key)) for label in terms.legs(key)]
    return Block(ng.NumpyBackend(), data, terms.shape, [terms.shape_of(leaf) for leaf in key], tuple(legs)).dense()


def all_ways(terms: Terms, key: Key) -> list[tuple[Key, Way]]:
    """Each way, with the order of the key in which it takes the slots."""
    return [(key, terms.forward(key)[0]), *((order, terms.reverse(order)[0]) for order in sorted(set(permutations(key))))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_ways_give_the_derivative(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, shapes, most = FUNCTIONS[name]
    args = [ng.tensor(RNG.normal(size=shape)) for shape in shapes]
    terms, values = terms_of(f, args), [x.numpy() for x in args]
    for order in range(1, most + 1):
        for key in combinations_with_replacement(range(len(args)), order):
            wanted = f
            for leaf in key:
                wanted = ng.func.jacfwd(wanted, argnums=leaf)
            expected = wanted(*args).numpy()
            for taken, way in all_ways(terms, key):
                for size in (runs.MOST, 1):  # all directions at once, and one after another
                    monkeypatch.setattr(runs, "MOST", size)
                    (found,) = numbers(terms, way, [(taken, 0)], values)
                    back = [[j for j, other in enumerate(taken) if other == leaf][key[:k].count(leaf)] for k, leaf in enumerate(key)]
                    got = dense(terms, taken, found)
                    if found is not None:
                        got = got.reshape(terms.shape + tuple(n for leaf in taken for n in shapes[leaf]))
                        got = np.transpose(got, axes_of(terms, [shapes[leaf] for leaf in taken], back)) if taken != key else got
                    np.testing.assert_allclose(got + 0 * expected, expected, rtol=1e-9, atol=1e-11, err_msg=f"{key} as {taken} by {way}")


def axes_of(terms: Terms, shapes: list[tuple[int, ...]], order: list[int]) -> list[int]:
    """The axes of a dense derivative with its slots in another order."""
    start = len(terms.shape)
    places = []
    for shape in shapes:
        places.append(list(range(start, start + len(shape))))
        start += len(shape)
    return [*range(len(terms.shape)), *(axis for k in order for axis in places[k])]


def test_the_cheapest_way_is_taken() -> None:
    """Of many numbers by one: forward; of one number by many: reverse; by one number again and again: along a curve."""
    forward = terms_of(lambda x: x * ng.arange(5.0), [ng.tensor(2.0)])
    assert forward.best((0,)).targets == () and forward.curve(forward.best((0, 0)))
    reverse = terms_of(lambda x: (x @ x).sin(), [ng.ones(5)])
    assert reverse.best((0,)).targets == (0,) and reverse.best((0, 0)).forward == (0,)


def test_what_differs_in_the_last_slot_only_is_computed_together() -> None:
    terms = terms_of(lambda x, y, z: (x @ y * z).sin().sum(), [ng.ones(3), ng.ones(3), ng.ones(3)])
    assert len(terms.ways([(0,), (1,), (2,)])) == 1


def test_backward_is_refused_in_a_trace() -> None:
    """What it gives would be a constant of the program."""
    level = ng.Autodiff(ng.NumpyBackend())
    y = level.tensor([1.0, 2.0], requires_grad=True).sin()

    def f(x: Any) -> Any:
        ng.backward(y, order=1)
        return x

    with pytest.raises(TraceError, match=r"backward: got a call in a function that is being traced.*Try nestgrad\.func"):
        ng.jit(f)(ng.ones(2))
