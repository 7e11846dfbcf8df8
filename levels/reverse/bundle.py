"""What flows to a node with several results: the cotangents of all of them, as one value."""

from collections.abc import Callable
from math import inf
from typing import Any

from nestgrad.levels.base import Coat, Tape
from nestgrad.ops.table import Op

_TAPE = Tape("bundle", 0)
_TAPE.birth = inf  # younger than every level, so always the outermost


class Bundle(Coat):
    """Cotangents of the results of one node: by number, ``None`` where nothing has arrived.

    Attributes:
        answers: What a rule that gives those of all arguments at once has given, until it is taken.
    """

    __slots__ = ("answers",)
    differentiates = False
    value: tuple[Any, ...]
    answers: list[Any] | None

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> "Bundle":
        """The sum of two bundles; a pass asks for nothing else."""
        assert op.name == "add", f"{op.name} of a bundle of cotangents"
        x, y = args
        return bundle(tuple(q if p is None else p if q is None else b.add(p, q) for p, q in zip(x.value, y.value, strict=True)))

    def mapped(self, f: Callable[[Any], Any]) -> "Bundle":
        """``f`` on each cotangent."""
        return bundle(tuple([g if g is None else f(g) for g in self.value]))


def bundle(cotangents: tuple[Any, ...]) -> Bundle:
    """The cotangents as one value."""
    made = Bundle()
    made.tape, made.value, made.answers = _TAPE, cotangents, None
    return made


def packed(b: Any, g: Any, k: int, n: int) -> Bundle:
    """The cotangent of result ``k`` of ``n`` as a bundle: what goes along the edge from a result to the node that they share."""
    return bundle(tuple(g if i == k else None for i in range(n)))


def unpacked(b: Any, g: Bundle, rule: Callable[..., Any], *saved: Any) -> Any:
    """``rule`` on the cotangents of all results: what goes along an edge from the shared node."""
    return rule(b, g.value, *saved)
