"""The functions that transforms run: random steps on their arguments and on whatever the program knows."""

from collections.abc import Callable, Sequence
from typing import Any

from fuzz.doors import Doors
from fuzz.pool import Value
from fuzz.truth import Array
from nestgrad import Tensor
from nestgrad.levels.base import running_now
from nestgrad.levels.coats import worn


class Body:
    """A function of some steps. It runs once.

    Args:
        program: Whose steps.
        given: The arguments.
        scalar: Whether it returns the sum of its last value.
        truth: What the arguments are inside, where that is not what they are outside.

    Attributes:
        arguments: What it was called with.
        chosen: Number of the argument that it builds on.
        out: Its last value.
        tape: The transform's.
        under: That of the next coat of the argument: the outer transform's, if there are two.
    """

    def __init__(self, program: Doors, given: Sequence[Value], scalar: bool = False, truth: Sequence[Array] | None = None) -> None:
        self.program, self.given, self.scalar = program, given, scalar
        self.truth = [v.entries for v in given] if truth is None else truth
        self.arguments: list[Value] = []
        self.chosen = program.random.randrange(len(given))
        self.out: Value | None = None
        self.tape: Any = None
        self.under: Any = None

    def __call__(self, *zs: Tensor) -> Tensor:
        """Run it."""
        p = self.program
        p.depth += 1
        before = p.transforms
        try:
            self.tape, self.under = ([coat.tape for coat in worn(zs[self.chosen].value)] * 2 + [None] * 2)[:2]
            p.transforms = running_now()[::-1]
            for k, (z, given, truth) in enumerate(zip(zs, self.given, self.truth, strict=True)):
                self.arguments.append(self.argument(f"z{k}", z, given, truth))
            mine = self.steps(self.arguments[self.chosen])
            self.out = mine
            p.line(f"return {mine.name}{'.sum()' if self.scalar else ''}")
            return mine.tensor.sum() if self.scalar else mine.tensor
        finally:
            p.depth -= 1
            p.transforms = before

    def argument(self, code: str, z: Tensor, given: Value, truth: Array) -> Value:
        """What an argument is inside: a variable of its own."""
        p = self.program
        made = p.as_variable(p.put(code, z, truth, given.ledger))
        assert made.number is not None
        own = p.tapes.mask([self.tape])
        made.ledger[made.number] = (made.ledger[made.number][0] | own, 0)
        if self.tape not in z.tracked_on():
            p.without_pass |= own
        return made

    def steps(self, mine: Value) -> Value:
        """Some steps that build on one value, rather."""
        p = self.program
        if p.chance(0.2):
            p.stack(p.fresh("S"), f"{mine.name}.backend", mine.tensor.backend)
        for _ in range(p.random.randint(1, 5)):
            made = p.step(self.next_step(p.random.random(), mine))
            mine = made if made is not None and made.small() else mine
        if p.chance(0.6):
            mine = p.step(lambda: p.operation(mine, p.random.choice(self.arguments))) or mine
        return mine

    def next_step(self, k: float, mine: Value) -> Callable[[], Value | None] | None:
        """What to do with the value in hand."""
        p = self.program
        if k < 0.5:
            return lambda: p.operation(mine)
        if k < 0.62:
            s, stack = p.some_stack()
            return lambda: self.variable_inside(mine, s, stack)
        return (lambda: p.differentiate(mine)) if k < 0.85 else None

    def variable_inside(self, v: Value, s: str, stack: Any) -> Value:
        """The imperative style inside a transform."""
        p = self.program
        made = p.put(f"{s}.tensor({v.name}, requires_grad=True)", stack.tensor(v.tensor, requires_grad=True), v.entries, v.ledger)
        return p.as_variable(made)
