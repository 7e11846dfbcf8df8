"""Which derivatives fit the number of levels: what perfect bookkeeping would still have recorded.

For each value the ledger holds, per variable that the value depends on, two sets of tapes: on ``tracked`` tapes all of the dependence
is recorded; on ``lost`` tapes some of it is not, since a part was taken out. It follows dependence exactly, variable by variable, where
nestgrad follows ages. Its rules:

* an operation: lost where one operand has lost it, tracked where one has it tracked and none has lost it;
* a derivative on tape ``t``, and ``inner()`` of ``t``: what was tracked on ``t`` (and, of a derivative, on younger tapes) is lost;
* ``detach(level)``: neither tracked nor lost from that level up; ``detach()``: no dependence;
* an ended transform: its tape is forgotten.

**A derivative fits** if the root depends on the variable and that dependence is tracked on one open tape at least; it is taken on the
youngest one. The derivative of a transform fits if the output's dependence on the argument is tracked on the transform's own tape.

A set of tapes is an int, one bit per tape.
"""

from typing import Any

Ledger = dict[int, tuple[int, int]]
"""Variable (its number) -> (tracked, lost)."""


class Tapes:
    """The tapes of a program, each with its bit."""

    def __init__(self) -> None:
        self._bits: dict[Any, int] = {}

    def mask(self, tapes: Any) -> int:
        """The set of these tapes."""
        total = 0
        for tape in tapes:
            total |= self._bits.setdefault(tape, 1 << len(self._bits))
        return total

    def open(self) -> int:
        """Those that have not ended."""
        return sum(bit for tape, bit in self._bits.items() if not tape.closed)

    def since(self, birth: float) -> int:
        """Those born then or later, of those known so far."""
        return sum(bit for tape, bit in self._bits.items() if tape.birth >= birth)

    def youngest(self, mask: int) -> Any:
        """The youngest of a set."""
        return max((tape for tape, bit in self._bits.items() if bit & mask), key=lambda tape: tape.birth)


def merged(*ledgers: Ledger) -> Ledger:
    """Of an operation on values with these ledgers."""
    result: Ledger = {}
    for ledger in ledgers:
        for variable, (tracked, lost) in ledger.items():
            t, l = result.get(variable, (0, 0))
            result[variable] = (t | tracked, l | lost)
    return {v: (t & ~l, l) for v, (t, l) in result.items()}


def taken_out(ledger: Ledger, tapes: int) -> Ledger:
    """After the value was taken out of these tapes."""
    return {v: (t & ~tapes, l | t & tapes) for v, (t, l) in ledger.items()}


def detached(ledger: Ledger, tapes: int) -> Ledger:
    """Where the value is a constant on these tapes."""
    kept = ((v, t & ~tapes, l & ~tapes) for v, (t, l) in ledger.items())
    return {v: (t, l) for v, t, l in kept if t or l}


def tracked(ledger: Ledger) -> int:
    """All tapes on which something is tracked."""
    total = 0
    for t, _ in ledger.values():
        total |= t
    return total
