"""Every op of the table in the situations that derivatives of a graph depend on: calls, and what stands around them.

A function of a situation is written in raw functions of a backend ``b``, so the same one runs on the ops of a level, on an array library
that records itself, and on numbers of fifty digits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

import nestgrad as ng
from nestgrad.ops import TABLE, Kind
from nestgrad.ops.samples import Sample, filled
from nestgrad.ops.splitting import splitting, unstacking

BASE = ng.NumpyBackend()
OPS = [op for op in TABLE.values() if op.kind is not Kind.CONSTANT] + [splitting(3), unstacking(2)]

ROOM = {4: 6, 3: 10}
"""Up to how many entries of all leaves there are derivatives of an order."""

LITTLE = {4: 0, 3: 0}
"""For tests of what is as large, but need not be of high order: second derivatives at most."""

WIDE = {4: 13, 3: 20}
"""The same for tests that take their time."""

_ROWS = (filled((1, 2), -1, 1), filled((1, 2), -1, 1, 1), filled((1, 1), -1, 1, 2), filled((1, 1), 0.5, 1.5, 4))

SMALL = {
    "attention_weights": [
        Sample((filled((1, 2), -1, 1), filled((2, 2), -1, 1, 1), filled((1, 2), -1, 1, 2)), {"causal": False, "scale": 0.7})
    ],
    "attention": [Sample((filled((1, 2), -1, 1), filled((2, 2), -1, 1, 1), filled((2, 1), -1, 1, 2)), {"causal": True, "scale": 0.7})],
    "matmul": [Sample((filled((2, 2), -1, 1), filled((2, 2), -1, 1, 1))), Sample((filled((1, 2, 1), -1, 1), filled((2, 1, 2), -1, 1, 1)))],
    "product": [Sample((filled((2, 2), -1, 1), filled((2, 2), -1, 1, 1)), {"tx": True, "ty": True})],
    "linear": [Sample((filled((1, 2), -1, 1), filled((2, 2), -1, 1, 1), filled((2,), -1, 1, 2)))],
    "einsum": [Sample((filled((2, 2), -1, 1), filled((2, 2), -1, 1, 1)), {"subscripts": "ij,jk->ki"})],
    "conv": [
        Sample((filled((1, 1, 3), -1, 1), filled((1, 1, 2), -1, 1, 1)), {"strides": (1,), "padding": (1,), "dilations": (1,), "groups": 1})
    ],
    "conv_weight": [
        Sample(
            (filled((1, 1, 3), -1, 1), filled((1, 1, 2), -1, 1, 1)),
            {"kernel": (2,), "strides": (1,), "padding": (0,), "dilations": (1,), "groups": 1},
        )
    ],
    "permute": [Sample((filled((2, 3), -1, 1),), {"axes": (1, 0)})],
    "gather_in": [Sample((filled((3, 4), -1, 1),), {"widths": ((1, 0), (1, 1)), "mode": "wrap"})],
    "rms_norm_vjp": [Sample((*_ROWS[:2], _ROWS[2], filled((2,), -1, 1, 3)), {"axes": (1,)})],
    "standardise_vjp": [Sample((*_ROWS, filled((2,), -1, 1, 3)), {"axes": (1,)})],
    "standardise_scale_vjp": [Sample(_ROWS, {"sizes": (2,)})],
    "xlogy": [Sample((filled((3,), 0.2, 2.0), filled((3,), 0.2, 2.0, 1)))],
    "standardise": [Sample((filled((1, 3), -1, 1), filled((3,), -1, 1, 1), filled((3,), -1, 1, 2)), {"axes": (1,), "eps": 1e-3})],
}
"""Calls beside an op's own samples: small enough for order 4, and square."""

OUTSIDE = {("xlogy", "twice")}
"""Where the first argument is to be positive, which it is in one of the calls alone."""

NOTHING = {
    "sum": [Sample((filled((0, 2), 0, 1),), {"axes": (0,), "keepdims": True}), Sample((filled((0, 2), 0, 1),), {"axes": (1,)})],
    "prod": [Sample((filled((0, 2), 0, 1),), {"axes": (0,), "keepdims": False})],
    "mean": [Sample((filled((2, 0), 0, 1),), {"axes": (0,), "keepdims": True})],
    "softmax": [Sample((filled((0, 2), 0, 1),), {"axis": 1}), Sample((filled((0, 2), 0, 1),), {"axis": 0})],
    "log_softmax": [Sample((filled((2, 0), 0, 1),), {"axis": 1})],
    "amax": [Sample((filled((0, 2), 0, 1),), {"axes": (1,), "keepdims": True})],
    "logsumexp": [Sample((filled((0, 2), 0, 1),), {"axes": (1,), "keepdims": True})],
    "cumsum": [Sample((filled((0, 2), 0, 1),), {"axis": 0})],
    "cumprod": [Sample((filled((2, 0), 0, 1),), {"axis": 1})],
    "sort": [Sample((filled((2, 0), 0, 1),), {"axis": 1})],
    "reshape": [Sample((filled((2, 0), 0, 1),), {"shape": (0, 3)})],
    "permute": [Sample((filled((2, 0), 0, 1),), {"axes": (1, 0)})],
    "broadcast_to": [Sample((filled((1,), 0, 1),), {"shape": (0, 1)})],
    "getitem": [Sample((filled((2,), 0, 1),), {"index": (slice(0, 0),)})],
    "concat": [Sample((filled((0,), 0, 1), filled((2,), 0, 1)), {"axis": 0})],
    "where": [Sample((filled((0, 1), 0, 1), filled((2,), 0, 1), filled((1,), 0, 1)), {}, (0,))],
    "matmul": [Sample((filled((2, 0), 0, 1), filled((0, 2), 0, 1)))],
}
"""Calls with arrays without entries, or of answers without any, beside an op's own samples."""


@dataclass(frozen=True)
class Call:
    """An op at a sample, of which one result is looked at.

    Attributes:
        free: Which arguments are leaves.
        result: Which result; ``None`` if there is one alone.
    """

    op: Any
    sample: Sample
    free: tuple[int, ...]
    result: int | None

    def arrays(self) -> list[Any]:
        """The arguments, of NumPy."""
        return self.sample.native(BASE)[0]

    def given(self) -> list[Any]:
        """Those that are free."""
        return [self.arrays()[k] for k in self.free]

    def fits(self, situation: str) -> bool:
        """Whether there is something to differentiate by, and the situation can be."""
        given = self.given()
        outside = (self.op.name, situation) in OUTSIDE and bool((given[0] <= 0.0).any())
        return bool(given) and not outside and SITUATIONS[situation].applies(given)

    def on(self, b: Any, base: Any) -> Callable[..., Any]:
        """The op as a function of its free arguments, with ``b`` over ``base``."""
        arrays, params = self.sample.native(base)

        def call(*xs: Any) -> Any:
            given = list(arrays)
            for k, x in zip(self.free, xs, strict=True):
                given[k] = x
            values = self.op.bound((), params)
            named = dict(zip(self.op.params, values, strict=True)) if self.op.variadic else {}
            made = self.op.of(b)(*given, **named) if named else self.op.of(b)(*given, *values)
            return made if self.result is None else made[self.result]

        return call


def calls(op: Any, more: Any = (SMALL, NOTHING)) -> Iterator[Call]:
    """All calls of an op."""
    for sample in [*op.samples.calls, *(extra for table in more for extra in table.get(op.name, ()))]:
        arrays = sample.native(BASE)[0]
        rules = op.rules * len(arrays) if op.variadic else op.rules
        free = [k for k, a in enumerate(arrays) if BASE.is_floating(a) and k not in sample.exact]
        free = [k for k in free if op.kind is Kind.COMPOSITE or rules[k] is not None]
        results = [k for k, name in enumerate(op.results) if name not in op.fixed] if op.results else [None]
        for result in results:
            yield Call(op, sample, tuple(free), result)


@dataclass(frozen=True)
class Situation:
    """What stands around an op.

    Attributes:
        leaves: Of the arrays of the free arguments, those of the leaves.
        function: ``(b, call, leaves, constants)``: the output. The constants are the arrays of the free arguments.
        applies: Of these arrays, whether there is such a situation.
    """

    leaves: Callable[[list[Any]], list[Any]]
    function: Callable[[Any, Callable[..., Any], list[Any], list[Any]], Any]
    applies: Callable[[list[Any]], bool] = lambda arrays: True


def same(arrays: list[Any]) -> list[Any]:
    return arrays


def every(b: Any, u: Any) -> tuple[int, ...]:
    return tuple(range(len(b.shape(u))))


def moved(b: Any, z: Any, c: Any) -> Any:
    """A value that is ``c`` where ``z`` is, with derivatives of all orders."""
    return b.add(c, b.expm1(b.sub(z, c)))


def strided(a: Any) -> Any:
    """The same numbers: columns are next to each other, with something else between."""
    if not a.ndim:
        return a
    wide = np.full((*a.shape[::-1], 2), 7.0)
    wide[..., 0] = a.transpose()
    return wide[..., 0].transpose()


def _kept(b: Any, u: Any) -> Any:
    last = (len(b.shape(u)) - 1,)
    return b.div(u, b.add(b.sum(b.square(u), last, True), b.full((), 2.0)))


def _twice(b: Any, call: Any, z: Any, c: Any) -> Any:
    return call(*[z[0] if np.shape(a) == np.shape(c[0]) else a for a in c])


def _merged(b: Any, call: Any, z: Any, c: Any) -> Any:
    """From each leaf two ways lead to the op, and one past it."""
    half = b.full((), 0.5)
    ps = [b.add(k, b.mul(half, b.add(b.expm1(d), b.sin(d)))) for k, d in ((k, b.sub(x, k)) for x, k in zip(z, c, strict=True))]
    u = call(*ps)
    for x in z:
        u = b.mul(u, b.add(b.sum(b.mul(x, x), every(b, x)), b.full((), 1.0)))
    return u


def _shared(b: Any, call: Any, z: Any, c: Any) -> Any:
    u = b.sin(call(*z))
    return b.add(b.mul(u, u), u)


def _leading(a: Any) -> Any:
    return np.zeros((1, *a.shape[1:]))


def _grown(b: Any, call: Any, z: Any, c: Any) -> Any:
    return b.sin(call(*[b.add(k, b.expm1(x)) for x, k in zip(z, c, strict=True)]))


def _alone(b: Any, call: Any, z: Any, c: Any) -> Any:
    (x,) = z
    return call(*[b.add(k, b.expm1(b.mul(x, b.full((), 0.5 + n)))) for n, k in enumerate(c)])


def _has_axes(arrays: list[Any]) -> bool:
    return any(a.ndim for a in arrays)


SITUATIONS = {
    "plain": Situation(same, lambda b, call, z, c: call(*z)),
    "strided": Situation(lambda arrays: [strided(a) for a in arrays], lambda b, call, z, c: call(*z), _has_axes),
    "inside": Situation(same, lambda b, call, z, c: b.sin(call(*[moved(b, x, k) for x, k in zip(z, c, strict=True)]))),
    "summed": Situation(same, lambda b, call, z, c: (lambda u: b.sum(u, every(b, u)))(b.sin(call(*z)))),
    "sum": Situation(same, lambda b, call, z, c: (lambda u: b.sin(b.sum(u, every(b, u))))(call(*z))),
    "keepdims": Situation(same, lambda b, call, z, c: (lambda u: _kept(b, u) if b.shape(u) else u)(call(*z)), _has_axes),
    "twice": Situation(
        lambda arrays: arrays[:1], _twice, lambda arrays: sum(a.shape == arrays[0].shape for a in arrays) > 1 and _has_axes(arrays)
    ),
    "shared": Situation(same, _shared),
    "diamond": Situation(same, _merged),
    "broadcast": Situation(lambda arrays: [_leading(a) if a.ndim else np.zeros(()) for a in arrays], _grown, _has_axes),
    "0-d": Situation(lambda arrays: [np.zeros(())], _alone),
}

def order_of(leaves: list[Any], room: Any = ROOM) -> int:
    """The highest order."""
    entries = sum(prod(x.shape) for x in leaves)
    return next((order for order in (4, 3) if entries <= room[order]), 2)


def chosen(op: Any, count: int) -> Iterator[tuple[str, Call]]:
    """Some situations of an op, each at one of its calls that it applies to; others for the next op."""
    turn, found = OPS.index(op), 0
    names = [name for name in SITUATIONS if name != "plain"]
    for n in range(len(names)):
        name = names[(turn * count + n) % len(names)]
        fitting = [call for call in calls(op, (SMALL,)) if call.fits(name)]
        if fitting and found < count:
            found += 1
            yield name, fitting[turn % len(fitting)]
