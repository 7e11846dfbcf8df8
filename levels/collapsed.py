"""Collapsed Taylor mode: a weighted sum, over many directions, of the last coefficient of the Taylor series along each of them.

The last coefficient enters each op linearly: coefficient K of ``f(x)`` is ``f'(x_0) x_K`` and something that reads the lower ones alone. So
the sum over the directions can be carried instead of its terms (Dangel et al., "Collapsing Taylor Mode Automatic Differentiation", 2025).
With K = 2 and unit directions that is the forward Laplacian (Li et al., "A computational framework for neural network-based variational
Monte Carlo with Forward Laplacian", 2024): value, Jacobian and Laplacian in one run.

The lower coefficients of all directions are one value, in the coat of a batch.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.batched import Batch, batched, unbatch
from nestgrad.levels.forward import dual, split
from nestgrad.levels.pushforward import push
from nestgrad.levels.recurrence import Lazy, Scope
from nestgrad.ops.table import TABLE, Kind, Op


def _series_of(name: str) -> Callable[..., Any]:
    """How the table gets a coefficient of the answer of an op."""
    found = TABLE[name].series
    assert found is not None
    return found


_product, _square = _series_of("mul"), _series_of("square")


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """The directions of a run.

    Attributes:
        tape: Of the batch that they are.
        size: How many there are.
        weights: A value of shape ``(size,)``; ``None``: ones.
        order: How many coefficients there are for each, the last of them summed.
    """

    tape: Tape
    size: int
    weights: Any
    order: int

    def summed(self, b: Any, p: Any) -> Any:
        """The weighted sum of ``p`` over the directions."""
        if isinstance(p, Batch) and p.tape is self.tape:
            return b.sum(self.weighted(b, p).value, (0,))
        return b.scale(p, float(self.size)) if self.weights is None else b.mul(p, b.sum(self.weights, (0,)))

    def weighted(self, b: Any, p: Any) -> Any:
        """``p`` times the weight of each direction."""
        return p if self.weights is None else b.mul(p, batched(self.tape, self.weights, self.size))

    def dot(self, b: Any, p: Any, q: Any) -> Any:
        """The sum of the products of ``p`` and ``q`` over the directions; one of them is weighted."""
        if all(isinstance(v, Batch) and v.tape is self.tape for v in (p, q)):
            return b.vecdot(p.value, q.value, 0)
        return b.sum(unbatch(b, b.mul(p, q), self.tape, self.size, 0), (0,))


class Jets(Coat):
    """A value, its Taylor coefficients below the last for all directions, and the sum of the last ones."""

    __slots__ = ("lanes", "terms", "top")
    lanes: Lanes
    terms: tuple[Any, ...]
    top: Any

    @property
    def more(self) -> Any:
        """The coefficients that are not zero."""
        return tuple([t for t in (*self.terms, self.top) if t is not None])

    def over(self, inner: Any) -> "Jets":
        """The same coefficients beside another inner value."""
        return jets(self.tape, self.lanes, inner, self.terms, self.top)

    def mapped(self, f: Callable[[Any], Any]) -> "Jets":
        """``f`` on value and coefficients."""
        terms = [None if t is None else f(t) for t in self.terms]
        return jets(self.tape, self.lanes, f(self.value), terms, None if self.top is None else f(self.top))

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """The lower coefficients as in Taylor mode, and what they and the last ones give for the sum."""
        tape = self.tape
        mine = [a if isinstance(a, Jets) and a.tape is tape else None for a in args]
        values = [a if jet is None else jet.value for a, jet in zip(args, mine, strict=True)]
        if op.kind is Kind.CONSTANT:
            return b.run(op, values, params)
        moving = [i for i, jet in enumerate(mine) if jet is not None]
        if op.kind is Kind.LINEAR or (op.kind is Kind.BILINEAR and len(moving) == 1):
            return self._linear(b, op, mine, values, params)
        if op.kind is Kind.ELEMENTWISE and len(moving) == 1:
            return self._composed(b, op, moving[0], mine, values, params)
        return self._by_series(b, op, mine, values, params)

    def _linear(self, b: Any, op: Op, mine: Sequence["Jets | None"], values: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """The op on each coefficient."""
        out = b.run(op, values, params)
        if len(mine) == 1 or op.kind is Kind.BILINEAR:  # no coefficient meets another
            ((i, x),) = [(i, jet) for i, jet in enumerate(mine) if jet is not None]
            rows = [None if t is None else b.run(op, [*values[:i], t, *values[i + 1 :]], params) for t in (*x.terms, x.top)]
        else:
            rows = [
                push(b, op, values, [None if jet is None else jet.coefficient(k) for jet in mine], out, params)
                for k in range(1, self.lanes.order + 1)
            ]
        return self._made(out, rows[:-1], rows[-1])

    def _composed(self, b: Any, op: Op, i: int, mine: Sequence["Jets | None"], values: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """An op entry by entry, of one argument that moves: its own series, which no direction enters, composed with that one."""
        lanes, x = self.lanes, mine[i]
        assert x is not None
        outer = self._own(b, op, i, values, params)
        rows: list[Any] = [None] * (lanes.order - 1)
        top = None if x.top is None else _times(b, x.top, outer[1])
        weighted = [None if t is None else lanes.weighted(b, t) for t in x.terms]
        for m, power in enumerate(_powers(b, x.terms, lanes.order - 1), 1):
            for k, p in enumerate(power[1:]):
                rows[k] = _plus(b, rows[k], _times(b, p, outer[m]))
            if outer[m + 1] is not None:  # the last coefficient of the next power
                for j, p in enumerate(reversed(power[1:])):
                    if p is not None and weighted[j] is not None:
                        top = _plus(b, top, _times(b, lanes.dot(b, weighted[j], p), outer[m + 1]))
        return self._made(outer[0], rows, top)

    def _own(self, b: Any, op: Op, i: int, values: Sequence[Any], params: tuple[Any, ...]) -> list[Any]:
        """The Taylor coefficients of the op at its value, by one argument."""
        order, tape, x = self.lanes.order, self.tape, values[i]
        if order == 2:  # forward mode over forward mode knows the kernels of rules, which a series would take apart
            one, half = (b.base.full((), c, b.dtype(x)) for c in (1.0, 0.5))  # the rules spread them, and are linear in them
            out, still = b.run(op, values, params), [None] * len(values)
            first = push(b, op, values, [*still[:i], one, *still[i + 1 :]], out, params)
            if first is None:
                return [out, None, None]
            moving = [*values[:i], dual(tape, x, one), *values[i + 1 :]]
            second = split(push(b, op, moving, [*still[:i], half, *still[i + 1 :]], dual(tape, out, first), params), tape)[1]
            return [out, first, second]
        one = b.base.full(tuple(b.shape(x)), 1.0, b.dtype(x))
        scope = Scope(b, tape, not any(isinstance(v, Coat) for v in values))
        try:
            given = [scope.known([v, one]) if k == i else v for k, v in enumerate(values)]
            found = scope.run(op, given, params)
            return [found[k] for k in range(order + 1)] if isinstance(found, Lazy) else [found, *[None] * order]
        finally:
            scope.close()

    def _by_series(self, b: Any, op: Op, mine: Sequence["Jets | None"], values: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """Any op: its series for all directions, with zero for the last coefficients, and its tangent for these."""
        order = self.lanes.order
        scope = Scope(b, self.tape, False)
        try:
            given = [v if jet is None else scope.known([v, *jet.terms]) for v, jet in zip(values, mine, strict=True)]
            found = scope.run(op, given, params)
            several = found if op.results else (found,)
            table = [[p[k] for k in range(order + 1)] if isinstance(p, Lazy) else [p, *[None] * order] for p in several]
        finally:
            scope.close()
        tops = [None if jet is None else jet.top for jet in mine]
        outs = tuple(row[0] for row in table)
        last: Any = (None,) * len(outs)
        if any(t is not None for t in tops):
            pushed = push(b, op, values, tops, outs if op.results else outs[0], params)
            last = pushed if op.results else (pushed,)
        made = [
            self._made(row[0], row[1:-1], top if row[-1] is None else _plus(b, top, self.lanes.summed(b, row[-1])))
            for row, top in zip(table, last, strict=True)
        ]
        return tuple(made) if op.results else made[0]

    def coefficient(self, k: int) -> Any:
        """Coefficient ``k``, from 1 on: for all directions, or the sum of the last."""
        return self.top if k == self.lanes.order else self.terms[k - 1]

    def _made(self, value: Any, terms: Sequence[Any], top: Any) -> Any:
        if top is None and all(t is None for t in terms):
            return value
        return jets(self.tape, self.lanes, value, terms, top)


def jets(tape: Tape, lanes: Lanes, value: Any, terms: Sequence[Any], top: Any) -> Jets:
    """A coat; value and sum wear coats of older tapes than that of the directions, the terms its batch too."""
    coat = Jets()
    coat.tape, coat.lanes, coat.value, coat.terms, coat.top = tape, lanes, value, tuple(terms), top
    return coat


def _powers(b: Any, terms: Sequence[Any], order: int) -> Iterator[list[Any]]:
    """The powers of ``terms[0] t + terms[1] t^2 + ...``, from the first to that of ``order``: of each the coefficients 0 to ``order``."""
    power = first = [None, *terms]
    for m in range(1, order + 1):
        yield power
        if m < order:
            power = [_square(b, k, first, None) if m == 1 else _product(b, k, first, power, None) for k in range(order + 1)]


def _times(b: Any, x: Any, y: Any) -> Any:
    return None if x is None or y is None else b.mul0(x, y)


def _plus(b: Any, x: Any, y: Any) -> Any:
    return y if x is None else x if y is None else b.add(x, y)
