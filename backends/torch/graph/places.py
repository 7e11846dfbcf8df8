"""Nodes that take entries along an axis by an array of positions, that put entries there, and that put entries in order.

The positions have the shape of what comes out, or of what is put in; torch saved them.
"""

from typing import Any

import torch

from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule
from nestgrad.backends.torch.graph.shapes import reshaped
from nestgrad.errors import UnsupportedNode

Tensor = torch.Tensor
Index = tuple[Any, ...]


def given(graph: Any, node: Node, i: int, shape: tuple[int, ...]) -> Any:
    """Operand ``i``, or what is unknown, of this shape, where it is not tracked."""
    ref = node.inputs[i]
    return graph.unknown_value(shape, node.dtype) if ref is None else ref


def unless_constant(add: Rule) -> Rule:
    """The rule ``add`` of a sum, or where what is added is a constant, for which torch saves no positions: it is unknown as a whole."""

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        if inputs[1] is None:
            return graph.apply("add", inputs[0], graph.unknown_value((), node.dtype))
        return add(graph, node, inputs)

    return rule


def _lined(graph: Any, x: Any, places: Tensor) -> tuple[Any, Tensor]:
    """An array without axes, and its position, as such with one."""
    places = places.to(torch.int64)  # those of nothing may be of any dtype
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
    places = node.saved("index").long()  # torch takes an empty one of any dtype, and of any number of axes
    if not places.numel():
        return graph.unknown_value(node.shape, node.dtype)
    return along(graph, inputs[0], places, node.dim("dim", len(inputs[0].shape)))


def ordered(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Entries that torch put in an order, or one of them that it chose: it saved their positions."""
    x, places = inputs[0], node.saved("indices")
    axis = node.dim("dim", len(x.shape))
    if places.dim() < len(x.shape):  # of one of them, without its axis
        places = places.unsqueeze(axis)
    return reshaped(graph, along(graph, x, places, axis), node.shape)


def shared(graph: Any, node: Node, inputs: Inputs) -> Any:
    """A single entry of all, as the median or the greatest: equal ones share its derivative."""
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
    base, places = _lined(graph, given(graph, node, 0, node.shape), places)
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


@unless_constant
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


RULES: dict[str, Rule] = {
    "GatherBackward0": _gather,
    **dict.fromkeys(
        ("SortBackward0", "SortBackward1", "TopkBackward0", "KthvalueBackward0", "MedianBackward1", "NanmedianBackward1", "ModeBackward0",
         "CummaxBackward0", "CumminBackward0"), ordered),
    "MedianBackward0": shared,
    "NanmedianBackward0": shared,
    "ScatterBackward0": _scatter(False),
    "ScatterBackward1": _scatter(True),
    "ScatterAddBackward0": _scatter_add,
    "ScatterReduceBackward0": _scatter_reduce,
}  # fmt: skip
