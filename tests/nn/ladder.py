"""Derivatives order by order, by nestgrad and by torch: each order is the gradient of a weighted sum of the order before."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import nestgrad as ng


def weights(arrays: Sequence[Any]) -> list[Any]:
    rng = np.random.default_rng(7)
    return [rng.normal(size=np.shape(a)) for a in arrays]


def of_nestgrad(base: Any, f: Callable[..., Any], arrays: Sequence[Any], order: int) -> list[list[Any]]:
    """``f(ng.nn, *arrays)`` is a number; its derivatives of orders 1, 2, ... by nested levels."""
    stack = base
    for _ in range(order):
        stack = ng.Autodiff(stack)
    xs = [stack.tensor(a, requires_grad=True) for a in arrays]
    phi, found = f(ng.nn, *xs), []
    for _ in range(order):
        gradients = phi.backward()
        each = [x.grad(gradients) for x in xs]
        found.append([g.numpy() for g in each])
        phi = sum((g * w).sum() for g, w in zip(each, weights(arrays), strict=True))
    return found


def of_torch(f: Callable[..., Any], arrays: Sequence[Any], order: int) -> list[list[Any]]:
    """The same of ``f(torch.nn.functional, *arrays)`` by torch."""
    xs = [torch.tensor(a, requires_grad=True) for a in arrays]
    phi, found = f(torch.nn.functional, *xs), []
    for _ in range(order):
        each = torch.autograd.grad(phi, xs, create_graph=True, materialize_grads=True)
        found.append([g.detach().numpy() for g in each])
        phi = sum((g * torch.tensor(w)).sum() for g, w in zip(each, weights(arrays), strict=True))
    return found


def agree(base: Any, f: Callable[..., Any], arrays: Sequence[Any], order: int = 3, digits: float = 1e-11) -> None:
    """``digits``: what the order in which two libraries sum leaves of them, over three orders of numbers of the size of 1."""
    got, want = of_nestgrad(base, f, arrays, order), of_torch(f, arrays, order)
    for k in range(order):
        for mine, theirs in zip(got[k], want[k], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=digits, atol=digits, err_msg=f"order {k + 1}")
