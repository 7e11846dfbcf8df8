"""What all levels share: tapes, coats, the clock, and which transform is running."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import count
from math import inf
from typing import Any, ClassVar

now = count(1).__next__
"""The clock: one process-wide counter, from which tapes have their birth and nodes their age. Atomic under CPython's lock."""

running: ContextVar["Tape | None"] = ContextVar("running", default=None)
"""Tape of the innermost transform that is running in this context."""

tracing: ContextVar[Any] = ContextVar("tracing", default=None)
"""The trace that replaces the levels of arguments by stand-ins (``levels/traced/inside.py``), if one is running in this context."""


class Tape:
    """The identity of a level.

    Attributes:
        birth: When it was made; the younger of two tapes is the outer one.
        number: The level's number where it was written (the base has 0), for people.
        records: Whether it is ``Autodiff``'s, so that variables can be put on it.
        policy: Which arrays are kept for its backward pass; ``None``: all that rules read.
        closed: Whether the transform that made it has ended. Its marks then mean nothing, and its coats count as what is inside them.
        stand_ins: Of a running transform: the tapes that stand in for older ones, above it.
        outer: Of a transform: the one that was running when it began.
        trace: Of a trace with levels, and of what stands in for levels in it: that trace. What meets a value there is brought in first.
    """

    __slots__ = ("__weakref__", "birth", "closed", "name", "number", "outer", "policy", "records", "stand_ins", "trace")

    def __init__(self, name: str, number: int, records: bool = True, policy: Any = None) -> None:
        self.birth: float = now()
        self.name = name
        self.number = number
        self.records = records
        self.policy = policy
        self.closed = False
        self.outer = running.get()
        self.stand_ins: dict[Tape, Tape] = {}
        self.trace: Any = None

    def above(self, tapes: tuple["Tape", ...]) -> tuple["Tape", ...]:
        """The tapes of a stack (innermost first) as they are while this transform runs: those made before it anew, above it.

        One stand-in for each tape, whatever stack it is asked for by: stacks that share a level share it here too.
        """
        for k, tape in enumerate(tapes):
            if tape not in self.stand_ins:
                self.stand_ins.setdefault(tape, Tape(tape.name, self.number + k + 1, tape.records, tape.policy))  # threads may ask
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
    """What a value wears for a level: the tape, the inner value, and (in subclasses) what the level adds.

    A kind of level is a subclass of it: see ``docs/adr/0003-a-level-is-a-coat.md``.

    Attributes:
        tape: The level.
        value: The inner value.
        more: Inner values beside it, such as a tangent.
        differentiates: Whether the level is one for derivatives, so that ``detach`` takes the coat off.
        worn_by_all: Whether all values of the level wear it, not only those that depend on something: the seed of a backward pass, too.
        hidden: How many axes of the inner value the outside does not see; they are the first ones.
    """

    __slots__ = ("tape", "value")
    tape: Tape
    value: Any
    more: Any = ()
    differentiates: ClassVar[bool] = True
    worn_by_all: ClassVar[bool] = False
    hidden: ClassVar[int] = 0

    def apply(self, b: Any, op: Any, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Run ``op`` where this coat is the youngest that an argument wears."""
        raise NotImplementedError

    def over(self, inner: Any) -> Any:
        """The same coat over another inner value."""
        raise NotImplementedError

    def undressed(self, args: Sequence[Any]) -> list[Any]:
        """The arguments of ``apply`` on the levels under this one: without the coat of its tape where they wear it."""
        return [a.value if isinstance(a, Coat) and a.tape is self.tape else a for a in args]

    def mapped(self, f: Callable[[Any], Any]) -> Any:
        """The same coat with ``f`` on each inner value; the coat itself if none changes."""
        inner = f(self.value)
        return self if inner is self.value else self.over(inner)

    def off(self) -> Any:
        """The inner value, for good. Where it is not what the outside sees, it must raise ``LevelError``."""
        return self.value

    def under(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The inner value's shape where the outside sees ``shape``."""
        return shape

    def detached(self, inner: Any) -> Any:
        """This coat, which does not differentiate, over what ``detach`` leaves of its inner value."""
        return self if inner is self.value else self.over(inner)

    def linked(self, g: Any) -> Any:
        """``g``, with a note that it depends on this value, if only with zero derivative, where the level takes such notes."""
        return g

    def read(self) -> Any:
        """The inner value, for leaving to plain numbers. Where that is another array than it seems, it must raise ``LevelError``."""
        return self.value

    @property
    def oldest(self) -> float:
        """Age of the oldest variable of the tape that the value depends on. A level that does not know says 0."""
        return 0.0

    @property
    def moment(self) -> float:
        """Up to which age variables of the tape may be what the value depends on. A level that does not know says infinity: always."""
        return inf
