"""Derivatives of torch tensors by torch itself: first derivatives of first derivatives. It knows no nestgrad."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

Tensor = torch.Tensor


def gradient(value: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """The gradient of one number by each leaf, differentiable; zeros where it does not depend on it."""
    if not value.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    return [*torch.autograd.grad(value, leaves, create_graph=True, allow_unused=True, materialize_grads=True)]


def partial(output: Tensor, leaves: Sequence[Tensor]) -> Tensor:
    """The mixed partial of ``output`` by ``leaves``, one after the other: shape (numel(output), *shapes of the leaves)."""
    values = list(output.reshape(-1).unbind())
    for leaf in leaves:
        # a list of numbers, each with a graph of its own: one tensor of all would lead every pass through the graphs of all
        values = [entry for value in values for entry in gradient(value, [leaf])[0].reshape(-1).unbind()]
    shape = (output.numel(), *(size for leaf in leaves for size in leaf.shape))
    return torch.stack(values).detach().reshape(shape) if values else output.new_zeros(shape).detach()


def change(value: Tensor, leaves: Sequence[Tensor], directions: Sequence[Tensor]) -> Tensor:
    """The derivative of one number along the directions of all leaves at once, differentiable."""
    return torch.stack([(g * v).sum() for g, v in zip(gradient(value, leaves), directions, strict=True)]).sum()


def along(value: Tensor, leaves: Sequence[Tensor], directions: Sequence[Tensor], order: int) -> list[Tensor]:
    """The derivatives of orders 1, 2, ... of one number along the directions of all leaves at once."""
    found = []
    for _ in range(order):
        value = change(value, leaves, directions)
        found.append(value.detach())
    return found


def weights(shape: Sequence[int]) -> Any:
    """One for each entry of an output, none of them near zero."""
    return np.random.default_rng(5).uniform(0.5, 1.5, tuple(shape))


def weighted(output: Tensor, leaves: Sequence[Tensor], directions: Sequence[Any], order: int) -> list[float]:
    """The derivatives of orders 1, 2, ... of the output's sum by ``weights``, along directions that are arrays of NumPy."""
    total = (output * torch.tensor(weights(output.shape))).sum()
    return [found.item() for found in along(total, leaves, [torch.tensor(v) for v in directions], order)]
