"""From a graph to blocks: one call of ``backward``."""

from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from typing import Any

from nestgrad.errors import TraceError
from nestgrad.levels.base import Coat
from nestgrad.levels.traced.recording import recording_now
from nestgrad.partials.blocks import Block
from nestgrad.partials.graph import Graph, Ref
from nestgrad.partials.hooks import hooked
from nestgrad.partials.plans import Asked, planned
from nestgrad.partials.source import Source
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
        if recording_now():
            raise TraceError(
                "backward: got a call in a function that is being traced; expected none, because what it gives would be a constant of the "
                "program. Try nestgrad.func inside, as in func.hessian; or call backward outside"
            )
        self.source, self.attached = source, attached
        self.graph = graph = Graph(source.base, inside)
        root = source.adopt(graph, tensor, index, attached)
        if seed is not None:
            weighted = graph.apply("mul", root, graph.data(source.base.dressed.cast(seed, source.dtype(tensor))))
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
    if hooks:
        find = partial(_found, call.attached)
        return hooked(call.source, call.graph, call.root, keys, symmetric, call.attached, hooks, find)
    return _found(call.attached, call.graph, call.root, keys, symmetric)


def _found(attached: bool, graph: Graph, root: Ref, keys: tuple[Key, ...], symmetric: bool) -> dict[Key, Block]:
    """The derivatives of a graph as it is."""
    plan = planned(graph, root, Asked(keys, symmetric))
    numbers = plan.numbers(graph.values, attached)
    base = graph.base
    owners = set(plan.owners).union([base.owner(p) for p in graph.values if not isinstance(p, Coat)])
    blocks = {}
    b = base.dressed
    of = {leaf: b.dtype(graph.values[leaf]) for key in plan.structures for leaf in set(key)}
    for key, structure in plan.structures.items():
        data, dtype = numbers[key], _widest(base, {of[leaf] for leaf in key})
        if data is not None and b.dtype(data) != dtype:
            data = b.cast(data, dtype)
        if data is not None and not isinstance(data, Coat):
            data = _alone(base, data, owners)
        blocks[key] = Block(
            base.dressed if isinstance(data, Coat) else base, data, structure.out_shape, structure.shapes, structure.legs, dtype
        )
    return blocks


def _widest(base: Any, dtypes: set[Any]) -> Any:
    """The dtype of a derivative by leaves of these."""
    first, *others = dtypes
    if not others:
        return first
    total = base.full((), 0.0, first)
    for dtype in others:
        total = base.add(total, base.full((), 0.0, dtype))
    return base.dtype(total)


def _alone(base: Any, data: Any, owners: set[Any]) -> Any:
    """``data`` in memory that is nobody else's: a leaf may be written into, and so may what is read of a derivative."""
    if base.owner(data) in owners:
        data = base.scale(data, 1.0)
    owners.add(base.owner(data))
    return data
