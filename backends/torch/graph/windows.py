"""Nodes of pooling, of padding, and of windows laid out as columns; and of their backward passes, which are the transposes."""

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from nestgrad.backends.torch.graph.places import along
from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule, signed
from nestgrad.backends.torch.graph.shapes import reshaped

Shape = tuple[int, ...]


# the greatest of a window: torch saved where it is, counting the entries of the pooled axes together


def _lines(graph: Any, x: Any, rank: int) -> Any:
    """The last axes as one."""
    lead = x.shape[: len(x.shape) - rank]
    return reshaped(graph, x, (*lead, prod(x.shape[len(lead) :])))


def _max_pool(positions: str, rank: int) -> Rule:
    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        places = node.saved(positions)
        lines = _lines(graph, inputs[0], rank)
        axis = len(lines.shape) - 1
        return reshaped(graph, along(graph, lines, places.flatten(axis), axis), node.shape)

    return rule


def _max_pool_back(rank: int) -> Rule:
    """Each cotangent where it belongs. The array that was pooled is an operand, of which nothing changes."""

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        g, shape = inputs[0], node.shape
        if g is None:
            return graph.unknown_value(shape, node.dtype)
        places, axis = node.saved("indices"), len(shape) - rank
        lines = _lines(graph, g, rank)
        back = graph.apply("add_along", lines, graph.data(places.flatten(axis)), axis=axis, n=prod(shape[axis:]))
        return graph.apply("reshape", back, shape=shape)

    return rule


# means of windows


def _windows(node: Node) -> dict[str, Any]:
    """How windows lie. One number stands for all axes, and none is told of what is as it is by default."""
    d = 3 if "3D" in node.fn.name() else 2

    def each(name: str) -> tuple[int, ...]:
        given = tuple(node.saved(name))
        return given * d if len(given) == 1 else given

    sizes, divisor = each("kernel_size"), node.saved("divisor_override")
    return {
        "sizes": sizes,
        "strides": each("stride") or sizes,
        "padding": each("padding"),
        "ceil": bool(node.saved("ceil_mode")),
        "padded": bool(node.saved("count_include_pad")),
        "divisor": None if divisor is None else signed(divisor),
    }


def _avg_pool(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("avg_pool", inputs[0], **_windows(node))


def _avg_pool_back(graph: Any, node: Node, inputs: Inputs) -> Any:
    if inputs[0] is None:
        return graph.unknown_value(node.shape, node.dtype)
    how = _windows(node)
    return graph.apply("from_avg_pool", inputs[0], spaces=node.shape[-len(how["sizes"]) :], **how)


def _shares(node: Node, n: int, m: int) -> torch.Tensor:
    """A matrix that makes means of ``m`` windows, which divide an axis of ``n`` entries."""
    line, windows = torch.arange(n, device=node.device), torch.arange(m, device=node.device)[:, None]
    inside = (line >= windows * n // m) & (line < ((windows + 1) * n + m - 1) // m)
    return inside.to(node.dtype) / inside.sum(1, keepdim=True)


def by_matrix(graph: Any, x: Any, axis: int, matrix: torch.Tensor) -> Any:
    """A matrix times the columns of ``x`` along an axis."""
    shape = x.shape
    apart = reshaped(graph, x, (*shape[: axis + 1], prod(shape[axis + 1 :])))
    product = graph.apply("matmul", graph.data(matrix), apart, told=(*shape[:axis], matrix.shape[0], apart.shape[-1]))
    return reshaped(graph, product, (*shape[:axis], matrix.shape[0], *shape[axis + 1 :]))


def _adaptive(rank: int, back: bool) -> Rule:
    """Means of as many windows as the answer has entries along each of the last axes; or the transpose of that."""

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        x, shape = inputs[0], node.shape
        if x is None:
            return graph.unknown_value(shape, node.dtype)
        for axis in range(len(shape) - rank, len(shape)):
            n, m = x.shape[axis], shape[axis]
            x = by_matrix(graph, x, axis, _shares(node, m, n).T if back else _shares(node, n, m))
        return x

    return rule


# padding


def _widths(padding: Sequence[int], rank: int) -> tuple[tuple[int, int], ...]:
    """How much comes before and after each axis. torch tells it from the last axis on."""
    pairs = [(signed(before), signed(after)) for before, after in zip(padding[::2], padding[1::2], strict=True)]
    return (*((0, 0),) * (rank - len(pairs)), *reversed(pairs))


def _constant_pad(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Numbers around, which are not kept; what is to be cut away is negative."""
    x = inputs[0]
    widths = _widths(node.saved("pad"), len(x.shape))
    cut = tuple([slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(x.shape, widths, strict=True)])
    x = graph.apply("getitem", x, index=cut)
    around = graph.apply("pad", x, widths=tuple([(max(before, 0), max(after, 0)) for before, after in widths]))
    return graph.apply("add", around, graph.unknown_value((), node.dtype))


def _extended(mode: str, back: bool) -> Rule:
    op = "gather_in" if back else "extend"

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        if inputs[0] is None:
            return graph.unknown_value(node.shape, node.dtype)
        return graph.apply(op, inputs[0], widths=_widths(node.saved("padding"), len(node.shape)), mode=mode)

    return rule


# windows as columns


def _columns_steps(node: Node) -> tuple[Shape, dict[str, Shape], Shape]:
    """Sizes of windows, how they step, and what is put around the array."""
    steps = {"strides": tuple(node.saved("stride")), "dilations": tuple(node.saved("dilation"))}
    return tuple(node.saved("kernel_size")), steps, tuple(node.saved("padding"))


def _padded(lead: Shape, padding: Shape) -> tuple[tuple[int, int], ...]:
    return (*((0, 0),) * len(lead), *((n, n) for n in padding))


def _to_columns(graph: Any, node: Node, inputs: Inputs) -> Any:
    x = inputs[0]
    sizes, steps, padding = _columns_steps(node)
    lead = x.shape[:-2]
    cut = graph.apply("windows", graph.apply("pad", x, widths=_padded(lead, padding)), sizes=sizes, **steps)
    k = len(lead)
    return graph.apply("reshape", graph.apply("permute", cut, axes=(*range(k), k + 2, k + 3, k, k + 1)), shape=node.shape)


def _from_columns(graph: Any, node: Node, inputs: Inputs) -> Any:
    x, shape = inputs[0], node.shape
    sizes, steps, padding = _columns_steps(node)
    lead, spaces = shape[:-2], tuple([n + 2 * more for n, more in zip(shape[-2:], padding, strict=True)])
    counts = [(n - d * (size - 1) - 1) // s + 1 for n, size, s, d in zip(spaces, sizes, steps["strides"], steps["dilations"], strict=True)]
    k = len(lead)
    apart = graph.apply("permute", reshaped(graph, x, (*lead, *sizes, *counts)), axes=(*range(k), k + 2, k + 3, k, k + 1))
    whole = graph.apply("from_windows", apart, spaces=spaces, **steps)
    inner = tuple([slice(more, n - more) for n, more in zip(spaces, padding, strict=True)])
    return graph.apply("getitem", whole, index=(*(slice(None),) * k, *inner))


RULES: dict[str, Rule] = {
    **{f"MaxPool{d}DWithIndicesBackward0": _max_pool("result1", d) for d in (2, 3)},
    **{f"MaxPool{d}DWithIndicesBackwardBackward0": _max_pool_back(d) for d in (2, 3)},
    **{f"AdaptiveMaxPool{d}DBackward0": _max_pool("result1", d) for d in (2, 3)},
    **{f"AdaptiveMaxPool{d}DBackwardBackward0": _max_pool_back(d) for d in (2, 3)},
    **{f"AvgPool{d}DBackward0": _avg_pool for d in (2, 3)},
    **{f"AvgPool{d}DBackwardBackward0": _avg_pool_back for d in (2, 3)},
    **{f"AdaptiveAvgPool{d}DBackward0": _adaptive(d, False) for d in (2, 3)},
    **{f"AdaptiveAvgPool{d}DBackwardBackward0": _adaptive(d, True) for d in (2, 3)},
    "ConstantPadNdBackward0": _constant_pad,
    **{f"ReflectionPad{d}DBackward0": _extended("reflect", False) for d in (1, 2, 3)},
    **{f"ReflectionPad{d}DBackwardBackward0": _extended("reflect", True) for d in (1, 2, 3)},
    **{f"ReplicationPad{d}DBackward0": _extended("edge", False) for d in (1, 2, 3)},
    **{f"ReplicationPad{d}DBackwardBackward0": _extended("edge", True) for d in (1, 2, 3)},
    "Im2ColBackward0": _to_columns,
    "Col2ImBackward0": _from_columns,
}
