"""From a graph to blocks: one call of ``backward``."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from nestgrad.levels.base import Coat
from nestgrad.partials.blocks import Block
from nestgrad.partials.graph import Graph
from nestgrad.partials.plans import Asked, planned
from nestgrad.partials.sources import Source
from nestgrad.partials.ways import Key


class Call:
    """One graph, read.

    Attributes:
        graph: Its ops.
        root: The output; with weights, their sum.
        attached: Whether results can be differentiated further.
        leaves: By key, the numbers of the leaves' inputs.
        numbers: These, and those of variables inside.
    """

    def __init__(
        self, source: Source, tensor: Any, index: Mapping[Any, Any], inside: Iterable[Hashable], seed: Any, attached: bool
    ) -> None:
        self.source, self.attached = source, attached
        self.graph = graph = Graph(source.base, inside)
        root = source.adopt(graph, tensor, index, attached)
        if seed is not None:
            weighted = graph.apply("mul", root, graph.data(seed))
            root = graph.apply("sum", weighted, axes=tuple(range(len(source.shape(tensor)))), keepdims=False)
        self.root = root
        self.leaves = dict(graph.leaves)
        self.numbers = graph.leaves | graph.inside


def computed(call: Call, keys: tuple[Key, ...], symmetric: bool, hooks: Mapping[Key, Any]) -> dict[Key, Block]:
    """The partial derivatives by keys.

    Args:
        call: The graph.
        keys: Numbers of inputs, one for each slot.
        symmetric: Whether a key stands for all its permutations.
        hooks: For keys, what changes their derivatives.
    """
    graph = call.graph
    plan = planned(graph, call.root, Asked(keys, symmetric))
    numbers = plan.numbers(graph.values, call.attached)
    blocks = {}
    for key, structure in plan.structures.items():
        data = numbers[key]
        base = graph.base.dressed if isinstance(data, Coat) else graph.base
        dtype = graph.base.dtype(graph.values[key[-1]]) if data is None else None
        blocks[key] = Block(base, data, structure.out_shape, structure.shapes, structure.legs, dtype)
    return blocks
