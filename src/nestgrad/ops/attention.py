"""Attention: weighted means of values, with weights from products of queries and keys. All of it is other ops.

A row of weights of which nothing is allowed is all zeros, and so are its derivatives: its answer is made 0, and its scores are made finite.
"""

from math import inf
from typing import Any

from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.shapes import Shape
from nestgrad.ops.table import COMPOSITE, define


def _lower(b: Any, shape: Shape) -> Any:
    """Which keys a query may see: those up to its own position, a constant of the last two axes of ``shape``."""
    base, (n, m) = b.base, shape[-2:]
    return base.le(base.reshape(base.arange(0, m), (1, m)), base.reshape(base.arange(0, n), (n, 1)))


def _masked(b: Any, scores: Any, mask: Any, causal: bool) -> tuple[Any, Any]:
    """Scores of what is allowed, minus infinity elsewhere; and which rows have anything, ``None`` for all."""
    shape = tuple(b.shape(scores))
    dtype = b.dtype(scores)
    if shape[-1] == 0 or (mask is None and not causal):
        return scores, None
    lower = _lower(b, shape) if causal else None
    if mask is None:
        return b.where(lower, scores, -inf), None
    if "bool" in str(b.dtype(mask)):
        allowed = mask if lower is None else b.logical_and(mask, lower)
        some = b.gt(b.sum(allowed, (len(b.shape(allowed)) - 1,), True), 0)
        return b.where(allowed, scores, b.cast(b.where(some, -inf, 0.0), dtype)), some
    added = mask if lower is None else b.where(lower, mask, -inf)
    some = b.ne(b.amax(added, (len(b.shape(added)) - 1,), True), -inf)  # NaN is something
    return b.add(scores, b.where(some, added, 0.0)), some


def _weights(b: Any, xs: tuple[Any, ...], causal: bool, scale: float) -> tuple[Any, Any]:
    q, k, *mask = xs
    scores, some = _masked(b, b.product(b.scale(q, scale), k, False, True), mask[0] if mask else None, causal)
    return b.softmax(scores, len(b.shape(scores)) - 1), some


def _attention_weights(b: Any, *xs: Any, causal: bool, scale: float) -> Any:
    weights, some = _weights(b, xs, causal, scale)
    return weights if some is None else b.where(some, weights, 0.0)


def _attention(b: Any, *xs: Any, causal: bool, scale: float) -> Any:
    q, k, v, *mask = xs
    weights, some = _weights(b, (q, k, *mask), causal, scale)
    out = b.matmul(weights, v)
    return out if some is None else b.where(some, out, 0.0)


_Q, _K, _V = filled((2, 3), -1, 1), filled((4, 3), -1, 1, 1), filled((4, 2), -1, 1, 2)
_ALLOWED = [[True, False, True, True], [False, False, False, False]]

# softmax(scale q k') v; causal: query i sees the keys up to i; a last array is a mask, of booleans or added to the scores
define("attention_weights(*xs, causal, scale)", COMPOSITE, _attention_weights, samples=calls(
    Sample((_Q, _K, _ALLOWED), {"causal": False, "scale": 0.7}, exact=(2,))))
define("attention(*xs, causal, scale)", COMPOSITE, _attention, samples=calls(
    Sample((_Q, _K, _V), {"causal": True, "scale": 0.5}),
    Sample((_Q, _K, _V, _ALLOWED), {"causal": True, "scale": 0.7}, exact=(3,)),
    Sample((filled((2, 2, 3), -1, 1), _K, _V, filled((2, 1, 4), -1, 1, 3)), {"causal": False, "scale": 0.7})))
