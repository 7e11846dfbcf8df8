"""Levels that do not record: values enter them by a door and come out of them by another.

In truth, all that enters a forward or Taylor level moves with one symbol that is 0, and coefficients are derivatives by it. Of a batched
level the truth knows one of the two samples.
"""

import math
from typing import Any

from fuzz.ledger import merged, taken_out
from fuzz.lookups import LookUps
from fuzz.pool import EXPECTED, Value
from fuzz.truth import Array, add, const, derivative, mul, scaled
from nestgrad import Batched, Forward, Tensor, stack
from nestgrad.levels.base import Tape
from nestgrad.levels.coats import on, within, worn
from nestgrad.levels.marks import opened


class Doors(LookUps):
    """Steps through doors. Abstract."""

    def door(self) -> Value | None:
        """One of them."""
        s, level = self.random.choice(self.doors)
        enter = not self.inside_of(level) or self.chance(0.3)
        if isinstance(level, Batched):
            return self.batch(s, level) if enter else self.unbatch(s, level)
        return self.move(s, level) if enter else self.moved(s, level)

    # ------------------------------------------------------------------ forward and Taylor
    def move(self, s: str, level: Any) -> Value | None:
        """A value that moves, in one direction or along a curve."""
        x, tape = self.some(), level.tapes[-1]
        directions = [self.seed_for(x) for _ in range(1 if isinstance(level, Forward) else self.random.choice((1, 2)))]
        if not all(v.small() for v in (x, *directions)):
            return None
        eps, number = self.motion(tape)
        entries, power = x.entries, eps
        for d in directions:
            entries = tuple(add(e, mul(power, c)) for e, c in zip(entries, d.entries, strict=True))
            power = mul(power, eps)
        name = "dual" if isinstance(level, Forward) else "series"
        code = f"{s}.{name}({x.name}, {', '.join(d.name for d in directions)})"
        made = getattr(level, name)(x.tensor, *(d.tensor for d in directions))
        ledger = merged(x.ledger, *(d.ledger for d in directions), {number: (self.tapes.mask([tape]), 0)})
        # Under the coats of younger levels it is an operation, and made anew on all of them; else the coat is put over what x is.
        younger = any(c.tape.birth >= tape.birth and not c.tape.closed for v in (x, *directions) for c in worn(v.tensor.value))
        return self.put(code, made, entries, ledger, None if younger else x.nodes)

    def moved(self, s: str, level: Any) -> Value:
        """What has come of the motion."""
        y = self.some_on(level)
        tape = self.of(level, y)
        if isinstance(level, Forward):
            k = self.random.choice((0, 1, 1))
            code = f"{s}.{'tangent' if k else 'primal'}({y.name})"
        else:
            k = self.random.choice((0, 1, 1, 2))
            code = f"{s}.terms({y.name})[{k}]"
        fits = self.travels(y, tape) if k else 0
        true = self.coefficient(y.entries, tape, k)
        try:
            if isinstance(level, Forward):
                made = level.tangent(y.tensor) if k else level.primal(y.tensor)
            else:
                made = level.terms(y.tensor)[k]
        except EXPECTED as error:
            self.raised(code, fits, error)
            raise
        self.told(fits, true)
        self.counts["coefficients not zero"] += bool(k) and not self.zero(true)
        return self.put(code, made, true, self.after(y, tape), None if k else y.nodes)

    def coefficient(self, entries: Array, tape: Tape | None, k: int) -> Array:
        """The coefficient ``k`` of what moves on a tape."""
        if not k:
            return entries
        if tape not in self.motions:
            return tuple(const(0.0) for _ in entries)
        assert tape is not None
        eps, _ = self.motions[tape]
        for _ in range(k):
            entries = tuple(derivative(e, eps, tape.birth) for e in entries)
        return tuple(scaled(e, 1.0 / math.factorial(k)) for e in entries)

    # ------------------------------------------------------------------ batched
    def batch(self, s: str, level: Any) -> Value:
        """Two values as one."""
        tape = level.tapes[-1]
        pair = self.pair()
        made = level.batch(stack([v.tensor for v in pair]))
        known = pair[self.lane(tape)]
        return self.put(f"{s}.batch(stack([{pair[0].name}, {pair[1].name}]))", made, known.entries, merged(*(v.ledger for v in pair)))

    def pair(self) -> list[Value]:
        """Two values of one size."""
        size = self.random.choice(self.sizes)
        return [self.some(size) if any(len(v.entries) == size for v in self.pool) else self.constant(size) for _ in range(2)]

    def unbatch(self, s: str, level: Any) -> Value:
        """One value of two."""
        y = self.some_on(level)
        tape = self.of(level, y)
        k = 0 if tape is None else self.lane(tape)
        return self.put(
            f"{s}.unbatch({y.name}, size=2)[{k}]", self.sample(level.unbatch(y.tensor, size=2), k), y.entries, self.after(y, tape)
        )

    def sample(self, made: Tensor, k: int) -> Tensor:
        """Sample ``k`` of two."""
        return made[k]

    # ------------------------------------------------------------------ bookkeeping
    def inside_of(self, level: Any) -> list[Value]:
        """The values that are on a level."""
        return [v for v in self.pool if on(v.tensor.value, level.tapes[-1]) is not None]

    def some_on(self, level: Any) -> Value:
        """A value, rather one that is on a level."""
        there = self.inside_of(level)
        return self.random.choice(there[-6:]) if there and self.chance(0.9) else self.some()

    def of(self, level: Any, y: Value) -> Tape | None:
        """The tape of a level as it is for a value."""
        value, _ = opened(y.tensor.value, y.tensor.marks)
        tape: Tape | None = self.meant(level, [coat.tape for coat in worn(value)])
        return tape

    def after(self, y: Value, tape: Tape | None) -> Any:
        """The ledger of a value that has left a level: with it the younger ones are taken off."""
        if tape is None or on(y.tensor.value, tape) is None:
            return y.ledger
        return taken_out(y.ledger, self.tapes.since(tape.birth))

    def travels(self, y: Value, tape: Tape | None) -> int:
        """Whether what moves on a tape is all there in a value, and can be had: a batch above it can not leave."""
        if tape not in self.motions or any(c.hidden and c.tape.birth > tape.birth for c in within(y.tensor.value)):
            return 0
        return y.ledger.get(self.motions[tape][1], (0, 0))[0] & self.tapes.mask([tape])
