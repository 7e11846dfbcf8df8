"""Nodes that cut arrays into parts, and that put arrays together. They are linear, and save no values."""

from typing import Any

import torch

from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule
from nestgrad.backends.torch.graph.shapes import reshaped

# parts of arrays


def _sizes(n: int, size: int) -> tuple[int, ...]:
    """Of parts of one size, and of what is left."""
    return tuple([min(size, n - start) for start in range(0, n, size)]) if n else (0,)


def _split(graph: Any, node: Node, inputs: Inputs) -> Any:
    x = inputs[0]
    axis = node.dim("dim", len(x.shape))
    return graph.split(x, _sizes(x.shape[axis], node.saved("split_size")), axis)


def _split_with_sizes(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.split(inputs[0], tuple(node.saved("split_sizes")), node.dim("dim", len(inputs[0].shape)))


def _unbind(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.unstack(inputs[0], node.dim("dim", len(inputs[0].shape)))


# parts together


def _cat(graph: Any, node: Node, inputs: Inputs) -> Any:
    """What is not tracked is unknown; how large it is tells the node, which gives each operand its part of a cotangent."""
    shape = node.shape
    axis = node.dim("dim", len(shape))
    parts = list(inputs)
    if None in parts:
        cotangents = node.pulled(torch.zeros((), dtype=node.dtype, device=node.device).expand(shape))
        for k, cotangent in enumerate(cotangents):
            if parts[k] is None:
                parts[k] = graph.unknown_value(tuple(cotangent.shape), node.dtype)
    parts = [part for part in parts if len(part.shape) == len(shape)]  # an empty vector is nothing beside arrays of more axes
    return graph.apply("concat", *parts, axis=axis)


def _stack(graph: Any, node: Node, inputs: Inputs) -> Any:
    shape = node.shape
    axis = node.dim("dim", len(shape))
    item = (*shape[:axis], *shape[axis + 1 :])
    return graph.apply("stack", *[graph.unknown_value(item, node.dtype) if x is None else x for x in inputs], axis=axis)


def _block_diag(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Each matrix among zeros; a vector is a row, and a number a matrix of one entry."""
    cotangents = node.pulled(torch.zeros(node.shape, dtype=node.dtype, device=node.device))  # as large as what is not tracked
    total, row, column = None, 0, 0
    for x, cotangent in zip(inputs, cotangents, strict=True):
        shape = tuple(cotangent.shape)
        height, width = ((1,) * (2 - len(shape))) + shape
        matrix = reshaped(graph, graph.unknown_value(shape, node.dtype) if x is None else x, (height, width))
        widths = ((row, node.shape[0] - row - height), (column, node.shape[1] - column - width))
        placed = graph.apply("pad", matrix, widths=widths)
        total = placed if total is None else graph.apply("add", total, placed)
        row, column = row + height, column + width
    return total


RULES: dict[str, Rule] = {
    "SplitBackward0": _split,
    "UnsafeSplitBackward0": _split,
    "ChunkBackward0": _split,
    "SplitWithSizesBackward0": _split_with_sizes,
    "UnsafeSplitWithSizesBackward0": _split_with_sizes,
    "UnbindBackward0": _unbind,
    "CatBackward0": _cat,
    "StackBackward0": _stack,
    "BlockDiagBackward0": _block_diag,
}
RULES |= {f"{name}Backward0_copy": RULES[f"{name}Backward0"] for name in ("Split", "SplitWithSizes", "Unbind")}
