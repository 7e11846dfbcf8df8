"""The first NaN or infinity: which op made it, on which level, and which line of the user's."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import local
from typing import Any

from nestgrad.diagnostics.entries import INF, NAN, first, forgotten, kinds, new, plain
from nestgrad.diagnostics.places import Origin, Origins, place
from nestgrad.diagnostics.telling import Scope, began, in_backward, in_forward, late
from nestgrad.errors import ArgumentError
from nestgrad.levels.base import Coat, now
from nestgrad.levels.watching import Go, Watcher, watch
from nestgrad.ops.table import Op


@contextmanager
def detect_anomaly(*, nan: bool = True, inf: bool = True, forward: bool = True) -> Iterator[None]:
    """Raise an error at the first NaN or infinity: with the op, the level, the pass, the entry, and the line that made it.

    It watches what runs in its block, on any levels over any backend. What counts is the answer of an op that a user calls, and what an op
    passes on in a backward pass; not what a rule or a kernel computes on the way to it, which may be infinite and taken away again. An
    operand that holds NaN already makes no anomaly of the answer's. It can be used as a decorator, too.

    Args:
        nan: Whether a NaN is one.
        inf: Whether an infinity is one.
        forward: Whether forward runs are watched, too. Without it only backward passes are: a NaN of the forward run that ``where`` takes
            away is none then.

    Raises:
        AnomalyError: In the block, where the first one is found.
        ArgumentError: Neither ``nan`` nor ``inf``.

    Cost: each op is several times as dear, since all answers are read; outside of the block there is none. A traced function runs op by op.

    >>> import nestgrad as ng
    >>> x = ng.Autodiff(ng.NumpyBackend()).tensor([4.0, 0.0], requires_grad=True)
    >>> with detect_anomaly():
    ...     y = x.sqrt().sum()
    ...     y.wrt(x)
    Traceback (most recent call last):
        ...
    nestgrad.errors.AnomalyError: sqrt: gave inf in the backward pass of Autodiff level 1...
    """
    wanted = tuple(kind for kind, counts in ((NAN, nan), (INF, inf)) if counts)
    if not wanted:
        raise ArgumentError("detect_anomaly: got nan=False and inf=False, so nothing counts; expected one of them. Try detect_anomaly()")
    with watch(_Detector(wanted, forward)):
        yield


class _Here(local):
    """What runs in a thread: the scope, and the innermost step as an origin, for nodes that are made inside of it and end there."""

    scope: Scope | None = None
    around: Origin | None = None


class _Detector(Watcher):
    def __init__(self, wanted: tuple[str, ...], forward: bool) -> None:
        self._wanted, self._forward = wanted, forward
        self._here = _Here()
        self._origins = Origins()
        self._tainted: set[int] = set()
        """Ages of nodes at which there has arrived what came of a seed that was bad by itself."""

    def op(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...], go: Go) -> Any:
        here = self._here
        if here.scope is not None:  # a part of something
            return go()
        scope = here.scope = Scope()
        start = now()
        try:
            out = go()
        finally:
            here.scope = None
        end = now()
        if end > start + 1:
            self._origins.note(start, end, Origin(op.name, scope.asked))
        if self._forward:
            self._check(b.base, op, args, params, out, scope)
        return out

    def call(self, b: Any, values: Sequence[Any], go: Go) -> Any:
        if self._here.scope is not None:
            return go()
        start, asked = now(), place()
        out = go()
        self._origins.note(start, now(), Origin("call", asked))
        return out

    def work(self, base: Any, op: Op, args: tuple[Any, ...], go: Go) -> Any:
        scope = self._here.scope
        if scope is None:
            return go()
        scope.depth += 1
        try:
            out = go()
        finally:
            scope.depth -= 1
        if not scope.depth:
            for kind in kinds(base, out, [k for k in self._wanted if k not in scope.found]):
                entries = None if op.results else new(base, op, args, out, kind)
                if entries is not None:
                    scope.found[kind] = began(base, op, args, entries, scope)
        return out

    def step(self, passing: Any, node: Any, go: Go) -> Any:
        base, wanted = passing.b.base, self._wanted
        edges, cotangents = node.edges or (), passing.cotangents
        g = cotangents.get(node)
        arrived = kinds(base, g, wanted)
        before = {parent: kinds(base, cotangents.get(parent), wanted) for parent, _, _ in edges}
        noted = {parent for parent in before if forgotten(cotangents.get(parent))}
        here, outside, around = self._here, self._here.scope, self._here.around
        origin = self._origins.find(node.age) or around
        scope, step = Scope(), Origin(node.name, None, repr(passing.tape), origin)
        here.scope, here.around = scope, step
        start = now()
        try:
            go()
        finally:
            here.scope, here.around = outside, around
        end = now()
        if outside is None and end > start + 1:
            self._origins.note(start, end, step)
        if arrived and passing.regions is not None and node is not passing.root and node.age not in self._tainted:
            raise late(base, passing.tape, node, g, _worst(arrived), scope, origin)  # it was only noted, and is computed since
        for parent, _, _ in edges:
            came = kinds(base, cotangents.get(parent), wanted) - before[parent]
            if came - arrived and parent in noted:
                found = self._origins.find(parent.age) or around
                raise late(base, passing.tape, parent, cotangents[parent], _worst(came - arrived), scope, found)
            if came - arrived:
                raise in_backward(base, passing.tape, node, parent, g, cotangents[parent], _worst(came - arrived), scope, origin)
            if came:
                self._tainted.add(parent.age)

    def _check(self, base: Any, op: Op, args: Sequence[Any], params: Sequence[Any], out: Any, scope: Scope) -> None:
        """Raise an error if an answer is an anomaly."""
        came = kinds(base, out, self._wanted)
        if not came:
            return
        bare, given = plain(out), [plain(a) for a in args]
        numbers = [p for p in params if p.__class__ is float]
        if op.results or any(isinstance(p, Coat) for p in (bare, *given)) or not hasattr(bare, "shape"):
            came -= kinds(base, [*args, *numbers], self._wanted)
            if came:
                kind = _worst(came)
                raise in_forward(base, op, args, *first(base, kind, out), scope)
            return
        for kind in (NAN, INF):
            if kind in came and kind not in kinds(base, numbers, self._wanted):
                entries = new(base, op, given, bare, kind)
                if entries is not None:
                    raise in_forward(base, op, args, None, entries, scope)


def _worst(found: set[str]) -> str:
    return NAN if NAN in found else INF
