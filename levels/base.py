"""What all levels share: tapes, coats, the clock, and which transform is running."""

from contextvars import ContextVar
from itertools import count
from math import inf
from typing import Any

now = count(1).__next__
"""The clock: one process-wide counter, from which tapes have their birth and nodes their age. Atomic under CPython's lock."""

running: ContextVar["Tape | None"] = ContextVar("running", default=None)
"""Tape of the innermost transform that is running in this context."""


class Tape:
    """The identity of a level.

    Attributes:
        birth: When it was made; the younger of two tapes is the outer one.
        number: The level's number where it was written (the base has 0), for people.
        closed: Whether the transform that made it has ended. Its marks then mean nothing, and its coats count as what is inside them.
        stand_ins: Of a running transform: the tapes that stand in for older ones, above it.
        outer: Of a transform: the one that was running when it began.
    """

    __slots__ = ("__weakref__", "birth", "closed", "name", "number", "outer", "stand_ins")

    def __init__(self, name: str, number: int) -> None:
        self.birth = now()
        self.name = name
        self.number = number
        self.closed = False
        self.outer = running.get()
        self.stand_ins: dict[Tape, Tape] = {}

    def above(self, tapes: tuple["Tape", ...]) -> tuple["Tape", ...]:
        """The tapes of a stack (innermost first) as they are while this transform runs: those made before it anew, above it.

        One stand-in for each tape, whatever stack it is asked for by: stacks that share a level share it here too.
        """
        for k, tape in enumerate(tapes):
            if tape not in self.stand_ins:
                self.stand_ins.setdefault(tape, Tape(tape.name, self.number + k + 1))  # threads may ask at once
        return tuple(self.stand_ins[tape] for tape in tapes)

    def close(self) -> None:
        """End the tape, and those that were made in place of older ones while it ran."""
        self.closed = True
        for tape in self.stand_ins.values():
            tape.close()
        self.stand_ins.clear()

    def stats(self) -> Any:
        """Live nodes, and the bytes they keep: ``Stats(nodes, bytes)``. Costs a walk over Python's objects, and nothing before."""
        from nestgrad.levels.reverse.inspect import stats

        return stats(self)

    def __str__(self) -> str:
        """The live nodes, one a line: ``print(level.tape)``."""
        from nestgrad.levels.reverse.inspect import listed

        return listed(self)

    def __repr__(self) -> str:
        return f"{self.name} level {self.number}"

    def __format__(self, spec: str) -> str:
        """The short name, as messages have it."""
        return format(repr(self), spec)


def running_now() -> list[Tape]:
    """Tapes of all transforms that are running in this context, innermost first."""
    tapes = []
    tape = running.get()
    while tape is not None:
        tapes.append(tape)
        tape = tape.outer
    return tapes


class Coat:
    """What a value wears for a level: the tape, the inner value, and (in subclasses) what the level adds."""

    __slots__ = ("tape", "value")
    tape: Tape
    value: Any

    def apply(self, b: Any, op: Any, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Run ``op`` where this coat is the youngest that an argument wears."""
        raise NotImplementedError

    def over(self, inner: Any) -> Any:
        """The same coat over another inner value."""
        raise NotImplementedError

    def read(self) -> Any:
        """The inner value, for leaving to plain numbers. Where that is another array than it seems, it must raise ``LevelError``."""
        return self.value

    @property
    def oldest(self) -> float:
        """Age of the oldest variable of the tape that the value depends on."""
        raise NotImplementedError

    @property
    def moment(self) -> float:
        """Up to which age variables of the tape may be what the value depends on."""
        return inf
