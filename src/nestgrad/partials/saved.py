"""What nodes of our levels keep: which words of their rules stand for which values, and how the values are read."""

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.coats import without, worn
from nestgrad.levels.recipe import Recipe, Remade, innermost, made_again
from nestgrad.levels.reverse.node import Node
from nestgrad.levels.shared import Shared
from nestgrad.ops.table import Op


class Fact(NamedTuple):
    """What an edge of an op saves, by its rule."""

    argument: int | None  # which one the rule is of; ``None`` where the word "i" tells
    i: int  # where that word is
    values: tuple[tuple[int, int], ...]  # position among what is saved, and among the arguments
    shapes: tuple[tuple[int, int], ...]
    dtypes: tuple[tuple[int, int], ...]
    words: tuple[tuple[int, str], ...]  # the answer, results, and those of ops with any number of arguments


@cache
def facts_of(op: Op) -> dict[Any, Fact] | None:
    """By what an edge calls, what it tells; ``None`` where it does not tell which argument it belongs to."""
    found = {}
    for k, rule in enumerate(op.rules):
        if rule is not None:
            if op.variadic and "i" not in rule.reads:
                return None
            told = [(j, *word.partition("_")[::2]) for j, word in enumerate(rule.reads) if word not in op.params]
            of = {kind: tuple((j, op.arguments.index(a)) for j, a, what in told if a in op.arguments and what == kind)
                  for kind in ("", "shape", "dtype")}  # fmt: skip
            words = tuple((j, word) for j, word in enumerate(rule.reads) if word in ("out", "others", "shapes", *op.results))
            i = rule.reads.index("i") if op.variadic else 0
            found[rule.call] = Fact(None if op.variadic else k, i, of[""], of["shape"], of["dtype"], words)
    return found


_NOTHING: dict[Any, Any] = {}


class Call:
    """What is known of the arguments of one node.

    Attributes:
        count: How many there are.
        parents: By position, the nodes that made them, of those that are tracked.
        kept, shapes, dtypes: By position what is known.
        words: The answer, results.
    """

    __slots__ = ("count", "dtypes", "kept", "parents", "shapes", "words")

    def __init__(self, node: Node, op: Op, facts: dict[Any, Fact]) -> None:
        parents: dict[int, Node] = {}
        kept: dict[int, Any] = {}
        self.parents, self.kept = parents, kept
        self.count = len(op.arguments)
        self.shapes = self.dtypes = self.words = _NOTHING
        for parent, call, saved in node.edges or ():
            if op.results:
                call, *saved = saved  # type: ignore[assignment]
            argument, at, values, shapes, dtypes, words = facts[call]
            parents[saved[at] if argument is None else argument] = parent
            for j, k in values:
                kept[k] = saved[j]
            if shapes:
                self.shapes = self.shapes | {k: saved[j] for j, k in shapes}
            if dtypes:
                self.dtypes = self.dtypes | {k: saved[j] for j, k in dtypes}
            if words:
                self.words = self.words | {word: saved[j] for j, word in words}
        if op.variadic:
            self.shapes = self.shapes | dict(enumerate(self.words.get("shapes", ())))
            for _, call, saved in node.edges or ():
                for j, word in facts[call].words:
                    if word == "others":
                        kept.update((k, v) for k, v in enumerate(saved[j]) if v is not None)
            self.count = len(self.shapes) or node.shape[node.params[op.params.index("axis")]]


class Values:
    """Values that were saved, as a program is to read them: raw, or in the coats of levels that look on.

    Args:
        attached: Whether coats stay on.
        tapes: Of those levels.
    """

    def __init__(self, attached: bool, tapes: Iterable[Tape]) -> None:
        self._attached, self._tapes = attached, frozenset(tapes)
        self._read: dict[int, tuple[Any, Any]] = {}
        self._forgotten: dict[int, Recipe] = {}
        self._again: dict[int, Any] = {}

    def ahead(self, saved: Iterable[Any]) -> None:
        """Values that will be asked for. Those that were forgotten are made again in one go, since one is made of the other."""
        for p in saved:
            while isinstance(p, Coat) and not isinstance(p, Remade):
                p = p.value
            if isinstance(p, Remade) and p.array is None:
                self._forgotten[id(p.recipe)] = p.recipe

    def __call__(self, saved: Any) -> Any:
        """A value.

        Raises:
            MutatedError: If its memory is shared and was written into.
        """
        if not isinstance(saved, Coat):
            return saved
        found = self._read.get(id(saved))
        if found is None:
            found = self._read[id(saved)] = saved, self._found(saved)  # with the value, so that no other one gets its id
        return found[1]

    def _found(self, saved: Coat) -> Any:
        if self._attached:
            strange = {coat.tape for coat in worn(saved) if coat.differentiates and coat.tape not in self._tapes}
            return innermost(without(saved, strange) if strange else saved, self._array)
        bottom: Any = saved
        while isinstance(bottom, Coat) and not isinstance(bottom, Remade):
            bottom = bottom.read()
        return self._array(bottom)

    def _array(self, p: Any) -> Any:
        if isinstance(p, Remade) and p.array is None and self._forgotten:
            self._again |= dict(zip(self._forgotten, made_again([*self._forgotten.values()]), strict=True))
            self._forgotten.clear()
        if isinstance(p, Remade) and p.array is None:
            return self._again[id(p.recipe)] if id(p.recipe) in self._again else p.value
        return p.read() if isinstance(p, Shared) else p.value if isinstance(p, Remade) else p
