"""The tangent of an op's answer from the tangents of its arguments: what forward mode does, and Taylor mode with series.

By kind: an elementwise rule multiplies with a number for each entry, so it is its own transpose, and what the table gives for the cotangent
serves for the tangent. A linear op is its own derivative, and a bilinear one has the product rule. A special op has rules of its own.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from nestgrad.ops.shapes import NUMBERS
from nestgrad.ops.table import Kind, Op

_Push = Callable[[Any, Sequence[Any], Sequence[Any], Any, tuple[Any, ...]], Any]


def push(b: Any, op: Op, xs: Sequence[Any], ts: Sequence[Any], out: Any, params: tuple[Any, ...]) -> Any:
    """The tangent of ``out``, which is ``op`` of ``xs``.

    Args:
        b: The backend over dressed values.
        op: Of any kind but composite, whose parts come here one by one.
        xs: Arguments.
        ts: Their tangents; ``None`` where there is none.
        out: The answer.
        params: The op's parameters.

    Returns:
        A value of out's shape, or ``None`` if there is no tangent; of an op with several results a tuple of such.
    """
    return _way(op)(b, xs, ts, out, params)


@cache
def _way(op: Op) -> _Push:
    """How the tangent of an op is computed; decided once."""
    if op.kind is Kind.CONSTANT:
        return lambda b, xs, ts, out, params: None
    if op.kind is Kind.LINEAR and not op.broadcasts:
        return lambda b, xs, ts, out, params: _linear(b, op, xs, ts, params)
    if op.kind is Kind.BILINEAR:
        return lambda b, xs, ts, out, params: _product_rule(b, op, xs, ts, params)
    rules = op.forward if op.kind is Kind.SPECIAL else op.rules
    shares = [None if rule is None else (rule.call, op.readers(rule)) for rule in rules]
    if op.results:
        return lambda b, xs, ts, out, params: _several(b, op, shares, xs, ts, out, params)
    if op.variadic:
        return lambda b, xs, ts, out, params: _ruled(b, op, shares * len(xs), xs, ts, out, params)
    if len(shares) > 1 or shares[0] is None:
        return lambda b, xs, ts, out, params: _ruled(b, op, shares, xs, ts, out, params)
    call, readers = shares[0]
    return lambda b, xs, ts, out, params: call(b, ts[0], *[read(b, 0, xs, out, params) for read in readers])


def _ruled(b: Any, op: Op, shares: Sequence[Any], xs: Sequence[Any], ts: Sequence[Any], out: Any, params: tuple[Any, ...]) -> Any:
    """The shares of all tangents, each by its rule; of the answer's shape and dtype, even where what stands still has another one."""
    total, whole = None, op.broadcasts
    for i, t in enumerate(ts):
        if t is None or shares[i] is None:
            whole = False
            continue
        call, readers = shares[i]
        share = call(b, t, *[read(b, i, xs, out, params) for read in readers])
        total = share if total is None else b.add(total, share)
    if total is None or whole:
        return total
    shape, dtype = b.shape(out), b.dtype(out)
    total = total if b.shape(total) == shape else b.broadcast_to(total, tuple(shape))
    return total if b.dtype(total) == dtype else b.cast(total, dtype)


def _several(b: Any, op: Op, shares: Sequence[Any], xs: Sequence[Any], ts: Sequence[Any], out: Any, params: tuple[Any, ...]) -> Any:
    """The shares of all tangents, for each of several results."""
    total: list[Any] = [None] * len(out)
    for i, t in enumerate(ts):
        if t is not None and shares[i] is not None:
            call, readers = shares[i]
            found = call(b, t, *[read(b, i, xs, out, params) for read in readers])
            total = [q if p is None else p if q is None else b.add(p, q) for p, q in zip(total, found, strict=True)]
    return tuple(total)


def _product_rule(b: Any, op: Op, xs: Sequence[Any], ts: Sequence[Any], params: tuple[Any, ...]) -> Any:
    """The op with each argument in turn replaced by its tangent."""
    total, call = None, op.of(b)
    for i, t in enumerate(ts):
        if t is not None and op.rules[0 if op.variadic else i] is not None:
            given = [*xs]
            given[i] = t
            if total is None:
                total = call(*given, *params) if not op.variadic else b.run(op, given, params)
            elif op.plus is not None:
                total = getattr(b, op.plus)(*given, total)
            else:
                total = b.add(total, b.run(op, given, params))
    return total


def _linear(b: Any, op: Op, xs: Sequence[Any], ts: Sequence[Any], params: tuple[Any, ...]) -> Any:
    """The op on the tangents. Only an op that puts several arrays together needs zeros in the place of absent ones."""
    if all(t is None for t in ts):
        return None
    rules = op.rules * len(xs) if op.variadic else op.rules
    given = [x if rule is None else zeros_like(b, x) if t is None else t for x, t, rule in zip(xs, ts, rules, strict=True)]
    return b.run(op, given, params)


def zeros_like(b: Any, x: Any) -> Any:
    """A constant zero of the shape of ``x``."""
    return 0.0 if x.__class__ in NUMBERS else b.base.full(tuple(b.shape(x)), 0.0, b.dtype(x))
