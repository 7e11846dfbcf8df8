"""Reductions, shapes and indices."""

import math
from typing import Any

import nestgrad as ng
from torch_ops.table import entries, entry, only


def _axis(dim: Any) -> Any:
    """No axes mean all of them to torch."""
    return None if dim is not None and not isinstance(dim, int) and len(dim) == 0 else dim


def _reduction(ours: str) -> Any:
    def call(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        x = x if dtype is None else x.astype(dtype)
        return getattr(ng, ours)(x, axis=_axis(dim), keepdims=keepdim)

    return call


for _name, _ours in (
    ("sum", "sum"), ("mean", "mean"), ("prod", "prod"), ("amax", "max"), ("amin", "min"), ("argmax", "argmax"), ("argmin", "argmin"),
    ("logsumexp", "logsumexp"), ("max|reduction_no_dim", "max"), ("min|reduction_no_dim", "min"),
):  # fmt: skip
    entry(_name, _ours, _reduction(_ours))

def _spread(torchs: str, function: Any) -> None:
    """Variance and what is made of it."""

    def call(x: Any, dim: Any = None, unbiased: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        correction = int(unbiased) if unbiased is not None else 1 if correction is None else correction
        return function(x, _axis(dim), correction, keepdim)

    for name in (torchs, f"{torchs}|unbiased"):
        entry(name, "var", call)


_spread("var", ng.var)
_spread("var_mean", lambda x, axis, correction, keepdims: (ng.var(x, axis, correction, keepdims), ng.mean(x, axis, keepdims)))


def _along(ours: str) -> Any:
    def call(x: Any, dim: Any = None, dtype: Any = None) -> Any:
        x = x if dtype is None else x.astype(dtype)
        only(x.ndim, "an array without axes has none to sum over")
        return getattr(ng, ours)(x, axis=dim)

    return call


for _name in ("softmax", "log_softmax"):
    entry(_name, _name, _along(_name))
    entry(f"{_name}|with_dtype", _name, _along(_name))


def _norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    only(ord >= 0 or ord == -math.inf, "negative powers of a norm")
    return ng.norm(x if dtype is None else x.astype(dtype), _axis(dim), keepdim, ord)


entry("linalg.vector_norm", "norm", _norm)
entry("dist", "norm", lambda x, y, p=2: ng.norm(x - y, ord=p))

# shapes

entries("ravel")
entry("reshape", "reshape", lambda x, *shape: ng.reshape(x, shape[0] if len(shape) == 1 else shape))
entry("view", "reshape", lambda x, *shape: ng.reshape(x, shape[0] if len(shape) == 1 else shape))
entry("reshape_as", "reshape", lambda x, y: ng.reshape(x, y.shape))
entry("view_as", "reshape", lambda x, y: ng.reshape(x, y.shape))
entry("permute", "permute", lambda x, *axes: ng.permute(x, axes[0] if len(axes) == 1 else axes))
entry("transpose", "swapaxes", lambda x, dim0=0, dim1=0: x if x.ndim == 0 else ng.swapaxes(x, dim0, dim1))
entry("T", "transpose", lambda x: ng.transpose(x))
entry("mT", "permute", lambda x: x.mT)
entry("t", "transpose", lambda x: ng.transpose(x))
entry("squeeze", "squeeze", lambda x, dim=None: _squeezed(x, dim))
entry("squeeze|multiple", "squeeze", lambda x, dim=None: _squeezed(x, dim))


def _squeezed(x: Any, dim: Any) -> Any:
    """Torch leaves axes that are longer than 1."""
    if dim is None:
        return ng.squeeze(x)
    axes = [k % max(x.ndim, 1) for k in ((dim,) if isinstance(dim, int) else dim)]
    return ng.squeeze(x, tuple(k for k in axes if x.ndim and x.shape[k] == 1))


entry("unsqueeze", "expand_dims", lambda x, dim: ng.expand_dims(x, dim))
entry("broadcast_to", "broadcast_to", lambda x, shape: ng.broadcast_to(x, shape))


def _expand(x: Any, *sizes: Any) -> Any:
    """-1 keeps a size."""
    shape = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    lead = len(shape) - x.ndim
    return ng.broadcast_to(x, tuple(x.shape[k - lead] if n == -1 else n for k, n in enumerate(shape)))


entry("expand", "broadcast_to", _expand)
entry("expand_as", "broadcast_to", lambda x, y: ng.broadcast_to(x, y.shape))


entry("cat", "concat", lambda xs, dim=0: ng.concat([x for x in xs if x.shape != (0,)] or xs, axis=dim))
entry("stack", "stack", lambda xs, dim=0: ng.stack(xs, axis=dim))
entry("constant_pad_nd", "pad", lambda x, pad, value=0.0: _padded(x, pad, value))


def _padded(x: Any, pad: Any, value: Any) -> Any:
    """Torch names widths from the last axis on, and a negative one cuts off."""
    pairs = [(pad[k], pad[k + 1]) for k in range(0, len(pad), 2)][::-1]
    pairs = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    only(all(n >= 0 for pair in pairs for n in pair), "negative widths of padding")
    return ng.pad(x, pairs, 0.0 if value is None else value)


# entries by their places

entry("__getitem__", "getitem", lambda x, index: x[_index(index)])
entry("select", "getitem", lambda x, dim, index: x[_at(x, dim, index)])
entry("narrow", "getitem", lambda x, dim, start, length: x[_at(x, dim, slice(_whole(start, x, dim), _whole(start, x, dim) + length))])
entry("slice", "getitem", lambda x, dim=0, start=None, end=None, step=1: x[_at(x, dim, slice(start, end, step))])
entry("index_put", "index_set", lambda x, indices, values, accumulate=False: (
    x.at[tuple(indices)].add(values) if accumulate else x.at[tuple(indices)].set(values)))  # fmt: skip
entry("select_scatter", "index_set", lambda x, src, dim, index: x.at[_at(x, dim, index)].set(src))
entry("slice_scatter", "index_set", lambda x, src, dim=0, start=None, end=None, step=1: x.at[_at(x, dim, slice(start, end, step))].set(src))


def _index(index: Any) -> Any:
    """A list is an array of positions, unless it holds slices."""
    return tuple(index) if isinstance(index, list) and not all(isinstance(k, int) for k in index) else index


def _whole(start: Any, x: Any, dim: int) -> int:
    start = int(start.item()) if isinstance(start, ng.Tensor) else start
    return start + x.shape[dim] if start < 0 else start


def _at(x: Any, dim: int, index: Any) -> Any:
    """The index that takes ``index`` along one axis."""
    return (*(slice(None),) * (dim % x.ndim), index)


# dtypes and new arrays

for _name, _dtype in (("double", "float64"), ("float", "float32"), ("half", "float16"), ("int", "int32"), ("long", "int64"),
                      ("bool", "bool"), ("byte", "uint8"), ("char", "int8"), ("short", "int16")):  # fmt: skip
    entry(_name, "cast", lambda x, dtype=_dtype, **layout: x.astype(dtype))
entry("zeros_like", "zeros_like", lambda x, dtype=None, **places: ng.zeros_like(x, dtype))
entry("ones_like", "ones_like", lambda x, dtype=None, **places: ng.ones_like(x, dtype))
entry("full_like", "full_like", lambda x, value, dtype=None, **places: ng.full_like(x, value, dtype))
entry("zeros", "zeros", lambda shape, dtype=None, device=None: ng.zeros(shape, dtype))
entry("ones", "ones", lambda shape, dtype=None, device=None: ng.ones(shape, dtype))
entry("full", "full", lambda shape, value, dtype=None, device=None: ng.full(shape, value, dtype))
entry("eye", "eye", lambda n, m=None, dtype=None, **places: ng.eye(n, m, dtype=dtype))
entry("linspace", "linspace", lambda start, stop, steps, dtype=None, **places: ng.linspace(start, stop, steps, dtype=dtype))
entry("arange", "arange", lambda *bounds, dtype=None, end=None, step=1, **places: (
    ng.arange(*bounds, dtype=dtype) if end is None else ng.arange(*bounds, end, step, dtype=dtype)))  # fmt: skip

# positions

entry("sort", "sort", lambda x, dim=-1, descending=False, stable=False: (ng.sort(x, dim, descending), ng.argsort(x, dim, descending)))
entry("argsort", "argsort", lambda x, dim=-1, descending=False, stable=False: ng.argsort(x, dim, descending))
