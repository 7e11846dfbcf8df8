"""Partial derivatives of a program, each by nested levels: the numbers of a ``Way``, with their axes in order."""

from collections.abc import Sequence
from math import factorial, prod
from typing import Any

from nestgrad.levels.base import Tape
from nestgrad.levels.batched import batched, unbatch
from nestgrad.levels.forward import dual, split
from nestgrad.levels.reverse.backward import Pass
from nestgrad.levels.reverse.node import Tracked, leaves
from nestgrad.levels.taylor import coefficients, series
from nestgrad.levels.traced.program import Program
from nestgrad.partials.independence import Label, shrunk, spread
from nestgrad.partials.keys import matched
from nestgrad.partials.ways import Key, Terms, Way

MOST = 1 << 24
"""How many numbers one value may hold, for all directions at once."""

Place = tuple[Any, ...]
"""What an axis of a result is: ``("label", label)``, ``("out", axis)``, ``("slot", k, axis)``, or ``()`` for one of size 1 that goes."""


def numbers(terms: Terms, way: Way, keys: Sequence[tuple[Key, int]], values: Sequence[Any]) -> list[Any]:
    """The derivatives of a program by keys that have a way in common.

    Args:
        terms: The program.
        way: How.
        keys: The keys, and for each which of the way's targets is its last slot.
        values: Of the program's inputs; over ``base.dressed``.

    Returns:
        For each key the values of a block: axes for its legs, for the rest of the output's, for the rest of each slot's. ``None`` where
        the derivative is zero, whatever the values are.
    """
    return _Run(terms, way, keys[0][0]).numbers(keys, values)


class _Run:
    """One run of the levels.

    Attributes:
        program: The program, or what it is for one entry along the labels that it is cut along.
        together: For each forward slot, the axes of its leaf along which all entries are seeded at once.
    """

    def __init__(self, terms: Terms, way: Way, key: Key) -> None:
        self.terms, self.way = terms, way
        self.base = terms.program.base
        self.b = self.base.dressed
        legs = terms.legs(key)
        self.program: Program = shrunk(terms.program, way.cut) if way.cut else terms.program
        self.together = [
            {axis for label, axis in terms.carried[leaf].items() if label in legs and label not in way.cut} for leaf in way.forward
        ]

    def numbers(self, keys: Sequence[tuple[Key, int]], values: Sequence[Any]) -> list[Any]:
        """See ``numbers`` above."""
        way = self.way
        cuts = [Tape("entries", 0, records=False) for _ in way.cut]
        given = [self._cut(number, p, cuts) for number, p in enumerate(values)]
        sizes = [label.size for label in way.cut] + [self._size(k) for k in range(len(way.forward))]
        sizes += [self._rows] if way.targets else []
        if self.terms.curve(way):
            found = [self._raw(p, [*cuts, *[None] * len(way.forward)], sizes) for p in self._curve(given)]
            keys = [(key, len(key) - 1) for key, _ in keys]
        else:
            found = self._in_parts(given, cuts, sizes)
        return [None if found[k] is None else self._ordered(found[k], key) for key, k in keys]

    def _in_parts(self, given: list[Any], cuts: list[Tape], sizes: list[int]) -> list[Any]:
        """The results of all directions; a part of those in the first slot after another, if all at once would take too much memory."""
        if not self.way.forward:
            return self._pushed(given, cuts, sizes, None)
        place = len(cuts)
        most = max([1, *(prod(step.out.shape) for step in self.program.instructions if not step.op.results)])
        n = max(1, min(sizes[place], MOST // (most * prod(sizes[:place] + sizes[place + 1 :]))))
        if n == sizes[place]:
            return self._pushed(given, cuts, sizes, None)
        parts = []
        for start in range(0, sizes[place], n):
            part = slice(start, min(start + n, sizes[place]))
            parts.append(self._pushed([*given], cuts, [*sizes[:place], part.stop - start, *sizes[place + 1 :]], part))
        return [None if found[0] is None else self.b.concat(*found, axis=place) for found in zip(*parts, strict=True)]

    def _pushed(self, given: list[Any], cuts: list[Tape], sizes: list[int], part: slice | None) -> list[Any]:
        """The results of some directions in the first slot, and of all in the others: an axis for each batch, in front."""
        way, place = self.way, len(cuts)
        batches = [Tape("batch", 0, records=False) if n > 1 else None for n in sizes[place:]]
        tapes = [Tape("forward", 0, records=False) for _ in way.forward]  # younger, so that tangents are batches
        for k, leaf in enumerate(way.forward):
            given[leaf] = self._moving(k, given[leaf], tapes[k], batches[k], None if k else part)
        found = self._pulled(given, batches[-1]) if way.targets else list(self.program.run(self.b, given))
        for tape in reversed(tapes):
            found = [None if p is None else split(p, tape)[1] for p in found]
        return [self._raw(p, [*cuts, *batches], sizes) for p in found]

    # seeds

    def _cut(self, number: int, p: Any, tapes: Sequence[Tape]) -> Any:
        """An input as a value for each entry along the labels that it carries, with axes of size 1 in their place."""
        carried = self.terms.carried[number]
        here = [(label, tape) for label, tape in zip(self.way.cut, tapes, strict=True) if label in carried]
        p = spread(self.b, self.terms.program.inputs[number], p, [label for label, _ in here])
        for label, tape in here:
            p = batched(tape, p, label.size)
        return p

    def _shape(self, leaf: int) -> tuple[int, ...]:
        return tuple(self.program.inputs[leaf].shape)

    def _free(self, k: int) -> tuple[int, ...]:
        """The axes of a forward slot's leaf along which there is a direction for each entry."""
        return tuple(axis for axis in range(len(self._shape(self.way.forward[k]))) if axis not in self.together[k])

    def _size(self, k: int) -> int:
        """How many directions there are in a forward slot."""
        shape = self._shape(self.way.forward[k])
        return prod(shape[axis] for axis in self._free(k))

    @property
    def _rows(self) -> int:
        shape = self.terms.shape
        return prod(shape[axis] for axis in self.way.rest)

    def _seed(self, shape: Sequence[int], free: Sequence[int], dtype: Any) -> Any:
        """One for each entry along the axes ``free``, which all others share: with an axis in front, if there are more than one."""
        size = prod(shape[axis] for axis in free)
        if size == 1:
            return self.base.full(tuple(shape), 1.0, dtype)
        unit = self.base.spread(self.base.full((size,), 1.0, dtype), (0, 0))
        unit = self.base.reshape(unit, (size, *(n if axis in free else 1 for axis, n in enumerate(shape))))
        return self.base.broadcast_to(unit, (size, *shape))

    def _moving(self, k: int, p: Any, tape: Tape, batch: Tape | None, part: slice | None) -> Any:
        """The leaf of a forward slot with the slot's directions, or a part of them, as its tangent."""
        leaf = self.way.forward[k]
        seed = self._seed(self._shape(leaf), self._free(k), self.program.inputs[leaf].dtype)
        if part is not None:
            seed = self.b.getitem(seed, (part.start if batch is None else part,))
        return dual(tape, p, seed if batch is None else batched(batch, seed, self.b.shape(seed)[0]))

    # ways

    def _curve(self, given: list[Any]) -> list[Any]:
        """All slots by one leaf, in one direction: the derivatives of all orders, from Taylor coefficients."""
        tape, order, leaf = Tape("curve", 0, records=False), len(self.way.forward), self.way.forward[0]
        seed = self._seed(self._shape(leaf), self._free(0), self.program.inputs[leaf].dtype)
        given[leaf] = series(tape, given[leaf], [seed], order)
        terms = coefficients(self.program.run(self.b, given)[0], tape)
        terms += [None] * (order + 1 - len(terms))
        return [None if p is None else self.b.scale(p, float(factorial(k))) if k > 1 else p for k, p in enumerate(terms) if k]

    def _pulled(self, given: list[Any], batch: Tape | None) -> list[Any]:
        """The cotangents of the targets."""
        tape = Tape("reverse", 0)
        for leaf in self.way.targets:
            given[leaf] = leaves((tape,), given[leaf], self._shape(leaf))
        out = self.program.run(self.b, given)[0]
        if not (isinstance(out, Tracked) and out.tape is tape):
            return [None for _ in self.way.targets]
        variable = self.program.outputs[0]
        seed = self._seed(variable.shape, self.way.rest, variable.dtype)
        passing = Pass(self.b, out.node, seed if batch is None else batched(batch, seed, self._rows), tape)
        nodes = [given[leaf].node for leaf in self.way.targets]
        reached = [node for node in nodes if passing.reaches(node)]
        passing.run(reached)
        return [passing.cotangents.get(node) if node in reached else None for node in nodes]

    # results

    def _raw(self, p: Any, tapes: Sequence[Tape | None], sizes: Sequence[int]) -> Any:
        """A result without its batches: an axis for each, in front."""
        if p is None:
            return None
        for tape, size in reversed([*zip(tapes, sizes, strict=True)]):
            p = self.b.reshape(p, (1, *self.b.shape(p))) if tape is None else unbatch(self.b, p, tape, size, 0)
        return p

    def _ordered(self, p: Any, key: Key) -> Any:
        """A result with the axes of a block."""
        way, terms = self.way, self.terms
        legs = terms.legs(key)
        places: list[Place] = [("label", label) for label in way.cut]
        sizes = [label.size for label in way.cut]
        slots, last = self._slots(key)
        for k, slot in enumerate(slots):
            for axis in self._free(k):
                places.append(("slot", slot, axis))
                sizes.append(self._shape(way.forward[k])[axis])
        shape = terms.shape
        if way.targets:
            places += [("out", axis) for axis in way.rest]
            sizes += [shape[axis] for axis in way.rest]
            leaf = key[-1] if last is None else key[last]
            carried = {axis: label for label, axis in terms.carried[leaf].items() if label in legs}
            tail = [self._tail(carried.get(axis), ("slot", last, axis)) for axis in range(len(terms.shape_of(leaf)))]
            ends = self._shape(leaf)
        else:
            outs = {label.out: label for label in legs}
            tail = [self._tail(outs.get(axis), ("out", axis)) for axis in range(len(shape))]
            ends = tuple(self.program.outputs[0].shape)
        places += [place for place in tail if place]
        sizes += [n for place, n in zip(tail, ends, strict=True) if place]
        p = self.b.reshape(p, tuple(sizes))
        order = [places.index(place) for place in self._wanted(key, legs) if place in places]
        kept = [*order, *(k for k in range(len(places)) if k not in order)]  # the others have size 1
        p = self.b.permute(p, tuple(kept)) if kept != sorted(kept) else p
        return self.b.reshape(p, tuple(self._sizes(key, legs)))

    def _tail(self, label: Label | None, place: Place) -> Place:
        if label is None:
            return place
        return () if label in self.way.cut else ("label", label)

    def _slots(self, key: Key) -> tuple[tuple[int, ...], int | None]:
        """Which slots of a key the forward slots are, and which the one in reverse mode."""
        slots = matched(self.way.forward[: len(key)], key)  # along a curve there are orders beyond that
        return slots, next((k for k in range(len(key)) if k not in slots), None)

    def _wanted(self, key: Key, legs: Sequence[Label]) -> list[Place]:
        """The axes of a block."""
        along = {label.out: label for label in self.terms.labels if label.out is not None and (label in legs or label in self.way.cut)}
        found: list[Place] = [("label", label) for label in legs]
        for axis in range(len(self.terms.shape)):
            label = along.get(axis)
            if label not in legs:
                found.append(("out", axis) if label is None else ("label", label))
        for k, leaf in enumerate(key):
            carried = {axis for label, axis in self.terms.carried[leaf].items() if label in legs}
            found += [("slot", k, axis) for axis in range(len(self.terms.shape_of(leaf))) if axis not in carried]
        return found

    def _sizes(self, key: Key, legs: Sequence[Label]) -> list[int]:
        outs = {label.out for label in legs}
        sizes = [label.size for label in legs]
        sizes += [n for axis, n in enumerate(self.terms.shape) if axis not in outs]
        for leaf in key:
            carried = {axis for label, axis in self.terms.carried[leaf].items() if label in legs}
            sizes += [n for axis, n in enumerate(self.terms.shape_of(leaf)) if axis not in carried]
        return sizes
