"""Entries by whole numbers and masks, where entries are, and interpolation: NumPy's and torch's values, derivatives, levels."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import nestgrad as ng
from nestgrad.errors import ArgumentError, DTypeError, IndexRangeError, LevelError, ShapeError, TraceError
from nestgrad.func import call, trace, vmap

RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 4, 2))
ROWS = np.array([2, 0, 2])
S = RNG.normal(size=(3, 3, 2))
MASK = X > 0


def changed(x, rows, values, how, axis=1):
    out = x.copy()
    at = (slice(None),) * axis + (rows,)
    if how == "add":
        np.add.at(out, at, values)
    else:
        out[at] = values
    return out


FUNCTIONS = {
    "take": (lambda x, s: ng.take(x, [[0, -1], [5, 5]]), lambda x, s: np.take(x, [[0, -1], [5, 5]])),
    "take along": (lambda x, s: x.take([[0, -1], [1, 1]], 1), lambda x, s: x.take([[0, -1], [1, 1]], 1)),
    "take one": (lambda x, s: x.take(1, -1), lambda x, s: x.take(1, -1)),
    "take wrap": (lambda x, s: x.take([-9, 4, 7], 1, "wrap"), lambda x, s: x.take([-9, 4, 7], 1, mode="wrap")),
    "take clip": (lambda x, s: ng.take(x, [-9, 4, 7], 0, "clip"), lambda x, s: np.take(x, [-9, 4, 7], 0, mode="clip")),
    "take nothing": (lambda x, s: x.take([], 0), lambda x, s: x[:0]),
    "put": (lambda x, s: ng.put(x, [1, -2], s[0, 0]), lambda x, s: _put(x, [1, -2], s[0, 0])),
    "put repeats": (lambda x, s: x.put([[4, 2], [0, 9]], s[0, 0]), lambda x, s: _put(x, [[4, 2], [0, 9]], s[0, 0])),
    "put a number": (lambda x, s: x.put([1, 2], 7), lambda x, s: _put(x, [1, 2], 7)),
    "put wrap": (lambda x, s: x.put([25], s[0, 0], "wrap"), lambda x, s: _put(x, [1], s[0, 0])),
    "index_select": (lambda x, s: ng.index_select(x, 1, ROWS), lambda x, s: x[:, ROWS]),
    "index_add": (lambda x, s: ng.index_add(x, 1, ROWS, s), lambda x, s: changed(x, ROWS, s, "add")),
    "index_add of a number": (lambda x, s: ng.index_add(x, 0, [1, 1], 2.0), lambda x, s: changed(x, [1, 1], 2.0, "add", 0)),
    "index_copy": (lambda x, s: ng.index_copy(x, 1, [3, -3, 0], s), lambda x, s: changed(x, [3, 1, 0], s, "set")),
    "index_fill": (lambda x, s: ng.index_fill(x, 1, ROWS, 3.0), lambda x, s: changed(x, ROWS, 3.0, "set")),
    "index_fill by a Tensor": (lambda x, s: ng.index_fill(x, -1, [-1], s[0, 0, 0]), lambda x, s: changed(x, [1], s[0, 0, 0], "set", 2)),
    "masked_fill": (lambda x, s: ng.masked_fill(x, MASK, 2.5), lambda x, s: np.where(MASK, 2.5, x)),
    "masked_select": (lambda x, s: ng.masked_select(x, MASK), lambda x, s: x[MASK]),
    "masked_select broadcast": (lambda x, s: ng.masked_select(x, MASK[0, :, :1]), lambda x, s: x[np.broadcast_to(MASK[0, :, :1], x.shape)]),
    "extract": (lambda x, s: ng.extract(MASK, x), lambda x, s: np.extract(MASK, x)),
    "compress": (lambda x, s: ng.compress(np.array([0, 1, 1]), x, 1), lambda x, s: np.compress([0, 1, 1], x, 1)),
    "compress flat": (lambda x, s: ng.compress(np.array([False, True]), x), lambda x, s: np.compress([0, 1], x)),
    "select": (lambda x, s: ng.select([MASK, X < -1], [x * x, 2 * x], x[0]), lambda x, s: np.select([MASK, X < -1], [x * x, 2 * x], x[0])),
}


def _put(x, at, values):
    out = x.copy()
    np.put(out, at, values)
    return out


@pytest.mark.parametrize(("function", "oracle"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_values_and_derivatives(function, oracle, check_derivatives):
    check_derivatives(lambda x, s: function(x, s) + 0 * s.sum() + 0 * x.sum(), oracle, X, S)


@pytest.mark.parametrize("name", ["take", "take wrap", "take clip", "index_select", "index_add", "index_copy", "index_fill"])
def test_positions_that_differ_by_the_sample_or_are_traced(name, base):
    f = {
        "take": lambda x, i, s: ng.take(x, i, 1), "take wrap": lambda x, i, s: ng.take(x, i * 3, 1, "wrap"),
        "take clip": lambda x, i, s: ng.take(x, i * 2, 1, "clip"), "index_select": lambda x, i, s: ng.index_select(x, 1, i),
        "index_add": lambda x, i, s: ng.index_add(x, 1, i, s), "index_copy": lambda x, i, s: ng.index_copy(x, 1, i, s),
        "index_fill": lambda x, i, s: ng.index_fill(x, 1, i, 2.0),
    }[name]  # fmt: skip
    xs, ss = base.tensor(RNG.normal(size=(5, *X.shape))), base.tensor(RNG.normal(size=(5, *S.shape)))
    index = base.tensor(np.stack([RNG.permutation(4)[:3] - 4 * (k % 2) for k in range(5)]))
    g = ng.func.grad(lambda x, i, s: (f(x, i, s) ** 3).sum())
    for h in (f, g):
        got = vmap(h)(xs, index, ss).numpy()
        shared = vmap(h, in_axes=(None, 0, None))(xs[0], index, ss[0]).numpy()
        program = trace(h)(xs[0], index[0], ss[0])
        for k in range(5):
            np.testing.assert_allclose(got[k], h(xs[k], index[k], ss[k]).numpy(), rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(shared[k], h(xs[0], index[k], ss[0]).numpy(), rtol=1e-12, atol=1e-13)
            again = call(program, xs[k], index[k], ss[k])
            np.testing.assert_allclose(again.numpy(), h(xs[k], index[k], ss[k]).numpy(), rtol=1e-12, atol=1e-13)
    if "wrap" not in name and "clip" not in name:
        with pytest.raises(IndexRangeError):
            call(trace(f)(xs[0], index[0], ss[0]), xs[0], index[0] + 9, ss[0])


def test_where_entries_are(stack):
    a = np.array([[0.0, 1.5], [-2.0, 0.0], [0.0, 3.0]])
    x = stack.tensor(a, requires_grad=True)
    for got, want in zip(ng.nonzero(x) + x.nonzero(), np.nonzero(a) * 2, strict=True):
        assert got.level == 0 and not got.marks and "int64" in str(got.dtype)
        np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(ng.argwhere(x).numpy(), np.argwhere(a))
    np.testing.assert_array_equal(ng.flatnonzero(x).numpy(), np.flatnonzero(a))
    for axis in (None, 0, 1, (0, 1)):
        np.testing.assert_array_equal(ng.count_nonzero(x, axis).numpy(), np.count_nonzero(a, axis))
    assert ng.argwhere(2.0).shape == (1, 0) and ng.argwhere(0.0).shape == (0, 0) and ng.count_nonzero(x, 0, True).shape == (1, 2)
    assert (x[ng.nonzero(x)] ** 2).wrt(x).tolist() == (2 * a).tolist()
    with pytest.raises(ShapeError, match=r"nonzero: got an array without axes"):
        x[0, 0].nonzero()


@pytest.mark.parametrize("f", [lambda x: x.nonzero()[0], ng.argwhere, ng.flatnonzero, lambda x: ng.masked_select(x, x > 0),
                               lambda x: ng.compress(x > 0, x), lambda x: ng.extract(x > 0, x)])  # fmt: skip
def test_shapes_that_depend_on_entries_are_refused_in_batches_and_traces(f, base):
    x = base.tensor(X[0])
    f(x[0])
    with pytest.raises(LevelError, match=r"got an array of shape .* that differs by the sample of a batch, and the shape of the result"):
        vmap(f)(x)
    with pytest.raises(TraceError, match=r"must be known here"):
        trace(f)(x[0])


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side, base):
    edges = np.array([-1.0, 0.0, 0.0, 0.5, 2.0, np.inf, np.nan])
    values = np.concatenate([edges, [0.25, -9, -np.inf, 1e300]]).reshape(-1, 1)
    got = ng.searchsorted(base.tensor(edges), base.tensor(values), side)
    np.testing.assert_array_equal(got.numpy(), np.searchsorted(edges, values, side))
    assert "int64" in str(got.dtype) and got.level == 0
    rows = np.sort(RNG.normal(size=(2, 3, 5)), -1)
    many = RNG.normal(size=(2, 3, 7))
    got = ng.searchsorted(base.tensor(rows), base.tensor(many), side).numpy()
    for k in np.ndindex(2, 3):
        np.testing.assert_array_equal(got[k], np.searchsorted(rows[k], many[k], side))
    for on in ((0, 0), (None, 0), (0, None)):
        args = [base.tensor(v if here == 0 else v[0]) for v, here in zip((rows[:, 0], many[:, 0]), on, strict=True)]
        got = vmap(lambda r, v: ng.searchsorted(r, v, side), in_axes=on)(*args).numpy()
        for k in range(2):
            want = np.searchsorted(rows[k if on[0] == 0 else 0, 0], many[k if on[1] == 0 else 0, 0], side)
            np.testing.assert_array_equal(got[k], want)
    assert ng.searchsorted(base.tensor(edges[:5]), 0.0, side).item() == (1 if side == "left" else 3)
    assert ng.searchsorted(base.tensor(np.zeros(0)), base.tensor(many), side).numpy().max() == 0


def test_bins(base):
    torch = pytest.importorskip("torch")
    edges, values = np.array([0.0, 1.0, 2.5]), np.array([[-1.0, 0.0, 0.5], [1.0, 2.5, 9.0]])
    x, e = base.tensor(values), base.tensor(edges)
    for right in (False, True):
        np.testing.assert_array_equal(ng.digitize(x, e, right).numpy(), np.digitize(values, edges, right))
        want = torch.bucketize(torch.tensor(values), torch.tensor(edges), right=right)
        np.testing.assert_array_equal(ng.bucketize(x, e, right).numpy(), want.numpy())


KNOTS, HEIGHTS = np.array([-1.0, 0.0, 0.5, 2.0]), np.array([1.0, 3.0, -1.0, 0.5])
BETWEEN = np.array([[-0.7, 0.2], [1.1, -3.0], [4.0, 0.45]])


def test_interp_in_all_of_its_arguments(check_derivatives):
    check_derivatives(ng.interp, np.interp, BETWEEN, KNOTS, HEIGHTS)
    check_derivatives(lambda x, xp, fp, ends: ng.interp(x, xp, fp, ends[0], ends[1] * ends[0]),
                      lambda x, xp, fp, ends: np.interp(x, xp, fp, ends[0], ends[1] * ends[0]),
                      BETWEEN, KNOTS, HEIGHTS, [5.0, -2.0])  # fmt: skip
    check_derivatives(lambda x: ng.interp(x, np.array([1.0]), np.array([4.0])), lambda x: np.interp(x, [1.0], [4.0]), BETWEEN)


def test_second_derivatives_of_interp_are_those_of_the_formula(stack):
    """``y0 + (x - x0) (y1 - y0) / (x1 - x0)``, differentiated by hand."""
    x, xp, fp = (stack.tensor(v, requires_grad=True) for v in (0.2, KNOTS, HEIGHTS))
    grads = ng.interp(x, xp, fp).backward()
    slope = grads.wrt(x)
    h, rise = 0.5, -4.0
    np.testing.assert_allclose(slope.item(), rise / h, rtol=1e-14)
    again = slope.backward()
    np.testing.assert_allclose(again.wrt(fp).numpy(), [0, -1 / h, 1 / h, 0], rtol=1e-14)
    np.testing.assert_allclose(again.wrt(xp).numpy(), [0, rise / h**2, -rise / h**2, 0], rtol=1e-14)
    assert again.wrt(x).item() == 0


def test_slopes_at_knots(stack):
    x = stack.tensor(KNOTS, requires_grad=True)
    y = ng.interp(x, KNOTS, HEIGHTS)
    np.testing.assert_allclose(y.numpy(), HEIGHTS, rtol=1e-14)
    slopes = np.diff(HEIGHTS) / np.diff(KNOTS)
    np.testing.assert_allclose(y.wrt(x).numpy(), [*slopes, slopes[-1]], rtol=1e-14)


def test_interp_over_samples_and_in_programs(base):
    xs, ps, fs = (base.tensor(v) for v in (RNG.normal(size=(4, 6)), np.sort(RNG.normal(size=(4, 5)), -1), RNG.normal(size=(4, 5))))
    for on in ((0, 0, 0), (0, None, None), (None, 0, None), (None, None, 0)):
        args = [v if here == 0 else v[0] for v, here in zip((xs, ps, fs), on, strict=True)]
        for f in (ng.interp, ng.func.grad(lambda x, p, v: (ng.interp(x, p, v) ** 2).sum(), 1)):
            got = vmap(f, in_axes=on)(*args).numpy()
            for k in range(4):
                one = [v[k] if here == 0 else v for v, here in zip(args, on, strict=True)]
                np.testing.assert_allclose(got[k], f(*one).numpy(), rtol=1e-11)
    program = trace(ng.interp)(xs[0], ps[0], fs[0])
    for k in range(4):
        x, p, v = xs[k], ps[k], fs[k]
        np.testing.assert_allclose(call(program, x, p, v).numpy(), np.interp(x.numpy(), p.numpy(), v.numpy()), rtol=1e-12)


BAD = [
    (lambda x: x.take([24]), IndexRangeError, r"take: got index 24 for an axis of size 24"),
    (lambda x: x.take([0.5]), DTypeError, r"take: got positions of floats"),
    (lambda x: x.take([0], 0, "round"), ArgumentError, r"take: got mode 'round'; expected one of"),
    (lambda x: x[:0].take([0], 0, "clip"), ShapeError, r"take: got positions on an axis without entries"),
    (lambda x: x.put([1, 1], x[0, 0]), ShapeError, r"names an entry twice"),
    (lambda x: x.put([1], x[:0]), ShapeError, r"put: got 1 positions and no values"),
    (lambda x: ng.index_select(x, 0, [[1]]), ShapeError, r"index_select: got positions of shape \(1, 1\); expected a vector"),
    (lambda x: ng.index_copy(x, 0, [1, 1], 0.0), ShapeError, r"names an entry twice"),
    (lambda x: ng.index_fill(x, 0, [3], 0.0), IndexRangeError, r"index_fill: got index 3 for an axis of size 3"),
    (lambda x: ng.compress(x, x), ShapeError, r"compress: got a condition of shape \(3, 4, 2\); expected a vector"),
    (lambda x: ng.select([], []), ShapeError, r"select: got 0 conditions and 0 choices"),
    (lambda x: ng.searchsorted(x, x[0]), ShapeError, r"searchsorted: got a sequence of shape \(3, 4, 2\) for values of shape \(4, 2\)"),
    (lambda x: ng.searchsorted(x[0, 0], x, "middle"), ArgumentError, r"searchsorted: got side='middle'"),
    (lambda x: ng.bucketize(x, x), ShapeError, r"bucketize: got boundaries of shape \(3, 4, 2\)"),
    (lambda x: ng.interp(x, x[0, 0], x[0, :, 0]), ShapeError, r"interp: got knots of shape \(2,\) and values of shape \(4,\)"),
]


@pytest.mark.parametrize(("function", "error", "text"), BAD, ids=[text[:24] for _, _, text in BAD])
def test_what_does_not_fit_is_told(function, error, text, stack):
    with pytest.raises(error, match=text):
        function(stack.tensor(X, requires_grad=True))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_take_is_numpys(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    axis = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1)))
    mode = data.draw(st.sampled_from(["raise", "wrap", "clip"]))
    a = np.arange(np.prod(shape), dtype=float).reshape(shape)
    n = a.size if axis is None else shape[axis]
    reach = st.integers(-n, n - 1) if mode == "raise" else st.integers(-50, 50)
    index = np.array(data.draw(st.lists(reach, min_size=0, max_size=6)), int)
    for backend in ("numpy", "torch"):
        got = ng.get_backend(backend).tensor(a).take(index, axis, mode)
        np.testing.assert_array_equal(got.numpy(), a.take(index, axis, mode=mode))
