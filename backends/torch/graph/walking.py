"""From a tensor to the nodes of PyTorch's graph under it, and from these to ops.

Without recursion, and each node once, so that graphs may be as deep and as much shared as they like.
"""

from collections.abc import Hashable, Mapping
from copy import copy
from typing import Any

import torch

from nestgrad.backends.base import no_complex
from nestgrad.backends.torch.graph.reading import TYPES, Builder, Node, Rule
from nestgrad.errors import UnsupportedNode

LEAF: Any = TYPES["AccumulateGrad"]
"""The type of the node that a leaf has."""


def tracked(x: Any) -> bool:
    """Whether torch tracks ``x``."""
    return isinstance(x, torch.Tensor) and x.requires_grad


def key(x: torch.Tensor) -> Hashable:
    """What a graph knows ``x`` by: a leaf by itself, others by the node that made them and the number of the result."""
    return x if x.grad_fn is None else (x.grad_fn, x.output_nr)


def adopt(graph: Builder, x: torch.Tensor, index: Mapping[type, Rule], attached: bool = False) -> Any:
    """Write the graph under ``x`` down as ops.

    Args:
        graph: What they are written down with. It comes to know all tensors of the graph by their ``key``.
        x: Requires gradients.
        index: By the type of a node its rule.
        attached: Whether values keep their own graphs, so that what is computed of them can be differentiated by torch.

    Returns:
        The Ref of ``x``.

    Raises:
        UnsupportedNode: Some nodes have no rule.
        GraphFreedError: The graph was freed by a backward pass.
        MutatedError: A saved tensor was written into.
        DTypeError: There are complex numbers.
    """
    if x.dtype.is_complex:
        raise no_complex(x.dtype)
    order = _order(x)
    if missing := _missing(order, index):
        raise UnsupportedNode(
            f"backward: got a graph with {', '.join(missing)}; expected nodes that have a rule, because derivatives of all orders "
            "are made of rules of ops, and not of torch's backward. Try controller.index[type(grad_fn)] = rule, which writes the node "
            "down in ops; other operations; or nested passes of torch.autograd.grad"
        )
    if x.grad_fn is None:
        return graph.leaf(x, x if attached else x.detach())
    keys: dict[tuple[Any, int], Hashable] = {}
    for fn, parents in order.items():
        if type(fn) is LEAF:
            leaf: torch.Tensor = fn.variable
            keys[fn, 0] = leaf
            graph.leaf(leaf, leaf if attached else leaf.detach())
            continue
        node = Node(graph, fn, tuple([None if p[0] is None else keys.get(p, p) for p in parents]), attached)
        _define(graph, node, index[type(fn)](graph, node, node.inputs))
    return graph[key(x)]


def unsupported(x: torch.Tensor, index: Mapping[type, Rule]) -> list[str]:
    """The names of all nodes under ``x`` without a rule, each once, in the order in which they were recorded."""
    return _missing(_order(x), index)


def _define(graph: Builder, node: Node, made: Any) -> None:
    """The results of a node, of which some may be none.

    One that is an operand is known by nobody yet: a copy may have been written into, where torch does not record.
    """
    for nr, ref in enumerate(made if made.__class__ is tuple else (made,)):
        if ref is not None:
            shape, dtype = node.fact(nr)
            if ref.known is not None and any(ref is x for x in node.inputs):
                ref = copy(ref)
                ref.known = None
            if ref.shape is None:
                ref.shape = shape
            graph.define((node.fn, nr), ref, dtype)


def _order(x: torch.Tensor) -> dict[Any, tuple[tuple[Any, int], ...]]:
    """All nodes under ``x``, operands first, each with its operands."""
    found: dict[Any, tuple[tuple[Any, int], ...]] = {}
    seen: set[Any] = set()
    ahead: list[tuple[Any, Any]] = [(x.grad_fn, None)] if x.grad_fn is not None else []
    while ahead:
        fn, parents = ahead.pop()
        if parents is not None:
            found[fn] = parents
        elif fn not in seen:
            seen.add(fn)
            parents = fn.next_functions
            ahead.append((fn, parents))
            ahead += [(p, None) for p, _ in reversed(parents) if p is not None and p not in seen]
    return found


def _missing(order: Mapping[Any, Any], index: Mapping[type, Rule]) -> list[str]:
    return [*dict.fromkeys(_name(fn) for fn in order if type(fn) not in index and type(fn) is not LEAF)]


def _name(fn: Any) -> str:
    """What a node is called; a user's own function by its Python name."""
    own = getattr(fn, "_forward_cls", None)
    return str(fn.name()).rpartition("::")[2] if own is None else f"{own.__qualname__} (a torch.autograd.Function)"
