"""Random programs, and losses that hold derivatives themselves: the adopted graph has the derivatives of torch's nested backward passes."""

import pytest
import torch
import torch.nn.functional as F
from adopted import compare, reals

ONE = [
    torch.tanh, torch.sigmoid, torch.sin, torch.relu, F.softplus, F.silu, torch.expm1, torch.neg, lambda u: u * u, lambda u: u + 1.0,
    lambda u: 0.5 - u, lambda u: u / 2, lambda u: (u * u + 1.0).sqrt(), lambda u: (u.abs() + 1.0).log(), lambda u: u.clamp(-0.5, 0.8),
    lambda u: torch.exp(-u * u), lambda u: (u * u + 0.5).reciprocal(), lambda u: u.pow(3), lambda u: F.leaky_relu(u, 0.1),
    lambda u: u.sum(-1, keepdim=True) * u, lambda u: u - u.mean(-1, keepdim=True), lambda u: u.cumsum(-1), lambda u: u.softmax(-1),
    lambda u: u.log_softmax(-1), lambda u: u * u.amax(0, keepdim=True), lambda u: u / (u.norm(dim=-1, keepdim=True) + 1.0),
    lambda u: u.t().reshape(u.shape), lambda u: u.flip(0), lambda u: torch.cat([u[1:], u[:1]]), lambda u: u.roll(1, -1),
    lambda u: u.masked_fill(u > 0.7, 0.25), lambda u: u.tril() + 0.5 * u, lambda u: (u * 1.0).tanh_(), lambda u: (u * 2.0).add_(u),
    lambda u: u.std(-1, keepdim=True) * u, lambda u: u.prod(-1, keepdim=True) + u, lambda u: u[:, [1, 0, 0]],
    lambda u: u.to(torch.float64).clone(),
]  # fmt: skip

TWO = [
    torch.add, torch.sub, torch.mul, lambda u, v: u / (v * v + 1.0), torch.maximum, lambda u, v: torch.where(u > v, u, v * v), lambda u,
    v: u @ v.t() @ u, lambda u, v: torch.addcmul(u, u, v, value=0.5), lambda u, v: torch.lerp(u, v, 0.3), lambda u,
    v: torch.logaddexp(u, v), lambda u, v: torch.stack([u, v]).sum(0), lambda u, v: u * v[0], lambda u, v: u - v.sum(), lambda u,
    v: torch.hypot(u, v + 2.0), lambda u, v: torch.lerp(u, v, u * 0.1), lambda u, v: torch.cat([u, v]).view(2, 3, 3).mean(0),
]  # fmt: skip


def _program(seed, steps=9):
    """A function of two 3 x 3 matrices, in which values are used again and again."""
    numbers = torch.Generator().manual_seed(seed)

    def draw(n):
        return int(torch.randint(n, (), generator=numbers))

    plan = [(draw(2), draw(len(ONE)), draw(len(TWO)), draw(1000), draw(1000)) for _ in range(steps)]

    def f(x, y):
        values = [x, y]
        for two, first, second, i, j in plan:
            u, v = values[-1 - i % min(3, len(values))], values[j % len(values)]
            made = TWO[second](u, v) if two else ONE[first](u)
            values.append(made if made.abs().amax() < 3.0 else made * 0.1)
        return values[-1] + values[-2] * values[2]

    return f


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    x, y = reals(3, 3, seed=seed), reals(3, 3, seed=seed + 1)
    compare(_program(seed), x, y, orders=3 if seed % 4 == 0 else 2, tolerance=1e-8)


@pytest.mark.parametrize("act", [torch.tanh, torch.sigmoid, torch.sin, F.softplus, F.silu, F.mish, F.elu, lambda u: u.relu().pow(3)],
                         ids=["tanh", "sigmoid", "sin", "softplus", "silu", "mish", "elu", "cubic"])  # fmt: skip
def test_residuals_of_differential_equations(act):
    """``u_t - u_xx + u u_x`` of a network: the graph under it is torch's own backward pass of a backward pass."""

    def residual(points, w, b, v):
        u = act(points @ w + b) @ v
        (du,) = torch.autograd.grad(u.sum(), points, create_graph=True)
        (ddu,) = torch.autograd.grad(du[:, 0].sum(), points, create_graph=True)
        return du[:, 1:] - ddu[:, :1] + u * du[:, :1]

    points, w, b, v = reals(3, 2), reals(2, 4, seed=1), reals(4, seed=2), reals(4, 1, seed=3)
    compare(residual, points, w, b, v, orders=1, tolerance=1e-8)
    compare(lambda w, b, v: residual(points, w, b, v).square().mean(), w, b, v, orders=1)


def test_a_gradient_step_inside():
    """Derivatives of what is left after a step down the gradient."""
    w, x = reals(3, 2), reals(4, 3, seed=1)

    def after(w):
        loss = (x @ w).tanh().square().mean()
        (g,) = torch.autograd.grad(loss, w, create_graph=True)
        return (x @ (w - 0.1 * g)).tanh().square().mean()

    compare(after, w, orders=2)


def test_modules():
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2), nn.Softmax(-1)).double()
    compare(lambda x: net(x), reals(2, 3), orders=2)
    x = reals(2, 3)
    compare(lambda *parameters: net(x.detach()), *net.parameters(), orders=2)
