"""Indices inside a batch: NumPy's meaning of every form for each sample, also where the index differs by the sample."""

from typing import Any

import numpy as np
import pytest

from nestgrad import Autodiff, Batched, NumpyBackend, func
from nestgrad.backends import TorchBackend
from nestgrad.errors import IndexRangeError, LevelError
from nestgrad.func import call, trace

BACKENDS = {"numpy": NumpyBackend(), "torch": TorchBackend(dtype="float64")}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5, 6))
I, J = np.array([[2, 0, -1], [1, 1, 3], [-4, 0, 2]]), np.array([[4, 1, 0], [-5, 2, 2], [0, 3, 3]])
ONE = np.array([1, -2, 3])
TALL = I.reshape(3, 3, 1)
MASK = np.array([True, False, True, True])
ALL = slice(None)

# each with ``i, j`` (three entries), ``k`` (one) and ``tall`` (three rows of one), which are the same for all samples or not
FORMS: dict[str, Any] = {
    "array": lambda i, j, k, tall: i,
    "array second": lambda i, j, k, tall: (ALL, j),
    "two arrays": lambda i, j, k, tall: (i, j),
    "two arrays later": lambda i, j, k, tall: (ALL, j, j),
    "arrays apart": lambda i, j, k, tall: (i, ALL, j),
    "arrays apart by a part": lambda i, j, k, tall: (i, slice(3, 0, -2), j),
    "array and int apart": lambda i, j, k, tall: (i, ALL, 2),
    "int and array": lambda i, j, k, tall: (1, j),
    "int and array apart": lambda i, j, k, tall: (-1, ALL, j),
    "broadcast": lambda i, j, k, tall: (tall, j),
    "broadcast apart": lambda i, j, k, tall: (tall, ALL, j),
    "one": lambda i, j, k, tall: k,
    "one later": lambda i, j, k, tall: (ALL, k, slice(1, 3)),
    "one with array": lambda i, j, k, tall: (k, j),
    "one with array apart": lambda i, j, k, tall: (k, ALL, j),
    "ellipsis": lambda i, j, k, tall: (..., j),
    "ellipsis between": lambda i, j, k, tall: (i, ..., j),
    "ellipsis of no axes": lambda i, j, k, tall: (i, ALL, ..., j),
    "ellipsis of no axes between": lambda i, j, k, tall: (i, j, ..., j),
    "new axis": lambda i, j, k, tall: (None, i),
    "new axis between": lambda i, j, k, tall: (i, None, j),
    "mask and array": lambda i, j, k, tall: (MASK, j),
    "slices": lambda i, j, k, tall: (slice(1, 3), slice(None, None, -2), i),
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@pytest.fixture(params=BACKENDS)
def base(request: pytest.FixtureRequest) -> Any:
    """Each backend, in float64."""
    return BACKENDS[request.param]


@every_form
@pytest.mark.parametrize("with_x", [True, False], ids=["many x", "one x"])
@pytest.mark.parametrize("with_index", [True, False], ids=["many indices", "one index"])
def test_getitem_is_numpys_on_each_sample(form, base, with_x, with_index):
    B = Batched(base)
    x = B.batch(X) if with_x else base.tensor(X[0])
    given = (I, J, ONE, TALL)
    y = x[form(*(B.batch(a) for a in given) if with_index else (base.tensor(a[0]) for a in given))]
    right = [X[n if with_x else 0][form(*(a[n if with_index else 0] for a in given))] for n in range(3)]
    np.testing.assert_array_equal(B.unbatch(y, size=3).numpy(), right)


@every_form
@pytest.mark.parametrize("with_index", [True, False], ids=["many indices", "one index"])
def test_its_gradient_lands_where_it_came_from(form, base, with_index):
    """With weights, over and under the batch; NumPy's ``add.at`` is the oracle."""
    given = (I, J, ONE, TALL)
    forms = [form(*(a[n if with_index else 0] for a in given)) for n in range(3)]
    weights = np.stack([np.random.default_rng(n).normal(size=X[n][at].shape) for n, at in enumerate(forms)])
    right = np.zeros_like(X)
    for n, at in enumerate(forms):
        np.add.at(right[n], at, weights[n])

    B = Batched(base)
    A = Autodiff(B)
    index = form(*(B.batch(a) for a in given) if with_index else (base.tensor(a[0]) for a in given))
    x = A.tensor(B.batch(X), requires_grad=True)
    np.testing.assert_allclose(B.unbatch((x[index] * B.batch(weights)).sum().wrt(x)).numpy(), right, rtol=1e-14)
    one = A.tensor(X[0], requires_grad=True)  # the same for all samples, and yet its gradient differs
    np.testing.assert_allclose(B.unbatch((one[index] * B.batch(weights)).sum().wrt(one)).numpy(), right, rtol=1e-14)

    A = Autodiff(base)
    B = Batched(A)
    index = form(*(B.batch(a) for a in given) if with_index else (base.tensor(a[0]) for a in given))
    x, one = A.tensor(X, requires_grad=True), A.tensor(X[0], requires_grad=True)
    np.testing.assert_allclose(B.unbatch((B.batch(x)[index] * B.batch(weights)).sum()).wrt(x).numpy(), right, rtol=1e-14)
    np.testing.assert_allclose(B.unbatch((one[index] * B.batch(weights)).sum()).wrt(one).numpy(), right.sum(0), rtol=1e-13)


def test_an_index_may_differ_on_one_level_of_a_nest(base):
    inner = Batched(base)
    outer = Batched(inner)
    x = RNG.normal(size=(2, 3, 4))
    picked = outer.batch(inner.batch(x, axis=1))[inner.batch(I[:, 0])]
    right = [[x[m, n, I[n, 0]] for n in range(3)] for m in range(2)]
    np.testing.assert_array_equal(inner.unbatch(outer.unbatch(picked), axis=1).numpy(), right)


def test_an_index_may_be_computed_from_the_samples(base):
    """The largest entry of each sample, and its derivative: the argmax has none."""
    B = Batched(base)
    x = B.batch(X[:, :, 0, 0])
    best = x[x.argmax(0)]
    np.testing.assert_array_equal(B.unbatch(best).numpy(), X[:, :, 0, 0].max(1))
    g = func.grad(lambda z: z[z.argmax(0)] ** 2)(x)
    right = np.where(X[:, :, 0, 0] == X[:, :, 0, 0].max(1, keepdims=True), 2 * X[:, :, 0, 0], 0.0)
    np.testing.assert_allclose(B.unbatch(g).numpy(), right, rtol=1e-14)


@pytest.mark.parametrize(
    "index", [(1,), (slice(1, 3), 2), (ALL, slice(4, None, -2)), ([3, 0],), ([3, 0], ALL, [1, 1]), ([[1], [2]], [0, 3])]
)
@pytest.mark.parametrize("how", ["set", "add"])
@pytest.mark.parametrize("on", [(True, False), (False, True), (True, True)], ids=["x", "value", "both"])
def test_changes_at_an_index_are_those_of_each_sample(index, how, on, base):
    """Also with a value that is broadcast to the place: each of its shapes."""
    native = tuple(np.array(item) if isinstance(item, list) else item for item in index)
    whole = X[0][native].shape
    for shape in (whole, whole[1:], whole[-1:], (), (1, *whole[1:])):
        v = RNG.normal(size=(3, *shape))
        B = Batched(base)
        x = B.batch(X) if on[0] else base.tensor(X[0])
        value = B.batch(v) if on[1] else base.tensor(v[0])
        got = B.unbatch(getattr(x.at[index], how)(value)).numpy()
        for n in range(3):
            right = X[n if on[0] else 0].copy()
            if how == "set":
                right[native] = v[n if on[1] else 0]
            else:
                np.add.at(right, native, v[n if on[1] else 0])
            np.testing.assert_allclose(got[n], right, rtol=1e-14, err_msg=str(shape))


# errors


def test_an_index_out_of_range_is_an_error(base):
    B = Batched(base)
    for far in ([0, 4, 1], [0, -5, 1]):
        with pytest.raises(IndexRangeError, match=rf"got index {far[1]} for an axis of size 4 \(shape \(4, 5, 6\)\)"):
            B.batch(X)[B.batch(np.array(far))]


@pytest.mark.parametrize("form", [lambda i: i, lambda i: (i[:1], i[1:]), lambda i: (1, i), lambda i: (i, -1), lambda i: (ALL, i)])
def test_a_program_run_with_an_index_out_of_range_never_takes_another_entry(form, base):
    """Not one of another row, nor of another sample, though all rows are laid one after the other."""
    x = np.arange(64.0).reshape(4, 4, 4)
    i = np.zeros((4, 2), int)
    program = trace(func.vmap(lambda x, i: x[form(i)]))(base.tensor(x), base.tensor(i))
    for place in np.ndindex(4, 2):
        for k in (3, -4, 4, -5, 8, 100, -100):
            there = i.copy()
            there[place] = k
            if -4 <= k < 4:
                right = [a[form(at)] for a, at in zip(x, there, strict=True)]
                np.testing.assert_array_equal(call(program, base.tensor(x), base.tensor(there)).numpy(), right)
            else:
                with pytest.raises(IndexRangeError):
                    call(program, base.tensor(x), base.tensor(there))


def test_a_mask_that_differs_is_an_error(base):
    B = Batched(base)
    x = B.batch(X[:, :, 0, 0])
    with pytest.raises(LevelError, match=r"mask of shape \(4,\) that differs by the sample .* Try ng.where\(mask, x, 0.0\)"):
        x[x > 0]


def test_other_indices_that_differ_are_errors(base):
    B = Batched(base)
    x = B.batch(X[:, :, 0, 0])
    with pytest.raises(IndexRangeError, match=r"got 1 axes of dtype .*float64 as an index; expected integers"):
        x[x]
    with pytest.raises(LevelError, match=r"at\[...\]: got an index that differs by the sample .* Try ng.index_add, ng.index_copy or"):
        x.at[x.argmax(0)].set(0.0)
    with pytest.raises(LevelError, match="holds 3 samples"):
        x[: x.argmax(0)]
