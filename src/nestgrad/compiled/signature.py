"""The signature of a call: what a program that was recorded for one call must find again in another.

For arguments without coats it is shapes and dtypes. For those on levels it is, beside these, the pattern: who wears a coat of the same
tape, who shares a node, who has a history, who is marked, and the order of all ages, which the rules compare; but not which tapes
they are, so a stack that is made anew for each step, or each run of a transform, needs no new trace.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.coats import within, worn
from nestgrad.levels.marks import Marks
from nestgrad.levels.reverse.node import Tracked


@dataclass(frozen=True, slots=True)
class Pattern:
    """How values live on levels.

    Attributes:
        key: What two calls have in common if the same program is right for both.
        tapes: The tapes, by age; the key names them by their places here.
    """

    key: Any
    tapes: tuple[Tape, ...]


FLAT = Pattern((), ())
"""Of values without coats and marks."""


def pattern(values: Sequence[Any], marks: Sequence[Marks]) -> Pattern:
    """The pattern of values that are open, and of their marks."""
    if not any(marks) and not any(isinstance(p, Coat) for p in values):
        return FLAT
    found = {coat.tape for p in values for coat in within(p)}.union(*marks)
    tapes = tuple(sorted(found, key=lambda tape: tape.birth))
    place = {tape: k for k, tape in enumerate(tapes)}
    nodes: dict[Any, int] = {}
    coats = tuple(tuple(_coat(coat, place, nodes) for coat in worn(p)) for p in values)
    noted = tuple(tuple(sorted(place[tape] for tape in m)) for m in marks)
    numbers = tuple(tape.number for tape in tapes)  # which detach(level=2) goes by
    return Pattern((coats, noted, numbers, _order(values, marks)), tapes)


def _coat(coat: Coat, place: dict[Tape, int], nodes: dict[Any, int]) -> Any:
    """What one coat is in a pattern: its kind and tape; of a tracked value who shares its node, and whether it has a history."""
    if isinstance(coat, Tracked):
        return "tracked", place[coat.tape], nodes.setdefault((coat.tape, coat.node), len(nodes)), coat.node.edges == ()
    return type(coat), place[coat.tape], tuple(place[part.tape] for more in coat.more for part in within(more))


def _order(values: Sequence[Any], marks: Sequence[Marks]) -> tuple[int, ...]:
    """The ranks of all ages and moments."""
    tracked = [coat for p in values for coat in worn(p) if isinstance(coat, Tracked)]
    ages = [age for coat in tracked for age in (coat.node.lo, coat.node.age)]
    moments = [float(m[tape]) for m in marks for tape in sorted(m, key=lambda tape: tape.birth)]
    return ranks([*ages, *moments])


def ranks(numbers: Iterable[Any]) -> tuple[int, ...]:
    """The place of each number in their order, the same for equal ones.

    >>> ranks([10, 3, 3, 7])
    (2, 0, 0, 1)
    """
    listed = list(numbers)
    place = {number: k for k, number in enumerate(sorted(set(listed)))}
    return tuple(place[number] for number in listed)
