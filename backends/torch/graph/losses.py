"""Nodes of losses, and of their backward passes. A loss is a number for each entry, or the mean or the sum of these."""

from math import prod
from typing import Any

import torch

from nestgrad.backends.torch.graph.elementwise import scaled
from nestgrad.backends.torch.graph.places import along
from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule, signed
from nestgrad.backends.torch.graph.shapes import reshaped

Tensor = torch.Tensor

_MEAN, _SUM = 1, 2


def _reduced(graph: Any, node: Node, x: Any, shape: tuple[int, ...]) -> Any:
    """What the node makes of a number for each entry of ``shape``."""
    reduction = node.saved("reduction")
    if reduction not in (_MEAN, _SUM):
        return x
    return graph.apply("mean" if reduction == _MEAN else "sum", x, axes=tuple(range(len(shape))), keepdims=False)


def _spread(graph: Any, node: Node) -> Any:
    """The cotangent of each entry, where that of the loss is the first operand of a backward pass. It broadcasts."""
    g = node.operand(0, "grad_output")
    count = prod(node.shape)
    return graph.apply("per", g, n=count) if node.saved("reduction") == _MEAN and count > 1 else g


def _difference(graph: Any, node: Node, first: int = 0) -> Any:
    return graph.apply("sub", node.operand(first, "self"), node.operand(first + 1, "target"))


def _shape(node: Node) -> tuple[int, ...]:
    return tuple(node.saved("self").shape)


def _of_difference(loss: Any) -> Rule:
    """A loss that is a function of the difference of its operands."""
    return lambda graph, node, inputs: _reduced(graph, node, loss(graph, node, _difference(graph, node)), _shape(node))


def _slope_of_difference(slope: Any) -> Rule:
    """Its backward pass: the cotangent times the function's derivative."""
    return lambda graph, node, inputs: graph.apply("mul", _spread(graph, node), slope(graph, node, _difference(graph, node, 1)))


def _square(graph: Any, node: Node, d: Any) -> Any:
    return graph.apply("square", d)


def _twice(graph: Any, node: Node, d: Any) -> Any:
    return scaled(graph, d, 2)


def _huber(graph: Any, node: Node, d: Any) -> Any:
    return graph.apply("huber", d, delta=float(node.saved("delta")))


def _huber_slope(graph: Any, node: Node, d: Any) -> Any:
    delta = float(node.saved("delta"))
    return graph.apply("hardtanh", d, lo=-delta, hi=delta)


def _smooth(graph: Any, node: Node, d: Any) -> Any:
    """Huber's loss, over where it becomes linear."""
    beta = float(node.saved("beta"))
    return scaled(graph, graph.apply("huber", d, delta=beta), 1.0 / beta)


def _smooth_slope(graph: Any, node: Node, d: Any) -> Any:
    beta = float(node.saved("beta"))
    return scaled(graph, graph.apply("hardtanh", d, lo=-beta, hi=beta), 1.0 / beta)


# of probabilities


def _weighted(graph: Any, node: Node, x: Any) -> Any:
    """``x`` times the weights that were given, if there are any."""
    weight = node.saved("weight")
    return x if weight is None else graph.apply("mul", x, graph.data(weight))


def _bce(graph: Any, node: Node, inputs: Inputs) -> Any:
    loss = graph.apply("bce", node.operand(0, "self"), node.operand(1, "target"))
    return _reduced(graph, node, _weighted(graph, node, loss), _shape(node))


def _bce_slope(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("bce_vjp", _weighted(graph, node, _spread(graph, node)), node.operand(1, "self"), node.operand(2, "target"))


def _bce_logits(graph: Any, node: Node, inputs: Inputs) -> Any:
    """``-w (p y log s(x) + (1 - y) log s(-x))`` with weights ``w`` of entries and ``p`` of what is true."""
    x, y, true = node.operand(0, "self"), node.operand(1, "target"), node.saved("pos_weight")
    if true is None:
        loss = graph.apply("bce_logits", x, y)
    else:
        missed = graph.apply("mul", graph.apply("mul", y, graph.data(true)), graph.apply("softplus", graph.apply("neg", x)))
        loss = graph.apply("add", missed, graph.apply("mul", graph.apply("sub", 1.0, y), graph.apply("softplus", x)))
    return _reduced(graph, node, _weighted(graph, node, loss), _shape(node))


def _margin(graph: Any, node: Node, x: Any) -> tuple[Any, Any]:
    """``-y x``, and ``-y``."""
    away = graph.data(-node.saved("target"))
    return graph.apply("mul", x, away), away


def _soft_margin(graph: Any, node: Node, inputs: Inputs) -> Any:
    """``log(1 + exp(-y x))``."""
    argument, _ = _margin(graph, node, node.operand(0, "self"))
    return _reduced(graph, node, graph.apply("softplus", argument), _shape(node))


def _soft_margin_slope(graph: Any, node: Node, inputs: Inputs) -> Any:
    argument, away = _margin(graph, node, node.operand(1, "self"))
    return graph.apply("gated", graph.apply("mul", _spread(graph, node), away), argument, sign=1)


# of classes


def _classes(node: Node, rank: int) -> tuple[Tensor, Tensor, int]:
    """Positions along the axis of classes, with what the entries there count for in the loss; and that axis."""
    axis = 0 if rank == 1 else 1
    target = node.saved("target")
    counted = target != signed(node.saved("ignore_index"))
    target = torch.where(counted, target, 0)
    weight = node.saved("weight")
    share = counted.to(node.dtype) if weight is None else torch.where(counted, weight[target], 0.0)
    if node.saved("reduction") == _MEAN:
        share = share / torch.where(counted.any(), share.sum(), 1.0)  # of nothing that counts: derivatives are zero
    return target.unsqueeze(axis), -share, axis


def _nll(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Minus the entry of the right class, by its weight."""
    x = inputs[0]
    target, share, axis = _classes(node, len(x.shape))
    loss = graph.apply("mul", reshaped(graph, along(graph, x, target, axis), tuple(share.shape)), graph.data(share))
    return loss if node.saved("reduction") == 0 else graph.apply("sum", loss, axes=tuple(range(share.dim())), keepdims=False)


def _nll_slope(graph: Any, node: Node, inputs: Inputs) -> Any:
    g, shape = inputs[0], node.shape
    if g is None:
        return graph.unknown_value(shape, node.dtype)
    target, share, axis = _classes(node, len(shape))
    each = reshaped(graph, graph.apply("mul", g, graph.data(share), told=tuple(share.shape)), tuple(target.shape))
    return graph.apply("add_along", each, graph.data(target), axis=axis, n=shape[axis])


RULES: dict[str, Rule] = {
    "MseLossBackward0": _of_difference(_square),
    "MseLossBackwardBackward0": _slope_of_difference(_twice),
    "HuberLossBackward0": _of_difference(_huber),
    "HuberLossBackwardBackward0": _slope_of_difference(_huber_slope),
    "SmoothL1LossBackward0": _of_difference(_smooth),
    "SmoothL1LossBackwardBackward0": _slope_of_difference(_smooth_slope),
    "BinaryCrossEntropyBackward0": _bce,
    "BinaryCrossEntropyBackwardBackward0": _bce_slope,
    "BinaryCrossEntropyWithLogitsBackward0": _bce_logits,
    "SoftMarginLossBackward0": _soft_margin,
    "SoftMarginLossBackwardBackward0": _soft_margin_slope,
    "NllLossBackward0": _nll,
    "NllLossBackwardBackward0": _nll_slope,
    "NllLoss2DBackward0": _nll,
    "NllLoss2DBackwardBackward0": _nll_slope,
}
