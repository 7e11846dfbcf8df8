"""``attach``: a value whose derivative is given, whatever it was made of.

``attach(out, *saved, *xs)`` is ``out``. On a level that differentiates it depends on ``xs`` by the given rules, and on nothing else: how
``out`` was computed does not count there. The rules run on what is under the coat of that level: saved values that are recorded on levels
further in are differentiated there again, so derivatives of any order follow. Being an op, it is in programs, too.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from nestgrad.custom.transposition import Linear, linear
from nestgrad.errors import LevelError
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.batched import Batch, batched
from nestgrad.levels.collapsed import Jets, Lanes, jets
from nestgrad.levels.forward import Dual, dual, split
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.levels.reverse.several import several
from nestgrad.levels.taylor import Series, coefficients, series
from nestgrad.ops.batching import repeated
from nestgrad.ops.samples import Samples
from nestgrad.ops.table import SPECIAL, Op, Rule


class Rules(ABC):
    """What is given for one value: how cotangents are pulled back, and tangents pushed forward.

    Attributes:
        name: Of the function, for messages.
        count: How many values were saved.
        reads_xs, reads_out: Whether rules read the arguments, and the answer as it is on the levels further in.
    """

    name: str
    count: int = 0
    reads_xs: bool = False
    reads_out: bool = False

    @abstractmethod
    def pull(self, b: Any, g: Any, out: Any, saved: Sequence[Any], xs: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
        """For each of ``xs`` its cotangent, or ``None`` for zero. Those that are not ``wanted`` are not used."""

    @abstractmethod
    def push(self, b: Any, ts: Sequence[Any], out: Any, saved: Sequence[Any], xs: Sequence[Any]) -> Any:
        """The tangent of the answer for tangents of ``xs``, of which some are ``None``; ``None`` for zero."""

    def __str__(self) -> str:
        return self.name


def attach(b: Any, rules: Rules, out: Any, saved: Sequence[Any], xs: Sequence[Any]) -> Any:
    """``out`` with derivatives by ``xs`` as the rules say, on every level that one of ``xs`` wears."""
    assert len(saved) == rules.count
    return b.run(ATTACH, [out, *saved, *xs], (rules,))


def _parts(rules: Rules, args: Sequence[Any]) -> tuple[Any, Sequence[Any], Sequence[Any]]:
    return args[0], args[1 : 1 + rules.count], args[1 + rules.count :]


def _on(p: Any, tape: Tape) -> bool:
    return isinstance(p, Coat) and p.tape is tape


def _reverse(b: Any, coat: Tracked, op: Op, args: Sequence[Any], params: tuple[Rules]) -> Any:
    """One node, from which the rule gives the cotangents of all arguments at once."""
    tape, rules = coat.tape, params[0]
    inner = [a.value if _on(a, tape) else a for a in args]
    out = b.run(op, inner, params)
    whole, _, xs = _parts(rules, args)
    wanted = [i for i, x in enumerate(xs) if _on(x, tape)]
    if _on(whole, tape):
        _refuse_others(rules, tape, whole.node, {xs[i].node for i in wanted})
    if not wanted:
        return out
    _, saved, values = _parts(rules, inner)
    kept = values if rules.reads_xs else ()
    answer = out if rules.reads_out else None

    def pull(_: Any, cotangents: tuple[Any, ...]) -> list[Any]:
        found = rules.pull(b, cotangents[0], answer, saved, kept, wanted)
        return [found[i] for i in wanted]

    return several(rules.name, tape, [out], [tuple(b.shape(out))], [xs[i].node for i in wanted], pull)[0]


def _refuse_others(rules: Rules, tape: Tape, node: Node, allowed: set[Node]) -> None:
    """Check that whatever a value depends on, it depends on through the arguments.

    Raises:
        LevelError: If there is another variable behind it.
    """
    seen, stack = {node}, [node]
    while stack:
        here = stack.pop()
        if here in allowed:
            continue
        if here.edges == ():
            raise closed_over(rules.name, tape)
        for parent, rule, _ in here.edges or ():
            if rule is not None and parent not in seen:
                seen.add(parent)
                stack.append(parent)


def closed_over(name: str, tape: Tape) -> LevelError:
    """The error for a function, or a rule, that depends on more than its arguments."""
    return LevelError(
        f"{name}: it closes over a tensor that is tracked on {tape}, by which its rule gives no derivative, so that one would be lost; "
        "expected tracked tensors as arguments alone. Try to pass it as an argument (and save it for the rule), or detach() it"
    )


def _transposing(b: Any, coat: Linear, op: Op, args: Sequence[Any], params: tuple[Rules]) -> Any:
    out = _reverse(b, coat, op, args, params)
    return linear(out.tape, out.value, out.node, coat.user) if _on(out, coat.tape) else out


def _forward(b: Any, coat: Dual, op: Op, args: Sequence[Any], params: tuple[Rules]) -> Any:
    """The answer with its tangent."""
    tape, rules = coat.tape, params[0]
    inner, tangents = zip(*[split(a, tape) for a in args], strict=True)
    out = b.run(op, inner, params)
    _, saved, xs = _parts(rules, inner)
    _, _, ts = _parts(rules, tangents)
    t = None if all(t is None for t in ts) else rules.push(b, ts, out, saved, xs)
    return out if t is None else dual(tape, out, t)


def _taylor(b: Any, coat: Series | Jets, op: Op, args: Sequence[Any], params: tuple[Rules]) -> Any:
    """The answer as a series; or, where arguments are jets, with the sum of its last coefficients."""
    tape = coat.tape
    moving = [a for a in args if isinstance(a, (Series, Jets)) and a.tape is tape]
    lanes = next((a.lanes for a in moving if isinstance(a, Jets)), None)
    if lanes is not None:
        return _summed(b, tape, lanes, op, args, params)
    order = max(a.order for a in moving if isinstance(a, Series))  # the value was made on series of one order less
    return _series(tape, _expanded(b, tape, op, [coefficients(a, tape) for a in args], params, order), order)


def _expanded(b: Any, tape: Tape, op: Op, found: Sequence[Sequence[Any]], params: tuple[Rules], order: int) -> list[Any]:
    """Coefficients of the answer for those of the operands: ``z' = push(x')``, on series of one order less."""
    rules = params[0]
    out = b.run(op, [terms[0] for terms in found], params)
    lower = [_series(tape, terms, order - 1) for terms in found]
    _, saved, xs = _parts(rules, lower)
    _, _, moving = _parts(rules, found)
    ts = [_rate(b, tape, terms, order - 1) for terms in moving]
    if all(t is None for t in ts):
        return [out]
    t = rules.push(b, ts, b.run(op, lower, params) if rules.reads_out else None, saved, xs)
    rates = [] if t is None else coefficients(t, tape)
    return [out, *(None if r is None else b.per(r, k) if k > 1 else r for k, r in enumerate(rates, 1))]


def _summed(b: Any, tape: Tape, lanes: Lanes, op: Op, args: Sequence[Any], params: tuple[Rules]) -> Any:
    """The series without the last coefficients of the arguments, and the tangent for their sum."""
    rules = params[0]
    mine = [a if isinstance(a, Jets) and a.tape is tape else None for a in args]
    found = [coefficients(a, tape) if jet is None else [jet.value, *jet.terms] for a, jet in zip(args, mine, strict=True)]
    out, *terms = _expanded(b, tape, op, found, params, lanes.order)
    terms += [None] * (lanes.order - len(terms))
    _, _, ts = _parts(rules, [None if jet is None else jet.top for jet in mine])
    _, saved, xs = _parts(rules, [row[0] for row in found])
    top = None if all(t is None for t in ts) else rules.push(b, ts, out, saved, xs)
    if terms[-1] is not None:
        last = lanes.summed(b, terms[-1])
        top = last if top is None else b.add(top, last)
    return out if top is None and all(t is None for t in terms[:-1]) else jets(tape, lanes, out, terms[:-1], top)


def lowered(p: Any, tape: Tape) -> Any:
    """``p`` as it is where a derivative on ``tape`` is computed: without its coat, or as a series of one order less."""
    if not isinstance(p, Coat):
        return p
    if p.tape is not tape:
        return p.mapped(lambda part: lowered(part, tape))
    if isinstance(p, Series) and p.order > 1:
        return _series(tape, [p.value, *p.terms], p.order - 1)
    if isinstance(p, Jets):
        return _series(tape, [p.value, *p.terms], p.lanes.order - 1)
    return p.off()


def _rate(b: Any, tape: Tape, terms: Sequence[Any], order: int) -> Any:
    """The series of ``x'``; ``None`` where it is zero."""
    rates = [None if c is None else b.scale(c, float(k)) if k > 1 else c for k, c in enumerate(terms[1 : order + 2], 1)]
    if all(r is None for r in rates):
        return None
    if rates[0] is None:
        rates[0] = b.base.full(tuple(b.shape(terms[0])), 0.0, b.dtype(terms[0]))
    return _series(tape, rates, order)


def _series(tape: Tape, terms: Sequence[Any], order: int) -> Any:
    """Those of the coefficients that a series of that order has; a constant if there is only one."""
    kept = list(terms[: order + 1])
    while len(kept) > 1 and kept[-1] is None:
        kept.pop()
    return series(tape, kept[0], tuple(kept[1:]), order) if len(kept) > 1 else kept[0]


def _batch(b: Any, coat: Batch, op: Op, args: Sequence[Any], params: tuple[Rules]) -> Any:
    """The same value for many samples: the rules run on a batch."""
    tape, n, rules = coat.tape, coat.size, params[0]
    on = [_on(a, tape) for a in args]
    inner = [a.value if here else a for a, here in zip(args, on, strict=True)]
    inner[0] = inner[0] if on[0] else repeated(b, inner[0], n)
    _, saved, xs = _parts(rules, on)
    return batched(tape, b.run(op, inner, (_Many(rules, n, saved, xs),)), n)


class _Many(Rules):
    """Rules for a batch: those for one sample, run on values that hide their axis 0."""

    def __init__(self, rules: Rules, n: int, saved: Sequence[bool], xs: Sequence[bool]) -> None:
        self.one, self.n, self.saved, self.xs = rules, n, saved, xs
        self.name, self.count, self.reads_xs, self.reads_out = rules.name, rules.count, rules.reads_xs, rules.reads_out

    def pull(self, b: Any, g: Any, out: Any, saved: Sequence[Any], xs: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
        """An argument that all samples share gets the sum of theirs."""
        tape = Tape("batch", 0, records=False)  # younger than whatever the cotangent wears
        wrap = self._wrap(tape)
        found = self.one.pull(b, wrap(g, True), wrap(out, True), self._all(wrap, saved, self.saved), self._all(wrap, xs, self.xs), wanted)
        tape.close()
        return [
            None if c is None else self._sum(b, c, tape) if not here else self._inner(b, c, tape)
            for c, here in zip(found, self.xs, strict=True)
        ]

    def push(self, b: Any, ts: Sequence[Any], out: Any, saved: Sequence[Any], xs: Sequence[Any]) -> Any:
        """All samples at once."""
        tape = Tape("batch", 0, records=False)
        wrap = self._wrap(tape)
        found = self.one.push(
            b, self._all(wrap, ts, self.xs), wrap(out, True), self._all(wrap, saved, self.saved), self._all(wrap, xs, self.xs)
        )
        tape.close()
        return None if found is None else self._inner(b, found, tape)

    def _wrap(self, tape: Tape) -> Any:
        return lambda p, here: batched(tape, p, self.n) if here and p is not None else p

    def _all(self, wrap: Any, values: Sequence[Any], on: Sequence[bool]) -> list[Any]:
        return [wrap(p, here) for p, here in zip(values, on, strict=True)] if values else []

    def _inner(self, b: Any, p: Any, tape: Tape) -> Any:
        return p.value if _on(p, tape) else repeated(b, p, self.n)

    def _sum(self, b: Any, p: Any, tape: Tape) -> Any:
        return b.sum(p.value, (0,)) if _on(p, tape) else b.scale(p, float(self.n))


def _elsewhere(b: Any, g: Any) -> Any:
    raise AssertionError("a custom op has its rules by kinds of coats")


ATTACH = Op(
    "custom",
    SPECIAL,
    ("xs",),
    ("rules",),
    (),
    (Rule(_elsewhere, ()),),  # that there is one tells programs that the answer depends on its operands
    None,
    False,
    Samples(()),
    native=lambda b: lambda *xs, rules: xs[0],
    on={Linear: _transposing, Tracked: _reverse, Dual: _forward, Series: _taylor, Jets: _taylor, Batch: _batch},
)
"""Its one parameter are the rules; its operands the value, what was saved, and the arguments."""
