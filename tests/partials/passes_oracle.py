"""Derivatives of a weighted sum along a direction by nested backward passes of torch. It knows no nestgrad."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch


def weights(shape: Sequence[int]) -> Any:
    """One for each entry of an output, none of them near zero."""
    return np.random.default_rng(5).uniform(0.5, 1.5, tuple(shape))


def along(output: Any, leaves: Sequence[Any], directions: Sequence[Any], order: int) -> list[float]:
    """The derivatives of orders 1, 2, ... of the output's weighted sum along the directions of all leaves at once."""
    value = (output * torch.tensor(weights(output.shape))).sum()
    found = []
    for _ in range(order):
        if value.requires_grad:
            slopes = torch.autograd.grad(value, leaves, create_graph=True, materialize_grads=True)
            value = sum((g * torch.tensor(v)).sum() for g, v in zip(slopes, directions, strict=True))
        else:
            value = torch.zeros((), dtype=torch.float64)
        found.append(value.detach().item())
    return found
