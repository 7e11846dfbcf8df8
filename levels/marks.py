"""Marks: what a value depends on, unrecorded. A mapping from tape to moment, "variables of that tape up to that age"."""

from collections.abc import Iterable, Mapping
from typing import Any

from nestgrad.levels.base import Coat, Tape, now, tracing
from nestgrad.levels.coats import within, without

Marks = Mapping[Tape, "Moment"]

NONE: Marks = {}
"""No marks. One object, so that the test on the hot path is one of identity."""


class Moment(float):
    """An age, with the story of how a value was taken out, for error messages."""

    __slots__ = ("words",)
    words: tuple[object, ...]

    def __new__(cls, age: float, *words: object) -> "Moment":
        """An age with the words of its story, which nobody joins until an error is told."""
        self = super().__new__(cls, age)
        self.words = words
        return self

    @property
    def story(self) -> str:
        """What took the value out."""
        return " ".join(str(word) for word in self.words)


def join(a: Marks, b: Marks) -> Marks:
    """Marks of what depends on both: per tape the latest moment. Marks of tapes that have closed are dropped."""
    if a is b or not b:
        return a
    if not a:
        return b
    both = {tape: moment for tape, moment in a.items() if not tape.closed}
    for tape, moment in b.items():
        if not tape.closed and (tape not in both or moment > both[tape]):
            both[tape] = moment
    return both or NONE


def left(p: Any, tapes: Iterable[Tape], marks: Marks, story: str) -> Marks:
    """Marks of ``p`` after ``tapes`` are taken off it.

    The outermost coat knows how old its dependence is. What comes off from under other coats gets the present moment at least, since
    their records may hold more of it.
    """
    for tape in tapes:
        for coat in within(p):
            if coat.tape is tape and coat.differentiates:
                moment = coat.moment if coat is p else max(coat.moment, now())
                if tape not in marks or marks[tape] < moment:
                    marks = {**marks, tape: Moment(moment, story)}
    return marks


def entering(p: Any, marks: Marks) -> tuple[Any, Marks]:
    """A value as it is in the trace with levels that is running, if one is."""
    trace = tracing.get()
    return (p, marks) if trace is None else (trace.bring(p), trace.moved(marks))


def opened(p: Any, marks: Marks) -> tuple[Any, Marks]:
    """A value without the coats and marks of tapes that have ended.

    Coats of younger tapes stay, though what these have recorded may still wear a coat that has ended: it is transparent there, too.
    """
    coat = p
    while isinstance(coat, Coat):
        if coat.tape.closed or (coat.more and any(c.tape.closed for c in within(coat))):
            p = without(p, {coat.tape for coat in within(p) if coat.tape.closed})
            break
        coat = coat.value
    for tape in marks:
        if tape.closed:
            return p, {t: m for t, m in marks.items() if not t.closed} or NONE
    return p, marks
