"""Nodes of writes: of all of an array, and of a part of it in place.

A write of a part is recorded for the whole array, as ``CopySlices``. What was done with the part, and where it is, the node does not tell.
But it tells what becomes of cotangents: if that does not depend on variables, the write is linear in the old array and in what was written,
and which entry came from where is found by asking with cotangents of known numbers. Else, the node is not supported.
"""

from math import prod
from typing import Any

import torch

from nestgrad.backends.torch.graph.reading import Node, Rule
from nestgrad.backends.torch.graph.shapes import pulled, reshaped
from nestgrad.errors import UnsupportedNode

Inputs = tuple[Any, ...]
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
    found = pulled(node, cotangent, recorded=True)
    ahead: list[Any] = [x.grad_fn for x in found if x is not None and x.grad_fn is not None]
    seen: set[Any] = set(ahead)
    while ahead:
        fn = ahead.pop()
        if not isinstance(fn, _NATIVE) or getattr(fn, "variable", cotangent) is not cotangent:
            return True
        more = {parent for parent, _ in fn.next_functions if parent is not None} - seen
        seen |= more
        ahead += more
    return False


_NATIVE = tuple({found for found in vars(torch._C._functions).values() if isinstance(found, type)})
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
    probes = [pulled(node, v.reshape(shape)) for v in (torch.ones_like(line), line, mixed)]
    total = graph.unknown_value(shape, node.dtype)
    for x, *found in zip(inputs, *probes, strict=True):
        if x is None:
            continue
        factor, place, check = (v.to(torch.float64).reshape(-1) for v in found)
        there = factor.nonzero().reshape(-1)
        factor, place, check = factor[there], place[there], check[there]
        places = (place / factor).round().to(torch.int64) - 1
        exact = torch.finfo(node.dtype).eps * 8
        if not torch.allclose(factor * mixed[places.clamp(0, count - 1)], check, rtol=exact, atol=0.0):
            raise _refused()
        wide = x if x.shape == tuple(found[0].shape) else graph.apply("broadcast_to", x, shape=tuple(found[0].shape))
        entries = graph.apply("getitem", reshaped(graph, wide, (prod(wide.shape),)), index=(there,), told=tuple(there.shape))
        if bool((factor != 1.0).any()):
            entries = graph.apply("mul", entries, graph.data(factor.to(node.dtype)))
        put = graph.apply("put", entries, index=(places,), shape=(count,))
        total = graph.apply("add", total, reshaped(graph, put, shape))
    return total


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
