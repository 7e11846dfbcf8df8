"""Turned, moved, repeated, cut and joined arrays: NumPy's functions, their derivatives, and what does not fit."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import nestgrad as ng
from nestgrad.errors import ArgumentError, DTypeError, LevelError, ShapeError, TraceError

X = np.arange(24.0).reshape(2, 3, 4) ** 1.1
V = np.array([1.5, -2.0, 0.5])

FUNCTIONS = {
    "flip all": (ng.flip, np.flip),
    "flip one": (lambda x: x.flip(-1), lambda x: np.flip(x, -1)),
    "flip two": (lambda x: ng.flip(x, (0, 2)), lambda x: np.flip(x, (0, 2))),
    "flip none": (lambda x: x.flip(()), lambda x: x),
    "fliplr": (ng.fliplr, np.fliplr),
    "flipud": (ng.flipud, np.flipud),
    "roll": (lambda x: ng.roll(x, 2, 1), lambda x: np.roll(x, 2, 1)),
    "roll back": (lambda x: x.roll(-5, -1), lambda x: np.roll(x, -5, -1)),
    "roll two": (lambda x: x.roll((1, -2), (0, 2)), lambda x: np.roll(x, (1, -2), (0, 2))),
    "roll by one number": (lambda x: x.roll(1, (0, 2)), lambda x: np.roll(x, 1, (0, 2))),
    "roll flat": (lambda x: x.roll(7), lambda x: np.roll(x, 7)),
    "rot90": (ng.rot90, np.rot90),
    "rot90 back": (lambda x: ng.rot90(x, -1, (1, 2)), lambda x: np.rot90(x, -1, (1, 2))),
    "rot90 twice": (lambda x: ng.rot90(x, 2, (2, 0)), lambda x: np.rot90(x, 2, (2, 0))),
    "rot90 thrice": (lambda x: ng.rot90(x, 3, (-1, 0)), lambda x: np.rot90(x, 3, (-1, 0))),
    "rot90 round": (lambda x: ng.rot90(x, 4), lambda x: np.rot90(x, 4)),
    "moveaxis": (lambda x: ng.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1)),
    "moveaxis two": (lambda x: ng.moveaxis(x, (0, 1), (-1, 0)), lambda x: np.moveaxis(x, (0, 1), (-1, 0))),
    "repeat": (lambda x: x.repeat(3, 1), lambda x: x.repeat(3, 1)),
    "repeat flat": (lambda x: ng.repeat(x, 2), lambda x: np.repeat(x, 2)),
    "repeat nothing": (lambda x: ng.repeat(x, 0, -1), lambda x: np.repeat(x, 0, -1)),
    "repeat each": (lambda x: x.repeat([0, 2, 1], 1), lambda x: x.repeat([0, 2, 1], 1)),
    "repeat by an array": (lambda x: x.repeat(np.array([2, 1]), 0), lambda x: x.repeat([2, 1], 0)),
    "repeat by a Tensor": (lambda x: x.repeat(ng.tensor([2, 1]), 0), lambda x: x.repeat([2, 1], 0)),
    "tile": (lambda x: ng.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3))),
    "tile fewer": (lambda x: x.tile(2), lambda x: np.tile(x, 2)),
    "tile more": (lambda x: x.tile(2, 1, 1, 1), lambda x: np.tile(x, (2, 1, 1, 1))),
    "tile nothing": (lambda x: x.tile(0, 1), lambda x: np.tile(x, (0, 1))),
    "flatten": (lambda x: x.flatten(1), lambda x: x.reshape(2, 12)),
    "flatten some": (lambda x: ng.flatten(x, 0, -2), lambda x: x.reshape(6, 4)),
    "flatten one": (lambda x: ng.flatten(x, 1, 1), lambda x: x),
    "unflatten": (lambda x: ng.unflatten(x, -1, (2, -1)), lambda x: x.reshape(2, 3, 2, 2)),
    "triu": (ng.triu, np.triu),
    "triu above": (lambda x: x.triu(2), lambda x: np.triu(x, 2)),
    "tril": (lambda x: x.tril(), np.tril),
    "tril below": (lambda x: ng.tril(x, -1), lambda x: np.tril(x, -1)),
    "diagonal": (ng.diagonal, np.diagonal),
    "diagonal beside": (lambda x: x.diagonal(1, -1, 0), lambda x: x.diagonal(1, -1, 0)),
    "diagonal far away": (lambda x: x.diagonal(9), lambda x: x.diagonal(9)),
    "trace": (ng.trace, np.trace),
    "trace beside": (lambda x: x.trace(-1, 1, 2), lambda x: x.trace(-1, 1, 2)),
    "diag of a matrix": (lambda x: ng.diag(x[0], 1), lambda x: np.diag(x[0], 1)),
    "diag of a vector": (lambda x: ng.diag(x[0, 0], -1), lambda x: np.diag(x[0, 0], -1)),
    "diag_embed": (ng.diag_embed, lambda x: np.stack([[np.diag(row) for row in rows] for rows in x])),
    "diag_embed beside": (lambda x: ng.diag_embed(x[0], 1, 0, 2), lambda x: np.moveaxis(np.stack([np.diag(r, 1) for r in x[0]]), 0, 1)),
    "hstack": (lambda x: ng.hstack([x, x[:, :1]]), lambda x: np.hstack([x, x[:, :1]])),
    "hstack of vectors": (lambda x: ng.hstack([x[0, 0], x[0, 0, 0]]), lambda x: np.hstack([x[0, 0], x[0, 0, 0]])),
    "vstack": (lambda x: ng.vstack([x[0], x[0, 1]]), lambda x: np.vstack([x[0], x[0, 1]])),
    "dstack": (lambda x: ng.dstack([x[0], x[1]]), lambda x: np.dstack([x[0], x[1]])),
    "dstack of vectors": (lambda x: ng.dstack([x[0, 0], x[1, 0]]), lambda x: np.dstack([x[0, 0], x[1, 0]])),
    "column_stack": (lambda x: ng.column_stack([x[0, :, 0], x[1]]), lambda x: np.column_stack([x[0, :, 0], x[1]])),
    "stack of many": (lambda x: ng.stack([x[0, 0]] * 70, 1), lambda x: np.stack([x[0, 0]] * 70, 1)),
    "concat of many": (lambda x: ng.concat([x[0]] * 600, 1), lambda x: np.concatenate([x[0]] * 600, 1)),
    "atleast_1d": (lambda x: ng.atleast_1d(x[0, 0, 0]), lambda x: np.atleast_1d(x[0, 0, 0])),
    "atleast_2d": (lambda x: ng.atleast_2d(x[0, 0]), lambda x: np.atleast_2d(x[0, 0])),
    "atleast_3d": (lambda x: ng.atleast_3d(x[0, 0]), lambda x: np.atleast_3d(x[0, 0])),
    "atleast_3d of a matrix": (lambda x: ng.atleast_3d(x[0]), lambda x: np.atleast_3d(x[0])),
    "broadcast_arrays": (lambda x: ng.multiply(*ng.broadcast_arrays(x[0], x[1, :1])), lambda x: x[0] * x[1, :1]),
    "split": (lambda x: _product(ng.split(x, 3, 1)), lambda x: _product(np.split(x, 3, 1))),
    "split at": (lambda x: _weighted(ng.split(x, [1, 3], -1)), lambda x: _weighted(np.split(x, [1, 3], -1))),
    "array_split": (lambda x: _weighted(ng.array_split(x, 3, 2)), lambda x: _weighted(np.array_split(x, 3, 2))),
    "split backwards": (lambda x: _weighted(ng.split(x, [3, 1], 2)), lambda x: _weighted(np.split(x, [3, 1], 2))),
    "split from the end": (lambda x: _weighted(ng.split(x, [-1, 9], 2)), lambda x: _weighted(np.split(x, [-1, 9], 2))),
    "hsplit": (lambda x: _product(ng.hsplit(x, 3)), lambda x: _product(np.hsplit(x, 3))),
    "vsplit": (lambda x: _product(ng.vsplit(x, 2)), lambda x: _product(np.vsplit(x, 2))),
    "dsplit": (lambda x: _product(ng.dsplit(x, 2)), lambda x: _product(np.dsplit(x, 2))),
    "unstack": (lambda x: _product(ng.unstack(x, 1)), lambda x: x.prod(1)),
    "unbind": (lambda x: _product(ng.unbind(x)), lambda x: x.prod(0)),
    "one part": (lambda x: ng.split(x, 1)[0], lambda x: x),
    "one of many parts": (lambda x: ng.unstack(x.reshape(24))[17] ** 2, lambda x: x.ravel()[17] ** 2),
}


def _product(parts):
    out = parts[0]
    for part in parts[1:]:
        out = out * part
    return out


def _weighted(parts):
    """Parts of several shapes as one number."""
    return sum(k * part.sum() ** 2 for k, part in enumerate(parts, 1))


@pytest.mark.parametrize(("function", "oracle"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_values_and_derivatives(function, oracle, check_derivatives):
    check_derivatives(function, oracle, X)


@pytest.mark.parametrize("n", [2, 32, 33, 70, 1025])
def test_many_parts_are_parts_of_parts(n, stack):
    a = np.linspace(-1, 1, 3 * n).reshape(n, 3)
    x = stack.tensor(a, requires_grad=True)
    for parts in (ng.unstack(x), ng.split(x, n)):
        assert [p.tolist() for p in parts] == [row.tolist() for row in (a if parts[0].ndim == 1 else a[:, None])]
        y = ng.concat([(k + 1) * part**3 for k, part in enumerate(parts)])
        g = y.wrt(x)
        weights = np.arange(1, n + 1)[:, None]
        np.testing.assert_allclose(g.numpy(), 3 * weights * a**2, rtol=1e-13)
        np.testing.assert_allclose(g.wrt(x).numpy(), 6 * weights * a, rtol=1e-13)


def test_chunks_are_torchs(base):
    torch = pytest.importorskip("torch")
    for n in range(8):
        for chunks in (1, 2, 3, 5, 9):
            want = torch.arange(n).chunk(chunks) if n else [torch.arange(0)] * chunks
            assert [c.tolist() for c in ng.chunk(base.tensor(np.arange(n)), chunks)] == [c.tolist() for c in want]


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_meshgrid(indexing, count, base, check_derivatives):
    vectors = [np.linspace(-1, 2, k + 2) for k in range(count)]
    for got, want in zip(ng.meshgrid(*map(base.tensor, vectors), indexing=indexing), np.meshgrid(*vectors, indexing=indexing), strict=True):
        np.testing.assert_array_equal(got.numpy(), want)
    check_derivatives(lambda *xs: _product(ng.meshgrid(*xs, indexing=indexing)), lambda *xs: _product(np.meshgrid(*xs, indexing=indexing)),
                      *vectors)  # fmt: skip


def test_broadcast_arrays(base):
    x, y, z = ng.broadcast_arrays(base.tensor(np.ones((2, 1))), np.ones(3), 2.0)
    assert x.shape == y.shape == z.shape == (2, 3) and ng.broadcast_arrays() == ()
    with pytest.raises(ShapeError, match=r"broadcast_arrays: got shapes \[\(2,\), \(3,\)\]"):
        ng.broadcast_arrays(np.ones(2), np.ones(3))


def test_empty_arrays_and_numbers(stack):
    x = stack.tensor(np.zeros((0, 3)), requires_grad=True)
    for y in (x.flip(), x.roll(1, 0), x.roll(2), x.repeat(2, 1), x.repeat([1, 0, 2], 1), x.repeat([], 0), x.tile(2, 2), x.triu(), x.tril(),
              x.diagonal(), ng.rot90(x), ng.stack([x, x]), *ng.split(x, [1], 1), *ng.unstack(x, 1), ng.diag_embed(x)):  # fmt: skip
        assert y.size == 0 and y.wrt(x).shape == (0, 3)
    assert x.trace().item() == 0 and ng.unstack(x) == () and x.tile(2, 2).shape == (0, 6)
    one = stack.tensor(2.0, requires_grad=True)
    for y in (one.flip(), one.roll(3), one.tile(()), ng.flatten(one)):
        assert y.tolist() in (2.0, [2.0]) and y.wrt(one).item() == 1
    assert one.repeat(3).tolist() == [2.0] * 3 and one.tile(2, 2).shape == (2, 2)


def test_integers_and_booleans(base):
    x = base.tensor(np.arange(6).reshape(2, 3))
    assert x.flip(1).tolist() == [[2, 1, 0], [5, 4, 3]] and x.trace().item() == 4 and x.triu().tolist() == [[0, 1, 2], [0, 4, 5]]
    m = base.tensor(np.array([[True, True], [True, True]]))
    assert m.tril().tolist() == [[True, False], [True, True]] and m.roll(1, 0).dtype == m.dtype and m.trace().item() == 2
    assert ng.diag(base.tensor(np.array([1, 2]))).tolist() == [[1, 0], [0, 2]]


BAD = [
    (lambda x: x.flip(3), ShapeError, r"flip: got axis 3 of an array with 3 axes"),
    (lambda x: ng.fliplr(x[0, 0]), ShapeError, r"fliplr: got shape \(4,\); expected at least 2 axes"),
    (lambda x: ng.flipud(x[0, 0, 0]), ShapeError, r"flipud: got shape \(\); expected at least 1 axis"),
    (lambda x: x.roll((1, 2)), ShapeError, r"roll: got shift \(1, 2\) and no axis"),
    (lambda x: x.roll((1, 2), (0, 1, 2)), ShapeError, r"roll: got shift \(1, 2\) for axes \(0, 1, 2\)"),
    (lambda x: x.roll(1.5, 0), ShapeError, r"roll: got"),
    (lambda x: ng.rot90(x, 1, (0, 1, 2)), ShapeError, r"rot90: got axes \(0, 1, 2\); expected two"),
    (lambda x: ng.rot90(x, 1, (0, 0)), ShapeError, r"rot90: got axis"),
    (lambda x: ng.moveaxis(x, (0, 1), 2), ShapeError, r"moveaxis: got axes \(0, 1\) for places 2"),
    (lambda x: x.repeat(-1, 0), ShapeError, r"repeat: got repeats -1 for axis 0 of shape \(2, 3, 4\)"),
    (lambda x: x.repeat([1, 2], 1), ShapeError, r"repeat: got repeats \[1, 2\] for axis 1"),
    (lambda x: x.repeat(1.5, 0), DTypeError, r"repeat: got positions of floats"),
    (lambda x: x.tile(-1), ShapeError, r"tile: got \(-1,\)"),
    (lambda x: x.flatten(2, 0), ShapeError, r"flatten: got start 2 and end 0"),
    (lambda x: x.unflatten(1, (2, 2)), ShapeError, r"unflatten: got sizes \(2, 2\) for axis 1 of shape \(2, 3, 4\); .* product is 3"),
    (lambda x: x[0, 0].triu(), ShapeError, r"triu: got shape \(4,\); expected a matrix"),
    (lambda x: x[0, 0].diagonal(), ShapeError, r"diagonal: got shape \(4,\); expected at least two axes. Try ng.diag"),
    (lambda x: x.diagonal(0, 1, -2), ShapeError, r"diagonal: got axis \(1, -2\); expected each axis once"),
    (ng.diag, ShapeError, r"diag: got shape \(2, 3, 4\); expected a vector or a matrix"),
    (lambda x: ng.diag_embed(x[0, 0, 0]), ShapeError, r"diag_embed: got a number"),
    (lambda x: ng.split(x, 2, 1), ShapeError, r"split: got 2 sections of axis 1 of shape \(2, 3, 4\); expected a divisor of 3. Try array"),
    (lambda x: ng.split(x, 0), ArgumentError, r"split: got 0 sections"),
    (lambda x: ng.chunk(x, 0), ArgumentError, r"chunk: got 0 chunks"),
    (lambda x: ng.vsplit(x[0, 0], 2), ShapeError, r"vsplit: got shape \(4,\); expected at least 2 axes"),
    (lambda x: ng.unstack(x[0, 0, 0]), ShapeError, r"unstack: got axis 0 of an array with 0 axes"),
    (lambda x: ng.meshgrid(x[0, 0], indexing="yx"), ArgumentError, r"meshgrid: got indexing 'yx'; expected 'xy' or 'ij'"),
    (lambda x: ng.meshgrid(x), ShapeError, r"meshgrid: got an array of shape \(2, 3, 4\); expected vectors"),
    (lambda x: ng.hstack([]), ShapeError, r"hstack: got no arrays"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD, ids=[text[:24] for _, _, text in BAD])
def test_what_does_not_fit_is_told(call, error, text, stack):
    with pytest.raises(error, match=text):
        call(stack.tensor(X, requires_grad=True))


def test_shapes_do_not_depend_on_samples_or_traced_numbers(base):
    x, n = base.tensor(X), base.tensor(np.array([1, 2]))
    with pytest.raises(LevelError, match=r"repeat: got an array of shape \(\) that differs by the sample of a batch"):
        ng.func.vmap(lambda v, k: v.repeat(k, 0))(x, n)
    with pytest.raises(TraceError, match=r"whose entries must be known|whose numbers must be known"):
        ng.func.trace(lambda v, k: v.repeat(k, 0))(x, n)


# properties


@st.composite
def arrays(draw):
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=2, max_size=4)))
    return np.random.default_rng(draw(st.integers(0, 99))).normal(size=shape)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(arrays(), st.data())
def test_of_any_shape_they_are_numpys(a, data):
    axis = st.integers(-a.ndim, a.ndim - 1)
    for backend in ("numpy", "torch"):
        x = ng.get_backend(backend, dtype="float64").tensor(a)
        k, n = data.draw(axis), data.draw(st.integers(-6, 6))
        pair = data.draw(st.permutations(range(a.ndim)))[:2]
        for got, want in (
            (x.flip(k), np.flip(a, k)), (x.roll(n, k), np.roll(a, n, k)), (x.roll(n), np.roll(a, n)), (x.triu(n), np.triu(a, n)),
            (x.tril(n), np.tril(a, n)), (x.diagonal(n, *pair), np.diagonal(a, n, *pair)), (x.trace(n, *pair), np.trace(a, n, *pair)),
            (ng.rot90(x, n, pair), np.rot90(a, n, pair)), (x.repeat(abs(n), k), np.repeat(a, abs(n), k)),
            (ng.moveaxis(x, k, pair[0]), np.moveaxis(a, k, pair[0])), (x.tile([2, abs(n)]), np.tile(a, [2, abs(n)])),
        ):  # fmt: skip
            assert got.shape == want.shape
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-14, atol=1e-15)  # a trace is a sum


@settings(max_examples=30, deadline=None, derandomize=True)
@given(arrays(), st.data())
def test_backwards_they_are_their_transposes(a, data):
    """``<v, A u> == <A' v, u>``, exactly for whole numbers."""
    rng = np.random.default_rng(0)
    k, n = data.draw(st.integers(0, a.ndim - 1)), data.draw(st.integers(-3, 3))
    u = rng.integers(-5, 6, a.shape).astype(float)
    for backend in ("numpy", "torch"):
        x = ng.Autodiff(ng.get_backend(backend, dtype="float64")).tensor(u, requires_grad=True)
        for y in (x.flip(k), x.roll(n, k), x.triu(n), x.tril(n), x.diagonal(n), ng.diag_embed(x, n, 0, -1), x.repeat(abs(n), k),
                  x.tile(2, 3), *ng.array_split(x, 3, k), ng.stack((*ng.unstack(x, k), x.sum(k)), k)):  # fmt: skip
            v = rng.integers(-5, 6, y.shape).astype(float)
            assert (y.numpy() * v).sum() == (y.backward(y.b.base.tensor(v)).wrt(x).numpy() * u).sum()
