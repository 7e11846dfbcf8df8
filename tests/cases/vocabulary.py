"""The words of the op cases in nestgrad's terms: its own operations, or a line that composes them."""

from typing import Any

import nestgrad as ng


def call(word: str, *args: Any, **kwargs: Any) -> Any:
    """What ``word`` says."""
    if word in WORDS:
        return WORDS[word](*args, **kwargs)
    for room in (ng, ng.nn):
        if hasattr(room, word):
            return getattr(room, word)(*args, **_spelled(kwargs))
    x, *rest = args
    return getattr(x, word)(*rest, **_spelled(kwargs))


def _spelled(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {{"dim": "axis"}.get(k, k): v for k, v in kwargs.items()}


def _slices(ranges: Any) -> tuple[slice, ...]:
    """(start, end, step) ranges; a negative step walks the same range backwards."""
    return tuple(slice(a, b, s) if s > 0 else slice(b - 1, a - 1 if a else None, s) for a, b, s in ranges)


def _scatter_nd(x: Any, i: Any, v: Any, how: str) -> Any:
    rows = tuple(i.numpy().T)
    return x.at[rows].set(x[rows] * v if how == "mul" else x[rows].maximum(v))


WORDS: dict[str, Any] = {
    "neg": lambda x: -x,
    "powf_scalar": lambda x, n: x**n,
    "linear": lambda x, w, b: x @ w + b,
    "softmax": lambda x, dim: x.softmax(dim),
    "log_softmax": lambda x, dim: x.log_softmax(dim),
    "cross_entropy_with_logits": lambda x, p: ng.nn.cross_entropy(x, p),
    "sum": lambda x: x.sum().reshape(1),
    "prod": lambda x: x.prod().reshape(1),
    "mean_dim": lambda x, dim: x.mean(dim, keepdims=True),
    "prod_dim": lambda x, dim: x.prod(dim, keepdims=True),
    "min_dim": lambda x, dim: x.min(dim, keepdims=True),
    "transpose": lambda x: x.mT,
    "permute": lambda x, axes: x.permute(axes),
    "reshape": lambda x, shape: x.reshape(shape),
    "repeat_dim": lambda x, dim, n: ng.tile(x, [n if k == dim else 1 for k in range(x.ndim)]),
    "cummax": lambda x, dim: ng.cummax(x, dim)[0],
    "cat": lambda xs, dim: ng.concat(xs, axis=dim),
    "slice": lambda x, ranges: x[_slices(ranges)],
    "slice_assign": lambda x, ranges, v: x.at[_slices(ranges)].set(v),
    "select": ng.index_select,
    "select_add": ng.index_add,
    "select_assign": ng.index_copy,
    "scatter_assign": ng.scatter,
    "scatter_nd": _scatter_nd,
    "mask_where": lambda x, m, v: ng.where(m, v, x),
    "mask_fill": ng.masked_fill,
    "abs": abs,
    "interpolate_nearest": lambda x, size: ng.nn.interpolate(x, size),
    "ctc_loss": lambda x, targets, lengths, sizes, blank: ng.nn.ctc_loss(x, targets, lengths, sizes, blank, reduction="none"),
}
