"""Entries along an axis by positions: NumPy's and torch's values, derivatives, positions that differ by sample or are traced."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import nestgrad as ng
from nestgrad.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from nestgrad.func import trace, vmap

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3, 5))
SRC = RNG.normal(size=(3, 4))
INDEX = np.array([[0, 4, 1, 1], [2, 2, 2, 0], [3, 1, 0, 4]])
ONCE = np.array([[0, 4, 1, 2], [2, 1, 3, 0], [3, 1, 0, 4]])


def scattered(x, index, src, how):
    """By a loop."""
    out = np.array(x)
    for (i, k), j in np.ndenumerate(index):
        v = src[i, k]
        out[i, j] = v if how == "set" else out[i, j] + v if how == "sum" else max(out[i, j], v) if how == "amax" else min(out[i, j], v)
    return out


FUNCTIONS = {
    "take_along_axis": (lambda x, s: ng.take_along_axis(x, INDEX), lambda x, s: np.take_along_axis(x, INDEX, -1)),
    "take_along_axis of a row": (lambda x, s: ng.take_along_axis(x, INDEX[:1], 1), lambda x, s: np.take_along_axis(x, INDEX[:1], 1)),
    "take_along_axis of one row": (lambda x, s: ng.take_along_axis(x[:1], INDEX, 1), lambda x, s: np.take_along_axis(x[:1], INDEX, 1)),
    "take_along_axis first": (lambda x, s: ng.take_along_axis(x, ROWS, 0),
                              lambda x, s: np.take_along_axis(x, ROWS, 0)),
    "take_along_axis flat": (lambda x, s: ng.take_along_axis(x, INDEX[0], None), lambda x, s: np.take_along_axis(x, INDEX[0], None)),
    "take_along_axis from the end": (lambda x, s: ng.take_along_axis(x, INDEX - 5, 1), lambda x, s: np.take_along_axis(x, INDEX, 1)),
    "gather": (lambda x, s: ng.gather(x, 1, INDEX), lambda x, s: np.take_along_axis(x, INDEX, 1)),
    "gather of fewer rows": (lambda x, s: ng.gather(x, -1, INDEX[:2]), lambda x, s: np.take_along_axis(x[:2], INDEX[:2], 1)),
    "gather of fewer columns": (lambda x, s: ng.gather(x, 0, ROWS[:, :3]), lambda x, s: np.take_along_axis(x[:, :3], ROWS[:, :3], 0)),
    "scatter": (lambda x, s: ng.scatter(x, 1, ONCE, s), lambda x, s: scattered(x, ONCE, s, "set")),
    "scatter of fewer": (lambda x, s: ng.scatter(x, 1, ONCE[:2, :3], s), lambda x, s: scattered(x, ONCE[:2, :3], s, "set")),
    "scatter of a number": (lambda x, s: ng.scatter(x, 1, ONCE, 7.0), lambda x, s: scattered(x, ONCE, 0 * s + 7, "set")),
    "scatter_add": (lambda x, s: ng.scatter_add(x, 1, INDEX, s), lambda x, s: scattered(x, INDEX, s, "sum")),
    "scatter_add of fewer": (lambda x, s: ng.scatter_add(x, 1, INDEX[:2], s), lambda x, s: scattered(x, INDEX[:2], s, "sum")),
    "scatter_add of a number": (lambda x, s: ng.scatter_add(x, 1, INDEX, 2), lambda x, s: scattered(x, INDEX, 0 * s + 2, "sum")),
    "scatter_reduce sum": (lambda x, s: ng.scatter_reduce(x, 1, INDEX, s, "sum"), lambda x, s: scattered(x, INDEX, s, "sum")),
    "scatter_reduce amax": (lambda x, s: ng.scatter_reduce(x, 1, INDEX, s, "amax"), lambda x, s: scattered(x, INDEX, s, "amax")),
    "scatter_reduce amin": (lambda x, s: ng.scatter_reduce(x, 1, INDEX[:2], s, "amin"), lambda x, s: scattered(x, INDEX[:2], s, "amin")),
    "put_along_axis": (lambda x, s: ng.put_along_axis(x, ONCE, s, 1), lambda x, s: scattered(x, ONCE, s, "set")),
    "put_along_axis of a column": (lambda x, s: ng.put_along_axis(x, ONCE, s[:, :1]),
                                   lambda x, s: scattered(x, ONCE, s[:, :1] + 0 * s, "set")),
    "put_along_axis flat": (lambda x, s: ng.put_along_axis(x, [1, -1], s[0, :2], None), lambda x, s: _flat(x, s)),
}
ROWS = np.array([[2, 0, 1, 1, 0], [1, 1, 2, 0, 0]])


def _flat(x, s):
    out = x.ravel().copy()
    out[[1, -1]] = s[0, :2]
    return out.reshape(x.shape)


@pytest.mark.parametrize(("function", "oracle"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_values_and_derivatives(function, oracle, check_derivatives):
    check_derivatives(lambda x, s: function(x, s) + 0 * s.sum() + 0 * x.sum(), oracle, X, SRC)


@pytest.mark.parametrize("how", ["amax", "amin"])
def test_equal_extrema_share_evenly_with_the_entry_that_was_there(how, stack):
    x = stack.tensor(np.array([1.0, 2.0, 0.0]), requires_grad=True)
    s = stack.tensor(np.array([1.0, 1.0, 2.0, 2.0 if how == "amin" else -9.0]), requires_grad=True)
    y = ng.scatter_reduce(x, 0, [0, 0, 1, 1], s, how)
    grads = (y * y * y).backward()
    assert y.tolist() == [1.0, 2.0, 0.0]
    thirds, shared = [1.0, 1.0], 4.0 if how == "amin" else 6.0
    np.testing.assert_allclose(grads.wrt(x).numpy(), [1.0, shared, 0.0], rtol=1e-14)
    np.testing.assert_allclose(grads.wrt(s).numpy(), [*thirds, shared, shared if how == "amin" else 0.0], rtol=1e-14)


def test_nan_is_greater_and_smaller_than_all(base):
    for how in ("amax", "amin"):
        y = ng.scatter_reduce(base.tensor(np.array([1.0, np.nan])), 0, [0, 0], base.tensor(np.array([np.nan, 2.0])), how)
        assert np.isnan(y.numpy()).all()


@pytest.mark.parametrize("name", ["take_along_axis", "gather", "scatter", "scatter_add", "scatter_reduce", "put_along_axis"])
@pytest.mark.parametrize("on", [(0, 0, 0), (None, 0, 0), (0, 0, None), (None, 0, None), (0, None, 0)])
def test_positions_that_differ_by_the_sample(name, on, base):
    """Value and gradient are those of a loop."""
    x, s = (base.tensor(RNG.normal(size=shape)) for shape in ((4, 3, 5), (4, 3, 4)))
    places = np.stack([np.stack([RNG.permutation(5)[:4] for _ in range(3)]) for _ in range(4)])
    index = base.tensor(places - 5 * (RNG.random(places.shape) < 0.3))
    f = {
        "take_along_axis": lambda x, i, s: ng.take_along_axis(x, i, 1) * s, "gather": lambda x, i, s: ng.gather(x, 1, i) * s,
        "scatter": lambda x, i, s: ng.scatter(x, 1, i, s), "scatter_add": lambda x, i, s: ng.scatter_add(x, 1, i, s),
        "scatter_reduce": lambda x, i, s: ng.scatter_reduce(x, 1, i, s, "amax"),
        "put_along_axis": lambda x, i, s: ng.put_along_axis(x, i, s, 1),
    }[name]  # fmt: skip
    args = [v if here == 0 else v[0] for v, here in zip((x, index, s), on, strict=True)]
    g = ng.func.grad(lambda x, s, i: (f(x, i, s) ** 3).sum(), (0, 1))
    got = vmap(lambda x, i, s: (f(x, i, s), *g(x, s, i)), in_axes=on)(*args)
    for k in range(4):
        one = [v[k] if here == 0 else v for v, here in zip(args, on, strict=True)]
        for p, q in zip(got, (f(*one), *g(one[0], one[2], one[1])), strict=True):
            np.testing.assert_allclose(p[k].numpy(), q.numpy(), rtol=1e-12, atol=1e-12)


def test_traced_positions_are_those_of_each_run(base):
    x, s = base.tensor(X), base.tensor(SRC)
    for f in (lambda x, i, s: ng.take_along_axis(x, i, 1) * s, lambda x, i, s: ng.scatter(x, 1, i, s),
              lambda x, i, s: ng.scatter_add(x, 1, i, s), lambda x, i, s: ng.scatter_reduce(x, 1, i, s, "amin")):  # fmt: skip
        program = trace(f)(x, base.tensor(ONCE), s)
        for index in (ONCE[::-1].copy(), ONCE - 5):
            np.testing.assert_array_equal(ng.func.call(program, x, base.tensor(index), s).numpy(), f(x, base.tensor(index), s).numpy())
        with pytest.raises(IndexRangeError):
            ng.func.call(program, x, base.tensor(ONCE + 3), s)
    program = trace(lambda x, i, s: ng.scatter(x, 1, i, s))(x, base.tensor(ONCE), s)
    with pytest.raises(ShapeError, match="named twice"):
        ng.func.call(program, x, base.tensor(INDEX), s)


def test_whole_numbers_stay_whole(base):
    x = base.tensor(np.zeros((3, 5), int))
    assert ng.scatter_add(x, 1, INDEX, base.tensor(np.ones((3, 4), int))).numpy().sum() == 12
    assert "int64" in str(ng.scatter(x, 1, ONCE, base.tensor(ONCE)).dtype)
    floats = ng.scatter(base.tensor(X), 1, ONCE, base.tensor(ONCE))
    np.testing.assert_array_equal(floats.numpy(), scattered(X, ONCE, ONCE, "set"))


def test_nothing_is_put_and_taken(stack):
    x = stack.tensor(X, requires_grad=True)
    none = np.zeros((3, 0), int)
    assert ng.gather(x, 1, none).shape == (3, 0) and ng.gather(x, 1, none).wrt(x).tolist() == np.zeros((3, 5)).tolist()
    for f in (ng.scatter, ng.scatter_add):
        assert f(x, 1, none, np.zeros((3, 0))).wrt(x).tolist() == np.ones((3, 5)).tolist()
    assert ng.scatter_reduce(x, 1, none, np.zeros((3, 0)), "amax").tolist() == X.tolist()


BAD = [
    (lambda x, s: ng.gather(x, 1, INDEX + 2), IndexRangeError, r"gather: got index 6 for an axis of size 5; expected from -5 to 4"),
    (lambda x, s: ng.gather(x, 1, INDEX - 7), IndexRangeError, r"gather: got index -7 for an axis of size 5"),
    (lambda x, s: ng.gather(x, 1, INDEX * 1.0), DTypeError, r"gather: got positions of floats; expected whole numbers. Try index.astype"),
    (lambda x, s: ng.gather(x, 1, x > 0), DTypeError, r"gather: got positions of booleans; expected whole numbers. Try x\[mask\]"),
    (lambda x, s: ng.gather(x, 1, "here"), DTypeError, r"gather: got positions of type str"),
    (lambda x, s: ng.gather(x, 1, INDEX[0]), ShapeError, r"gather: got positions of shape \(4,\) for shape \(3, 5\); expected as many"),
    (lambda x, s: ng.gather(x, 0, np.zeros((3, 6), int)), ShapeError, r"gather: got positions of shape \(3, 6\) .* no larger ones but"),
    (lambda x, s: ng.gather(x, 2, INDEX), ShapeError, r"gather: got axis 2"),
    (lambda x, s: ng.take_along_axis(x, INDEX[:2], 1), ShapeError, r"take_along_axis: got positions of shape \(2, 4\) for shape \(3, 5\)"),
    (lambda x, s: ng.scatter(x, 1, INDEX, s), ShapeError, r"set_along: got .*named twice along the axis; expected each once, .* Try"),
    (lambda x, s: ng.scatter(x, 1, ONCE, s[:2]), ShapeError, r"scatter: got src of shape \(2, 4\) for positions of shape \(3, 4\)"),
    (lambda x, s: ng.scatter(np.zeros((3, 5), int), 1, ONCE, s), DTypeError, r"scatter: got values of dtype .*float64 for"),
    (lambda x, s: ng.scatter_reduce(x, 1, INDEX, s, "mean"), ArgumentError, r"scatter_reduce: got reduce='mean'; expected one of"),
    (lambda x, s: ng.put_along_axis(x[:1], ONCE, s, 1), ShapeError, r"put_along_axis: got positions of shape \(3, 4\) for shape \(1, 5\)"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD, ids=[text[:24] for _, _, text in BAD])
def test_what_does_not_fit_is_told(call, error, text, stack):
    with pytest.raises(error, match=text):
        call(stack.tensor(X, requires_grad=True), stack.tensor(SRC, requires_grad=True))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_values_first_and_second_derivatives_are_torchs(data):
    rank = data.draw(st.integers(1, 3))
    shape = [data.draw(st.integers(1, 4)) for _ in range(rank)]
    axis = data.draw(st.integers(0, rank - 1))
    named = [data.draw(st.integers(0, 5)) if k == axis else data.draw(st.integers(1, n)) for k, n in enumerate(shape)]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, s, index = rng.normal(size=shape), rng.normal(size=named), rng.integers(0, shape[axis], named)
    name = data.draw(st.sampled_from(["gather", "scatter_add", "amax", "amin"]))
    f, g = {
        "gather": (lambda x, s, i: ng.gather(x, axis, i) * s, lambda x, s, i: x.gather(axis, i) * s),
        "scatter_add": (lambda x, s, i: ng.scatter_add(x, axis, i, s), lambda x, s, i: x.scatter_add(axis, i, s)),
        "amax": (lambda x, s, i: ng.scatter_reduce(x, axis, i, s, "amax"), lambda x, s, i: x.scatter_reduce(axis, i, s, "amax")),
        "amin": (lambda x, s, i: ng.scatter_reduce(x, axis, i, s, "amin"), lambda x, s, i: x.scatter_reduce(axis, i, s, "amin")),
    }[name]
    u, v = (torch.tensor(a, requires_grad=True) for a in (x, s))
    y = g(u, v, torch.tensor(index))
    first = torch.autograd.grad((y**3).sum(), (u, v), create_graph=True)
    second = torch.autograd.grad(sum((a**2).sum() for a in first), (u, v))
    for backend in ("numpy", "torch"):
        S = ng.Autodiff(ng.Autodiff(ng.get_backend(backend, dtype="float64")))
        p, q = (S.tensor(a, requires_grad=True) for a in (x, s))
        z = f(p, q, index)
        grads = (z**3).sum().backward()
        ours = [grads.wrt(a) for a in (p, q)]
        again = sum((a**2).sum() for a in ours).backward()
        for got, want in zip([z, *ours, again.wrt(p), again.wrt(q)], [y, *first, *second], strict=True):
            np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-10, atol=1e-10)
