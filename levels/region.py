"""A region: a part of a computation whose arrays are forgotten when it is left, all but what leaves it.

A region is entered when its function runs, and again when a backward pass comes to the nodes that were recorded meanwhile. What a pass
computes there is the region's own, too, and so is what an older level records of it. So at every order only what goes from one region
to another is stored, and what an order needs is made again from that, once each time that a pass comes by.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

from nestgrad.levels.base import Coat, now
from nestgrad.levels.recipe import Recipe, Remade, current, innermost, remade
from nestgrad.ops.table import Op


class Region:
    """The keeper of what is computed inside.

    Attributes:
        parent: The region in which this one was made.
        spans: From when to when it was entered, by the clock that gives nodes their age. The last one may be open.
        policy: A keeper whose values were used inside; results are handed over to it.
        store_waiting: Whether cotangents are stored that wait for a pass to come back.
        later: Whether ops are only noted, and run when their answers are read.
    """

    __slots__ = ("_members", "later", "parent", "policy", "spans", "store_waiting")
    lasting = False

    def __init__(self, parent: "Region | None", store_waiting: bool = False) -> None:
        self.parent = parent
        self.store_waiting = store_waiting
        self.later = False
        self.spans: list[tuple[int, float]] = []
        self.policy: Any = None
        self._members: list[Callable[[], Remade | None]] = []

    def keep(self, op: Op, value: Remade) -> None:
        """Keep a new value until the region is left."""
        recipe = value.recipe
        self._members.append(recipe.coat)
        if self.policy is None:
            for a in recipe.args:
                if a.__class__ is Recipe and a.keeper is not self:
                    self.policy = a.keeper if a.keeper.lasting else a.keeper.policy

    def remember(self, value: Remade, array: Any) -> None:
        """Keep what was made again until the region is left; outside of it, not at all."""
        here = current.get()
        while here is not None:
            if here is self:
                value.array = array
                self._members.append(value.recipe.coat)
                return
            here = here.parent

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Ops that run meanwhile are the region's own; at the end it forgets its arrays."""
        token = current.set(self)
        began = now()
        self.spans.append((began, inf))
        try:
            yield
        finally:
            current.reset(token)
            self.spans.remove((began, inf))
            ended = now()
            if ended > began + 1:  # something was recorded
                self.spans.append((began, ended))
            self.forget()

    def forget(self) -> None:
        """Let go of all arrays that can be made again."""
        members, self._members = self._members, []
        for member in members:
            value = member()
            if value is not None and value.recipe.keeper is self:
                value.forget()

    def within(self, other: "Region | None") -> bool:
        """Whether it is ``other``, or inside of it."""
        here: Region | None = self
        while here is not None and here is not other:
            here = here.parent
        return here is not None

    def enter(self, p: Any) -> Any:
        """A value that comes from outside: stored, and what is made of it is the region's own."""
        return remade(p, self)

    def leave(self, p: Any, to: "Region | None") -> Any:
        """A value that goes on to another region, or (``None``) to where there is none: stored, or the outer region's to keep."""
        return innermost(p, lambda v: self._handed(v, to) if v.__class__ is Remade else v)

    def _handed(self, value: Remade, to: "Region | None") -> Any:
        recipe = value.recipe
        if recipe.keeper.lasting:
            return value
        if to is not None and self.within(to):
            if recipe.keeper is not to and recipe.keeper.within(to):
                recipe.keeper = to
                to._members.append(recipe.coat)
            return value
        array = value.array = recipe.store()
        if to is not None:
            return value
        if self.policy is None:
            return array
        recipe.keeper = self.policy
        return value


class Spans:
    """In which region nodes are, by their age."""

    def __init__(self, regions: Iterable[Region]) -> None:
        spans = sorted((began, ended, region) for region in regions for began, ended in region.spans)  # no two begin at once
        self._began = [began for began, _, _ in spans]
        self._spans = spans
        self._outer: list[int] = []
        open_: list[int] = []
        for k, (began, _, _) in enumerate(spans):
            while open_ and spans[open_[-1]][1] < began:
                open_.pop()
            self._outer.append(open_[-1] if open_ else -1)
            open_.append(k)

    def at(self, age: int) -> int:
        """Number of the innermost span that holds ``age``; -1 if none does."""
        k = bisect_right(self._began, age) - 1
        while k >= 0 and self._spans[k][1] < age:
            k = self._outer[k]
        return k

    def region(self, k: int) -> Region | None:
        """The region of a span."""
        return None if k < 0 else self._spans[k][2]


def regions_of(p: Any) -> set[Region]:
    """The region whose array is under the coats of ``p``, and those around it."""
    found: set[Region] = set()
    while isinstance(p, Coat):
        if isinstance(p, Remade):
            region = p.recipe.keeper if p.recipe.keeper.__class__ is Region else None
            while region is not None:
                found.add(region)
                region = region.parent
            break
        p = p.value
    return found
