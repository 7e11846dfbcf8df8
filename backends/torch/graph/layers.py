"""Nodes of layers: softmax and its kind, gates, normalisation, dropout; and of their backward passes.

Of softmax torch keeps the answer. Its operand is not known from that, but one that has the same answer is: the answer's logarithm.
"""

from math import prod
from typing import Any

import torch

from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule
from nestgrad.backends.torch.graph.shapes import reshaped
from nestgrad.errors import UnsupportedNode

Tensor = torch.Tensor


def _along(graph: Any, node: Node, op: str, *operands: Any, **params: Any) -> Any:
    """An op along the saved axis. A number counts as an array of one entry."""
    shape = node.shape
    if shape:
        return graph.apply(op, *operands, axis=node.dim("dim", len(shape)), **params)
    return reshaped(graph, graph.apply(op, *[reshaped(graph, x, (1,)) for x in operands], axis=0, told=(1,), **params), ())


# softmax


def _log(p: Tensor) -> Tensor:
    """The logarithm; where it is minus infinity, it is a constant."""
    return torch.where(p == 0.0, -torch.inf, torch.log(torch.where(p == 0.0, 1.0, p))) if p.requires_grad else torch.log(p)


def _softmax(graph: Any, node: Node, inputs: Inputs) -> Any:
    return _along(graph, node, "softmax", node.behind(0, lambda: _log(node.saved("result"))))


def _safe_softmax(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Softmax, but zeros along lines of which nothing is allowed."""
    result = node.saved("result").detach()
    some = (result != 0).any(node.dim("dim", result.dim()), keepdim=True) if result.dim() else result != 0
    x = node.behind(0, lambda: _log(node.saved("result")))
    if bool(some.all()):
        return _along(graph, node, "softmax", x)
    allowed = graph.data(some)
    finite = graph.apply("where", allowed, x, 0.0, told=node.shape)
    return graph.apply("where", allowed, _along(graph, node, "softmax", finite), 0.0)


def _log_softmax(graph: Any, node: Node, inputs: Inputs) -> Any:
    return _along(graph, node, "log_softmax", node.behind(0, lambda: node.saved("result")))


def _softmax_slope(op: str) -> Rule:
    """The backward pass, of a cotangent and the answer."""
    return lambda graph, node, inputs: _along(graph, node, op, node.operand(0, "grad_output"), node.operand(1, "output"))


def _logsumexp(graph: Any, node: Node, inputs: Inputs) -> Any:
    x = node.operand(0, "self")
    return graph.apply("logsumexp", x, axes=node.dims("dim", len(x.shape)), keepdims=bool(node.saved("keepdim")))


def _logcumsumexp(graph: Any, node: Node, inputs: Inputs) -> Any:
    return _along(graph, node, "logcumsumexp", node.operand(0, "self"))


# gates


def _glu(graph: Any, node: Node, inputs: Inputs) -> Any:
    return _along(graph, node, "glu", node.operand(0, "self"))


def _glu_slope(graph: Any, node: Node, inputs: Inputs) -> Any:
    """What the first half gets, and the second."""
    g, x = node.operand(0, "grad_output"), node.operand(1, "self")
    shape = node.shape
    axis = node.dim("dim", len(shape))
    first, second = graph.split(x, (shape[axis] // 2,) * 2, axis)
    to_second = graph.apply("sigmoid_vjp", graph.apply("mul", g, first), second)
    return graph.apply("concat", graph.apply("gated", g, second, sign=1), to_second, axis=axis)


def _dropout(graph: Any, node: Node, inputs: Inputs) -> Any:
    p = float(node.saved("p"))
    kept = node.saved("result1").to(node.dtype) * (1.0 / (1.0 - p) if p < 1.0 else 0.0)
    return graph.apply("mul", inputs[0], graph.data(kept))


def _dropout_back(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("mul", inputs[0], graph.data(node.saved("mask").to(node.dtype) * float(node.saved("scale"))))


def _weight_norm(graph: Any, node: Node, inputs: Inputs) -> Any:
    """``v`` by its norm over all axes but one, times ``g``."""
    v, g = node.operand(0, "v"), node.operand(1, "g")
    axis = node.dim("dim", len(node.shape))
    size = graph.apply("norm", v, axes=tuple([k for k in range(len(node.shape)) if k != axis]), keepdims=True)
    return graph.apply("mul", v, graph.apply("div", g, size))


# normalisation: the mean and the reciprocal of the deviation are what they are of the operand, and have the values that torch saved


class _Normal:
    """An array with mean 0 and variance 1 along axes.

    Attributes:
        values: The array.
        mean: What was taken off.
        r: What it was scaled by then.
        axes: The axes.
    """

    def __init__(self, graph: Any, node: Node, x: Any, axes: tuple[int, ...], mean: Tensor, r: Tensor) -> None:
        shape = tuple([1 if k in axes else n for k, n in enumerate(x.shape)])
        self.axes = axes
        mean, r = mean.to(node.dtype).reshape(shape), r.to(node.dtype).reshape(shape)
        if x.known is not None and x.known.requires_grad and not mean.requires_grad:
            mean, r = _tracked(x.known, axes, r)
        self.mean = graph.settled(graph.apply("mean", x, axes=axes, keepdims=True), mean)
        far = graph.apply("sub", x, self.mean)
        variance = graph.apply("mean", graph.apply("square", far), axes=axes, keepdims=True)
        self.r = graph.answered("rsqrt", graph.apply("add", variance, graph.unknown_value((), node.dtype)), value=r)
        self.values = graph.apply("mul", far, self.r)

    def pulled(self, graph: Any, g: Any) -> Any:
        """The cotangent of the operand from that of the values."""
        return graph.apply("mul", graph.apply("project", g, self.values, axes=self.axes, centred=True), self.r)


def _tracked(x: Tensor, axes: tuple[int, ...], r: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the reciprocal of the deviation, of the operand. What was added to the variance follows from their values."""
    mean = x.mean(axes, keepdim=True)
    variance = (x - mean).square().mean(axes, keepdim=True)
    return mean, torch.rsqrt(variance + (r ** -2 - variance).detach())


class _Fixed:
    """The same where mean and deviation are constants, as in a network that is not trained any more."""

    def __init__(self, graph: Any, x: Any, mean: Tensor, r: Tensor) -> None:
        self.r = graph.data(r)
        self.values = graph.apply("mul", graph.apply("sub", x, graph.data(mean)), self.r)

    def pulled(self, graph: Any, g: Any) -> Any:
        """The cotangent of the operand from that of the values."""
        return graph.apply("mul", g, self.r)


def _scale(graph: Any, node: Node, i: int, shape: tuple[int, ...], x: Any) -> Any:
    """``x`` times the weight, which is operand ``i``, if there is one; it has this shape beside ``x``."""
    if not node.tracked(i) and node.saved("weight") is None:
        return x
    return graph.apply("mul", x, reshaped(graph, node.operand(i, "weight"), shape))


def _shifted(graph: Any, node: Node, i: int, shape: tuple[int, ...], x: Any) -> Any:
    """``x`` plus the bias. Whether there is one is not told where it is not tracked."""
    bias = graph.unknown_value((), node.dtype) if node.inputs[i] is None else reshaped(graph, node.inputs[i], shape)
    return graph.apply("add", x, bias)


def _parameter_shares(graph: Any, node: Node, g: Any, normal: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """The cotangents of the weight and of the bias, where they are asked for."""
    shapes = node.shapes
    to_weight = graph.apply("sum", graph.apply("mul", g, normal.values), axes=axes, keepdims=False) if shapes[1] else None
    return to_weight, graph.apply("sum", g, axes=axes, keepdims=False) if shapes[2] else None


def _layer_axes(node: Node, rank: int) -> tuple[int, ...]:
    return tuple(range(rank - len(node.saved("normalized_shape")), rank))


def _layer_norm(graph: Any, node: Node, inputs: Inputs) -> Any:
    x, sizes = node.operand(0, "input"), tuple(node.saved("normalized_shape"))
    normal = _Normal(graph, node, x, _layer_axes(node, len(x.shape)), node.saved("result1"), node.saved("result2"))
    return _shifted(graph, node, 2, sizes, _scale(graph, node, 1, sizes, normal.values))


def _check_statistics(node: Node, axes: tuple[int, ...]) -> None:
    """Check that a backward pass was given the mean and deviation of its operand, which nobody but torch itself makes sure of.

    Raises:
        UnsupportedNode: They are others.
    """
    x, mean, r = node.saved("input"), node.saved("mean"), node.saved("rstd")
    variance = x.var(axes, correction=0, keepdim=True)
    beside = r.reshape(variance.shape) ** -2 - variance  # the number that was added to all
    small = 1e-3 * (variance + beside.abs())
    own = ((x.mean(axes, keepdim=True) - mean.reshape(variance.shape)).abs() <= small.sqrt()).all()
    own = own and ((beside - beside.flatten()[:1]).abs() <= small).all()
    if node.tracked(2) or node.tracked(3) or not own:
        raise UnsupportedNode(
            f"backward: got {node.fn.name()} with a mean and deviation that are not its operand's; expected those that layer_norm found, "
            "because derivatives go through them. Try torch.nn.functional.layer_norm and torch.autograd.grad with create_graph=True"
        )


def _layer_norm_back(graph: Any, node: Node, inputs: Inputs) -> Any:
    _check_statistics(node, _layer_axes(node, len(node.saved("input").shape)))
    g, x, sizes = node.operand(0, "grad_out"), node.operand(1, "input"), tuple(node.saved("normalized_shape"))
    axes = _layer_axes(node, len(x.shape))
    normal = _Normal(graph, node, x, axes, node.saved("mean"), node.saved("rstd"))
    to_x = normal.pulled(graph, _scale(graph, node, 4, sizes, g)) if node.shapes[0] else None
    return to_x, *_parameter_shares(graph, node, g, normal, tuple(range(axes[0])))


def _group_norm(graph: Any, node: Node, inputs: Inputs) -> Any:
    """The channels of a group, and all of space, have one mean."""
    x, (samples, channels, groups) = node.operand(0, "input"), (node.saved(name) for name in ("N", "C", "group"))
    shape = node.shape
    apart = reshaped(graph, x, (samples, groups, prod(shape[1:]) // groups))
    normal = _Normal(graph, node, apart, (2,), node.saved("result1"), node.saved("result2"))
    sizes = (channels, *(1,) * (len(shape) - 2))
    values = graph.apply("reshape", normal.values, shape=shape)
    out = _shifted(graph, node, 2, sizes, _scale(graph, node, 1, sizes, values))
    return out, reshaped(graph, normal.mean, (samples, groups)), reshaped(graph, normal.r, (samples, groups))


def _batch_normal(graph: Any, node: Node, x: Any, trained: bool, mean: str, r: str) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
    """The normalised samples, the axes that share a mean, and the shape of what there is one of for each channel."""
    shape = x.shape
    axes = tuple([k for k in range(len(shape)) if k != 1])
    sizes = (shape[1], *(1,) * (len(shape) - 2))
    if trained:
        return _Normal(graph, node, x, axes, node.saved(mean), node.saved(r)), axes, sizes
    scale = torch.rsqrt(node.saved("running_var") + node.saved("eps"))
    return _Fixed(graph, x, node.saved("running_mean").reshape(sizes), scale.reshape(sizes)), axes, sizes


def _batch_norm(graph: Any, node: Node, inputs: Inputs) -> Any:
    normal, _, sizes = _batch_normal(graph, node, node.operand(0, "input"), node.saved("training"), "result1", "result2")
    return _shifted(graph, node, 2, sizes, _scale(graph, node, 1, sizes, normal.values))


def _batch_norm_back(graph: Any, node: Node, inputs: Inputs) -> Any:
    g, x = node.operand(0, "grad_out"), node.operand(1, "input")
    normal, axes, sizes = _batch_normal(graph, node, x, node.saved("train"), "save_mean", "save_invstd")
    to_x = normal.pulled(graph, _scale(graph, node, 2, sizes, g)) if node.shapes[0] else None
    return to_x, *_parameter_shares(graph, node, g, normal, axes)


RULES: dict[str, Rule] = {
    "SoftmaxBackward0": _softmax,
    "SafeSoftmaxBackward0": _safe_softmax,
    "LogSoftmaxBackward0": _log_softmax,
    "SoftmaxBackwardDataBackward0": _softmax_slope("softmax_vjp"),
    "LogSoftmaxBackwardDataBackward0": _softmax_slope("log_softmax_vjp"),
    "LogsumexpBackward0": _logsumexp,
    "LogcumsumexpBackward0": _logcumsumexp,
    "GluBackward0": _glu,
    "GluBackwardBackward0": _glu_slope,
    "NativeDropoutBackward0": _dropout,
    "NativeDropoutBackwardBackward0": _dropout_back,
    "WeightNormInterfaceBackward0": _weight_norm,
    "NativeLayerNormBackward0": _layer_norm,
    "NativeLayerNormBackwardBackward0": _layer_norm_back,
    "NativeGroupNormBackward0": _group_norm,
    "NativeBatchNormBackward0": _batch_norm,
    "NativeBatchNormBackwardBackward0": _batch_norm_back,
}
