"""Nodes that take entries of arrays out, by numbers, slices, positions and masks, and nodes that put entries in.

Positions are data, so all of these are linear. What an array held where others come to stand is not kept, nor are numbers that are put in.
"""

from math import prod
from typing import Any

import torch

from nestgrad.backends.torch.graph.elementwise import scaled
from nestgrad.backends.torch.graph.places import Index, along, given, unless_constant
from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule, signed
from nestgrad.backends.torch.graph.shapes import reshaped
from nestgrad.errors import UnsupportedNode

Tensor = torch.Tensor

_ALL = slice(None)


def _flat(graph: Any, x: Any) -> Any:
    return reshaped(graph, x, (prod(x.shape),))


# one entry of an axis, and a slice


def _selected(node: Node, shape: tuple[int, ...]) -> Index:
    axis = node.dim("dim", len(shape))
    return (*(_ALL,) * axis, signed(node.saved("index")) % shape[axis])


def _sliced(node: Node, shape: tuple[int, ...]) -> Index:
    axis = node.dim("dim", len(shape))
    start, end = node.saved("start"), node.saved("end")
    part = slice(None if start is None else signed(start), None if end is None else signed(end), node.saved("step"))
    return (*(_ALL,) * axis, slice(*part.indices(shape[axis])))


def _taken(where: Any) -> Rule:
    return lambda graph, node, inputs: graph.apply("getitem", inputs[0], index=where(node, inputs[0].shape))


def _put(where: Any) -> Rule:
    """The transpose: zeros elsewhere."""
    return lambda graph, node, inputs: graph.apply("put", inputs[0], index=where(node, node.shape), shape=node.shape)


def _replaced(where: Any) -> Rule:
    """The first operand with the second in a place of it."""

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        index = where(node, node.shape)
        part = graph.unknown_value((), node.dtype) if inputs[1] is None else inputs[1]
        return graph.apply("index_set", given(graph, node, 0, node.shape), part, index=index)

    return rule


def _diagonal_replaced(graph: Any, node: Node, inputs: Inputs) -> Any:
    shape = node.shape
    offset, first, second = (signed(node.saved(name)) for name in ("offset", "dim1", "dim2"))
    here = torch.zeros(shape, dtype=torch.bool, device=node.device)
    diagonal = here.diagonal(offset, first, second)
    diagonal.fill_(True)
    axes = (first % len(shape), second % len(shape))
    part = graph.apply("from_diagonal", given(graph, node, 1, tuple(diagonal.shape)), offset=offset, axes=axes, shape=shape)
    return graph.apply("where", graph.data(here), part, given(graph, node, 0, shape))


# arrays of positions, and masks


def _at(node: Node) -> Index:
    """A saved index: an array of positions for each axis, or all of it. A mask is as many arrays as it has axes."""
    found: list[Any] = []
    for part in node.saved("indices"):
        if part is None:
            found.append(_ALL)
        elif part.dtype in (torch.bool, torch.uint8):
            found += part.nonzero(as_tuple=True)
        else:
            found.append(part.detach())
    return tuple(found)


def rows(graph: Any, x: Any, places: Tensor) -> Any:
    """Entries of the first axis, by positions that may count from the end."""
    return graph.apply("rows", x, graph.data(torch.where(places < 0, places + x.shape[0], places)))


def _index(graph: Any, node: Node, inputs: Inputs) -> Any:
    x, index = inputs[0], _at(node)
    while index and index[-1] is _ALL:
        index = index[:-1]
    return rows(graph, x, index[0]) if len(index) == 1 else graph.apply("getitem", x, index=index)


def _index_put(graph: Any, node: Node, inputs: Inputs) -> Any:
    part = graph.unknown_value((), node.dtype) if inputs[1] is None else inputs[1]
    op = "index_add" if node.saved("accumulate") else "index_set"
    return graph.apply(op, given(graph, node, 0, node.shape), part, index=_at(node))


def _line(node: Node, rank: int) -> tuple[int, Tensor, Index]:
    """A saved axis and a vector of positions along it; and these as an index."""
    axis, places = node.dim("dim", rank), node.saved("index").reshape(-1)
    return axis, places, (*(_ALL,) * axis, places)


def _index_select(graph: Any, node: Node, inputs: Inputs) -> Any:
    x = inputs[0]
    if x.shape == ():
        return reshaped(graph, along(graph, x, node.saved("index"), 0), node.shape)
    axis, places, index = _line(node, len(x.shape))
    return rows(graph, x, places) if axis == 0 else graph.apply("getitem", x, index=index)


def _put_lines(op: str) -> Rule:
    """Slices put, or added, at positions along an axis."""

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        shape = node.shape or (1,)
        _, _, index = _line(node, len(shape))
        base = reshaped(graph, given(graph, node, 0, node.shape), shape)
        part = graph.unknown_value((), node.dtype) if len(inputs) < 2 or inputs[1] is None else inputs[1]
        if op == "index_add":
            part = scaled(graph, part, node.saved("alpha"))
        return reshaped(graph, graph.apply(op, base, part, index=index, told=shape), node.shape)

    return rule


def _take(graph: Any, node: Node, inputs: Inputs) -> Any:
    return rows(graph, _flat(graph, inputs[0]), node.saved("index"))


def _index_fill(graph: Any, node: Node, inputs: Inputs) -> Any:
    """One number in the places of an axis, however often one is named."""
    rank = len(node.shape)
    fill = inputs[1] if len(inputs) > 1 and inputs[1] is not None else graph.unknown_value((), node.dtype)
    x = given(graph, node, 0, node.shape)
    if not rank:
        return graph.apply("broadcast_to", fill, shape=()) if node.saved("index").numel() else x
    axis, size = node.dim("dim", rank), node.shape[node.dim("dim", rank)]
    here = torch.zeros(size, dtype=torch.bool, device=node.device)
    here[node.saved("index").reshape(-1)] = True
    mask = here.reshape([size if k == axis else 1 for k in range(rank)])
    return graph.apply("where", graph.data(mask), fill, x, told=node.shape)


def _put_at(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Entries put, or added, at positions that count all entries."""
    line = _flat(graph, given(graph, node, 0, node.shape))
    places = node.saved("index").reshape(-1)
    part = _flat(graph, given(graph, node, 1, tuple(places.shape)))
    op = "index_add" if node.saved("accumulate") else "index_set"
    return reshaped(graph, graph.apply(op, line, part, index=(places,), told=line.shape), node.shape)


def _where(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Where a mask allows, counting the entries of all of an array."""
    return mask.expand(shape).reshape(-1).nonzero().reshape(-1)


def _masked_select(graph: Any, node: Node, inputs: Inputs) -> Any:
    x, mask = inputs[0], node.saved("mask")
    shape = tuple(torch.logical_or(mask, mask.new_zeros(()).expand(x.shape)).shape)
    wide = x if x.shape == shape else graph.apply("broadcast_to", x, shape=shape)
    return rows(graph, _flat(graph, wide), _where(mask, shape))


def _masked_scatter(graph: Any, node: Node, inputs: Inputs) -> Any:
    """The first entries of the second operand, where a mask allows."""
    places = _where(node.saved("mask"), node.shape)
    line = _flat(graph, given(graph, node, 0, node.shape))
    part = graph.apply("getitem", _flat(graph, given(graph, node, 1, tuple(places.shape))), index=(slice(0, len(places)),))
    return reshaped(graph, graph.apply("index_set", line, part, index=(places,), told=line.shape), node.shape)


def _masked_gather(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Entries where a mask allows, and zeros after them."""
    g, shape = inputs[0], node.shape
    places = _where(node.saved("mask"), g.shape)
    found = graph.apply("pad", rows(graph, _flat(graph, g), places), widths=((0, prod(shape) - len(places)),), told=(prod(shape),))
    return reshaped(graph, found, shape)


# embeddings


def _padding(graph: Any, node: Node, places: Tensor, rank: int) -> Any:
    """Where the row is that has no derivative, for rows with ``rank`` axes in all; ``None`` if there is none."""
    padding = signed(node.saved("padding_idx"))
    here = places == padding
    return graph.data(here.reshape(*places.shape, *(1,) * (rank - places.dim()))) if padding >= 0 and bool(here.any()) else None


def _embedding(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Rows by positions.

    Raises:
        UnsupportedNode: Gradients are divided by how often a row is taken, which makes them no derivatives.
    """
    if node.saved("scale_grad_by_freq"):
        raise UnsupportedNode(
            "backward: got EmbeddingBackward0 with scale_grad_by_freq=True; expected False, because what it gives is no derivative. "
            "Try embedding without it"
        )
    places = node.saved("indices")
    found = rows(graph, inputs[0], places)
    padding = _padding(graph, node, places, len(node.shape))
    return found if padding is None else graph.apply("where", padding, graph.unknown_value((), node.dtype), found)


def _embedding_back(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Each row added where it was taken."""
    g, places = inputs[0], node.saved("indices")
    padding = _padding(graph, node, places, len(g.shape))
    if padding is not None:
        g = graph.apply("where", padding, 0.0, g)
    return graph.apply("to_rows", g, graph.data(places), count=node.shape[0])


RULES: dict[str, Rule] = {
    "SelectBackward0": _taken(_selected),
    "SelectBackward0_copy": _taken(_selected),
    "SelectBackwardBackward0": _put(_selected),
    "SelectScatterBackward0": _replaced(_selected),
    "SliceBackward0": _taken(_sliced),
    "SliceBackward0_copy": _taken(_sliced),
    "SliceBackwardBackward0": _put(_sliced),
    "SliceScatterBackward0": _replaced(_sliced),
    "DiagonalScatterBackward0": _diagonal_replaced,
    "IndexBackward0": _index,
    "UnsafeIndexBackward0": _index,
    "IndexPutBackward0": _index_put,
    "IndexPutImplBackward0": _index_put,
    "UnsafeIndexPutBackward0": _index_put,
    "IndexSelectBackward0": _index_select,
    "IndexAddBackward0": unless_constant(_put_lines("index_add")),
    "IndexCopyBackward0": _put_lines("index_set"),
    "IndexFillBackward0": _index_fill,
    "IndexFillBackward1": _index_fill,
    "TakeBackward0": _take,
    "PutBackward0": _put_at,
    "MaskedSelectBackward0": _masked_select,
    "MaskedScatterBackward0": _masked_scatter,
    "MaskedScatterBackwardBackward0": _masked_gather,
    "EmbeddingBackward0": _embedding,
    "EmbeddingDenseBackwardBackward0": _embedding_back,
}  # fmt: skip
