"""Hooks: what changes a partial derivative once it is complete, before others are made of it.

The law. Let ``U`` be the hooked variables. The output is a function ``F`` of them, of the variables inside that they were computed from,
and of leaves, each taken for a variable by itself. A hook replaces a derivative of ``F`` by its variables, and all others are made of that
one by Faà di Bruno's formula: they are the derivatives of ``P``, where ``P`` is the polynomial that has the derivatives of ``F``, with the
hooked ones among them, and in place of ``U`` stands how ``U`` was computed.

So variables are *expanded* one after the other, from the output to the leaves. A variable is complete when none that depends on it is still
to be expanded, and it is expanded when all hooks on it have run. Of what a hook returns for the same variable twice, what flows on is the
symmetric part; ``fetch_hgrad`` gives all of it.

A hook gets what ``Block.batched`` gives: independent axes once, which ``indeps`` tells. What is zero off them stays zero.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import factorial, prod
from string import ascii_letters
from typing import Any

from nestgrad.errors import ArgumentError, RuleError, ShapeError
from nestgrad.levels.base import Coat
from nestgrad.ops.shapes import NUMBERS
from nestgrad.partials.blocks import Block
from nestgrad.partials.graph import Graph, Ref
from nestgrad.partials.keys import placed
from nestgrad.partials.known import CHANGE
from nestgrad.partials.sources import Source, told
from nestgrad.partials.ways import Key
from nestgrad.tensor.handle import Handle

Find = Callable[[Graph, Ref, tuple[Key, ...], bool], dict[Key, Block]]
"""``(graph, root, keys, symmetric)``: the partial derivatives of a graph, as it is."""

Registered = Mapping[Key, tuple[Callable[..., Any], Sequence[Any]]]
"""For keys, in the order in which the variables were named, a hook, and these variables."""


def refuse_dependent(name: str, graph: Graph, keys: Sequence[Hashable], tensors: Sequence[Any]) -> None:
    """Check that no variable of a hook depends on another one, since neither could wait for the other.

    Args:
        name: Of the function that was called.
        graph: Knows the variables.
        keys: What it knows them by.
        tensors: They themselves.

    Raises:
        ArgumentError: If one does.
    """
    for j, key in enumerate(keys):
        behind = graph.behind(graph[key]) if len(set(keys)) > 1 else set()
        for k, other in enumerate(keys):
            if graph[other].number != graph[key].number and graph[other].number in behind:
                raise ArgumentError(
                    f"{name}: got {told(tensors[j])} (variable {j}), which depends on {told(tensors[k])} (variable {k}): that both are "
                    "complete is unreachable during backpropagation; expected variables of which none depends on another. "
                    "Try a hook on each by itself"
                )


def hooked(
    source: Source, graph: Graph, root: Ref, keys: tuple[Key, ...], symmetric: bool, attached: bool, hooks: Registered, find: Find
) -> dict[Key, Block]:
    """The partial derivatives by keys, with hooks.

    Args:
        source: The kind of graph.
        graph: In which all hooked variables are leaves, or wanted.
        root: The output.
        keys: Numbers of inputs, one for each slot.
        symmetric: Whether a key stands for all its permutations.
        attached: Whether results can be differentiated further.
        hooks: By their keys. Each runs once, and of all variables that are asked for by name, in whatever order, it changes the derivative.
        find: The derivatives without hooks.

    Raises:
        ArgumentError: If one variable of a hook depends on another, or hooks wait for each other.
        RuleError, ShapeError: If a hook returns something else than what it was given.
    """
    names = {number: key for key, number in (graph.leaves | graph.inside).items()}
    for key, (_, tensors) in hooks.items():
        refuse_dependent("backward", graph, [names[number] for number in key], tensors)
    run = _Hooks(source, graph, attached, names)
    inside = set(graph.inside.values())
    open_ = {key: hook for key, hook in hooks.items() if inside.intersection(key)}
    blocks = _Expansion(graph, root, run, find).blocks(keys, symmetric, open_) if open_ else find(graph, root, keys, symmetric)
    for key, hook in hooks.items():
        if key not in open_ and any(sorted(key) == sorted(other) for other in blocks):  # nothing is made of what is by leaves alone
            found = placed(key, blocks)
            assert found is not None
            run.changed(key, hook, blocks[found[0]].permuted(found[1]))
    for key in blocks:
        if (found := placed_alike(key, run.returned)) is not None:
            blocks[key] = run.returned[found[0]].permuted(found[1])
    return blocks


def placed_alike(key: Key, stored: Iterable[Key]) -> tuple[Key, tuple[int, ...]] | None:
    """Which of the keys has the same variables as ``key``, and at which of its slots each slot of ``key`` is."""
    for other in stored:
        if sorted(other) == sorted(key):
            free = [*range(len(other))]
            slots = []
            for number in key:
                slots.append(next(k for k in free if other[k] == number))
                free.remove(slots[-1])
            return other, tuple(slots)
    return None


class _Hooks:
    """Hooks of one call, as they run.

    Attributes:
        returned: What they returned, by their keys.
    """

    def __init__(self, source: Source, graph: Graph, attached: bool, names: Mapping[int, Hashable]) -> None:
        self.source, self.graph, self.attached, self.names = source, graph, attached, names
        self.returned: dict[Key, Block] = {}

    def changed(self, key: Key, hook: tuple[Callable[..., Any], Sequence[Any]], block: Block) -> Block:
        """What a hook makes of a block of which the slots are in its order."""
        f, tensors = hook
        context: dict[Any, set[Any]] = {}
        for number, tensor in zip(key, tensors, strict=True):
            name = self.names[number]
            context.setdefault(name[0] if isinstance(name, tuple) else name, set()).add(tensor)
        array, indeps = block.batched()
        _, _, slots = block.metadata(True)
        stamp = None
        if not isinstance(array, Coat):  # a hook may write into what it gets
            array = self.graph.base.scale(array, 1.0)
            stamp = self.graph.base.stamp(array)
        given = self.source.wrap(array), block.shapes, indeps, slots
        answer = f(given, context)
        if not isinstance(answer, (tuple, list)) or len(answer) != 4:
            raise RuleError(
                f"hook: got {_what(answer)} from the hook on {', '.join(map(told, tensors))}; expected the four things that it is given, "
                "(tensor, shapes, indeps, vperm). Try return 2 * tensor, shapes, indeps, vperm"
            )
        if answer[0] is given[0] and tuple(answer[1:]) == given[1:] and not (stamp is not None and self.graph.base.changed(array, stamp)):
            made = block
        else:
            made = self._block(block, answer, given)
        self.returned[key] = made
        return made

    def _block(self, block: Block, answer: Sequence[Any], given: Sequence[Any]) -> Block:
        for word, have, want in zip(("shapes", "indeps", "vperm"), answer[1:], given[1:], strict=True):
            if _tuples(have) != want:
                raise ShapeError(
                    f"hook: got {word} {have} from a hook; expected {want}, as it was given, because that tells how the tensor is read. "
                    "Try to change the tensor alone"
                )
        tensor, base = answer[0], self.graph.base
        value = tensor.value if isinstance(tensor, Handle) and self.attached else tensor if self.attached else self.source.array(tensor)
        if value is None or value.__class__ in NUMBERS:
            raise RuleError(f"hook: got {_what(tensor)} as the tensor that a hook returned; expected one like that which it was given")
        want = tuple(base.dressed.shape(given[0].value if isinstance(given[0], Handle) else given[0]))
        if (got := tuple(base.dressed.shape(value))) != want:
            raise ShapeError(
                f"hook: got a tensor of shape {got} from a hook; expected {want}, as it was given, because entry stands for entry"
            )
        over = base.dressed if isinstance(value, Coat) else base
        return Block.of_batched(over, value, block.out_shape, block.shapes, given[2])


def _tuples(p: Any) -> Any:
    return tuple([_tuples(x) for x in p]) if isinstance(p, (tuple, list)) else p


def _what(p: Any) -> str:
    return f"{len(p)} things" if isinstance(p, (tuple, list)) else f"a {type(p).__name__}"


class _Expansion:
    """From the output to the leaves, one hooked variable after the other.

    Attributes:
        behind: For each hooked variable inside, the numbers of the variables that it is made of; its own, too.
    """

    def __init__(self, graph: Graph, root: Ref, run: _Hooks, find: Find) -> None:
        self.graph, self.root, self.run, self.find = graph, root, run, find
        self.names = {number: key for key, number in graph.inside.items()}
        self.positions = {number: graph.input(number).number for number in (*graph.leaves.values(), *graph.inside.values())}
        self.behind: dict[int, set[int]] = {}

    def blocks(self, keys: tuple[Key, ...], symmetric: bool, hooks: Registered) -> dict[Key, Block]:
        """The derivatives by keys."""
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
                block = found.get(tuple(sorted(key)))
                if block is None:
                    block = self._zero(key)
                else:
                    block = block.permuted(_slots(key))
                back = tuple(sorted(range(len(key)), key=lambda k: (key[k], k)))
                found[tuple(sorted(key))] = self.run.changed(key, open_.pop(key), block).permuted(back)
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
                made[key] = found[tuple(sorted(key))].permuted(_slots(key))
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


def _slots(key: Key) -> tuple[int, ...]:
    """At which slot of the sorted key each slot of ``key`` is."""
    order = sorted(range(len(key)), key=lambda k: (key[k], k))
    return tuple(order.index(k) for k in range(len(key)))


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
