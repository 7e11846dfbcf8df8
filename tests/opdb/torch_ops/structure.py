"""Shapes, joints and parts, and entries by their positions."""

import math
from typing import Any

import nestgrad as ng
from torch_ops.table import absent, entries, entry, function, only

entries("fliplr", "flipud", "hstack", "vstack", "dstack", "column_stack", "trace")
for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    entry(_name, _name, lambda x, name=_name: [function(name)(part) for part in (x if isinstance(x, list) else [x])])
entry("diag_embed", "diag_embed", lambda x, offset=0, dim1=-2, dim2=-1: ng.diag_embed(x, offset, dim1, dim2))
entry("flip", "flip", lambda x, dims=(): ng.flip(x, dims))
entry("roll", "roll", lambda x, shifts, dims=None: ng.roll(x, shifts, dims))
entry("rot90", "rot90", lambda x, k=1, dims=(0, 1): ng.rot90(x, k, dims))
entry("movedim", "moveaxis")
entry("repeat", "tile", lambda x, *reps: ng.tile(x, reps[0] if len(reps) == 1 else reps))
entry("tile", "tile", lambda x, dims: ng.tile(x, dims))
entry("repeat_interleave", "repeat", lambda x, repeats, dim=None, output_size=None: ng.repeat(x, repeats, dim))
entry("flatten", "flatten", lambda x, start_dim=0, end_dim=-1: ng.flatten(x, start_dim, end_dim))
entry("unflatten", "unflatten", lambda x, dim, sizes: ng.unflatten(x, dim, sizes))
entry("triu", "triu", lambda x, diagonal=0: ng.triu(x, diagonal))
entry("tril", "tril", lambda x, diagonal=0: ng.tril(x, diagonal))
for _name in ("diagonal", "linalg.diagonal"):
    entry(_name, "diagonal", lambda x, offset=0, dim1=None, dim2=None, _last=_name == "linalg.diagonal": ng.diagonal(
        x, offset, (-2 if _last else 0) if dim1 is None else dim1, (-1 if _last else 1) if dim2 is None else dim2))  # fmt: skip
entry("diag", "diag", lambda x, diagonal=0: ng.diag(x, diagonal))
entry("diagflat", "diag", lambda x, offset=0: ng.diag(ng.ravel(x), offset))
for _name in ("variadic_tensors", "list_of_tensors"):
    entry(f"meshgrid|{_name}", "meshgrid", lambda x, *xs, indexing="ij": ng.meshgrid(
        *(x if isinstance(x, (list, tuple)) else (x, *xs)), indexing=indexing))  # fmt: skip
entry("broadcast_tensors", "broadcast_arrays", lambda x, *xs: ng.broadcast_arrays(x, *xs))


def _sections(x: Any, sizes: Any, dim: int = 0) -> Any:
    """Torch takes the sizes of parts, where we take places between them; and one size for all parts but the last."""
    n = x.shape[dim]
    if isinstance(sizes, int):
        return ng.split(x, list(range(sizes, n, sizes)), dim)
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    return ng.split(x, ends[:-1], dim)


for _name in ("split", "split|list_args", "split_with_sizes", "unsafe_split"):
    entry(_name, "split", _sections)
entry("tensor_split", "array_split", lambda x, sections, dim=0: ng.array_split(x, _data(sections), dim))
for _name in ("hsplit", "vsplit", "dsplit"):
    entry(_name, _name, lambda x, sections, _name=_name: getattr(ng, _name)(x, _data(sections)))
entry("chunk", "chunk", lambda x, chunks, dim=0: ng.chunk(x, chunks, dim))
entry("unsafe_chunk", "chunk", lambda x, chunks, dim=0: ng.chunk(x, chunks, dim))
entry("unbind", "unbind", lambda x, dim=0: ng.unbind(x, dim))


def _data(x: Any) -> Any:
    """Plain numbers."""
    return x.tolist() if isinstance(x, ng.Tensor) else x


# entries by their positions

def _gather(x: Any, dim: int, index: Any) -> Any:
    fits = index.ndim == x.ndim and all(n <= m for k, (n, m) in enumerate(zip(index.shape, x.shape, strict=True)) if k != dim)
    only(index.size or x.ndim == 0 or fits, "no positions, in a shape that does not fit: an error here")
    return ng.gather(x, dim, index)


entry("gather", "gather", _gather)
entry("take_along_dim", "take_along_axis", lambda x, index, dim=None: ng.take_along_axis(x, index.ravel() if dim is None else index, dim))
entry("take", "take", lambda x, index: ng.take(x, index))
entry("index_select", "index_select", lambda x, dim, index: ng.index_select(x, dim, index))
entry("index_copy", "index_copy", lambda x, dim, index, source: ng.index_copy(x, dim, index, source))
entry("index_add", "index_add", lambda x, dim, index, source, alpha=1: ng.index_add(x, dim, index, source * alpha))
entry("index_fill", "index_fill", lambda x, dim, index, value: ng.index_fill(x, dim, index, value))
entry("masked_fill", "masked_fill", lambda x, mask, value: ng.masked_fill(x, mask, value))
entry("masked_select", "masked_select", lambda x, mask: ng.masked_select(x, mask))
entry("scatter_add", "scatter_add", lambda x, dim, index, src: ng.scatter_add(x, dim, index, src))


entry("scatter", "scatter", lambda x, dim, index, src: ng.scatter(x, dim, index, src))
for _name in ("sum", "amin", "amax"):
    entry(f"scatter_reduce|{_name}", "scatter_reduce", lambda x, dim, index, src, reduce, include_self=True: _reduced(
        x, dim, index, src, reduce, include_self))  # fmt: skip
for _name in ("prod", "mean"):
    absent(f"scatter_reduce|{_name}", "scatter_reduce", "products and means of what is scattered")


def _reduced(x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    """Without what is there: the neutral number in its place, where something is put."""
    if not include_self:
        start = {"sum": 0.0, "amax": -math.inf, "amin": math.inf}[reduce]
        only(x.ndim, "an axis of an array without axes: an error here, as in NumPy")
        x = ng.where(_touched(x, dim, index), start, x)
    return ng.scatter_reduce(x, dim, index, src, reduce)


def _touched(x: Any, dim: int, index: Any) -> Any:
    """Where something is put."""
    return ng.scatter_add(ng.zeros_like(x), dim, index, ng.ones_like(index, "float64")) > 0


def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    if accumulate:
        return x.ravel().at[index.ravel()].add(source.ravel()).reshape(x.shape)
    return ng.put(x, index, source)


entry("put", "put", _put)
entry("nonzero", "nonzero", lambda x, as_tuple=False: ng.nonzero(ng.atleast_1d(x)) if as_tuple else ng.argwhere(x))
entry("argwhere", "argwhere", lambda x: ng.argwhere(x))


def _searchsorted(sequence: Any, values: Any, out_int32: bool = False, right: Any = None, side: str = "left", sorter: Any = None) -> Any:
    if sorter is not None:
        sequence = ng.take_along_axis(sequence, sorter, -1)
    return ng.searchsorted(sequence, values, side, right)


entry("searchsorted", "searchsorted", _searchsorted)
entry("bucketize", "bucketize", lambda x, boundaries, out_int32=False, right=False: ng.bucketize(x, boundaries, right))

# products of vectors

entries("dot", "vdot", "inner", "outer", "kron")


def _tensordot(x: Any, y: Any, dims: Any = 2) -> Any:
    pairs = [] if isinstance(dims, int) else zip(*dims, strict=True)
    only(all(x.shape[i] == y.shape[j] for i, j in pairs), "a sum over axes of sizes 1 and another: an error here, as in NumPy")
    return ng.tensordot(x, y, dims)


entry("tensordot", "tensordot", _tensordot)
entry("linalg.cross", "cross", lambda x, y, dim=-1: ng.cross(x, y, dim))
entry("cross", "cross", lambda x, y, dim=None: ng.cross(x, y, next(k for k, n in enumerate(x.shape) if n == 3) if dim is None else dim))
entry("addr", "outer", lambda x, y, z, beta=1, alpha=1: x * beta + ng.outer(y, z) * alpha)
entry("linalg.vecdot", "vecdot", lambda x, y, dim=-1: ng.vecdot(x, y, dim))

