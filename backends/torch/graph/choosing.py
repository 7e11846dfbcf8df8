"""Nodes that choose between values: by a mask, a bound, or which is greater."""

from collections.abc import Callable
from typing import Any

import torch

from nestgrad.backends.torch.graph.elementwise import constant, of_argument
from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule


def _where(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("where", graph.data(node.saved("condition")), node.operand(0), node.operand(1))


def _masked(graph: Any, node: Node, inputs: Inputs) -> Any:
    """What fills may be tracked, too."""
    fill = node.operand(1) if len(inputs) > 1 else graph.unknown_value((), node.dtype)
    return graph.apply("where", graph.data(node.saved("mask")), fill, node.operand(0))


def _nan_to_num(graph: Any, node: Node, inputs: Inputs) -> Any:
    """What stands for what is not finite is not saved."""
    return graph.apply("where", graph.data(node.saved("self").isfinite()), inputs[0], graph.unknown_value((), node.dtype))


def _quantised(graph: Any, node: Node, inputs: Inputs) -> Any:
    """As if it had not been rounded, and constant where it was cut off."""
    moved = graph.apply("add", inputs[0], graph.unknown_value((), node.dtype))
    return graph.apply("where", graph.data(node.saved("mask")), moved, graph.unknown_value((), node.dtype)), None


def _bound(value: Any) -> float | None:
    return None if value is None else float(value)


def _clamp(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("clamp", node.operand(0, "self"), lo=_bound(node.saved("min")), hi=_bound(node.saved("max")))


def _clamp_by(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Between tensors. An entry on a bound is itself; where the bounds cross the upper one wins."""
    x = node.operand(0, "self")
    low = None if node.saved("min") is None else node.operand(1, "min")
    high = None if node.saved("max") is None else node.operand(2, "max")
    out = x if low is None else graph.apply("where", graph.apply("lt", x, low), low, x)
    if high is None:
        return out
    beyond = graph.apply("gt", x, high)
    if low is not None:
        beyond = graph.apply("logical_or", beyond, graph.apply("gt", low, high))
    return graph.apply("where", beyond, high, out)


def _clamp_one(side: str, op: str) -> Rule:
    """One bound that is a tensor: an entry that is on it is itself."""

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        x, bound = node.operand(0, "self"), node.operand(1, side)
        return graph.apply("where", graph.apply(op, x, bound), x, bound)

    return rule


def _either(first: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Rule:
    """The first where a mask of both says so, else the second."""

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        mask = first(node.saved("self"), node.saved("other"))
        return graph.apply("where", graph.data(mask), node.operand(0, "self"), node.operand(1, "other"))

    return rule


def _copysign(graph: Any, node: Node, inputs: Inputs) -> Any:
    """``x``, with a sign that is constant; and constant at 0. Nothing changes with what the sign is of."""
    if not node.tracked(0):
        return constant(graph, node, inputs)
    x = node.saved("self")
    sign = torch.where(x == 0, torch.zeros_like(x), node.saved("result") / x)
    return graph.apply("mul", node.operand(0, "self"), graph.data(sign))


RULES: dict[str, Rule] = {
    "WhereBackward0": _where,
    "MaskedFillBackward0": _masked,
    "MaskedFillBackward1": _masked,
    "FakeQuantizePerTensorAffineCachemaskBackward0": _quantised,
    "NanToNumBackward0": _nan_to_num,
    "ClampBackward0": _clamp_by,
    "ClampBackward1": _clamp,
    "ClampMinBackward0": lambda graph, node, inputs: graph.apply("clamp", node.operand(0, "self"), lo=_bound(node.saved("min")), hi=None),
    "ClampMinBackward1": _clamp_one("min", "ge"),
    "ClampMaxBackward0": lambda graph, node, inputs: graph.apply("clamp", node.operand(0, "self"), lo=None, hi=_bound(node.saved("max"))),
    "ClampMaxBackward1": _clamp_one("max", "le"),
    "MaximumBackward0": of_argument("maximum", "self", "other"),
    "MinimumBackward0": of_argument("minimum", "self", "other"),
    "FmaxBackward0": _either(lambda x, y: (x >= y) | y.isnan()),
    "FminBackward0": _either(lambda x, y: (x <= y) | y.isnan()),
    "CopysignBackward0": _copysign,
    "CopysignBackward1": _copysign,
}
"""By the names of nodes."""
