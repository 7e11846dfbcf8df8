"""The graph that torch recorded of a tensor, as plain facts."""

from typing import Any

import torch

from nestgrad.backends.recorded import Recorded, numbered


def viewed(tensor: Any) -> tuple[Recorded, ...]:
    """The nodes under a tensor that requires gradients. One that torch made no node for is a leaf by itself."""
    if tensor.grad_fn is None:
        return (Recorded("leaf", torch.Tensor, (tuple(tensor.shape),), (), leaf=True),)
    numbers = numbered(tensor.grad_fn, _operands)  # holds the nodes, for torch makes their Python sides anew once nobody does
    found = []
    for node in numbers:
        kind = type(node)
        leaf = kind.__name__ == "AccumulateGrad"  # of somebody's autograd.Function, names end in "Backward"
        parents = tuple([numbers[parent] for parent in _operands(node)])
        found.append(Recorded("leaf" if leaf else kind.__name__, kind, _shapes(node), parents, leaf))
    return tuple(found)


def _operands(node: Any) -> list[Any]:
    return [parent for parent, _ in node.next_functions if parent is not None]


def _shapes(node: Any) -> tuple[tuple[int, ...], ...]:
    """The shapes of a node's results. Versions of torch may not tell them, and nested tensors have none."""
    told = getattr(node, "_input_metadata", ())  # "input" as the backward pass sees it
    return () if any(fact.is_nested_tensor for fact in told) else tuple([tuple(map(int, fact.shape)) for fact in told])
