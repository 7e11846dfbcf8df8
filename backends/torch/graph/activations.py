"""Nodes of activations, and of what torch's own backward pass makes of them when it is recorded itself.

In-place ones saved their answer, which tells the argument, or enough of it: on which side of a kink it was.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from nestgrad.backends.torch.graph.elementwise import of_argument, of_inverse
from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule

_TANH_GELU = {"k": math.sqrt(2 / math.pi), "a": 0.044715}


def _with(op: str, **names: str) -> Rule:
    """An op of the saved argument, with numbers of the node as parameters."""
    return lambda graph, node, inputs: graph.apply(
        op, node.operand(0, "self"), **{param: float(node.saved(name)) for param, name in names.items()}
    )


def _backward(op: str, **names: str) -> Rule:
    """An op of the cotangent and of the argument of which it is the rule."""
    return lambda graph, node, inputs: graph.apply(
        op, node.operand(0, "grad_output" if hasattr(node.fn, "_saved_grad_output") else ""), node.operand(1, "self"),
        **{param: float(node.saved(name)) for param, name in names.items()},
    )  # fmt: skip


def same(y: torch.Tensor) -> torch.Tensor:
    """An argument of which only the sign is read, and the answer has it."""
    return y


def _logit(y: torch.Tensor) -> torch.Tensor:
    return y.log() - torch.log1p(-y)


def _elu_params(node: Node) -> tuple[float, float, float]:
    return float(node.saved("alpha")), float(node.saved("scale")), float(node.saved("input_scale"))


def _celu_params(node: Node) -> tuple[float, float, float]:
    alpha = float(node.saved("alpha"))
    return alpha, 1.0, 1.0 / alpha


def _elu(params: Callable[[Node], tuple[float, float, float]], in_place: bool) -> Rule:
    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        alpha, scale, rate = params(node)
        named = {"alpha": alpha, "scale": scale, "rate": rate}
        if not in_place:
            return graph.apply("elu", node.operand(0, "self"), **named)
        y = node.saved("result")
        x = node.behind(0, lambda: torch.where(y > 0, y / scale, torch.log1p(y.clamp(max=0) / (alpha * scale)) / rate))
        return graph.answered("elu", x, value=y, **named)

    return rule


def _leaky_in_place(graph: Any, node: Node, inputs: Inputs) -> Any:
    y = node.saved("result")
    return graph.answered("leaky_relu", node.behind(0, lambda: y), value=y, slope=float(node.saved("negative_slope")))


def _rrelu(name: str) -> Rule:
    """In training a product with what was drawn, and with 1 above 0; else a fixed slope."""

    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        if node.saved("training"):
            return graph.apply("mul", inputs[0], graph.data(node.saved("noise")))
        slope = (float(node.saved("lower")) + float(node.saved("upper"))) / 2
        if name == "self":
            return graph.apply("leaky_relu", node.operand(0, name), slope=slope)
        y = node.saved(name)
        return graph.answered("leaky_relu", node.behind(0, lambda: y), value=y, slope=slope)

    return rule


def _rrelu_backward(graph: Any, node: Node, inputs: Inputs) -> Any:
    if node.saved("training"):
        return graph.apply("mul", node.operand(0), graph.data(node.saved("noise")))
    slope = (float(node.saved("lower")) + float(node.saved("upper"))) / 2
    return graph.apply("leaky", node.operand(0), node.operand(1, "self"), slope=slope)


def _threshold(graph: Any, node: Node, inputs: Inputs) -> Any:
    """What it gives below is not saved: NaN stands for it."""
    return graph.apply("threshold", node.operand(0, "self"), c=float(node.saved("threshold")), value=math.nan)


def _gelu(graph: Any, node: Node, inputs: Inputs) -> Any:
    x = node.operand(0, "self")
    return graph.apply("gelu_tanh", x, **_TANH_GELU) if node.saved("approximate") == "tanh" else graph.apply("gelu", x)


def _gelu_backward(graph: Any, node: Node, inputs: Inputs) -> Any:
    g, x = node.operand(0, "grad_output"), node.operand(1, "self")
    return graph.apply("gelu_tanh_vjp", g, x, **_TANH_GELU) if node.saved("approximate") == "tanh" else graph.apply("gelu_vjp", g, x)


def _softplus(graph: Any, node: Node, inputs: Inputs) -> Any:
    """``softplus(beta x) / beta``, and ``x`` beyond the threshold."""
    x, beta = node.operand(0, "self"), float(node.saved("beta"))
    steep = x if beta == 1.0 else graph.apply("scale", x, c=beta)
    soft = graph.apply("softplus", steep)
    soft = soft if beta == 1.0 else graph.apply("div", soft, beta)
    return graph.apply("where", graph.apply("gt", steep, float(node.saved("threshold"))), x, soft)


def _softplus_backward(graph: Any, node: Node, inputs: Inputs) -> Any:
    g, x, beta = node.operand(0, "grad_output"), node.operand(1, "self"), float(node.saved("beta"))
    steep = x if beta == 1.0 else graph.apply("scale", x, c=beta)
    return graph.apply(
        "where", graph.apply("gt", steep, float(node.saved("threshold"))), g, graph.apply("gated", g, steep, sign=1)
    )


def _log_sigmoid_backward(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("gated", node.operand(0, "grad_output"), node.operand(1, "self"), sign=-1)


def _sigmoid_backward(graph: Any, node: Node, inputs: Inputs) -> Any:
    """``g y (1 - y)``."""
    y = node.operand(1, "output")
    return graph.apply("mul", node.operand(0, "grad_output"), graph.apply("mul", y, graph.apply("sub", 1.0, y)))


def _elu_backward(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Of the argument, or of the answer ``y``: ``g rate (y + alpha scale)`` below 0."""
    alpha, scale, rate = _elu_params(node)
    g, x = node.operand(0, "grad_output"), node.operand(1, "self_or_result")
    if not node.saved("is_result"):
        return graph.apply("elu_vjp", g, x, alpha=alpha, scale=scale, rate=rate)
    below = graph.apply("mul", g, graph.apply("scale", graph.apply("add", x, alpha * scale), c=rate))
    return graph.apply("where", graph.apply("gt", x, 0.0), graph.apply("scale", g, c=scale), below)


def _prelu_backward(graph: Any, node: Node, inputs: Inputs) -> Any:
    """What the argument gets, and what the slope gets before it is summed."""
    g, x, w = node.operand(0, "grad_output"), node.operand(1, "self"), node.operand(2, "weight")
    above = graph.apply("gt", x, 0.0)
    return graph.apply("where", above, g, graph.apply("mul", g, w)), graph.apply("where", above, 0.0, graph.apply("mul", g, x))


RULES: dict[str, Rule] = {
    "ReluBackward0": of_inverse("relu", same),
    "SigmoidBackward0": of_inverse("sigmoid", _logit),
    "SiluBackward0": of_argument("silu", "self"),
    "MishBackward0": of_argument("mish", "self"),
    "LogSigmoidBackward0": of_argument("log_sigmoid", "self"),
    "HardswishBackward0": of_argument("hardswish", "self"),
    "HardsigmoidBackward0": of_argument("hardsigmoid", "self"),
    "HardtanhBackward0": _with("hardtanh", lo="min_val", hi="max_val"),
    "HardshrinkBackward0": _with("hardshrink", c="lambd"),
    "SoftshrinkBackward0": _with("softshrink", c="lambd"),
    "LeakyReluBackward0": _with("leaky_relu", slope="negative_slope"),
    "LeakyReluBackward1": _leaky_in_place,
    "PreluKernelBackward0": of_argument("prelu", "self", "weight"),
    "RreluWithNoiseBackward0": _rrelu("self"),
    "RreluWithNoiseBackward1": _rrelu("result"),
    "ThresholdBackward0": _threshold,
    "ThresholdBackward1": _threshold,
    "EluBackward0": _elu(_elu_params, False),
    "EluBackward1": _elu(_elu_params, True),
    "CeluBackward0": _elu(_celu_params, False),
    "CeluBackward1": _elu(_celu_params, True),
    "GeluBackward0": _gelu,
    "SoftplusBackward0": _softplus,
    # recorded backward passes
    "TanhBackwardBackward0": of_argument("tanh_vjp", "grad_output", "output"),
    "SigmoidBackwardBackward0": _sigmoid_backward,
    "SoftplusBackwardBackward0": _softplus_backward,
    "LogSigmoidBackwardBackward0": _log_sigmoid_backward,
    "GeluBackwardBackward0": _gelu_backward,
    "EluBackwardBackward0": _elu_backward,
    "HardswishBackwardBackward0": _backward("hardswish_vjp"),
    "HardtanhBackwardBackward0": _backward("inside", lo="min_val", hi="max_val"),
    "HardshrinkBackwardBackward0": _backward("outside", c="lambd"),
    "SoftshrinkBackwardBackward0": _backward("outside", c="lambd"),
    "LeakyReluBackwardBackward0": _backward("leaky", slope="negative_slope"),
    "ThresholdBackwardBackward0": _backward("above", c="threshold"),
    "PreluKernelBackwardBackward0": _prelu_backward,
    "RreluWithNoiseBackwardBackward0": _rrelu_backward,
}  # fmt: skip
"""By the names of nodes."""
