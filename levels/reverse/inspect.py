"""Looking at a tape: which of its nodes are alive, and what they hold. Costs nothing until asked; then a walk over Python's objects."""

import gc
from collections import Counter
from dataclasses import dataclass
from typing import Any

from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.recipe import Recipe, Remade
from nestgrad.levels.reverse.backward import Pass
from nestgrad.levels.reverse.node import Node, Tracked


@dataclass(frozen=True, slots=True)
class Stats:
    """What is alive on a tape.

    Attributes:
        nodes: Number of live nodes, variables included.
        bytes: Memory of the distinct arrays that they keep for their rules.
    """

    nodes: int
    bytes: int


def live(tape: Tape) -> list[Node]:
    """The live nodes of a tape, oldest first: those under a coat or a ``Gradients`` that somebody holds."""
    objects = gc.get_objects()
    stack = [o.node for o in objects if type(o) is Tracked and o.tape is tape]
    stack += [o.root for o in objects if type(o) is Pass and o.tape is tape]
    del objects
    seen: set[Node] = set()
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [parent for parent, _, _ in node.edges or ()]
    return sorted(seen, key=lambda node: node.age)


def stats(tape: Tape) -> Stats:
    """Number of live nodes, and the bytes that they keep."""
    nodes = live(tape)
    arrays: dict[int, int] = {}
    for node in nodes:
        for saved in (node.params, *(saved for _, _, saved in node.edges or ())):
            for value in saved:
                for part in value if isinstance(value, tuple) else (value,):
                    _weigh(part, arrays)
    return Stats(len(nodes), sum(arrays.values()))


def listed(tape: Tape) -> str:
    """One line for each live node: age, op, shape, ages of its parents."""
    nodes = live(tape)
    lines = [f"{tape!r}: {len(nodes)} live nodes"]
    for node in nodes:
        parents = "freed" if node.edges is None else ", ".join(f"{parent.age}" for parent, _, _ in node.edges)
        lines.append(f"{node.age:>8}  {node.name:<12} {tuple(node.shape)!s:<12} {f'<- {parents}' if parents else ''}".rstrip())
    counts = Counter(node.name for node in nodes)
    lines.append("  ".join(f"{name}: {n}" for name, n in sorted(counts.items())))
    return "\n".join(lines)


def _weigh(value: Any, arrays: dict[int, int]) -> None:
    """Add the arrays that a saved value keeps alive, each once."""
    while isinstance(value, Coat) and value.__class__ is not Remade:
        value = value.value
    stack = [value]
    seen: set[int] = set()
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if value.__class__ is Remade:
            stack += [value.array, value.recipe]
        elif value.__class__ is Recipe:
            stack += [value.there(), *value.args]
        elif isinstance(value, Coat):  # shared memory
            stack.append(value.value)
        elif isinstance(size := getattr(value, "nbytes", None), int):
            arrays[id(value)] = size
