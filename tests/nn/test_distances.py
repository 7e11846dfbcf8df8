"""Distances against PyTorch's, and at their kinks."""

import math

import numpy as np
import pytest
import torch

import nestgrad as ng
from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.func import grad, vmap
from nestgrad.testing import check_grads

BACKENDS = [ng.NumpyBackend(), ng.TorchBackend(dtype="float64")]
every_backend = pytest.mark.parametrize("base", BACKENDS, ids=repr)
RNG = np.random.default_rng(4)
X, Y = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 5, 4))
POWERS = [0.0, 0.5, 1.0, 2.0, 3.0, 2.5, math.inf]
every_power = pytest.mark.parametrize("p", POWERS)


@every_backend
@every_power
def test_values_and_gradients_are_those_of_pytorch(p, base):
    for ours, theirs, y in ((ng.nn.cdist, torch.cdist, Y), (ng.nn.pairwise_distance, torch.nn.functional.pairwise_distance, Y[:, :3])):
        variables = [torch.tensor(v, requires_grad=True) for v in (X, y)]
        there = theirs(*variables, p=p) + 0.0 * sum(v.sum() for v in variables)  # with p = 0 nothing else depends on them
        c = RNG.normal(size=tuple(there.shape))
        f = lambda a, b, ours=ours, c=c: (ours(a, b, p) * base.tensor(c)).sum()
        np.testing.assert_allclose(ours(base.tensor(X), base.tensor(y), p).numpy(), there.detach().numpy(), rtol=1e-12)
        want = torch.autograd.grad((there * torch.tensor(c)).sum(), variables)
        found = grad(f, argnums=(0, 1))(base.tensor(X), base.tensor(y))
        for g, right in zip(found, want, strict=True):
            np.testing.assert_allclose(g.numpy(), right.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 2.5])
def test_three_orders_agree_with_differences(p):
    check_grads(lambda x, y: ng.nn.cdist(x, y, p), (X[0], Y[0, :2]), order=3)
    check_grads(lambda x, y: ng.nn.pairwise_distance(x, y, p), (X[0], Y[0, :3]), order=3)


@every_backend
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_where_vectors_are_equal_the_first_derivative_is_zero_and_the_second_is_honest(p, base):
    x = base.tensor(X[0])
    own = base.tensor(np.eye(3))
    f = lambda v: (ng.nn.cdist(v, x, p) * own).sum()
    assert f(x).item() == 0.0 and not grad(f)(x).numpy().any()
    second = grad(lambda v: grad(f)(v).sum())(x).numpy()
    assert not second.any() if p in (1.0, math.inf) else np.isnan(second).all()


@every_backend
def test_axes_broadcast_and_stay(base):
    x, y = base.tensor(X), base.tensor(Y[0])
    got = ng.nn.cdist(x, y)
    assert got.shape == (2, 3, 5)
    np.testing.assert_allclose(got[1].numpy(), ng.nn.cdist(x[1], y).numpy(), rtol=1e-14)
    np.testing.assert_allclose(vmap(ng.nn.cdist, in_axes=(0, None))(x, y).numpy(), got.numpy(), rtol=1e-14)
    assert ng.nn.pairwise_distance(x, y[:3], keepdim=True).shape == (2, 3, 1)
    assert ng.nn.cdist(x[:, :0], y).shape == (2, 0, 5)


@pytest.mark.parametrize(
    "f, error, text",
    [
        (lambda: ng.nn.cdist(X, Y[..., :3]), ShapeError, r"cdist: got shapes \(2, 3, 4\) and \(2, 5, 3\); expected \(\.\.\., n, d\)"),
        (lambda: ng.nn.cdist(X[0, 0], Y), ShapeError, r"cdist: got shapes \(4,\)"),
        (lambda: ng.nn.cdist(X, Y, -1.0), ArgumentError, "cdist: got p=-1.0; expected a number from 0 on"),
        (lambda: ng.nn.pairwise_distance(X, Y[..., :3]), ShapeError, "pairwise_distance: got shapes"),
        (lambda: ng.nn.pairwise_distance(X, X, math.nan), ArgumentError, "pairwise_distance: got p=nan"),
    ],
)
def test_bad_input_is_named(f, error, text):
    with pytest.raises(error, match=text):
        f()
