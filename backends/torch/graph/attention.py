"""Nodes of attention in one kernel. Queries, keys and values are saved, and so is a mask, as what is added to the products.

Where torch makes attention of other operations, as where a mask is tracked, there is no such node.
"""

from math import sqrt
from typing import Any

from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule
from nestgrad.backends.torch.graph.shapes import reshaped
from nestgrad.errors import UnsupportedNode


def _attention(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Weighted means of values.

    Raises:
        UnsupportedNode: Some weights were dropped at random; the node does not tell which.
    """
    if float(node.saved("dropout_p")) != 0.0:
        raise UnsupportedNode(
            f"backward: got {node.fn.name()} with dropout_p={node.saved('dropout_p')}; expected 0, because the node does not keep which "
            "weights were dropped. Try dropout_p=0.0, or dropout of the values"
        )
    q, k, v = (node.operand(i, name) for i, name in enumerate(("query", "key", "value")))
    scale, mask = node.saved("scale"), node.saved("attn_mask")
    heads = q.shape[-3]
    out = graph.apply(
        "attention", q, _repeated(graph, k, heads), _repeated(graph, v, heads), *([] if mask is None else [graph.data(mask)]),
        causal=bool(node.saved("is_causal")), scale=1.0 / sqrt(q.shape[-1]) if scale is None else float(scale))  # fmt: skip
    return (out,)


def _repeated(graph: Any, x: Any, heads: int) -> Any:
    """``x`` with as many heads as there are of queries: each serves some that stand side by side."""
    *lead, own, rows, columns = x.shape
    if own == heads:
        return x
    wide = graph.apply("broadcast_to", reshaped(graph, x, (*lead, own, 1, rows, columns)), shape=(*lead, own, heads // own, rows, columns))
    return reshaped(graph, wide, (*lead, heads, rows, columns))


RULES: dict[str, Rule] = {"ScaledDotProductFlashAttentionForCpuBackward0": _attention}
