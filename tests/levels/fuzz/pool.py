"""The pool of values that a random program works on, and the check of each against the truth."""

import math
import random
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from fuzz.ledger import Ledger, Tapes, merged
from fuzz.truth import Array, Expr, exact, name, symbol
from nestgrad import Autodiff, Balanced, Batched, Forward, Taylor, Tensor
from nestgrad.backends import NumpyBackend
from nestgrad.errors import LevelError, NotConnectedError, NotTrackedError, TraceError
from nestgrad.levels.coats import oldest, worn
from nestgrad.levels.traced.wire import Wire

EXPECTED = (LevelError, NotTrackedError, NotConnectedError, TraceError)
"""What nestgrad may raise for a program that mixes levels."""

KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "Autodiff": ("Autodiff({})", Autodiff),
    "Balanced": ("Autodiff({}, checkpointing=Balanced(limit=3))", lambda inner: Autodiff(inner, checkpointing=Balanced(limit=3))),
    "Forward": ("Forward({})", Forward),
    "Taylor": ("Taylor({}, order=2)", lambda inner: Taylor(inner, order=2)),
    "Batched": ("Batched({})", Batched),
}
"""The levels that a stack is made of."""

LATEST = 1e300
"""Later than all ages, and earlier than never."""

BIG = 1e6
"""Values beyond are not operated on further: they say little about levels and much about rounding."""


class Wrong(AssertionError):
    """A number that is not the truth."""


def first_line(error: Exception) -> str:
    """What a message begins with, for a comment."""
    return str(error).partition("\n")[0][:150]


@dataclass(slots=True, eq=False)
class Value:
    """A value of the program.

    Attributes:
        entries: What it is, in truth.
        nodes: What a derivative by it means: itself, or what it is another handle on.
        number: Its number in ledgers, if the program differentiates by it.
    """

    name: str
    tensor: Tensor
    entries: Array
    nodes: Array
    ledger: Ledger
    number: int | None = None

    def small(self, limit: float = BIG) -> bool:
        """Whether its entries are fit to be operated on."""
        return all(abs(e.value()) < limit for e in self.entries)


def recording(stack: Any) -> list[int]:
    """The numbers of the levels of a stack that record."""
    numbers = []
    while stack.level:
        if stack.records:
            numbers.append(stack.level)
        stack = stack.inner
    return numbers[::-1]


class Pool:
    """Values, variables and stacks of a program, its log and its counts. Abstract: ``Program`` is the whole.

    Args:
        seed: Number of the program.
        counts: Where to count what happens.
        skip: Steps to leave out.
        base: Base backend; NumPy's in double precision if none is given.
    """

    def __init__(self, seed: int, counts: Counter[str], skip: Collection[int] = (), base: Any = None) -> None:
        self.seed, self.counts, self.skip = seed, counts, frozenset(skip)
        self.random = self.other = random.Random(f"{seed}")
        self.sizes = self.random.choice(((1,), (1,), (1, 3, 3)))
        self.log: list[str] = []
        self.depth = 0
        self.transforms: list[Any] = []
        self.freed = False
        self.pool: list[Value] = []
        self.variables: list[Value] = []
        self.kept: list[tuple[str, Any, Value, tuple[Any, ...], set[int] | None]] = []
        self.pullbacks: list[tuple[str, Any, Value, list[Value], Any]] = []
        self.tapes = Tapes()
        self.without_pass = 0  # tapes of transforms that do not record
        self.names = 0
        self.base = base or NumpyBackend()
        self.stacks: list[tuple[str, Any]] = []
        self.doors: list[tuple[str, Any]] = []
        self.namespace: dict[str, Any] = {"base": self.base}
        self.motions: dict[Any, tuple[Expr, int]] = {}
        self.lanes: dict[Any, int] = {}
        self.mixed = self.chance(0.5)
        inner, stack = "base", self.base
        for k in range(1, self.random.randint(1, 4) + 1):
            stack = self.stack(f"S{k}", inner, stack)
            inner = f"S{k}"
        if not self.stacks:
            self.stack("S0", inner, stack, "Autodiff")
        if self.random.random() < 0.25:
            self.stack("R1", "base", self.base)
            self.stack("Q2", *self.stacks[0])

    def stack(self, s: str, inner_name: str, inner: Any, kind: str | None = None) -> Any:
        """Make a level."""
        if kind is None:
            kind = self.random.choices(list(KINDS), (5, 1, 2, 2, 2))[0] if self.mixed else "Autodiff"
        code, make = KINDS[kind]
        made = self.namespace[s] = make(inner)
        self.line(f"{s} = {code.format(inner_name)}")
        if not made.records:
            self.doors.append((s, made))
        if recording(made):
            self.stacks.append((s, made))
        return made

    # ------------------------------------------------------------------ choosing
    def some(self, size: int = 0) -> Value:
        """A value, rather a recent one; of that size, or of any."""
        pool = [v for v in self.pool if len(v.entries) == size] if size else self.pool
        return self.random.choice(pool[-6:] if self.random.random() < 0.7 else pool)

    def some_variable(self, of: Value | None = None) -> Value:
        """A variable, rather one that ``of`` depends on."""
        if of is not None and self.random.random() < 0.8:
            known = [x for x in self.variables if x.number in of.ledger]
            if known:
                return self.random.choice(known)
        return self.random.choice(self.variables[-4:] if self.random.random() < 0.6 else self.variables)

    def some_stack(self) -> tuple[str, Any]:
        """A stack."""
        return self.random.choice(self.stacks)

    def chance(self, p: float) -> bool:
        """True with probability ``p``."""
        return self.random.random() < p

    def some_level(self) -> tuple[str, Any]:
        """A level of any kind."""
        return self.random.choice([*self.stacks, *self.doors])

    def motion(self, tape: Any) -> tuple[Expr, int]:
        """What moves on the tape of a forward or Taylor level: a symbol that is 0, and its number in ledgers."""
        if tape not in self.motions:
            self.names += 1
            self.motions[tape] = symbol(0.0), self.names
        return self.motions[tape]

    def lane(self, tape: Any) -> int:
        """Which of the two samples on the tape of a batched level the truth is about."""
        return self.lanes.setdefault(tape, self.random.randrange(2))

    # ------------------------------------------------------------------ writing down
    def line(self, text: str) -> None:
        """Write a line of the program down."""
        self.log.append("    " * self.depth + text)

    def fresh(self, letter: str) -> str:
        """A new name."""
        self.names += 1
        return f"{letter}{self.names}"

    def put(self, code: str, tensor: Tensor, entries: Array, ledger: Ledger, nodes: Array | None = None) -> Value:
        """Check a result against the truth and add it to the pool. Without ``nodes`` it is a value of its own."""
        entries = tuple(map(name, entries)) if nodes is None else entries
        value = Value(self.fresh("p"), tensor, entries, entries if nodes is None else nodes, ledger)
        self.line(f"{value.name} = {code}")
        self.check(code, tensor, entries)
        for tape, moment in tensor.marks.items():
            if oldest(tensor.value, tape) <= min(moment, LATEST):
                raise Wrong(f"{code}: has recorded on {tape} what is older than its mark of it")
        self.pool.append(value)
        self.namespace[value.name] = tensor
        return value

    def as_variable(self, value: Value) -> Value:
        """Let the program differentiate by ``value`` as well."""
        value.number = self.names = self.names + 1
        value.ledger = merged(value.ledger, {value.number: (self.tapes.mask(value.tensor.tracked_on()), 0)})
        self.variables.append(value)
        return value

    def check(self, code: str, tensor: Tensor, entries: Array) -> None:
        """Compare numbers with the truth; where they differ slightly, 50 digits decide who has rounded."""
        assert tensor.shape == (() if len(entries) == 1 else (len(entries),)), f"{code}: shape {tensor.shape}"
        if any(isinstance(coat, Wire) or coat.hidden for coat in worn(tensor.value) if not coat.tape.closed):
            return  # as many numbers as samples, or none that may be known; checked when it has come out
        for got, e in zip(tensor.numpy().reshape(-1).tolist(), entries, strict=True):
            right = e.value()
            if not math.isfinite(right) or abs(right) > 1e12:
                self.counts["unchecked"] += 1
            elif not abs(got - right) <= 1e-9 * max(1.0, abs(right)):
                best = float(exact(e))
                if not abs(got - best) <= 100 * abs(right - best):
                    raise Wrong(f"{code}: got {got}, right {best}")
                self.counts["round-off"] += 1

    def step(self, action: Callable[[], Value | None] | None = None) -> Value | None:
        """One step; see ``Program``."""
        raise NotImplementedError
