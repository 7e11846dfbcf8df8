"""Operations on whole arrays against NumPy and SciPy, on every backend."""

import itertools

import numpy as np
import pytest
import scipy.special

from nestgrad.errors import ShapeError

SHAPES = [(), (3,), (2, 3), (2, 3, 4), (0, 3), (2, 0)]


def axes_of(shape):
    return [axes for k in range(len(shape) + 1) for axes in itertools.combinations(range(len(shape)), k)]


def cases(shapes):
    return [(shape, axes, keep) for shape in shapes for axes in axes_of(shape) for keep in (False, True)]


@pytest.mark.parametrize("shape, axes, keepdims", cases(SHAPES), ids=str)
def test_sum_and_logsumexp(b, rng, shape, axes, keepdims):
    x = rng.integers(-8, 8, shape) / 4
    b.check(b.sum(b.array(x), axes, keepdims), np.sum(x, axis=axes, keepdims=keepdims))
    want = np.log(np.sum(np.exp(x), axis=axes, keepdims=keepdims))
    b.check(b.logsumexp(b.array(x), axes, keepdims), want, ulps=64)  # next to 0 the logarithm's error is absolute


@pytest.mark.parametrize("shape, axes, keepdims", cases(SHAPES[:4]), ids=str)
def test_greatest_and_smallest(b, rng, shape, axes, keepdims):
    x = rng.integers(-8, 8, shape) / 4
    for values in (x, (x * 4).astype(np.int64)):
        b.check(b.amax(b.array(values), axes, keepdims), np.max(values, axis=axes, keepdims=keepdims))
        b.check(b.amin(b.array(values), axes, keepdims), np.min(values, axis=axes, keepdims=keepdims))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (0, 3)])
def test_along_one_axis(b, rng, shape):
    x = rng.integers(-2, 3, shape) / 2
    for axis in range(len(shape)):
        if shape[axis]:
            for keepdims in (False, True):
                b.check(b.argmax(b.array(x), axis, keepdims), np.argmax(x, axis, keepdims=keepdims))
                b.check(b.argmin(b.array(x), axis, keepdims), np.argmin(x, axis, keepdims=keepdims))
        b.check(b.softmax(b.array(x), axis), scipy.special.softmax(x, axis) if x.size else x)
        b.check(b.log_softmax(b.array(x), axis), scipy.special.log_softmax(x, axis) if x.size else x, ulps=16)


def test_nan_is_the_greatest_and_the_smallest(b):
    x = b.array([[1.0, np.nan], [3.0, 2.0]])
    b.check(b.amax(x, (1,)), [np.nan, 3.0])
    b.check(b.amin(x, (1,)), [np.nan, 2.0])
    b.check(b.amax(x, (0, 1)), np.array(np.nan))


def test_bools_and_integers_sum_to_integers(b):
    for x in (np.array([[True, False], [True, True]]), np.array([[1, 2], [3, 4]])):
        for axes in axes_of((2, 2)):
            b.check(b.sum(b.array(x), axes), np.sum(x, axis=axes))


def test_large_values_do_not_overflow(b):
    x = np.array([[1000.0, 1000.0], [-1000.0, -np.inf], [np.inf, 0.0]])
    b.check(b.logsumexp(b.array(x), (1,)), [1000 + np.log(2), -1000.0, np.inf])
    b.check(b.softmax(b.array(x[:2]), 1), [[0.5, 0.5], [1.0, 0.0]])
    b.check(b.log_softmax(b.array(x[:2]), 1), [[-np.log(2), -np.log(2)], [0.0, -np.inf]])


def test_shapes(b, rng):
    x = rng.normal(size=(2, 3, 4))
    b.check(b.reshape(b.array(x), (4, 6)), x.reshape(4, 6))
    b.check(b.reshape(b.permute(b.array(x), (2, 0, 1)), (8, 3)), x.transpose(2, 0, 1).reshape(8, 3))
    b.check(b.permute(b.array(x), (2, 0, 1)), x.transpose(2, 0, 1))
    b.check(b.permute(b.array(1.0), ()), np.array(1.0))
    b.check(b.reshape(b.array(1.0), (1, 1)), [[1.0]])
    b.check(b.reshape(b.array([[1.0]]), ()), np.array(1.0))
    b.check(b.reshape(b.array(np.zeros((0, 3))), (3, 0, 2)), np.zeros((3, 0, 2)))
    for source, target in [((), (2, 3)), ((3,), (2, 3)), ((2, 1), (2, 3)), ((1,), (0,)), ((3,), (70, 80, 3)), ((), ())]:
        v = rng.normal(size=source)
        b.check(b.broadcast_to(b.array(v), target), np.broadcast_to(v, target))
    y = rng.normal(size=(2, 2, 4))
    b.check(b.concat(b.array(x), b.array(y), b.array(x), axis=1), np.concatenate((x, y, x), 1))
    b.check(b.concat(b.array([1.0])), [1.0])
    b.check(b.concat(b.array(np.zeros((0, 3))), b.array(np.ones((1, 3)))), np.ones((1, 3)))
    b.check(b.pad(b.array(x), ((1, 0), (0, 2), (3, 1))), np.pad(x, ((1, 0), (0, 2), (3, 1))))
    b.check(b.pad(b.array(2.0), ()), np.array(2.0))
    b.check(b.pad(b.array([1, 2]), ((1, 1),)), [0, 1, 2, 0])


ROWS, COLS = np.array([2, 0, -1, 2]), np.array([[0], [1]])
INDICES = [
    (), (0,), (-1,), (slice(None),), (slice(1, None),), (slice(None, None, 2), 1), (slice(None, None, -1),),
    (1, slice(3, None, -2)), (slice(None), slice(-2, -4, -1), slice(None, None, -3)), (slice(2, 2), 0),
    (slice(1, 4, -1),), (0, 1, 2), (ROWS,), (ROWS, slice(1, 3)), (slice(None), ROWS), (ROWS, COLS), (COLS, slice(None), ROWS),
    (0, slice(None), ROWS), (slice(None), 1, ROWS), (slice(None, None, -1), ROWS), (ROWS, ROWS, ROWS), (ROWS, 1),
    (ROWS, slice(None, None, -2), 2), (np.array(1),), (np.array([], np.int64),),
    (np.array(1), np.array(0), np.array(2)),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing(b, rng, index):
    x = rng.integers(-8, 8, (3, 4, 5)) / 4
    x = x[:, [0, 1, 2]] if any(np.ndim(k) for k in index) else x
    native = tuple(b.backend.index(k) if isinstance(k, np.ndarray) else k for k in index)
    part = x[index]
    b.check(b.getitem(b.array(x), native), part)
    v = rng.integers(-8, 8, part.shape) / 4
    added, placed = x.copy(), np.zeros_like(x)
    np.add.at(added, index, v)
    np.add.at(placed, index, v)
    b.check(b.index_add(b.array(x), b.array(v), native), added)
    b.check(b.put(b.array(v), native, x.shape), placed)
    for value in (7.0, v[..., :1] * 0 + 2 if v.ndim else np.array(2.0)):
        changed = x.copy()
        changed[index] = value
        b.check(b.index_set(b.array(x), value if isinstance(value, float) else b.array(value), native), changed)
        added = x.copy()
        np.add.at(added, index, value)
        b.check(b.index_add(b.array(x), value if isinstance(value, float) else b.array(value), native), added)
    b.check(b.getitem(b.array((x * 4).astype(np.int64)), native), (x * 4).astype(np.int64)[index])


def test_results_of_writing_are_copies(b):
    x = b.array([1.0, 2.0, 3.0])
    for same in (b.index_add(x, b.array(0.0), (0,)), b.index_set(x, 1.0, (0,))):
        b.check(b.index_set(same, 9.0, (slice(None),)), [9.0, 9.0, 9.0])
    wide = b.broadcast_to(b.array([1.0]), (3,))
    b.check(b.index_set(wide, 5.0, (1,)), [1.0, 5.0, 1.0])
    b.check(b.index_add(wide, 5.0, (1,)), [1.0, 6.0, 1.0])


PRODUCTS = [((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)), ((2, 0), (0, 3)), ((0, 2), (2, 3)),
            ((1, 1), (1, 1)), ((5, 0, 3), (3, 4))]  # fmt: skip


@pytest.mark.parametrize("shapes", PRODUCTS, ids=str)
def test_products_of_matrices(b, rng, shapes):
    x, y = (rng.integers(-8, 8, shape) / 4 for shape in shapes)
    b.check(b.matmul(b.array(x), b.array(y)), x @ y)
    b.check(b.matmul(b.permute(b.array(np.swapaxes(x, -1, -2)), _swapped(x.ndim)), b.array(y)), x @ y)
    if y.ndim == 2:
        for bias in (rng.integers(-8, 8, y.shape[1]) / 4, np.ones((1, y.shape[1])), np.ones(1), np.array(2.0)):
            b.check(b.linear(b.array(x), b.array(y), b.array(bias)), x @ y + bias)
    b.check(b.matmul(b.array((4 * x).astype(np.int64)), b.array((4 * y).astype(np.int64))), (16 * (x @ y)).astype(np.int64))


@pytest.mark.parametrize("shapes", PRODUCTS, ids=str)
@pytest.mark.parametrize("tx", [False, True])
@pytest.mark.parametrize("ty", [False, True])
def test_products_with_transposed_operands(b, rng, shapes, tx, ty):
    x, y = (rng.integers(-8, 8, shape) / 4 for shape in shapes)
    given = np.swapaxes(x, -1, -2) if tx else x, np.swapaxes(y, -1, -2) if ty else y
    b.check(b.product(*map(b.array, given), tx, ty), x @ y)


@pytest.mark.parametrize("shape, axes, keepdims", cases(SHAPES[:4]), ids=str)
def test_norm_and_unit(b, rng, shape, axes, keepdims):
    x = rng.integers(-8, 8, shape) / 4
    b.check(b.norm(b.array(x), axes, keepdims), np.sqrt(np.sum(x * x, axis=axes, keepdims=keepdims)))
    b.check(b.unit(b.array(x), b.array(0.0)), np.zeros(shape))
    b.check(b.unit(b.array(x), b.array(2.0)), x / 2)


def _swapped(n):
    return (*range(n - 2), n - 1, n - 2)


def test_products_of_two_precisions(b):
    if b.exact:
        pytest.skip("this backend has one precision")
    single, double = b.backend.asarray([[1.0]], "float32"), b.backend.asarray([[2.0]], "float64")
    bias = b.backend.asarray([1.0], "float64")
    for product in (b.matmul(single, double), b.linear(single, single, bias), b.mul(single, double), b.tanh_vjp(double, single)):
        assert b.to_numpy(product).dtype == np.float64


SUMS = ["ij,jk->ik", "ij,jk->ki", "i,i->", "i,j->ij", "ij->ji", "ij->", "ij->j", "bij,bjk->bik", "bij,bjk->k", "ij,ij->ij", "ij,ij->i",
        "ij,jk,kl->il", "i,ij,j->", "bi,ij,bj->b", "ij,k->j", "i,i,i->i", "ijk,ljm->lmki", "ij , jk -> ik", ",i->i"]  # fmt: skip


@pytest.mark.parametrize("subscripts", SUMS)
@pytest.mark.parametrize("big", [1, 9])
def test_einsum(b, rng, subscripts, big):
    if big > 1 and b.exact:
        pytest.skip("millions of products take minutes in fifty digits, and sums of few terms are the same code")
    sizes = dict(zip("ijklmb", [2, 3, 4, 5, 2, 3], strict=True))
    terms = subscripts.replace(" ", "").split("->")[0].split(",")
    xs = [rng.integers(-8, 8, [big * sizes[c] for c in term]) / 4 for term in terms]
    b.check(b.einsum(*map(b.array, xs), subscripts=subscripts), np.einsum(subscripts, *xs), ulps=64)


@pytest.mark.parametrize("subscripts, match", [
    ("ij,jk", "does not name the answer"), ("ij,kj->ik", "'ij,kj->ik'"), ("ii,ij->j", "repeats a letter"), ("ij,jk->iq", "q"),
    ("i...,jk->ik", "letters"), ("ij->i", "'ij->i'"), ("ijk,jk->i", "'ijk,jk->i'"),
])  # fmt: skip
def test_einsum_refuses_what_does_not_fit(b, subscripts, match):
    with pytest.raises(ShapeError, match=match):
        b.einsum(b.array(np.ones((2, 3))), b.array(np.ones((3, 4))), subscripts=subscripts)


@pytest.mark.parametrize("shape, axes", [
    ((4099, 7), (0,)), ((5003, 3), (1,)), ((300, 700), (0,)), ((30, 40, 50), (0, 1)), ((30, 40, 50), (1, 2)), ((30, 40, 50), (1,)),
    ((6000,), (0,)), ((130, 2, 5000), (0,)),
])  # fmt: skip
def test_long_sums_are_accurate(b, rng, shape, axes):
    if b.exact:
        pytest.skip("the sum of a million numbers takes long in fifty digits, and has no digits of a double to lose")
    x = rng.uniform(size=shape).astype(b.float)
    for keepdims in (False, True):
        want = np.sum(x.astype(np.longdouble), axis=axes, keepdims=keepdims).astype(np.float64)
        b.check(b.sum(b.array(x), axes, keepdims), want, ulps=16)
