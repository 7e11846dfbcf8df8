"""Nodes of convolutions of one to three axes, and of their backward passes.

A transposed convolution is the transpose of one by its input, so all of them, and the backward passes, are three ops.
"""

from typing import Any

from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule
from nestgrad.backends.torch.graph.shapes import reshaped


def _steps(node: Node) -> dict[str, Any]:
    return {
        "strides": tuple(node.saved("stride")),
        "padding": tuple(node.saved("padding")),
        "dilations": tuple(node.saved("dilation")),
        "groups": node.saved("groups"),
    }


def _convolved(graph: Any, node: Node, x: Any, weight: Any, spaces: tuple[int, ...], transposed: bool) -> Any:
    """A convolution, or its transpose, whose answer has the shape ``spaces``."""
    if transposed:
        return graph.apply("conv_input", x, weight, spaces=spaces, **_steps(node))
    return graph.apply("conv", x, weight, **_steps(node))


def _convolution(graph: Any, node: Node, inputs: Inputs) -> Any:
    spaces = node.shape[2:]
    x, weight = node.operand(0, "input"), node.operand(1, "weight")
    out = _convolved(graph, node, x, weight, spaces, node.saved("transposed"))
    if inputs[2] is not None:
        return graph.apply("add", out, reshaped(graph, inputs[2], (node.shape[1], *(1,) * len(spaces))))
    # whether there is a bias is not told; a constant, it does not matter
    sizes = node.saved("bias_sym_sizes_opt")
    return graph.apply("add", out, graph.unknown_value((), node.dtype)) if sizes is not None and tuple(sizes) != (0,) else out


def _convolution_back(graph: Any, node: Node, inputs: Inputs) -> Any:
    """The cotangents of the input, the weight and the bias, those that were asked for."""
    transposed, shapes = node.saved("transposed"), node.shapes
    g, x, weight = node.operand(0, "grad_output"), node.operand(1, "input"), node.operand(2, "weight")
    to_x = to_weight = to_bias = None
    if shapes[0]:
        to_x = _convolved(graph, node, g, weight, shapes[0][2:], not transposed)
    if shapes[1]:
        pair = (g, x) if transposed else (x, g)
        to_weight = graph.apply("conv_weight", *pair, kernel=shapes[1][2:], **_steps(node))
    if shapes[2]:
        to_bias = graph.apply("sum", g, axes=(0, *range(2, len(g.shape))), keepdims=False)
    return to_x, to_weight, to_bias


RULES: dict[str, Rule] = {
    "ConvolutionBackward0": _convolution,
    "ConvolutionBackwardBackward0": _convolution_back,
}
