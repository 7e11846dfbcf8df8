"""``jets``: sums over directions against one Taylor series for each, against closed forms, and inside other transforms."""

import math

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import DTypeError, LevelError, OrderError, ShapeError
from nestgrad.func import grad, hessian, jets, jvp, taylor, trace, vmap
from nestgrad.ops import TABLE, Kind
from nestgrad.testing.calling import called

RNG = np.random.default_rng(3)
V = RNG.normal(size=(5, 3))
W = np.array([1.0, -2.0, 0.5, 3.0, -0.25])
X = np.array([0.4, -0.7, 1.1])
FIELDS = {
    "tanh of sums": lambda x: (x @ np.array([[0.3, -1.0], [0.8, 0.2], [-0.5, 0.6]])).tanh().sum(),
    "a quotient and a root": lambda x: (1.0 + x[0] ** 2).sqrt() / (2.0 + x[1] * x[2]),
    "an outer product": lambda x: x.reshape(3, 1) * ng.sin(x),
    "a softmax": lambda x: x.softmax(0),
    "sorted": lambda x: ng.sort(x * x)[0] * x,
    "a product": lambda x: ng.prod(x) * x.exp(),
    "a power of itself": lambda x: (1.0 + x * x) ** x,
    "a norm": lambda x: x.norm() ** 3,
    "cumulative": lambda x: ng.cumsum(x.sin()) * ng.cumprod(x),
    "a branch": lambda x: ng.where(x > 0, x.exp(), x**3),
}


def _by_series(f, x, order, weights):
    series = [taylor(f, x, v, order) for v in V]
    total = sum(w * s[order].numpy() for w, s in zip(np.ones(5) if weights is None else weights, series, strict=True))
    return np.stack([s[1].numpy() for s in series]), total


@pytest.mark.parametrize("weights", [None, W], ids=["ones", "weights"])
@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("name", FIELDS)
def test_the_sum_is_that_of_one_series_for_each_direction(base, name, order, weights):
    f, x = FIELDS[name], base.tensor(X)
    value, first, total = jets(f, x, V, order, weights)
    np.testing.assert_allclose(value.numpy(), f(x).numpy(), rtol=1e-15)
    right_first, right_total = _by_series(f, x, order, weights)
    np.testing.assert_allclose(first.numpy(), right_first, rtol=1e-13, atol=1e-14)
    # sums of terms that cancel: a few hundred roundings of the largest
    np.testing.assert_allclose(total.numpy(), right_total, rtol=1e-11, atol=1e-12 * max(1.0, np.abs(right_total).max()))


@pytest.mark.parametrize("op", [op for op in TABLE.values() if op.kind is not Kind.CONSTANT], ids=lambda op: op.name)
def test_every_op_at_order_four(op):
    """Weights of both signs, and directions of which one is zero; by the first argument."""
    base = ng.NumpyBackend()
    rules = op.rules or (True,) * len(op.arguments)
    ruled = lambda i: rules[0 if op.variadic else i]
    for k, sample in enumerate(op.samples.calls):
        arrays, params = sample.native(base)
        free = next((i for i, a in enumerate(arrays) if ruled(i) and i not in sample.exact and base.is_floating(a)), None)
        if free is None or not arrays[free].size:
            continue
        given, x = [base.tensor(a) for a in arrays], arrays[free]
        f = lambda x, i=free, given=given, params=params: called(op, *given[:i], x, *given[i + 1 :], **params)
        v = np.random.default_rng(k).uniform(-1.0, 1.0, (3, *x.shape))
        v[1] = 0.0
        weights = [1.5, 1.0, -0.5]
        total = jets(f, x, v, 4, weights)[2].numpy()
        right = [w * taylor(f, x, u, 4)[4].numpy() for u, w in zip(v, weights, strict=True)]
        allowed = 1e-11 * max(1.0, *(float(np.abs(r).max(initial=0.0)) for r in right))
        np.testing.assert_allclose(total, sum(right), rtol=0.0, atol=allowed, err_msg=f"sample {k}")


def test_the_laplacian_of_a_gaussian_is_its_closed_form(base):
    x, d = base.tensor(X), 3
    value, first, total = jets(lambda x: (-(x * x).sum() / 2).exp(), x, np.eye(3))
    r = float((X**2).sum())
    g = math.exp(-r / 2)
    assert value.item() == pytest.approx(g, rel=1e-15)
    np.testing.assert_allclose(first.numpy(), -X * g, rtol=1e-14)
    assert 2 * total.item() == pytest.approx((r - d) * g, rel=1e-13)


def test_outputs_may_be_nested_and_constant_ones_have_zeros(base):
    f = lambda x: {"u": (x**2).sum(), "c": (ng.ones(2) * 3.0, x[:2])}
    value, first, total = jets(f, base.tensor(X), V)
    assert value["c"][0].tolist() == [3.0, 3.0]
    assert first["c"][0].shape == (5, 2) and not first["c"][0].numpy().any() and not total["c"][0].numpy().any()
    np.testing.assert_allclose(first["c"][1].numpy(), V[:, :2], rtol=1e-15)
    assert total["c"][1].tolist() == [0.0, 0.0]  # linear
    assert total["u"].item() == pytest.approx((V**2).sum(), rel=1e-14)


def test_what_the_function_closes_over_is_differentiated_on_levels_outside(levels):
    """The Laplacian of sin(w . x) is -|w|^2 sin(w . x), and its gradient and Hessian by w follow."""
    w = levels(2).tensor([0.5, -1.0, 2.0], requires_grad=True)
    lap = 2 * jets(lambda x: (w * x).sum().sin(), X, np.eye(3))[2]
    right = lambda w: -(w * w).sum() * (w * X).sum().sin()
    first = lap.wrt(w)
    np.testing.assert_allclose(first.numpy(), grad(right)([0.5, -1.0, 2.0] * np.ones(3)).numpy(), rtol=1e-13)
    second = [first[k].wrt(w).numpy() for k in range(3)]
    np.testing.assert_allclose(second, hessian(right)(np.array([0.5, -1.0, 2.0])).numpy(), rtol=1e-12)


def test_in_a_batch_in_each_other_and_in_other_transforms(base):
    f = lambda x: (x[0] * x[1]).sin() * x[2].exp()
    points, eye = base.tensor(RNG.normal(size=(4, 3))), base.tensor(np.eye(3))
    lap = lambda g: lambda x: 2 * jets(g, x, eye)[2]
    right = lambda g: lambda x: ng.diagonal(hessian(g)(x), axis1=-2, axis2=-1).sum(-1)
    close = lambda a, b: np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-13)
    close(vmap(lap(f))(points), vmap(right(f))(points))
    close(vmap(lap(lap(f)))(points), vmap(right(right(f)))(points))
    close(vmap(grad(lap(f)))(points), vmap(grad(right(f)))(points))
    close(vmap(lap(lambda x: grad(f)(x)))(points), vmap(right(grad(f)))(points))
    v = base.tensor([0.3, -0.2, 0.9])
    close(jvp(lap(f), (points[0],), (v,))[1], jvp(right(f), (points[0],), (v,))[1])
    close(taylor(lap(f), points[0], v, 3)[3], taylor(right(f), points[0], v, 3)[3])
    program = trace(lap(f))(points[0])
    close(ng.func.call(program, points[1]), right(f)(points[1]))


def test_directions_may_be_tracked_and_move(levels):
    """``v' H v / 2`` of x0^2 x1, and its gradient by v."""
    v = levels(1).tensor([[1.0, 2.0]], requires_grad=True)
    total = jets(lambda x: x[0] ** 2 * x[1], np.array([3.0, 5.0]), v)[2]
    assert total.item() == pytest.approx(5.0 + 12.0, rel=1e-15)  # v0^2 x1 + 2 v0 v1 x0
    assert total.wrt(v).tolist() == [[10.0 + 12.0, 6.0]]


def test_infinities_of_a_branch_not_taken_do_not_come_through(base):
    f = lambda x: ng.where(x > 0, x.sqrt(), x).sum()
    value, first, total = jets(f, base.tensor([0.0, 4.0]), np.eye(2))
    assert value.item() == 2.0 and first.tolist() == [1.0, 0.25] and total.item() == pytest.approx(-1 / 64, rel=1e-15)


def test_no_directions_and_no_entries(base):
    value, first, total = jets(lambda x: x**2, base.tensor([2.0]), np.zeros((0, 1)))
    assert value.tolist() == [4.0] and first.shape == (0, 1) and total.tolist() == [0.0]
    value, first, total = jets(lambda x: x**2, base.tensor(np.zeros(0)), np.zeros((2, 0)))
    assert value.shape == (0,) and first.shape == (2, 0) and total.shape == (0,)


def test_the_function_runs_once_and_no_sine_on_each_direction():
    """Each operation of a chain of sines runs on the value, however many directions there are."""
    runs, sines = [], []

    class Counting(ng.NumpyBackend):
        def sin(self, x):
            sines.append(x.shape)
            return super().sin(x)

    def f(x):
        runs.append(1)
        return x.sin().sin().sum()

    jets(f, Counting().tensor(X), np.ones((50, 3)))
    assert runs == [1] and sines and set(sines) == {(3,)}


@pytest.mark.parametrize("order", [1, 0, 2.0, True, None])
def test_an_order_is_an_int_from_two_on(order):
    with pytest.raises(OrderError, match=r"jets: got order .*; expected an int from 2 on"):
        jets(lambda x: x, X, V, order)


def test_directions_over_another_backend_are_refused():
    with pytest.raises(LevelError, match="jets: got directions over torch for an argument over numpy; expected one base backend"):
        jets(lambda x: x, ng.tensor(X), ng.get_backend("torch").tensor(V))


def test_bad_arguments(levels):
    with pytest.raises(ShapeError, match=r"jets: got directions of shape \(3,\) for an argument of shape \(3,\); expected \(n, 3\)"):
        jets(lambda x: x, X, X)
    with pytest.raises(ShapeError, match=r"jets: got weights of shape \(2,\) for an argument of shape \(3,\); expected \(5,\)"):
        jets(lambda x: x, X, V, 2, [1.0, 2.0])
    with pytest.raises(ShapeError, match="jets: got an argument with 2 leaves; expected a single Tensor"):
        jets(lambda x: x[0], (X, X), V)
    with pytest.raises(DTypeError, match="jets: got directions of dtype float32 for an argument of dtype float64; expected the same dtype"):
        jets(lambda x: x, X, V.astype("float32"))
    with pytest.raises(DTypeError, match="jets: got an argument of dtype int64; expected a floating one"):
        jets(lambda x: x, np.array([1, 2, 3]), V)
    with pytest.raises(LevelError, match="jets: the function returned a str; expected a Tensor"):
        jets(lambda x: "u", X, V)
    u, weights = (levels(1).tensor(a, requires_grad=True) for a in (X, W))
    with pytest.raises(LevelError, match="jets: got weights that live on levels; expected plain numbers"):
        jets(lambda x: x, u, V, 2, weights)
    with pytest.raises(LevelError, match=r"backward: a value of shape .* lives on jets level"):
        jets(lambda x: (x * u).sum().wrt(u), X, V)
