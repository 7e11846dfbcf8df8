"""A node with several results: one that takes all their cotangents, and gives those of all its arguments, at once.

The results are nodes of their own, each with one edge to the node that they share. What flows along these edges is a ``Bundle``, which
holds the cotangents of the results; the pass adds bundles as it adds anything, and calls ``pull`` for the first argument that it leads
to. The answers for the other arguments stay in the bundle until the pass takes them.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.reverse.node import Node, Tracked, make, tracked
from nestgrad.ops.samples import Samples
from nestgrad.ops.table import SPECIAL, Op

Pull = Callable[[Any, tuple[Any, ...]], Sequence[Any]]
"""``pull(b, cotangents)``: for each parent what goes to it. A cotangent is ``None`` where nothing arrives, and so may an answer be: both
mean exactly zero."""

_TAPE = Tape("bundle", 0)
_TAPE.birth = inf  # younger than every level, so always the outermost


class Bundle(Coat):
    """Cotangents of the results of one node: by number, ``None`` where nothing has arrived."""

    __slots__ = ("answers",)
    differentiates = False
    value: tuple[Any, ...]
    answers: list[Any] | None

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> "Bundle":
        """The sum of two bundles; a pass asks for nothing else."""
        assert op.name == "add", f"{op.name} of a bundle of cotangents"
        x, y = args
        return _bundle(tuple(q if p is None else p if q is None else b.add(p, q) for p, q in zip(x.value, y.value, strict=True)))

    def mapped(self, f: Callable[[Any], Any]) -> "Bundle":
        """``f`` on each cotangent."""
        return _bundle(tuple([g if g is None else f(g) for g in self.value]))


def several(
    name: str, tape: Tape, values: Sequence[Any], shapes: Sequence[tuple[int, ...]], parents: Sequence[Node], pull: Pull
) -> list[Tracked]:
    """Results of one computation as tracked values of ``tape``.

    Args:
        name: What made them, for messages.
        tape: The level that tracks them.
        values: The results, as inner values of that level.
        shapes: Their shapes.
        parents: The nodes of the arguments, one for each that the level tracks; at least one.
        pull: Cotangents of the parents from those of the results. It runs once in a pass, with the cotangents of all results.

    Returns:
        The results, dressed.
    """
    made = Op(name, SPECIAL, ("xs",), (), (), (None,), None, False, Samples(()))
    # raw=False: bundles are added by the backend over dressed values
    shared = make(made, (), tuple((parent, _pulled, (pull, k, len(parents), parent.shape)) for k, parent in enumerate(parents)), raw=False)
    return [
        tracked(tape, value, make(made, tuple(shape), ((shared, _packed, (k, len(values))),), raw=False))
        for k, (value, shape) in enumerate(zip(values, shapes, strict=True))
    ]


def _bundle(cotangents: tuple[Any, ...]) -> Bundle:
    bundle = Bundle()
    bundle.tape, bundle.value, bundle.answers = _TAPE, cotangents, None
    return bundle


def _packed(b: Any, g: Any, k: int, n: int) -> Bundle:
    """The cotangent of result ``k`` of ``n`` as a bundle."""
    return _bundle(tuple(g if i == k else None for i in range(n)))


def _pulled(b: Any, bundle: Bundle, pull: Pull, k: int, n: int, shape: tuple[int, ...]) -> Any:
    """The answer for parent ``k``; each is given once, so that none outlives its use."""
    answers = bundle.answers
    if answers is None or answers[k] is _GIVEN:
        answers = bundle.answers = list(pull(b, bundle.value))
        assert len(answers) == n, f"pull gave {len(answers)} answers for {n} parents"
    answer, answers[k] = answers[k], _GIVEN
    if answer is None:
        like = next(g for g in bundle.value if g is not None)
        return b.base.full(shape, 0.0, b.dtype(like))
    return answer


_GIVEN = object()
