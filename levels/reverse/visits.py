"""A backward pass among regions: it enters the region of the nodes that it comes to, and leaves it behind without their arrays."""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from nestgrad.levels.base import Coat, now
from nestgrad.levels.recipe import Remade, current, innermost, made_again, stored
from nestgrad.levels.region import Region, Spans, regions_of
from nestgrad.levels.reverse.node import Node
from nestgrad.levels.shared import Shared
from nestgrad.ops import TABLE


class Visits:
    """The regions of the nodes under a root.

    Attributes:
        levels: Whether older levels record what the pass does.
        nodes: The nodes of each span, by its number: those that were recorded in one go inside of a region.
    """

    def __init__(self, spans: Spans, nodes: Iterable[Node], dressed: Any, levels: bool) -> None:
        self._spans, self._dressed, self.levels = spans, dressed, levels
        self.nodes: dict[int, list[Node]] = {}
        for node in nodes:
            k = spans.at(node.age)
            if k >= 0:
                self.nodes.setdefault(k, []).append(node)

    def follow(
        self, nodes: list[Node], into: dict[Node, Any], cotangents: dict[Node, Any], follow: Callable[[list[Node], dict[Node, Any]], None]
    ) -> None:
        """Call ``follow`` for all nodes, in their order, each lot inside of its region.

        A cotangent that goes from one region to another is stored. All others are the region's own to forget: an older node of the same
        region that waits for them has them made again when the pass comes to it, unless the region stores what waits.
        """
        outside = here = current.get()
        try:
            for there, lot in groupby(nodes, lambda node: self._region(node, outside)):
                _move(here, there, outside)
                here = there
                if here is None or here is outside:
                    follow(list(lot), into)
                else:
                    self._visit(here, outside, list(lot), into, cotangents, follow)
        finally:
            _move(here, outside, outside)

    def _region(self, node: Node, outside: Region | None) -> Region | None:
        return self._spans.region(self._spans.at(node.age)) or outside

    def _visit(
        self,
        here: Region,
        outside: Region | None,
        lot: list[Node],
        into: dict[Node, Any],
        cotangents: dict[Node, Any],
        follow: Callable[[list[Node], dict[Node, Any]], None],
    ) -> None:
        there = set(lot)
        far: dict[Node, Region | None] = {}
        waiting: list[Node] = []
        for node in lot:
            for parent, _, _ in node.edges or ():
                if parent not in there and parent in into:
                    to = self._region(parent, outside)
                    if to is here:
                        waiting.append(parent)
                    else:
                        far[parent] = to
        arrived = {node: cotangents[node] for node in lot if node in cotangents}
        _make(arrived.values())
        noted = self.levels or (bool(waiting) and not here.store_waiting)
        for node, g in arrived.items():
            cotangents[node] = here.enter(g) if noted else g.value if g.__class__ is Remade else g
        if noted:
            into = {**into, **dict.fromkeys(there.union(far), self._dressed)}
            if not self.levels:
                into |= dict.fromkeys(waiting, Later(self._dressed, here))
        began = now()
        follow(lot, into)
        ended = now()
        if ended > began + 1:  # an older level has recorded something
            here.spans.append((began, ended))
        for parent, to in far.items():
            c = cotangents.get(parent)
            if c is not None:
                cotangents[parent] = here.leave(c, to)
        if here.store_waiting:
            for parent in waiting:
                innermost(cotangents.get(parent), _store)

    def whole(self, nodes: set[Node], sent: Mapping[Node, int]) -> set[int]:
        """Numbers of the spans that hold one of the nodes, and of which not all has been followed."""
        found = {self._spans.at(node.age) for node in nodes if node not in sent}
        running = current.get()
        return {k for k in found if k >= 0 and not (running is not None and running.within(self._spans.region(k)))}


class Reader:
    """The backend over dressed values, for rules whose answers no level records: what they read is made again, nothing is noted."""

    def __init__(self, dressed: Any) -> None:
        self._dressed = dressed
        self.base, self.shape, self.dtype = dressed.base, dressed.shape, dressed.dtype

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._dressed, name)
        if name not in TABLE:
            return method

        dressed = self._dressed

        def op(*args: Any, **params: Any) -> Any:  # by name: a method that is watched is another one
            return getattr(dressed, name)(*[a.value if a.__class__ is Remade else a for a in args], **params)

        setattr(self, name, op)
        return op


class Later:
    """The backend over dressed values, for what waits for a later visit of the same region: ops are only noted."""

    def __init__(self, dressed: Any, region: Region) -> None:
        self._dressed, self._region = dressed, region
        self.base, self.shape, self.dtype = dressed.base, dressed.shape, dressed.dtype

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._dressed, name)
        if name not in TABLE:
            return method

        dressed, region = self._dressed, self._region

        def op(*args: Any, **params: Any) -> Any:
            region.later = True
            try:
                return getattr(dressed, name)(*args, **params)
            finally:
                region.later = False

        setattr(self, name, op)
        return op


def surveyed(children: Mapping[Node, Any], seed: Any, dressed: Any) -> tuple[Visits | None, Any]:
    """The regions of all nodes, if there are any; and the backend for the rules where there are none."""
    regions: set[Region] = set()
    levels = isinstance(seed, Coat) and seed.__class__ not in (Remade, Shared)
    for node in children:
        if not node.raw:
            for _, _, saved in node.edges or ():
                for v in saved:
                    for part in v if v.__class__ is tuple else (v,):
                        if isinstance(part, Coat):
                            levels |= part.__class__ not in (Remade, Shared)
                            regions |= regions_of(part)
    b = dressed if levels else Reader(dressed)
    return Visits(Spans(regions), children, dressed, levels) if regions else None, b


def _store(v: Any) -> Any:
    if v.__class__ is Remade:
        v.array = v.recipe.store()
    return v


def _make(values: Iterable[Any]) -> None:
    """Make again, in one go, what has been forgotten of cotangents."""
    wanted: list[Remade] = []

    def note(v: Any) -> Any:
        if v.__class__ is Remade and v.array is None:
            wanted.append(v)
        return v

    for value in values:
        innermost(value, note)
    for value, array in zip(wanted, made_again([value.recipe for value in wanted]), strict=True):
        value.array = array


def early(children: Mapping[Node, list[Node]], spans: Iterable[Iterable[Node]], needed: set[Node], sent: Mapping[Node, int]) -> set[Node]:
    """Parents of the spans' nodes that are not needed yet, to which what comes from there may go at once.

    Contributions are added by age, so that sums do not depend on the order of look-ups: whatever is younger must have gone there already.
    """
    found = {parent for nodes in spans for node in nodes for parent, _, _ in node.edges or () if parent not in needed}

    def in_order(parent: Node) -> bool:
        open_ = False
        for child in sorted(children[parent], key=lambda node: node.age, reverse=True):
            if child not in needed:
                edges, bits = child.edges or (), sent.get(child, 0)
                open_ = open_ or any(edge[0] is parent and not bits >> k & 1 for k, edge in enumerate(edges))
            elif open_:
                return False
        return True

    return {parent for parent in found if in_order(parent)}


def settled(g: Any) -> Any:
    """A cotangent as it goes to whoever asked for it: stored, and without a recipe where no level records what becomes of it."""
    here = current.get()

    def handed(v: Any) -> Any:
        if v.__class__ is not Remade:
            return v if here is None else stored(v, here)
        keeper = v.recipe.keeper
        if keeper.lasting:
            v.array = v.recipe.store()
            return v
        return keeper.leave(v, here)

    g = innermost(g, handed)
    return g.array if g.__class__ is Remade and here is None else g


def _move(here: Region | None, there: Region | None, outside: Region | None) -> None:
    """Go from one region to another: those that are left, and in which nobody else is, forget their arrays."""
    current.set(there)
    while here is not None:
        if not (there is not None and there.within(here)) and not (outside is not None and outside.within(here)):
            here.forget()
        here = here.parent
