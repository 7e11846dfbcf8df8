"""With ``create_graph=True`` derivatives are of torch's graph: torch differentiates them further, and gets what nested passes get."""

from collections.abc import Callable

import pytest
import torch
from adopted import reals

import nestgrad as ng

F = torch.nn.functional
Tensor = torch.Tensor

SQUARE = torch.eye(3, dtype=torch.float64)
MASK = torch.eye(3, 4).bool()
W = reals(3, 4, seed=9).detach()


def _standard(a: Tensor, axis: int) -> Tensor:
    far = a - a.mean(axis, keepdim=True)
    return far * (far.square().mean(axis, keepdim=True) + 1e-5).rsqrt()


def _filled(a: Tensor) -> Tensor:
    y = torch.zeros(3, 4, dtype=a.dtype)
    y[1:] = a[1:] * a[:2]
    return y.sin()


CASES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor] | None]] = {
    "tanh": (torch.tanh, None),
    "gelu": (F.gelu, None),
    "softplus": (F.softplus, None),
    "softmax": (lambda a: a.softmax(1) ** 2, None),
    "masked softmax": (lambda a: a.masked_fill(MASK, -torch.inf).softmax(1), None),
    "log_softmax": (lambda a: a.log_softmax(1) ** 2, None),
    "attention": (lambda a: F.scaled_dot_product_attention(a, a * 2, a.sin()), None),
    "layer_norm": (lambda a: F.layer_norm(a, (4,)), lambda a: _standard(a, 1)),
    "batch_norm": (lambda a: F.batch_norm(a, None, None, training=True), lambda a: _standard(a, 0)),
    "group_norm": (lambda a: F.group_norm(a, 1), lambda a: _standard(a, 1)),
    "conv1d": (lambda a: F.conv1d(a[None], a[:, :2][None]).tanh(), None),
    "cat": (lambda a: torch.cat([torch.ones(3, 1), a], 1).sin(), None),
    "index": (lambda a: a[torch.tensor([0, 0, 2])].exp() * a, None),
    "writes": (_filled, None),
    "solve": (lambda a: torch.linalg.solve(a @ a.T + SQUARE, a), None),
    "inv": (lambda a: torch.linalg.inv(a @ a.T + SQUARE), None),
    "cumprod": (lambda a: a.cumprod(1), None),
    "logcumsumexp": (lambda a: a.logcumsumexp(1), lambda a: a.exp().cumsum(1).log()),
    "binary_cross_entropy": (lambda a: F.binary_cross_entropy(a.sigmoid(), W.sigmoid()), None),
    "max_pool1d": (lambda a: F.max_pool1d(a[None] ** 2, 2).sin(), None),
}


@pytest.mark.parametrize("name", CASES)
def test_torch_differentiates_what_is_attached(name: str) -> None:
    f, definition = CASES[name]
    x = reals(3, 4)
    for _ in range(2):  # the second time, a kept plan runs
        ng.backward(f(x), 2, create_graph=True)
        ours = x.hgrad[1].sum(0)  # type: ignore[attr-defined]
    (first,) = torch.autograd.grad((definition or f)(x).sum(), x, create_graph=True)
    rows = [torch.autograd.grad(v, x, create_graph=True, materialize_grads=True)[0] for v in first.reshape(-1)]
    theirs = torch.stack(rows).reshape(ours.shape)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    weights = torch.randn(ours.shape, dtype=ours.dtype, generator=torch.Generator().manual_seed(0))
    changes = [torch.autograd.grad((h * weights).sum(), x, create_graph=True)[0] for h in (ours, theirs)]
    torch.testing.assert_close(*changes, rtol=1e-8, atol=1e-8)
    fourth = [torch.autograd.grad((c * W).sum(), x)[0] for c in changes]
    torch.testing.assert_close(*fourth, rtol=1e-7, atol=1e-7)
