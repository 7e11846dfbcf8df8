"""Stand-ins: the tapes that are inside a trace what others are outside."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from nestgrad.levels.base import Tape, now
from nestgrad.levels.coats import worn
from nestgrad.levels.reverse.node import Tracked
from nestgrad.levels.traced.recording import TraceTape

if TYPE_CHECKING:
    from nestgrad.levels.traced.inside import Inside


class InsideTape(TraceTape):
    """The tape of such a trace, which knows the stand-ins of tapes outside."""

    __slots__ = ("ceiling",)
    trace: "Inside"

    def __init__(self, name: str, number: int, records: bool) -> None:
        super().__init__(name, number, records)
        self.ceiling = now()

    def above(self, tapes: tuple[Tape, ...]) -> tuple[Tape, ...]:
        """What the tapes of a stack are inside: stand-ins for what they would be where the function is called."""
        here = tapes if self.outer is None or tapes[0].birth > self.outer.birth else self.outer.above(tapes)
        self.trace.asked[tapes] = here
        return tuple(self.trace.stand_in(tape) for tape in here)

    def stand_in(self, tape: Tape) -> Tape:
        """One tape for each, in the order of births, between this one and what is made inside."""
        found = self.stand_ins.get(tape)
        if found is None:
            made = Tape(tape.name, tape.number, tape.records)
            made.birth = self._between(tape)
            made.trace = self.trace
            found = self.stand_ins.setdefault(tape, made)
        return found

    def _between(self, tape: Tape) -> Any:
        low = max((made.birth for known, made in self.stand_ins.items() if known.birth < tape.birth), default=self.birth)
        high = min((made.birth for known, made in self.stand_ins.items() if known.birth > tape.birth), default=self.ceiling)
        middle = (low + high) / 2
        return middle if low < middle < high else (Fraction(low) + Fraction(high)) / 2  # where floats are too coarse


def covered(p: Any) -> set[Tape]:
    """Tapes of ``Autodiff`` levels that a value wears under a batch."""
    seen = seen_inside(p)
    return {coat.tape for coat in worn(p) if isinstance(coat, Tracked) and not coat.tape.closed and coat not in seen}


def seen_inside(p: Any) -> list[Tracked]:
    """The coats of ``Autodiff`` levels that a function sees of a value, outermost first: not those from under a batch, which holds all
    samples of what is seen."""
    coats = []
    for coat in worn(p):
        if coat.hidden and not coat.tape.closed:
            break
        if isinstance(coat, Tracked) and not coat.tape.closed:
            coats.append(coat)
    return coats
