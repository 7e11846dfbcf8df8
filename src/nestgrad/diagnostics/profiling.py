"""Where the time goes: ops of the base backend, and which level asked for them."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from nestgrad.levels.base import Coat
from nestgrad.levels.watching import Go, Watcher, watch
from nestgrad.ops.shapes import NUMBERS
from nestgrad.ops.table import Op


@dataclass(slots=True)
class Row:
    """Calls of one op for one purpose.

    Attributes:
        op: The op, as the base backend has it.
        asked: Who asked for it: ``"level 0"``, a forward run that no level records; ``"Autodiff level 2"``, a forward run of which that is
            the outermost level; ``"backward of Autodiff level 2"``, the pass of that level; ``"checkpointing"``, what is computed again;
            ``"softplus"``, another op of the backend.
        calls: How many.
        own: Seconds without those of ops that it called.
        seconds: With them.
        bytes: Bytes of the arrays that it wrote. A view writes none, nor does an op that returns what another one wrote.
    """

    op: str
    asked: str
    calls: int = 0
    own: float = 0.0
    seconds: float = 0.0
    bytes: int = 0


class _Call:
    """A running call of the backend: what it calls in turn."""

    __slots__ = ("answers", "asked", "inner", "op", "outer")

    def __init__(self, op: str, asked: str, outer: "_Call | None") -> None:
        self.op, self.asked, self.outer = op, asked, outer
        self.inner = 0.0
        self.answers: list[Any] = []


class _Here(threading.local):
    """What runs in a thread.

    Attributes:
        asked: Who asks for ops, outermost first.
        call: The call that is running.
        lost: Seconds that were spent on measuring.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.call: _Call | None = None
        self.lost = 0.0


class Profile(Watcher):
    """What has run: ``print`` it for a table, or read its rows."""

    def __init__(self) -> None:
        self._here = _Here()
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str], Row] = {}

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, the one with the most time of its own first."""
        with self._lock:
            return tuple(sorted(self._rows.values(), key=lambda row: (-row.own, row.op, row.asked)))

    @property
    def calls(self) -> int:
        """Ops that levels asked for; not those that the backend's own methods called."""
        ops = {row.op for row in self.rows}
        return sum(row.calls for row in self.rows if row.asked not in ops)

    @property
    def seconds(self) -> float:
        """Time in the base backend."""
        return sum(row.own for row in self.rows)

    @property
    def bytes(self) -> int:
        """Bytes that the base backend wrote."""
        return sum(row.bytes for row in self.rows)

    def clear(self) -> None:
        """Begin anew."""
        with self._lock:
            self._rows.clear()

    def __str__(self) -> str:
        lines = [(row.op, row.asked, f"{row.calls}", *_ms(row.own, row.seconds), _size(row.bytes)) for row in self.rows]
        last = ("all", "", f"{self.calls}", *_ms(self.seconds, self.seconds), _size(self.bytes))
        table = [("op", "asked by", "calls", "own ms", "ms", "written"), *lines, last]
        widths = [max(len(line[k]) for line in table) for k in range(6)]

        def written(line: tuple[str, ...]) -> str:
            return "  ".join(cell.ljust(n) if k < 2 else cell.rjust(n) for k, (cell, n) in enumerate(zip(line, widths, strict=True)))

        return "\n".join(map(written, table))

    def __repr__(self) -> str:
        return f"<profile of {self.calls} ops, {1e3 * self.seconds:.3g} ms>"

    def op(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...], go: Go) -> Any:
        """Who asks is the outermost level that an operand is on, or the pass that is running."""
        return self._forward(args, go)

    def call(self, b: Any, values: Sequence[Any], go: Go) -> Any:
        """The same, for all that a program does."""
        return self._forward(values, go)

    def step(self, passing: Any, node: Any, go: Go) -> Any:
        """Who asks is the pass."""
        return self._asked(f"backward of {passing.tape!r}", go)

    def again(self, go: Go) -> Any:
        """Who asks is whoever decides what is stored."""
        return self._asked("checkpointing", go)

    def _forward(self, args: Sequence[Any], go: Go) -> Any:
        if self._here.asked:
            return go()
        tapes = [a.tape for a in args if isinstance(a, Coat) and 1.0 <= a.tape.birth]
        return self._asked(repr(max(tapes, key=lambda tape: tape.birth)) if tapes else NOBODY, go)

    def _asked(self, who: str, go: Go) -> Any:
        asked = self._here.asked
        asked.append(who)
        try:
            return go()
        finally:
            asked.pop()

    def work(self, base: Any, op: Op, args: tuple[Any, ...], go: Go) -> Any:
        """One call."""
        here = self._here
        began = perf_counter()
        outer = here.call
        asked = outer.op if outer is not None else here.asked[-1] if here.asked else NOBODY
        call = here.call = _Call(op.name, asked, outer)
        base.wait()
        lost = here.lost = here.lost + perf_counter() - began
        start = perf_counter()
        try:
            out = go()
            base.wait()
        finally:
            end = perf_counter()
            here.call = outer
            seconds = end - start - (here.lost - lost)
            if outer is not None:
                outer.inner += seconds
        outs = out if isinstance(out, (tuple, list)) else (out,)
        written = sum(_written(base, v, args, call.answers) for v in outs)
        with self._lock:
            row = self._rows.setdefault((op.name, asked), Row(op.name, asked))
            row.calls += 1
            row.own += seconds - call.inner
            row.seconds += seconds
            row.bytes += written
        if outer is not None:
            outer.answers += outs
        here.lost += perf_counter() - end
        return out


@contextmanager
def profile() -> Iterator[Profile]:
    """Count and time the ops of the base backends in a block: ``with ng.profile() as p: ...`` and ``print(p)``.

    One row for each op and each that asked for it: a level's forward run, a backward pass, or another op of the backend. What other threads
    run is not in it. On a GPU each op is waited for.

    Cost: some microseconds for each op, which are not in its time; outside of the block there is none. A traced function runs op by op.

    >>> import nestgrad as ng
    >>> x = ng.Autodiff(ng.NumpyBackend()).tensor([0.5, 1.0], requires_grad=True)
    >>> with profile() as p:
    ...     g = x.exp().sum().wrt(x)
    >>> sorted((row.op, row.asked, row.calls) for row in p.rows)[:2]
    [('broadcast_to', 'backward of Autodiff level 1', 1), ('exp', 'Autodiff level 1', 1)]
    """
    made = Profile()
    with watch(made):
        yield made


NOBODY = "level 0"


def _written(base: Any, out: Any, args: tuple[Any, ...], answers: list[Any]) -> int:
    if out.__class__ in NUMBERS or not hasattr(out, "shape") or any(out is v for v in answers):
        return 0
    arrays = [a for a in args if a.__class__ not in NUMBERS and hasattr(a, "shape")]
    return 0 if any(base.overlaps(out, a) for a in arrays) else int(base.nbytes(out))


def _ms(*seconds: float) -> tuple[str, ...]:
    return tuple(f"{1e3 * s:.3f}" for s in seconds)


def _size(n: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1000
    raise AssertionError(n)
