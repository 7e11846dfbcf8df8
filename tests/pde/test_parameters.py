"""Residuals are differentiated by what a field closes over, or is given: against nested passes of torch.autograd, written by hand."""

import numpy as np
import pytest
import torch
from fields import FIRST, SECOND

import nestgrad as ng
from nestgrad import pde

RNG = np.random.default_rng(5)
AT = RNG.uniform(-1.0, 1.0, size=(4, 2))
SHAPES = [(5, 2), (5,), (2, 5)]
WEIGHTS = [RNG.normal(size=s) * 0.8 for s in SHAPES]


def net(x, weights):
    """Two outputs of one point of two coordinates."""
    w, b, v = weights
    return v @ (w @ x + b).tanh()


def torch_net(points, weights):
    """The same of many points, for torch."""
    w, b, v = weights
    return (points @ w.T + b).tanh() @ v.T


def slopes(u, x):
    """The gradient of each component, of shape (n, m, d): samples do not meet, so that sums over them leave each its own."""
    return torch.stack([torch.autograd.grad(u[:, k].sum(), x, create_graph=True)[0] for k in range(u.shape[1])], 1)


def torch_laplacian(u, x):
    g = slopes(u, x)
    return sum(torch.stack([torch.autograd.grad(g[:, k, i].sum(), x, create_graph=True)[0][:, i] for k in range(2)], 1) for i in range(2))


def residuals(method):
    """For each name, ours as a function of weights, and torch's."""
    first = method if method in FIRST else "auto"

    def k(x):
        return 1.0 + 0.5 * (x * x).sum()

    def flux(weights):
        u = lambda x: net(x, weights)[0]
        return pde.divergence(lambda x: k(x) * pde.gradient(u, first)(x), first)(AT)

    def torch_flux(u, x, weights):
        g = slopes(u[:, :1], x)[:, 0] * (1.0 + 0.5 * (x * x).sum(1, keepdim=True))
        return sum(torch.autograd.grad(g[:, i].sum(), x, create_graph=True)[0][:, i] for i in range(2))

    return {
        "jacobian": (lambda p: pde.jacobian(net, first)(AT, p), lambda u, x, p: slopes(u, x)),
        "laplacian": (lambda p: pde.laplacian(net, method)(AT, p), lambda u, x, p: torch_laplacian(u, x)),
        "three": (lambda p: _three(p, method), lambda u, x, p: u * slopes(u, x)[..., 0] - torch_laplacian(u, x)),
        "biharmonic": (lambda p: pde.biharmonic(net, method)(AT, p), lambda u, x, p: torch_laplacian(torch_laplacian(u, x), x)),
        "flux": (flux, torch_flux),
        "third": (lambda p: pde.directional(net, 1, 3, method)(AT, p), _torch_third),
        "slope of laplacian": (
            lambda p: pde.jacobian(lambda x: pde.laplacian(net, method)(x, p), first)(AT),
            lambda u, x, p: slopes(torch_laplacian(u, x), x),
        ),
    }


def _three(weights, method):
    u, slope, lap = pde.value_gradient_laplacian(net, method)(AT, weights)
    return u * slope[..., 0] - lap


def _torch_third(u, x, weights):
    for _ in range(3):
        u = slopes(u, x)[..., 1]
    return u


def of_torch(residual, directions):
    """Values of the residual, the gradient of its mean square, and the product of the Hessian with directions."""
    x = torch.tensor(AT, requires_grad=True)
    weights = [torch.tensor(w, requires_grad=True) for w in WEIGHTS]
    r = residual(torch_net(x, weights), x, weights)
    g = torch.autograd.grad((r * r).mean(), weights, create_graph=True)
    h = torch.autograd.grad(sum((a * torch.tensor(d)).sum() for a, d in zip(g, directions, strict=True)), weights)
    return [t.detach().numpy() for t in (r, *g, *h)]


DIRECTIONS = [RNG.normal(size=s) for s in SHAPES]


@pytest.fixture(scope="module")
def right():
    return {name: of_torch(theirs, DIRECTIONS) for name, (_, theirs) in residuals("auto").items()}


@pytest.mark.parametrize("method", SECOND)
@pytest.mark.parametrize("name", residuals("auto"))
def test_the_gradient_of_a_residual_loss_and_its_hessian(base, right, name, method):
    """On two Autodiff levels outside: the operators' own levels come and go above them."""
    stack = ng.Autodiff(ng.Autodiff(base))
    weights = [stack.tensor(w, requires_grad=True) for w in WEIGHTS]
    r = residuals(method)[name][0](weights)
    gradients = (r * r).mean().backward(wrt=weights)
    g = [w.grad(gradients) for w in weights]
    second = sum((a * d).sum() for a, d in zip(g, DIRECTIONS, strict=True)).backward(wrt=weights)
    found = [r, *g, *(w.grad(second) for w in weights)]
    for ours, theirs in zip(found, right[name], strict=True):
        # up to six derivatives of a net: sums of thousands of terms of the size of 100, in another order
        np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", SECOND)
@pytest.mark.parametrize("name", ["laplacian", "biharmonic", "flux"])
def test_the_same_by_transforms(base, right, name, method):
    loss = lambda p: (residuals(method)[name][0](p) ** 2).mean()
    weights, directions = ([base.tensor(a) for a in arrays] for arrays in (WEIGHTS, DIRECTIONS))
    found, moved = ng.func.jvp(ng.func.grad(loss), (weights,), (directions,))
    for ours, theirs in zip([*found, *moved], right[name][1:], strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", SECOND)
def test_points_that_are_tracked_outside(base, method):
    """The laplacian of exp(a . x) by its points: the sum over points hides nothing, since each has its own."""
    a = np.array([0.7, -1.1])
    x = ng.Autodiff(base).tensor(AT, requires_grad=True)
    lap = pde.laplacian(lambda p: (p * base.tensor(a)).sum().exp(), method)(x)
    want = np.exp(AT @ a)[:, None] * a * (a @ a)
    np.testing.assert_allclose(x.grad(lap.backward(check_independent=True)).numpy(), want, rtol=1e-12)
