"""Leaves of both kinds of graphs: of our own levels, and of PyTorch's."""

import numpy as np
import pytest
import torch

import nestgrad as ng


def levels(*arrays, count=1):
    stack = ng.NumpyBackend()
    for _ in range(count):
        stack = ng.Autodiff(stack)
    return [stack.tensor(array, requires_grad=True) for array in arrays]


def foreign(*arrays):
    return [torch.tensor(array, requires_grad=True) for array in arrays]


both = pytest.mark.parametrize("leaves", [levels, foreign])


def drawn(*shapes):
    rng = np.random.default_rng(7)
    return [rng.normal(size=shape) for shape in shapes]
