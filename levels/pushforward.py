"""The tangent of an op's answer from the tangents of its arguments: what forward mode does, and Taylor mode with series.

By kind: an elementwise rule multiplies with a number for each entry, so it is its own transpose, and what the table gives for the cotangent
serves for the tangent. A linear op is its own derivative, and a bilinear one has the product rule. A special op has rules of its own.
"""

from collections.abc import Sequence
from typing import Any

from nestgrad.ops.table import Kind, Op


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
        A value of out's shape, or ``None`` if there is no tangent.
    """
    if op.kind is Kind.CONSTANT:
        return None
    if op.kind is Kind.LINEAR and not op.broadcasts:
        return _linear(b, op, xs, ts, params)
    if op.kind is Kind.BILINEAR:
        shares = [b.run(op, [*xs[:i], t, *xs[i + 1 :]], params) for i, t in enumerate(ts) if t is not None]
    else:
        rules = (op.forward if op.kind is Kind.SPECIAL else op.rules) * (len(xs) if op.variadic else 1)
        given = [(i, rule, t) for i, (rule, t) in enumerate(zip(rules, ts, strict=True)) if rule is not None and t is not None]
        shares = [rule.call(b, t, *op.saved(b, rule, i, xs, out, params)) for i, rule, t in given]
    if not shares:
        return None
    total = shares[0]
    for share in shares[1:]:
        total = b.add(total, share)
    shape = b.shape(out)
    return total if b.shape(total) == shape else b.broadcast_to(total, tuple(shape))


def _linear(b: Any, op: Op, xs: Sequence[Any], ts: Sequence[Any], params: tuple[Any, ...]) -> Any:
    """The op on the tangents. Only an op that puts several arrays together needs zeros in the place of absent ones."""
    if all(t is None for t in ts):
        return None
    return b.run(op, [_zeros(b, x) if t is None else t for x, t in zip(xs, ts, strict=True)], params)


def _zeros(b: Any, x: Any) -> Any:
    return 0.0 if isinstance(x, (int, float)) else b.base.full(tuple(b.shape(x)), 0.0, b.dtype(x))
