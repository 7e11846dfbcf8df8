"""A node with several results: one that takes all their cotangents, and gives those of all its arguments, at once.

The results are nodes of their own, each with one edge to the node that they share. What flows along these edges is a ``Bundle``, which
holds the cotangents of the results; the pass adds bundles as it adds anything, and calls ``pull`` for the first argument that it leads
to. The answers for the other arguments stay in the bundle until the pass takes them.
"""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad.levels.base import Tape
from nestgrad.levels.reverse.bundle import Bundle
from nestgrad.levels.reverse.node import Node, Tracked, fanned, make
from nestgrad.ops.samples import Samples
from nestgrad.ops.table import SPECIAL, Op

Pull = Callable[[Any, tuple[Any, ...]], Sequence[Any]]
"""``pull(b, cotangents)``: for each parent what goes to it. A cotangent is ``None`` where nothing arrives, and so may an answer be: both
mean exactly zero."""

def several(
    name: str,
    tape: Tape,
    values: Sequence[Any],
    shapes: Sequence[tuple[int, ...]],
    parents: Sequence[Node],
    pull: Pull,
    params: tuple[Any, ...] = (),
) -> list[Tracked]:
    """Results of one computation as tracked values of ``tape``.

    Args:
        name: What made them, for messages.
        tape: The level that tracks them.
        values: The results, as inner values of that level.
        shapes: Their shapes.
        parents: The nodes of the arguments, one for each that the level tracks; at least one.
        pull: Cotangents of the parents from those of the results. It runs once in a pass, with the cotangents of all results.
        params: What the shared node is to tell of the computation.

    Returns:
        The results, dressed.
    """
    made = Op(name, SPECIAL, ("xs",), (), (), (None,), None, False, Samples(()))
    # raw=False: bundles are added by the backend over dressed values
    edges = tuple((parent, _pulled, (pull, k, len(parents), parent.shape)) for k, parent in enumerate(parents))
    shared = make(made, (), edges, False, params)
    n = len(values)
    return [fanned(tape, made, shared, k, n, value, tuple(shape)) for k, (value, shape) in enumerate(zip(values, shapes, strict=True))]


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
