"""PyTorch's graph of a tensor, adopted as ops of the table.

A node is known by its type, which torch names after the operation that it is the derivative of: ``TanhBackward0``. Its rule writes down
the operation itself, of operands that are values of the graph. Everything else about derivatives follows from the ops.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from nestgrad.backends.torch.graph import (
    activations,
    attention,
    choosing,
    convolutions,
    elementwise,
    equations,
    indexing,
    layers,
    losses,
    parts,
    places,
    products,
    reductions,
    resizing,
    shapes,
    windows,
    writing,
)
from nestgrad.backends.torch.graph.calling import called
from nestgrad.backends.torch.graph.mode import recording, stands_in
from nestgrad.backends.torch.graph.reading import TYPES, Node, Rule
from nestgrad.backends.torch.graph.walking import adopt, key, tracked, unsupported

__all__ = ["RULES", "Node", "Rule", "adopt", "called", "index", "key", "recording", "stands_in", "tracked", "unsupported"]

RULES: dict[str, Rule] = {}
"""The rules of this package, by the names of the types of nodes."""

PARTS = (
    elementwise, activations, choosing, reductions, products, equations, shapes, parts, places, indexing, writing, losses, layers,
    attention, convolutions, windows, resizing,
)  # fmt: skip
"""The modules that hold them."""

for _part in PARTS:
    RULES |= _part.RULES


@cache
def index() -> Mapping[type, Rule]:
    """The rules by the types of nodes. Nodes that this torch does not have are left out."""
    return MappingProxyType({TYPES[name]: rule for name, rule in RULES.items() if name in TYPES})
