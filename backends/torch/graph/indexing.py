"""Nodes that take entries of arrays out, by numbers, slices, positions and masks, and nodes that put entries in.

Positions are data, so all of these are linear. What an array held where others come to stand is not kept, nor are numbers that are put in.
"""

from math import prod
from typing import Any

import torch

from nestgrad.backends.torch.graph.elementwise import scaled
from nestgrad.backends.torch.graph.reading import Node, Rule, signed
from nestgrad.backends.torch.graph.shapes import reshaped
from nestgrad.errors import UnsupportedNode

Inputs = tuple[Any, ...]
Tensor = torch.Tensor
Index = tuple[Any, ...]

_ALL = slice(None)


def _given(graph: Any, node: Node, i: int, shape: tuple[int, ...]) -> Any:
    """Operand ``i``, or what is unknown, of this shape, where it is not tracked."""
    ref = node.inputs[i]
    return graph.unknown_value(shape, node.dtype) if ref is None else ref


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
        return graph.apply("index_set", _given(graph, node, 0, node.shape), part, index=index)

    return rule


def _diagonal_replaced(graph: Any, node: Node, inputs: Inputs) -> Any:
    shape = node.shape
    offset, first, second = (signed(node.saved(name)) for name in ("offset", "dim1", "dim2"))
    here = torch.zeros(shape, dtype=torch.bool, device=node.device)
    diagonal = here.diagonal(offset, first, second)
    diagonal.fill_(True)
    axes = (first % len(shape), second % len(shape))
    part = graph.apply("from_diagonal", _given(graph, node, 1, tuple(diagonal.shape)), offset=offset, axes=axes, shape=shape)
    return graph.apply("where", graph.data(here), part, _given(graph, node, 0, shape))


# positions along an axis, an array of the shape of what comes out


def _lined(graph: Any, x: Any, places: Tensor) -> tuple[Any, Tensor]:
    """An array without axes, and its position, as such with one."""
    return (reshaped(graph, x, (1,)), places.reshape(-1)) if x.shape == () else (x, places.reshape(places.shape or (1,)))


def _mesh(places: Tensor, axis: int) -> Index:
    """``places`` along an axis as positions along all axes."""
    found: list[Any] = []
    for k, n in enumerate(places.shape):
        line = torch.arange(n, device=places.device).reshape(n, *(1,) * (places.dim() - k - 1))
        found.append(places if k == axis else line.expand(places.shape))
    return tuple(found)


def _beside(shape: tuple[int, ...], places: Tensor, axis: int) -> bool:
    """Whether positions along an axis are told for all of an array."""
    return all(n == m or k == axis for k, (n, m) in enumerate(zip(shape, places.shape, strict=True)))


def along(graph: Any, x: Any, places: Tensor, axis: int) -> Any:
    """The entries of ``x`` at positions along an axis, in the shape of these."""
    shape = tuple(places.shape)
    x, places = _lined(graph, x, places)
    if _beside(x.shape, places, axis):
        found = graph.apply("take_along", x, graph.data(places), axis=axis, told=tuple(places.shape))
    else:
        found = graph.apply("getitem", x, index=_mesh(places, axis), told=tuple(places.shape))
    return reshaped(graph, found, shape)


def _gather(graph: Any, node: Node, inputs: Inputs) -> Any:
    return along(graph, inputs[0], node.saved("index"), node.dim("dim", len(inputs[0].shape)))


def _ordered(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Entries that torch put in an order: it saved their positions."""
    x, places = inputs[0], node.saved("indices")
    axis = node.dim("dim", len(x.shape))
    if places.dim() < len(x.shape):  # of one of them, without its axis
        places = places.unsqueeze(axis)
    return reshaped(graph, along(graph, x, places, axis), node.shape)


def _shared(graph: Any, node: Node, inputs: Inputs) -> Any:
    """A single entry of all, as the median: equal ones share its derivative."""
    value = node.saved("self")
    found = node.saved("result").detach()
    here = torch.isnan(value) if bool(torch.isnan(found)) else value.detach() == found
    share = here.to(node.dtype) / here.sum()
    return graph.apply("sum", graph.apply("mul", inputs[0], graph.data(share)), axes=tuple(range(here.dim())), keepdims=False)


def _into(graph: Any, node: Node, number: bool = False) -> tuple[Any, Tensor, Any, int]:
    """The array that something is put into, positions, what is put there, and their axis; none of them without axes."""
    places = node.saved("index")
    axis = node.dim("dim", len(node.shape))
    part = None if number else node.inputs[1]
    if part is None:
        part = graph.unknown_value(tuple(places.shape), node.dtype)
    elif part.shape != tuple(places.shape):  # only so much of it is used
        part = graph.apply("getitem", part, index=tuple([slice(0, n) for n in places.shape]), told=tuple(places.shape))
    base, places = _lined(graph, _given(graph, node, 0, node.shape), places)
    return base, places, reshaped(graph, part, tuple(places.shape)), axis


def _scatter(number: bool) -> Rule:
    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        base, places, part, axis = _into(graph, node, number)
        if _beside(base.shape, places, axis):
            found = graph.apply("set_along", base, graph.data(places), part, axis=axis, once=False, told=base.shape)
        else:
            found = graph.apply("index_set", base, part, index=_mesh(places, axis), told=base.shape)
        return reshaped(graph, found, node.shape)

    return rule


def _unless_constant(add: Rule) -> Rule:
    """The rule ``add`` of a sum, or where what is added is a constant, for which torch saves no positions: it is unknown as a whole."""

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        if inputs[1] is None:
            return graph.apply("add", inputs[0], graph.unknown_value((), node.dtype))
        return add(graph, node, inputs)

    return rule


@_unless_constant
def _scatter_add(graph: Any, node: Node, inputs: Inputs) -> Any:
    base, places, part, axis = _into(graph, node)
    if _beside(base.shape, places, axis):
        moved = graph.apply("add_along", part, graph.data(places), axis=axis, n=base.shape[axis])
        found = graph.apply("add", base, moved, told=base.shape)
    else:
        found = graph.apply("index_add", base, part, index=_mesh(places, axis), told=base.shape)
    return reshaped(graph, found, node.shape)


def _scatter_reduce(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Sums.

    Raises:
        UnsupportedNode: Of others, or of sums without what stood there.
    """
    if node.saved("reduce") != "sum" or not node.saved("include_self"):
        raise UnsupportedNode(
            f"backward: got ScatterReduceBackward0 with reduce={node.saved('reduce')!r}, include_self={node.saved('include_self')}; "
            "expected 'sum' with what stood there, because only that is linear. Try scatter_add, or another way to write it"
        )
    return _scatter_add(graph, node, inputs)


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
    return graph.apply(op, _given(graph, node, 0, node.shape), part, index=_at(node))


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
        base = reshaped(graph, _given(graph, node, 0, node.shape), shape)
        part = graph.unknown_value((), node.dtype) if len(inputs) < 2 or inputs[1] is None else inputs[1]
        if op == "index_add":
            part = scaled(graph, part, node.saved("alpha"))
        return reshaped(graph, graph.apply(op, base, part, index=index, told=shape), node.shape)

    return rule


def _take(graph: Any, node: Node, inputs: Inputs) -> Any:
    return rows(graph, _flat(graph, inputs[0]), node.saved("index"))


def _put_at(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Entries put, or added, at positions that count all entries."""
    line = _flat(graph, _given(graph, node, 0, node.shape))
    places = node.saved("index")
    part = _given(graph, node, 1, tuple(places.shape))
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
    line = _flat(graph, _given(graph, node, 0, node.shape))
    part = graph.apply("getitem", _flat(graph, _given(graph, node, 1, tuple(places.shape))), index=(slice(0, len(places)),))
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
    "GatherBackward0": _gather,
    **dict.fromkeys(
        ("SortBackward0", "SortBackward1", "TopkBackward0", "KthvalueBackward0", "MedianBackward1", "NanmedianBackward1", "ModeBackward0",
         "CummaxBackward0", "CumminBackward0"), _ordered),
    "MedianBackward0": _shared,
    "NanmedianBackward0": _shared,
    "ScatterBackward0": _scatter(False),
    "ScatterBackward1": _scatter(True),
    "ScatterAddBackward0": _scatter_add,
    "ScatterReduceBackward0": _scatter_reduce,
    "IndexBackward0": _index,
    "UnsafeIndexBackward0": _index,
    "IndexPutBackward0": _index_put,
    "IndexPutImplBackward0": _index_put,
    "UnsafeIndexPutBackward0": _index_put,
    "IndexSelectBackward0": _index_select,
    "IndexAddBackward0": _unless_constant(_put_lines("index_add")),
    "IndexCopyBackward0": _put_lines("index_set"),
    "IndexFillBackward0": _put_lines("index_set"),
    "IndexFillBackward1": _put_lines("index_set"),
    "TakeBackward0": _take,
    "PutBackward0": _put_at,
    "MaskedSelectBackward0": _masked_select,
    "MaskedScatterBackward0": _masked_scatter,
    "MaskedScatterBackwardBackward0": _masked_gather,
    "EmbeddingBackward0": _embedding,
    "EmbeddingDenseBackwardBackward0": _embedding_back,
}  # fmt: skip
