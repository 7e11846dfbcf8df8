"""Partial derivatives of torch tensors by torch itself: first derivatives of first derivatives, entry by entry. It knows no nestgrad."""

from collections.abc import Sequence

import torch

Tensor = torch.Tensor


def partial(output: Tensor, leaves: Sequence[Tensor]) -> Tensor:
    """The mixed partial of ``output`` by ``leaves``, one after the other: shape (numel(output), *shapes of the leaves)."""
    values = list(output.reshape(-1).unbind())
    for leaf in leaves:
        # a list of numbers, each with a graph of its own: one tensor of all would lead every pass through the graphs of all
        values = [entry for value in values for entry in first(value, leaf).reshape(-1).unbind()]
    shape = (output.numel(), *(size for leaf in leaves for size in leaf.shape))
    return torch.stack(values).detach().reshape(shape) if values else output.new_zeros(shape).detach()


def first(value: Tensor, leaf: Tensor) -> Tensor:
    """The gradient of one number, differentiable; zeros if it does not depend on the leaf."""
    if not value.requires_grad:
        return torch.zeros_like(leaf)
    (found,) = torch.autograd.grad(value, leaf, create_graph=True, allow_unused=True, materialize_grads=True)
    return found
