"""Nodes that arrange entries anew, repeat them, and take windows of them. They are linear, and save no values."""

from math import prod
from typing import Any

import torch

from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule, signed
from nestgrad.errors import UnsupportedNode


def reshaped(graph: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """``x`` in another shape."""
    return x if x.shape == shape else graph.apply("reshape", x, shape=shape)


def _reshape(graph: Any, node: Node, inputs: Inputs) -> Any:
    return reshaped(graph, inputs[0], node.shape)


def _same(graph: Any, node: Node, inputs: Inputs) -> Any:
    return inputs[0]


# axes in another order


def _permuted(graph: Any, x: Any, axes: tuple[int, ...]) -> Any:
    return x if axes == tuple(range(len(axes))) else graph.apply("permute", x, axes=axes)


def _permute(graph: Any, node: Node, inputs: Inputs) -> Any:
    rank = len(node.shape)
    return _permuted(graph, inputs[0], tuple([signed(d) % rank for d in node.saved("dims")]))


def _swapped(graph: Any, x: Any, first: int, second: int) -> Any:
    axes = [*range(len(x.shape))]
    if axes:
        axes[first], axes[second] = axes[second], axes[first]
    return _permuted(graph, x, tuple(axes))


def _t(graph: Any, node: Node, inputs: Inputs) -> Any:
    """The transpose of a matrix; what has fewer axes stays as it is."""
    return _swapped(graph, inputs[0], 0, -1)


def _transpose(graph: Any, node: Node, inputs: Inputs) -> Any:
    return _swapped(graph, inputs[0], signed(node.saved("dim0")), signed(node.saved("dim1")))


# entries in another order


def _flip(graph: Any, node: Node, inputs: Inputs) -> Any:
    rank = len(node.shape)
    return graph.apply("flip", inputs[0], axes=tuple(sorted({signed(d) % rank for d in node.saved("dims")})))


def _roll(graph: Any, node: Node, inputs: Inputs) -> Any:
    x, shape = inputs[0], node.shape
    shifts = tuple(map(signed, node.saved("shifts")))
    axes = tuple([signed(d) % len(shape) for d in node.saved("dims")])
    if axes:
        return graph.apply("roll", x, shifts=shifts, axes=axes)
    line = reshaped(graph, x, (prod(x.shape),))  # without axes it goes on from row to row
    return reshaped(graph, graph.apply("roll", line, shifts=shifts, axes=(0,), told=line.shape), shape)


def _rot90(graph: Any, node: Node, inputs: Inputs) -> Any:
    x, turns = inputs[0], node.saved("k") % 4
    first, second = (signed(d) % len(node.shape) for d in node.saved("dims"))
    if turns == 2:
        return graph.apply("flip", x, axes=tuple(sorted((first, second))))
    if turns == 1:
        x = _swapped(graph, graph.apply("flip", x, axes=(second,), told=x.shape), first, second)
    elif turns == 3:
        x = _swapped(graph, graph.apply("flip", x, axes=(first,), told=x.shape), first, second)
    return x


# copies of entries


def _repeat(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Copies side by side: each axis has one of copies before it."""
    x, repeats = inputs[0], tuple(node.saved("repeats"))
    sizes = ((1,) * (len(repeats) - len(x.shape))) + x.shape
    apart = reshaped(graph, x, tuple([m for n in sizes for m in (1, n)]))
    wide = tuple([m for count, n in zip(repeats, sizes, strict=True) for m in (count, n)])
    return reshaped(graph, graph.apply("broadcast_to", apart, shape=wide), node.shape)


# diagonals and triangles


def _diagonal_axes(node: Node, rank: int) -> dict[str, Any]:
    return {"offset": signed(node.saved("offset")), "axes": tuple([signed(node.saved(name)) % rank for name in ("dim1", "dim2")])}


def _diagonal(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("diagonal", inputs[0], **_diagonal_axes(node, len(inputs[0].shape)))


def _from_diagonal(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Zeros but on a diagonal."""
    return graph.apply("from_diagonal", inputs[0], **_diagonal_axes(node, len(node.shape)), shape=node.shape)


def _triangle(op: str) -> Rule:
    return lambda graph, node, inputs: graph.apply(op, inputs[0], k=signed(node.saved("diagonal")))


def _trace(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("sum", graph.apply("diagonal", inputs[0], offset=0, axes=(0, 1)), axes=(0,), keepdims=False)


# windows along an axis


def _moved(rank: int, source: int, target: int) -> tuple[int, ...]:
    """The permutation that puts an axis elsewhere."""
    axes = [k for k in range(rank) if k != source]
    return (*axes[:target], source, *axes[target:])


def _unfold(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Windows along an axis: their number stands in its place, and their entries are a last axis."""
    x = inputs[0]
    rank = len(x.shape)
    if rank == 0:
        return reshaped(graph, x, node.shape)
    axis = node.dim("dimension", rank)
    last = _permuted(graph, x, _moved(rank, axis, rank - 1))
    cut = graph.apply("windows", last, sizes=(node.saved("size"),), strides=(node.saved("step"),), dilations=(1,))
    return _permuted(graph, cut, _moved(rank + 1, rank - 1, axis))


def _unfold_back(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Each window added where it was."""
    shape = node.shape
    rank = len(shape)
    if rank == 0:
        return reshaped(graph, inputs[0], shape)
    axis = node.dim("dim", rank)
    last = _permuted(graph, inputs[0], _moved(rank + 1, axis, rank - 1))
    put = graph.apply("from_windows", last, spaces=(shape[axis],), strides=(node.saved("step"),), dilations=(1,))
    return _permuted(graph, put, _moved(rank, rank - 1, axis))


# channels and pixels


def _pixels(up: bool) -> Rule:
    """Channels as pixels of a finer image, or these as channels."""

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        x = inputs[0]
        n: int = node.saved("upscale_factor" if up else "downscale_factor")
        *lead, channels, height, width = x.shape
        k = len(lead)
        if up:
            apart = reshaped(graph, x, (*lead, channels // (n * n), n, n, height, width))
            axes = (*range(k + 1), k + 3, k + 1, k + 4, k + 2)
        else:
            apart = reshaped(graph, x, (*lead, channels, height // n, n, width // n, n))
            axes = (*range(k + 1), k + 2, k + 4, k + 1, k + 3)
        return reshaped(graph, _permuted(graph, apart, axes), node.shape)

    return rule


def _channel_shuffle(graph: Any, node: Node, inputs: Inputs) -> Any:
    samples, channels, *rest = inputs[0].shape
    groups: int = node.saved("groups")
    apart = reshaped(graph, inputs[0], (samples, groups, channels // groups, *rest))
    return reshaped(graph, _swapped(graph, apart, 1, 2), node.shape)


# strides


def _as_strided(graph: Any, node: Node, inputs: Inputs) -> Any:
    """A view by steps through memory. The node does not tell how its operand lay there: the rows of a contiguous array are tried.

    Raises:
        UnsupportedNode: It lay otherwise.
    """
    x = inputs[0]
    size, stride = tuple(node.saved("size")), tuple(map(signed, node.saved("stride")))
    places = torch.full(size, node.saved("storage_offset") or 0, device=node.device)
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        places = places + (torch.arange(n, device=node.device) * step).reshape(n, *(1,) * (len(size) - axis - 1))
    probe = torch.arange(1.0, places.numel() + 1.0, dtype=node.dtype, device=node.device).reshape(size)
    fits = not places.numel() or int(places.max()) < prod(x.shape)
    if fits:
        expected = torch.zeros(prod(x.shape), dtype=node.dtype, device=node.device).index_add_(0, places.reshape(-1), probe.reshape(-1))
        (found,) = node.pulled(probe)
        fits = torch.equal(found, expected.reshape(x.shape))
    if not fits:
        raise UnsupportedNode(
            "backward: got AsStridedBackward0 of an array that is not contiguous; expected one of which the strides are known, because the "
            "node does not keep them. Try as_strided of x.contiguous(), or indexing"
        )
    return graph.apply("getitem", reshaped(graph, x, (prod(x.shape),)), index=(places,))


RULES: dict[str, Rule] = {
    "ViewBackward0": _reshape,
    "UnsafeViewBackward0": _reshape,
    "ReshapeAliasBackward0": _reshape,
    "ReshapeCopyBackward0": _reshape,
    "MkldnnReshapeBackward0": _reshape,
    "CloneBackward0": _same,
    "AliasBackward0": _same,
    "LiftBackward0": _same,
    "LiftFreshBackward0": _same,
    "PinMemoryBackward0": _same,
    "UnsqueezeBackward0": _reshape,
    "UnsqueezeBackward1": _reshape,
    **{f"SqueezeBackward{k}": _reshape for k in range(6)},
    "PermuteBackward0": _permute,
    "TBackward0": _t,
    "TBackward1": _t,
    "TransposeBackward0": _transpose,
    "TransposeBackward1": _transpose,
    "FlipBackward0": _flip,
    "RollBackward0": _roll,
    "Rot90Backward0": _rot90,
    "RepeatBackward0": _repeat,
    "DiagonalBackward0": _diagonal,
    "DiagonalBackwardBackward0": _from_diagonal,
    "DiagEmbedBackward0": _from_diagonal,
    "TrilBackward0": _triangle("tril"),
    "TriuBackward0": _triangle("triu"),
    "TraceBackward0": _trace,
    "UnfoldBackward0": _unfold,
    "UnfoldBackwardBackward0": _unfold_back,
    "PixelShuffleBackward0": _pixels(True),
    "PixelUnshuffleBackward0": _pixels(False),
    "ChannelShuffleBackward0": _channel_shuffle,
    "AsStridedBackward0": _as_strided,
}

_VIEWS = ("View", "ReshapeAlias", "Alias", "LiftFresh", "Unsqueeze", "Permute", "T", "Transpose", "Diagonal", "Unfold",
          "AsStrided")  # fmt: skip
"""Views of which there are copies, as ``view_copy``."""
RULES |= {f"{name}Backward0_copy": RULES[f"{name}Backward0"] for name in _VIEWS}
RULES |= {f"SqueezeBackward{k}_copy": _reshape for k in range(3)}
