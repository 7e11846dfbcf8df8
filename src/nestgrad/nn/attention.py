"""Attention: means of values, weighted by how well their keys fit a query."""

from math import sqrt
from typing import TYPE_CHECKING

from nestgrad.errors import DTypeError, ShapeError
from nestgrad.levels.coats import bare
from nestgrad.nn.dropping import dropout, probability
from nestgrad.random import Generator
from nestgrad.tensor.arguments import number
from nestgrad.tensor.axes import broadcast
from nestgrad.tensor.handle import Operand, apply, as_tensor, floating

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["scaled_dot_product_attention"]

Shape = tuple[int, ...]


def scaled_dot_product_attention(
    query: Operand,
    key: Operand,
    value: Operand,
    attn_mask: Operand | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    generator: Generator | None = None,
) -> "Tensor":
    """``softmax(scale * query @ key.mT + mask) @ value``.

    Vaswani et al., "Attention is all you need", NeurIPS 2017.

    Args:
        query: Shape ``(..., L, E)``.
        key: Shape ``(..., S, E)``; leading axes broadcast.
        value: Shape ``(..., S, V)``.
        attn_mask: Broadcasts to ``(..., L, S)``. Booleans say which keys a query may see; numbers are added to the scores.
        dropout_p: Chance of each weight to be dropped, always, not in training alone; those that stay are divided by ``1 - dropout_p``.
        is_causal: Whether a query sees only the keys up to its own position, counted from the first; together with ``attn_mask``, too.
        scale: Of the scores. ``None``: ``1 / sqrt(E)``.
        enable_gqa: Whether ``query`` may have ``r`` times as many heads (third axis from the end) as ``key`` and ``value``, of which each
            then serves ``r`` queries in a row.
        generator: For dropout.

    Returns:
        Shape ``(..., L, V)``. A query that may see no key, or for which there is none, gets zeros, with zero derivatives, as in torch.
        Differentiable in ``query``, ``key``, ``value`` and a mask of numbers. On levels it keeps the ``L * S`` weights.

    Raises:
        ShapeError: If the shapes do not fit.
        DTypeError: A mask of integers.
        ArgumentError: If ``dropout_p`` is no probability, or there is no generator for it.

    >>> from nestgrad import tensor
    >>> q, k, v = tensor([[0.0]]), tensor([[1.0], [2.0]]), tensor([[1.0], [3.0]])
    >>> scaled_dot_product_attention(q, k, v).tolist()
    [[2.0]]
    """
    query, key, value = (floating(x) for x in (query, key, value))
    if enable_gqa:
        key, value = (_repeated(word, x, query) for word, x in (("key", key), ("value", value)))
    scores = _checked(query.shape, key.shape, value.shape)
    masks = [] if attn_mask is None else [_mask(as_tensor(attn_mask, query.b), query, scores)]
    factor = 1.0 / sqrt(query.shape[-1] or 1) if scale is None else number("scaled_dot_product_attention", "scale", scale)
    if probability("scaled_dot_product_attention", dropout_p) == 0.0:
        return apply("attention", query, key, value, *masks, causal=bool(is_causal), scale=factor)
    weights = apply("attention_weights", query, key, *masks, causal=bool(is_causal), scale=factor)
    dropped: Tensor = dropout(weights, dropout_p, True, generator) @ value
    return dropped


def _checked(q: Shape, k: Shape, v: Shape) -> Shape:
    """The shape of the scores."""
    expected = "(..., L, E), (..., S, E) and (..., S, V)"
    if min(len(q), len(k), len(v)) < 2 or q[-1] != k[-1] or k[-2] != v[-2]:
        raise ShapeError(f"scaled_dot_product_attention: got query {q}, key {k} and value {v}; expected {expected}")
    lead = broadcast([q[:-2], k[:-2], v[:-2]])
    if lead is None:
        raise ShapeError(
            f"scaled_dot_product_attention: got query {q}, key {k} and value {v}, whose leading axes do not broadcast; "
            f"expected {expected}. Try enable_gqa=True if queries have more heads"
        )
    return (*lead, q[-2], k[-2])


def _mask(mask: "Tensor", query: "Tensor", scores: Shape) -> "Tensor":
    """A mask of booleans, or of numbers in the dtype of the query."""
    have = tuple(mask.shape)
    if len(have) > len(scores) or any(n not in (1, m) for n, m in zip(have[::-1], scores[::-1], strict=False)):
        raise ShapeError(f"scaled_dot_product_attention: got attn_mask of shape {have}; expected one that broadcasts to {scores}")
    kind = mask.b.base.kind(bare(mask.value))
    if kind == "int":
        raise DTypeError(
            "scaled_dot_product_attention: got attn_mask of integers; expected booleans, True where a query may see a key, or numbers "
            "to be added to the scores. Try mask != 0"
        )
    mask = mask if len(have) > 1 else mask.reshape(*(1,) * (2 - len(have)), *have)
    return mask if kind == "bool" or mask.dtype == query.dtype else mask.astype(query.dtype)


def _repeated(word: str, x: "Tensor", query: "Tensor") -> "Tensor":
    """``x`` with each of its heads as often as it serves queries."""
    if x.ndim < 3 or query.ndim < 3 or not x.shape[-3] or query.shape[-3] % x.shape[-3]:
        raise ShapeError(
            f"scaled_dot_product_attention: got query {query.shape} and {word} {x.shape}; expected heads, on the third axis from the end, "
            "of which a query has a multiple"
        )
    *lead, heads, n, m = x.shape
    times = query.shape[-3] // heads
    return x.reshape(*lead, heads, 1, n, m).broadcast_to(*lead, heads, times, n, m).reshape(*lead, heads * times, n, m)
