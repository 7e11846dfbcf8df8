"""Taylor coefficients of an op's answer, one after the other.

If ``z = f(x)``, then ``z' = f'(x) x'``. The right side is what the table gives for a tangent, run on series, with the series of ``x'`` as
tangent; its coefficient ``k - 1``, divided by ``k``, is coefficient ``k`` of ``z`` (Griewank & Walther, "Evaluating Derivatives", 2nd ed.,
ch. 13). The rule may read ``z`` itself, up to ``k - 1``. So inside a rule series are lazy: a coefficient is computed when it is asked for,
and kept. Equal ops on equal operands are one lazy series, so that ``sin`` and ``cos``, which ask for each other, cost O(K^2).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nestgrad.backends.base import Backend
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.pushforward import push, zeros_like
from nestgrad.ops.table import TABLE, Kind, Op

_NEG = TABLE["neg"]


class Lazy(Coat):
    """A series inside a rule. ``p[k]`` is coefficient ``k``, or ``None`` for a zero that is no array."""

    __slots__ = ("args", "found", "op", "params", "rate", "scope", "way")
    scope: "Scope"
    found: list[Any]
    way: Callable[["Lazy", int], Any]
    op: Op | None
    args: Sequence[Any]
    params: tuple[Any, ...]
    rate: Any

    @property
    def value(self) -> Any:
        """Coefficient 0."""
        return self[0]

    def __getitem__(self, k: int) -> Any:
        found = self.found
        try:
            return found[k]
        except IndexError:
            while len(found) <= k:
                found.append(self.way(self, len(found)))
            return found[k]

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Another lazy series."""
        return self.scope.run(op, args, params)


class Scope:
    """The lazy series of one op: its operands, its answer, and what its rule computes.

    They refer to each other. ``close`` lets go of all of them, so that nothing waits for the cyclic collector.

    Args:
        b: The backend over dressed values, in which rules are run.
        tape: The level's.
        raw: Whether no coefficient wears a coat, so that the base's own functions serve for these.
    """

    def __init__(self, b: Any, tape: Tape, raw: bool) -> None:
        self.b, self.tape, self.inner = b, tape, b.bare if raw else b
        self.memo: dict[Any, tuple[Any, Any]] = {}
        self.made: list[Lazy] = []

    def known(self, terms: Sequence[Any]) -> Lazy:
        """A series of which the coefficients are known; those beyond are zero."""
        return self._lazy(_beyond, found=[*terms])

    def run(self, op: Op, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """``op`` of series and constants: a lazy series, or a constant."""
        key = (op, tuple([_key(a) for a in args]), tuple([_key(p) for p in params]))
        found = self.memo.get(key)
        if found is None:
            out = self._made(op, args, params)
            found = self.memo[key] = (out, args)  # the operands stay alive, so that their ids stay theirs
            if op is _NEG:  # which undoes itself: a rule that asks for f(-x) does not go on for ever
                self.memo[op, (id(out),), ()] = (args[0], out)
        return found[0]

    def close(self) -> None:
        """Let go of everything."""
        self.memo.clear()
        for lazy in self.made:
            lazy.args, lazy.rate, lazy.way = (), None, _beyond
        self.made.clear()

    def _made(self, op: Op, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        if op.kind is Kind.CONSTANT:
            return self.b.run(op, [a[0] if isinstance(a, Lazy) else a for a in args], params)
        if op.by_parts:
            return getattr(Backend, op.name)(self.b, *args, *params)
        if op.results:
            return self._several(op, args, params)
        return self._lazy(_WAYS.get(op.kind, _derived) if op.series is None else _stated, op, args, params)

    def _several(self, op: Op, args: Sequence[Any], params: tuple[Any, ...]) -> tuple[Any, ...]:
        """A series for each result that has a derivative. They share the run of the rule for the tangent."""
        first = self.b.run(op, [a[0] if isinstance(a, Lazy) else a for a in args], params)
        rates: list[Any] = []

        def way(number: int) -> Callable[[Lazy, int], Any]:
            def term(out: Lazy, k: int) -> Any:
                if not rates:
                    rates.extend(push(self.b, op, args, [self.rate(a) if isinstance(a, Lazy) else None for a in args], outs, params))
                return _integrated(self, rates[number], k)

            return term

        outs = tuple(
            value if name in op.fixed else self._lazy(way(number), op, args, params, [value])
            for number, (name, value) in enumerate(zip(op.results, first, strict=True))
        )
        return outs

    def _lazy(
        self,
        way: Callable[[Lazy, int], Any],
        op: Op | None = None,
        args: Sequence[Any] = (),
        params: tuple[Any, ...] = (),
        found: list[Any] | None = None,
    ) -> Lazy:
        out = Lazy()
        out.tape, out.scope, out.way, out.op, out.args, out.params, out.rate = self.tape, self, way, op, args, params, None
        out.found = [] if found is None else found
        self.made.append(out)
        return out

    def rate(self, x: Lazy) -> Lazy:
        """The series of ``x'``."""
        key = ("rate", id(x))
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = (self._lazy(_rated, None, (x,)), x)
        return found[0]


def _key(p: Any) -> Any:
    """What tells two operands apart."""
    if p.__class__ in (int, float, bool, str, tuple):
        try:
            hash(p)
        except TypeError:  # a tuple with arrays in it
            return id(p)
        return p
    return id(p)


def _beyond(out: Lazy, k: int) -> Any:
    return None


def _rated(out: Lazy, k: int) -> Any:
    term = out.args[0][k + 1]
    if k == 0:  # never None, since ops are run on it
        return zeros_like(out.scope.b, out.args[0][0]) if term is None else term
    return None if term is None else out.scope.inner.scale(term, float(k + 1))


def _first(out: Lazy) -> Any:
    """Coefficient 0."""
    assert out.op is not None
    return out.scope.b.run(out.op, [a[0] if isinstance(a, Lazy) else a for a in out.args], out.params)


def _linear(out: Lazy, k: int) -> Any:
    """The op on each coefficient."""
    if k == 0:
        return _first(out)
    assert out.op is not None
    terms = [a[k] if isinstance(a, Lazy) else None for a in out.args]
    return push(out.scope.inner, out.op, [a[0] if isinstance(a, Lazy) else a for a in out.args], terms, out[0], out.params)


def _multilinear(out: Lazy, k: int) -> Any:
    """Cauchy's product: over all ways to write ``k`` as a sum, one part for each series."""
    b, op = out.scope.inner, out.op
    assert op is not None
    total = None
    for terms in _products(out.args, k):
        share = b.run(op, terms, out.params)
        total = share if total is None else b.add(total, share)
    return total


def _products(args: Sequence[Any], k: int) -> Iterator[list[Any]]:
    """Coefficients of which the indices sum to ``k``, one from each operand; none that is zero."""
    if not isinstance(args[0], Lazy):
        first: list[tuple[int, Any]] = [(0, args[0])]
    else:
        x = args[0]
        first = [(j, x[j]) for j in range(k + 1) if x[j] is not None]
    for j, term in first:
        if len(args) > 1:
            for rest in _products(args[1:], k - j):
                yield [term, *rest]
        elif j == k:
            yield [term]


def _stated(out: Lazy, k: int) -> Any:
    """The recurrence that the table states."""
    if k == 0:
        return _first(out)
    assert out.op is not None and out.op.series is not None
    args = [a if isinstance(a, Lazy) else _Constant(a) for a in out.args]
    return out.op.series(out.scope.inner, k, *args, out, *out.params)


class _Constant:
    """A constant, indexed like a series."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getitem__(self, k: int) -> Any:
        return self.value if k == 0 else None


def _derived(out: Lazy, k: int) -> Any:
    """Coefficient ``k`` from the rate of change, by the rule for the tangent."""
    if k == 0:
        return _first(out)
    b, op, scope = out.scope.b, out.op, out.scope
    assert op is not None
    if k == 1:
        rates = [scope.rate(a) if isinstance(a, Lazy) else None for a in out.args]
        out.rate = push(b, op, out.args, rates, out, out.params)
    return _integrated(scope, out.rate, k)


def _integrated(scope: Scope, rate: Any, k: int) -> Any:
    """Coefficient ``k`` of what changes at a rate: a series, a constant, or ``None``."""
    if not isinstance(rate, Lazy):
        return rate if k == 1 else None
    term = rate[k - 1]
    return term if term is None or k == 1 else scope.inner.per(term, k)


_WAYS = {Kind.LINEAR: _linear, Kind.BILINEAR: _multilinear}
