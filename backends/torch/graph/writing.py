"""Nodes of writes: of all of an array, and of a part of it in place.

A write of a part is recorded for the whole array, as ``CopySlices``. What was done with the part, and where it is, the node does not tell.
But it tells what becomes of cotangents: if that does not depend on variables, the write is linear in the old array and in what was written,
and which entry came from where is found by asking with cotangents of known numbers. Else, the node is not supported.
"""

from math import prod
from typing import Any

import torch

from nestgrad.backends.torch.graph.reading import TYPES, Inputs, Node, Rule
from nestgrad.backends.torch.graph.shapes import reshaped
from nestgrad.errors import UnsupportedNode

Tensor = torch.Tensor


def _spread(graph: Any, node: Node, x: Any) -> Any:
    """``x`` broadcast to the answer, in its dtype."""
    if x is None:
        return graph.unknown_value(node.shape, node.dtype)
    x = graph.apply("cast", x, dtype=node.dtype, told=x.shape)
    return x if x.shape == node.shape else graph.apply("broadcast_to", x, shape=node.shape)


def _second(graph: Any, node: Node, inputs: Inputs) -> Any:
    """What is written over the first operand."""
    return _spread(graph, node, inputs[1])


def _nothing(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Numbers, whatever was there."""
    return graph.unknown_value(node.shape, node.dtype)


def _depends(node: Node) -> bool:
    """Whether the cotangents that a node hands on depend on anything beside the one that it gets."""
    cotangent = torch.ones(node.shape, dtype=node.dtype, device=node.device, requires_grad=True)
    found = node.pulled(cotangent, recorded=True)
    ahead: list[Any] = [x.grad_fn for x in found if x is not None and x.grad_fn is not None]
    seen: set[Any] = set(ahead)
    while ahead:
        fn = ahead.pop()
        if type(fn) not in _NATIVE or getattr(fn, "variable", cotangent) is not cotangent:
            return True
        more = {parent for parent, _ in fn.next_functions if parent is not None} - seen
        seen |= more
        ahead += more
    return False


_NATIVE = frozenset(found for found in TYPES.values() if isinstance(found, type))
"""The types of torch's own nodes."""


def _copy_slices(graph: Any, node: Node, inputs: Inputs) -> Any:
    """The old array and what was written, each with its entries where they came to be.

    Raises:
        UnsupportedNode: The write was not linear.
    """
    shape = node.shape
    count = prod(shape)
    if _depends(node):
        raise _refused()
    line = torch.arange(1.0, count + 1.0, dtype=torch.float64, device=node.device)
    mixed = torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(node.device) + 1.0
    probes = [node.pulled(v.reshape(shape)) for v in (torch.ones_like(line), line, mixed)]
    total = graph.unknown_value(shape, node.dtype)
    for x, *found in zip(inputs, *probes, strict=True):
        if x is not None:
            factor, place, check = (v.to(torch.float64) for v in found)
            places = torch.where(factor != 0.0, (place / factor).round().to(torch.int64) - 1, -1)
            exact = torch.finfo(node.dtype).eps * 8
            if not torch.allclose(factor * mixed[places.clamp(0, count - 1)], check, rtol=exact, atol=0.0):
                raise _refused()
            wide = x if x.shape == tuple(factor.shape) else graph.apply("broadcast_to", x, shape=tuple(factor.shape))
            total = graph.apply("add", total, _placed(graph, wide, factor.to(node.dtype), places, shape))
    return total


def _placed(graph: Any, x: Any, factor: Tensor, places: Tensor, shape: tuple[int, ...]) -> Any:
    """The entries of ``x`` times factors, at places that count the entries of what has this shape; zeros elsewhere."""
    kept = factor != 0.0
    ones = bool((factor[kept] == 1.0).all())
    if x.shape == shape and torch.equal(places[kept], torch.arange(places.numel(), device=places.device).reshape(shape)[kept]):
        return graph.apply("where", graph.data(kept), x, 0.0) if ones else graph.apply("mul", x, graph.data(factor))
    if not ones:
        x = graph.apply("mul", x, graph.data(factor), told=x.shape)
    index = _slices(places, shape) if bool(kept.all()) and places.numel() else None
    if index is not None:
        sizes = tuple([n for n in x.shape if n != 1])
        return graph.apply("put", reshaped(graph, x, sizes), index=index, shape=shape)
    there = kept.reshape(-1).nonzero().reshape(-1)
    entries = graph.apply("getitem", reshaped(graph, x, (places.numel(),)), index=(there,))
    put = graph.apply("put", entries, index=(places.reshape(-1)[there],), shape=(prod(shape),))
    return reshaped(graph, put, shape)


def _slices(places: Tensor, shape: tuple[int, ...]) -> tuple[int | slice, ...] | None:
    """An index by numbers and slices at which these places are, if there is one."""
    index: list[int | slice] = []
    axes: list[int] = []
    for coordinate in torch.unravel_index(places, shape):
        changing = [k for k, n in enumerate(places.shape) if n > 1 and bool(coordinate.diff(dim=k).any())]
        if not changing:
            index.append(int(coordinate.reshape(-1)[0]))
            continue
        line = coordinate[tuple([slice(None) if k == changing[0] else 0 for k in range(places.dim())])]
        start, step = int(line[0]), int(line[1] - line[0])
        if len(changing) > 1 or step < 1 or bool((line.diff() != step).any()) or (axes and axes[-1] >= changing[0]):
            return None
        axes.append(changing[0])
        index.append(slice(start, start + step * len(line), step))
    return tuple(index) if axes == [k for k, n in enumerate(places.shape) if n > 1] else None


def _refused() -> UnsupportedNode:
    return UnsupportedNode(
        "backward: got CopySlices, a write into a part of an array in place, of more than values or constant multiples of what was there; "
        "expected a write of values, because the node does not keep what was done. Try torch.where, torch.cat or index_put for it"
    )


RULES: dict[str, Rule] = {
    "CopyBackwards": _second,
    "CopySlices": _copy_slices,
    "FillBackward0": _nothing,
    "FillBackward1": _second,
    "FillBackward2": _nothing,
    "FillBackward3": _second,
    "ZeroBackward0": _nothing,
}
