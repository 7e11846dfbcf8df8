"""Where values of several levels meet: which tapes must be taken off so that no dependence is lost.

Design rule 2: a tape that one operand marks is taken off all of them if one of them is tracked there through a variable not younger
than the mark. Otherwise the marked value is truly a constant on that tape, since it cannot depend on variables made later.
"""

from collections.abc import Sequence
from math import inf
from typing import Any

from nestgrad.levels.base import Coat, Tape, tracing
from nestgrad.levels.coats import oldest, without
from nestgrad.levels.marks import NONE, Marks, join, left, opened


def settle(values: Sequence[Any], marks: Sequence[Marks]) -> tuple[list[Any], Marks]:
    """The values as they may meet, and the marks of what is made of them."""
    trace = tracing.get()
    if trace is not None:
        values, marks = trace.brought(values, marks)
    meeting = []
    union = NONE
    for p, m in zip(values, marks, strict=True):
        if isinstance(p, Coat) or m:
            p, m = opened(p, m)
        meeting.append(p)
        union = join(union, m)
    off = _clash(meeting, union)
    if not off:
        return meeting, union
    for p in meeting:
        union = left(p, off, union, "it met a value that was taken out of this level")
    return [without(p, off) for p in meeting], union


def fitted(p: Any, marks: Marks) -> tuple[Any, Marks]:
    """A result brought under the invariant: what it has recorded on a tape is younger than its mark of that tape."""
    off = _clash([p], marks) if isinstance(p, Coat) else None
    if not off:
        return p, marks
    return without(p, off), left(p, off, marks, "its own derivative had been taken out of this level")


def _clash(values: Sequence[Any], marks: Marks) -> list[Tape]:
    """Tapes on which one value is tracked through a variable that another may depend on, unrecorded."""
    return [tape for tape, moment in marks.items() if any(_within(oldest(p, tape), moment) for p in values if isinstance(p, Coat))]


def _within(age: float, moment: float) -> bool:
    return age <= moment and age < inf
