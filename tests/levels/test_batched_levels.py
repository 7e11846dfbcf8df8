"""``Batched`` among other levels, at any place; batches of nothing; and what a batch refuses."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nestgrad as ng
from nestgrad import Autodiff, Batched, Forward, NumpyBackend, Taylor, func
from nestgrad.backends import TorchBackend
from nestgrad.errors import ConversionError, LevelError, ShapeError
from nestgrad.levels.base import Tape
from nestgrad.levels.batched import batch, unbatch
from nestgrad.ops import TABLE, Kind, table
from nestgrad.ops.samples import unary
from nestgrad.ops.table import BILINEAR, define
from nestgrad.tensor.handle import make
from nestgrad.testing.calling import called

BACKENDS = {"numpy": NumpyBackend(), "torch": TorchBackend(dtype="float64")}
W = np.array([[0.5, -1.0, 0.3], [0.2, 0.7, -0.4], [1.1, 0.1, 0.6]])
X, V = np.random.default_rng(0).uniform(0.2, 0.9, (2, 4, 3))
CLOSE = {"rtol": 1e-11, "atol": 1e-13}

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "layer": lambda x: (x @ W).tanh().sum(),
    "column": lambda x: (W @ x).sigmoid().sum(),
    "linear": lambda x: ng.linear(x.reshape(1, 3), x.b.base.tensor(W), x).square().sum(),
    "quotient": lambda x: (x[0] / x[1]).sin() * x[2],
    "powers": lambda x: (x**3 + x**x).sum(),
    "norm": lambda x: x.norm() * x.sum(),
    "softmax": lambda x: (x.softmax(0) * x.log_softmax(0)).sum(),
    "logsumexp": lambda x: (x * x).logsumexp(0),
    "products": lambda x: x.prod() + ng.einsum("i,j,ij->", x, x, W),
    "choices": lambda x: ng.where(x > 0.5, x.sin(), x.exp()).sum() + x.max(),
    "shapes": lambda x: (ng.concat([x, x[::-1] * x]).reshape(2, 3).T @ x[:2]).pad((1, 0)).var(),
    "indices": lambda x: (x[[2, 0, 2]] * x).sum() + x.at[1].set(x[0] * x[2]).at[[0, 2]].add(x[1:]).square().sum(),
    "nested": lambda x: (func.grad(lambda z: (z**4).sum())(x) * x.sin()).sum(),
}
functions = pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)


@pytest.fixture(params=BACKENDS)
def base(request: pytest.FixtureRequest) -> Any:
    """Each backend, in float64."""
    return BACKENDS[request.param]


# derivatives of second order, and of other levels


def second(base: Any, f: Callable[[Any], Any]) -> Any:
    """Products of the Hessian with ``V``, sample by sample."""
    S = Autodiff(Autodiff(base))
    found = []
    for a, v in zip(X, V, strict=True):
        x = S.tensor(a, requires_grad=True)
        found.append((f(x).wrt(x) * S.tensor(v)).sum().wrt(x).numpy())
    return np.stack(found)


@functions
def test_second_derivatives_over_a_batch(f, base):
    B = Batched(base)
    S = Autodiff(Autodiff(B))
    x = S.tensor(B.batch(X), requires_grad=True)
    got = (f(x).wrt(x) * B.batch(V)).sum().wrt(x)
    np.testing.assert_allclose(B.unbatch(got).numpy(), second(base, f), **CLOSE)


@functions
def test_second_derivatives_through_a_batch(f, base):
    S = Autodiff(Autodiff(base))
    B = Batched(S)
    x = S.tensor(X, requires_grad=True)
    got = (B.unbatch(f(B.batch(x))).wrt(x) * S.tensor(V)).sum().wrt(x)
    np.testing.assert_allclose(got.numpy(), second(base, f), **CLOSE)


@functions
def test_second_derivatives_with_a_batch_between(f, base):
    """``Autodiff(Batched(Autodiff(base)))``: the first derivative inside, the second outside."""
    A = Autodiff(base)
    B = Batched(A)
    S = Autodiff(B)
    x = A.tensor(X, requires_grad=True)
    z = S.tensor(B.batch(x), requires_grad=True, levels=[S])
    got = (B.unbatch(f(z).wrt(z)) * base.tensor(V)).sum().wrt(x)
    np.testing.assert_allclose(got.numpy(), second(base, f), **CLOSE)


def tangents(base: Any, f: Callable[[Any], Any]) -> Any:
    """Products of the gradient with ``V``, sample by sample, by reverse mode."""
    A = Autodiff(base)
    xs = [A.tensor(a, requires_grad=True) for a in X]
    return np.array([(f(x).wrt(x) * A.tensor(v)).sum().item() for x, v in zip(xs, V, strict=True)])


@functions
def test_forward_mode_over_a_batch(f, base):
    B = Batched(base)
    F = Forward(B)
    np.testing.assert_allclose(B.unbatch(F.tangent(f(F.dual(B.batch(X), B.batch(V))))).numpy(), tangents(base, f), **CLOSE)


@functions
def test_forward_mode_through_a_batch(f, base):
    F = Forward(base)
    B = Batched(F)
    np.testing.assert_allclose(F.tangent(B.unbatch(f(B.batch(F.dual(X, V))))).numpy(), tangents(base, f), **CLOSE)


def test_many_directions_at_one_point():
    """A value that all samples share with a tangent that differs: the rows of a Jacobian."""
    B = Batched(NumpyBackend())
    F = Forward(B)
    y = F.dual(B.base.tensor(X[0]), B.batch(np.eye(3))).sin()
    np.testing.assert_allclose(B.unbatch(F.tangent(y)).numpy(), np.diag(np.cos(X[0])), rtol=1e-15)
    assert F.primal(y).numpy() == pytest.approx(np.sin(X[0]))


@functions
def test_series_over_and_through_a_batch(f, base):
    """The first coefficient is the tangent."""
    B = Batched(base)
    T = Taylor(B, 2)
    found = T.terms(f(T.series(B.batch(X), B.batch(V))))
    np.testing.assert_allclose(B.unbatch(found[1], size=4).numpy(), tangents(base, f), **CLOSE)
    T = Taylor(base, 2)
    B = Batched(T)
    np.testing.assert_allclose(T.terms(B.unbatch(f(B.batch(T.series(X, V)))))[1].numpy(), tangents(base, f), **CLOSE)


@functions
def test_gradients_of_a_transform_inside_a_batch(f, base):
    A = Autodiff(base)
    xs = [A.tensor(a, requires_grad=True) for a in X]
    B = Batched(base)
    np.testing.assert_allclose(B.unbatch(func.grad(f)(B.batch(X))).numpy(), [f(x).wrt(x).numpy() for x in xs], **CLOSE)


# variables, constants


def test_a_shared_parameter_gets_the_sum_outside_and_each_gradient_inside(base):
    A = Autodiff(base)
    B = Batched(A)
    w = A.tensor(W, requires_grad=True)
    loss = lambda w, x: (x @ w).tanh().sum()
    total = B.unbatch(loss(w, B.batch(X))).sum().wrt(w)
    each = B.unbatch(func.grad(loss)(w.detach(), B.batch(X)))
    assert each.shape == (4, 3, 3)
    np.testing.assert_allclose(each.sum(0).numpy(), total.numpy(), rtol=1e-13)


def test_a_variable_of_an_older_tape_made_inside_a_batch(base):
    """Its gradient there would be one for each sample: it can be differentiated by from a level around the batch only."""
    A = Autodiff(base)
    B = Batched(A)
    x = A.tensor(B.batch(X), requires_grad=True)
    assert x.shape == (3,)
    y = B.unbatch((x * x).sum())
    with pytest.raises(LevelError, match=r"holds samples of Batched level 2, and Autodiff level 1 is under that level"):
        y.wrt(x)
    whole = B.unbatch(x)
    np.testing.assert_allclose(y.wrt(whole).numpy(), 2 * X)  # what comes out of the batch is the variable itself


def test_detach_leaves_the_batch_on(base):
    B = Batched(base)
    A = Autodiff(B)
    x = A.tensor(B.batch(X), requires_grad=True)
    cut = x.detach()
    assert cut.level == 0
    np.testing.assert_array_equal(B.unbatch(cut).numpy(), X)
    np.testing.assert_allclose(B.unbatch((cut * x).sum().wrt(x)).numpy(), X)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_the_axis_may_be_anywhere(axis, base):
    B = Batched(base)
    x = np.arange(24.0).reshape(2, 3, 4)
    inside = B.batch(x, axis)
    assert inside.shape == np.moveaxis(x, axis, 0).shape[1:]
    np.testing.assert_array_equal(B.unbatch(inside, axis).numpy(), x)
    np.testing.assert_array_equal(B.unbatch(inside).numpy(), np.moveaxis(x, axis, 0))
    np.testing.assert_array_equal(B.unbatch(base.tensor([1.0, 2.0]), axis=min(axis, 1) if axis > -3 else -2, size=3).numpy().sum(), 9.0)


# nothing


@pytest.mark.parametrize("op", TABLE.values(), ids=TABLE)
def test_no_samples_give_no_samples(op, base):
    """Of the shape that one would have."""
    B = Batched(base)
    for sample in op.samples.calls:
        arrays, params = sample.native(base)
        one = called(op, *map(base.tensor, arrays), **params).shape
        none = [B.batch(base.tensor(base.broadcast_to(a, (1, *base.shape(a))))[:0]) for a in arrays]
        free = [k for k, a in enumerate(arrays) if base.is_floating(a) and k not in sample.exact]
        for on in (range(len(arrays)), [0], [len(arrays) - 1]):
            xs = [none[k] if k in on else base.tensor(a) for k, a in enumerate(arrays)]
            out = B.unbatch(called(op, *xs, **params))
            assert out.shape == (0, *one)
        if op.kind is not Kind.CONSTANT and free:
            xs = [Autodiff(B).tensor(x, requires_grad=True) if k in free else x for k, x in enumerate(none)]
            y = called(op, *xs, **params)
            if y.tracked_on() and free[0] in [k for k, x in enumerate(xs) if x.tracked_on() == y.tracked_on()]:
                g = y.backward().get(xs[free[0]])
                assert g is None or B.unbatch(g, size=0).shape == (0, *base.shape(arrays[free[0]]))


# what a batch refuses


def test_a_batch_is_no_plain_number():
    B = Batched(NumpyBackend())
    x = B.batch([1.0, -1.0, 2.0])
    ways = [
        bool,
        float,
        int,
        np.asarray,
        lambda x: x.item(),
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: 1 if x > 0 else 0,
        pickle.dumps,
    ]
    for way in ways:
        with pytest.raises(LevelError, match=r"holds 3 samples of Batched level 1, .* Try ng.where\(condition, a, b\) instead of a branch"):
            way(x)
    with pytest.raises(ConversionError, match="depends on variables"):
        float(Autodiff(B).tensor(x, requires_grad=True))
    assert repr(x) == "Tensor(<shape ()>, dtype=float64)"


def test_a_derivative_by_a_tensor_from_outside_is_refused_inside():
    A = Autodiff(NumpyBackend())
    B = Batched(A)
    x = A.tensor(X, requires_grad=True)
    y = B.batch(x).sum()
    with pytest.raises(
        LevelError, match=r"lives on Batched level 2, which has no backward pass, .* Try func.grad inside, as in vmap\(grad\(f\)\)"
    ):
        y.backward()
    w = A.tensor([1.0, 2.0, 3.0], requires_grad=True)
    z = Autodiff(B).tensor(B.batch(X), requires_grad=True)
    grads = (w * z).sum().backward()
    with pytest.raises(
        LevelError, match=r"4 samples of Batched level 2 would have to leave that level.* Try func.grad inside, as in vmap\(grad\(f\)\)"
    ):
        grads.wrt(w)
    np.testing.assert_array_equal(B.unbatch(grads.wrt(z), size=4).numpy(), np.tile([1.0, 2.0, 3.0], (4, 1)))
    with pytest.raises(LevelError, match="inner: a value of Batched level 2 cannot leave it this way"):
        y.inner()


def test_other_levels_cannot_be_left_from_inside():
    F = Forward(NumpyBackend())
    B = Batched(F)
    y = B.batch(F.dual(X, V)).sum()
    with pytest.raises(LevelError, match="would have to leave that level"):
        F.tangent(y)


def test_samples_are_not_checked_for_independence_inside():
    B = Batched(NumpyBackend())
    x = Autodiff(B).tensor(B.batch(X), requires_grad=True)
    with pytest.raises(LevelError, match="holds 4 samples"):
        (x * x.sum()).backward(check_independent=True).wrt(x)


def test_what_is_left_of_an_ended_batch_raises():
    b = NumpyBackend().dressed
    tape = Tape("vmap", 1)
    x = make(b, batch(b, tape, np.ones((2, 3)), 0), {})
    tape.close()
    for use in (lambda: (x + 1.0).numpy(), lambda: bool(x.sum() > 0), lambda: x.detach(), lambda: func.grad(lambda z: z.sum())(x)):
        with pytest.raises(LevelError, match=r"2 samples of vmap level 1, which has ended, is used outside .* Try to return it"):
            use()
    assert repr(x) == "Tensor(<shape (3,)>, dtype=float64)"


def test_doors_say_what_they_expect():
    B = Batched(NumpyBackend())
    x = B.batch(X)
    A = Autodiff(B)
    for what, error, message in [
        (lambda: B.batch(x), LevelError, "batch: got a tensor that holds samples of Batched level 1 already. Try another level around it"),
        (lambda: B.batch(A.tensor(X, requires_grad=True)), LevelError, "on Autodiff level 2, which is younger .* Try to batch it first"),
        (lambda: B.batch(X, 2), ShapeError, r"batch: got axis 2 for shape \(4, 3\); expected an int from -2 to 1"),
        (lambda: B.batch(1.0), ShapeError, r"batch: got axis 0 for shape \(\)"),
        (lambda: B.unbatch(x, 2), ShapeError, r"unbatch: got axis 2 for shape \(4, 3\)"),
        (lambda: B.unbatch(x, size=3), ShapeError, "unbatch: got 4 samples on Batched level 1; expected 3"),
        (lambda: B.unbatch(A.tensor(X)), LevelError, r"shape \(4, 3\) that holds no samples .* Try unbatch\(y, size=n\)"),
        (lambda: B.unbatch(X), LevelError, "unbatch: got a ndarray; expected a Tensor over"),
        (lambda: B.batch(BACKENDS["torch"].tensor(X)), LevelError, "batch: got a tensor over torch.* for Batched"),
        (lambda: x + B.batch(X[:3]), ShapeError, "add: got 3 and 4 samples on Batched level 1; expected as many in all operands"),
        (lambda: unbatch(x.b, A.tensor(x, requires_grad=True).value, B.tape, 4, 0), LevelError, "above the samples of Batched level 1"),
    ]:  # fmt: skip
        with pytest.raises(error, match=message):
            what()


def test_shapes_that_do_not_fit_are_errors_for_samples_too(base):
    """And messages have the shapes that the function sees, where one can know what is wrong."""
    B = Batched(base)
    x = B.batch(np.ones((4, 4, 3)))
    for what, message in [
        (lambda: x + B.batch(np.ones((4, 2))), r"add: got shape \(4, 3\), shape \(2,\); sizes 3 and 2 on axis -1 do not broadcast"),
        (lambda: x @ np.ones((4, 2)), r"matmul: got shape \(4, 3\), shape \(4, 2\); the last axis of the first \(3\) must equal"),
        (lambda: x.reshape(4, 4), r"reshape: got \(4, 4\) for shape \(4, 3\)"),
        (lambda: x.broadcast_to(2, 2, 4, 2), r"broadcast_to: got \(2, 2, 4, 2\) for shape \(4, 3\)"),
        (lambda: ng.concat([x, np.ones((4, 2))]), r"concat: got shapes \[\(4, 3\), \(4, 2\)\]"),
        (lambda: ng.einsum("ij,jk->ik", x, np.ones((4, 2))), "einsum: got 'ij,jk->ik' for shapes"),
        (lambda: x.at[0].add(B.batch(np.ones((4, 2)))), r"index_add: got shape \(4, 3\), shape \(2,\), .* an axis of 4 samples"),
    ]:
        with pytest.raises(ShapeError, match=message):
            what()


def test_an_op_whose_entry_does_not_tell_is_an_error(monkeypatch):
    monkeypatch.setattr(table, "TABLE", dict(TABLE))
    op = define("odd(x, y)", BILINEAR, lambda b, g, y: g, lambda b, g, x: g, samples=unary(0.0, 1.0))
    B = Batched(NumpyBackend())
    x = B.batch([1.0, 2.0]).value
    with pytest.raises(LevelError, match=r"odd: got samples of a batch, and the table does not say .* Try batched= in its entry"):
        x.apply(B.dressed, op, (x, x), ())
