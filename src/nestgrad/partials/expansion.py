"""How hooked variables are *expanded*: put in terms of what they were computed from, one after the other, from the output to the leaves.

A variable is complete when none that depends on it is still to be expanded, and it is expanded when all hooks on it have run. What stands
behind it in the graph is then composed with the polynomial of the derivatives so far, the changed ones among them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import factorial, prod
from string import ascii_letters
from typing import Any

from nestgrad.errors import ArgumentError
from nestgrad.partials.blocks import Block
from nestgrad.partials.graph import Graph, Ref
from nestgrad.partials.keys import matched
from nestgrad.partials.known import CHANGE
from nestgrad.partials.source import told
from nestgrad.partials.ways import Key

Find = Callable[[Graph, Ref, tuple[Key, ...], bool], dict[Key, Block]]
"""``(graph, root, keys, symmetric)``: the partial derivatives of a graph, as it is."""

Hook = tuple[Callable[..., Any], Sequence[Any]]
"""A hook, and its variables, in the order in which they were named."""

Registered = Mapping[Key, Hook]
"""Hooks by their keys, in the same order."""

Changed = Callable[[Key, Hook, Block], Block]
"""What a hook makes of a block of which the slots are in its order."""


class Expansion:
    """From the output to the leaves, one hooked variable after the other.

    Args:
        graph: In which all hooked variables are leaves, or wanted.
        root: The output.
        changed: Runs a hook.
        find: The derivatives without hooks.

    Attributes:
        behind: For each hooked variable inside, the numbers of the variables that it is made of; its own, too.
    """

    def __init__(self, graph: Graph, root: Ref, changed: Changed, find: Find) -> None:
        self.graph, self.root, self.changed, self.find = graph, root, changed, find
        self.names = {number: key for key, number in graph.inside.items()}
        self.positions = {number: graph.input(number).number for number in (*graph.leaves.values(), *graph.inside.values())}
        self.behind: dict[int, set[int]] = {}

    def blocks(self, keys: tuple[Key, ...], symmetric: bool, hooks: Registered) -> dict[Key, Block]:
        """The derivatives by keys.

        Args:
            keys: Numbers of inputs, one for each slot.
            symmetric: Whether a key stands for all its permutations.
            hooks: By their keys, each with a variable inside.

        Raises:
            ArgumentError: If hooks wait for each other.
        """
        open_ = dict(hooks)
        closed = sorted({number for key in hooks for number in key if number in self.names})
        for number in closed:
            reached = self.graph.behind(self.graph[self.names[number]])
            self.behind[number] = {other for other, position in self.positions.items() if position in reached}
        graph = self._cut(closed)
        found = self._found(graph, self.root, self._needed([*keys, *open_], closed), True)
        self.out_shape = next(iter(found.values())).out_shape if found else tuple(self.graph.program(self.root).outputs[0].shape)
        while closed:
            for key in [key for key in open_ if all(self._complete(number, closed) for number in key)]:
                base = tuple(sorted(key))
                block = found[base].permuted(matched(key, base)) if base in found else self._zero(key)
                found[base] = self.changed(key, open_.pop(key), block).permuted(matched(base, key))
            waiting = {number for key in open_ for number in key}
            last = next((number for number in closed if self._complete(number, closed) and number not in waiting), None)
            if last is None:
                raise ArgumentError(
                    f"backward: got hooks that wait for each other, on {'; and on '.join(self._told(hook) for hook in open_.values())}; "
                    "expected an order in which the derivative of each is complete before any of its variables is expanded. "
                    "Try hooks on one variable each"
                )
            closed.remove(last)
            found = self._expanded(found, last, closed, [*keys, *open_], keys if not closed else None, symmetric)
        return found

    def _told(self, hook: tuple[Any, Sequence[Any]]) -> str:
        return ", ".join(map(told, hook[1]))

    def _complete(self, number: int, closed: Iterable[int]) -> bool:
        return not any(number in self.behind[other] for other in closed if other != number)

    def _cut(self, closed: Iterable[int]) -> Graph:
        return self.graph.cut([self.names[number] for number in closed])

    def _needed(self, keys: Iterable[Key], closed: Sequence[int]) -> list[Key]:
        """Derivatives by variables that are still to be expanded, and leaves, of which those by ``keys`` are made: for each way to set the
        slots apart, a variable for each part that all its slots are behind."""
        found: dict[Key, None] = {}
        for key in keys:
            for made in _covers(key, closed, self.behind):
                found[tuple(sorted(made))] = None
        return sorted(found, key=lambda key: (len(key), key))

    def _found(self, graph: Graph, root: Ref, keys: Iterable[Key], symmetric: bool) -> dict[Key, Block]:
        """Those that are not zero because the output does not depend on the variables."""
        reached = graph.behind(root)
        there = tuple(key for key in keys if all(self.positions[number] in reached for number in key))
        return self.find(graph, root, there, symmetric) if there else {}

    def _expanded(
        self,
        found: Mapping[Key, Block],
        last: int,
        closed: Sequence[int],
        targets: Sequence[Key],
        keys: Sequence[Key] | None,
        symmetric: bool,
    ) -> dict[Key, Block]:
        """Derivatives with one variable less, ``last``, in place of which stands how it was computed.

        Those of one order are made of derivatives of no higher ones, so that what is infinite in these does not get into them.
        """
        wanted = self._needed(targets, closed) if keys is None else [*keys]
        made: dict[Key, Block] = {}
        affected: dict[int, list[Key]] = {}
        for key in wanted:
            if self.behind[last].intersection(key):
                affected.setdefault(len(key), []).append(key)
            elif tuple(sorted(key)) in found:
                made[key] = found[tuple(sorted(key))].permuted(matched(key, tuple(sorted(key))))
        before = [*closed, last]
        for some in affected.values():
            graph = self._cut(closed)
            root = self._polynomial(graph, {key: found[key] for key in self._needed(some, before) if key in found}, before)
            if root is not None:
                made |= self._found(graph, root, some, symmetric or keys is None)
        return made if keys is None else {key: made[key] if key in made else self._zero(key) for key in keys}

    def _polynomial(self, graph: Graph, blocks: Mapping[Key, Block], closed: Sequence[int]) -> Ref | None:
        """The polynomial of the changes of its variables with these derivatives; ``None`` if all are zero."""
        total: Ref | None = None
        for key, block in blocks.items():
            if block.is_zero:
                continue
            term = self._term(graph, key, block, closed)
            total = term if total is None else graph.apply("add", total, term)
        return total

    def _term(self, graph: Graph, key: Key, block: Block, closed: Sequence[int]) -> Ref:
        """``1 / k!`` of the derivative by a variable k times, times the k-th power of its change."""
        letters = iter(ascii_letters)
        made = block.structure
        word = [next(letters) for _ in made.axes]
        at = {axis: letter for letter, group in zip(word, made.axes, strict=True) for axis in group}
        changes = [graph.apply(CHANGE, graph[self.names[n]] if n in closed else graph.input(n)) for n in key]
        words = ["".join(at[k, axis] for axis in range(len(shape))) for k, shape in enumerate(made.shapes, 1)]
        out = "".join(at[0, axis] for axis in range(len(made.out_shape)))
        term: Ref = graph.data(block.array())
        spread = [(change, word) for change, word in zip(changes, words, strict=True) if word]
        if spread or "".join(word) != out:
            subscripts = f"{','.join([''.join(word), *(word for _, word in spread)])}->{out}"
            term = graph.apply("einsum", term, *(change for change, _ in spread), subscripts=subscripts)
        for change, word_ in zip(changes, words, strict=True):
            if not word_:
                term = graph.apply("mul", term, change)
        times = prod(factorial(key.count(number)) for number in set(key))
        return term if times == 1 else graph.apply("per", term, n=times)

    def _zero(self, key: Key) -> Block:
        b = self.graph.base.dressed
        shapes = [tuple(b.shape(self.graph.values[number])) for number in key]
        return Block.zero(self.graph.base, self.out_shape, shapes, b.dtype(self.graph.values[key[-1]]))


def _covers(slots: Key, closed: Sequence[int], behind: Mapping[int, set[int]]) -> Iterator[Key]:
    """For each partition of the slots the ways to choose for each part a variable that all of them are behind."""
    if not slots:
        yield ()
        return
    first, others = slots[0], slots[1:]
    for count in range(len(others) + 1):
        for chosen in combinations(range(len(others)), count):
            part = {first, *(others[k] for k in chosen)}
            over = [number for number in closed if part <= behind[number]]
            if not chosen and first not in closed:
                over.append(first)
            rest = tuple(n for k, n in enumerate(others) if k not in chosen)
            for more in _covers(rest, closed, behind) if over else ():
                for number in over:
                    yield (number, *more)
