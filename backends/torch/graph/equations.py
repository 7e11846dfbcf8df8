"""Nodes of linear equations: their solutions, inverses and determinants. torch saves matrices and answers, and no right sides."""

from typing import Any

import torch

from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule
from nestgrad.backends.torch.graph.shapes import reshaped


def _transposed(graph: Any, x: Any) -> Any:
    rank = len(x.shape)
    axes = (*range(rank - 2), rank - 1, rank - 2)
    return graph.apply("permute", x, axes=axes, told=tuple([x.shape[k] for k in axes]))


def _equation(graph: Any, node: Node, matrix: Any, values: torch.Tensor) -> Any:
    """The solution for a matrix whose entries are ``values``, with the second operand as the right side: that which has this solution."""
    left: bool = node.saved("left")
    result: torch.Tensor = node.saved("result")
    vector = result.dim() == values.dim() - 1

    def given() -> torch.Tensor:
        right = values @ (result.unsqueeze(-1) if vector else result) if left else result @ values
        return right.squeeze(-1) if vector else right

    right = graph.data(given()) if node.inputs[1] is None else node.behind(1, given)
    if vector:
        return graph.apply("reshape", graph.apply("solve", matrix, reshaped(graph, right, (*right.shape, 1))), shape=node.shape)
    if left:
        return graph.apply("solve", matrix, right)
    across = graph.apply("solve", _transposed(graph, matrix), _transposed(graph, right), told=(*node.shape[:-2], *node.shape[:-3:-1]))
    return _transposed(graph, across)


def _solve(graph: Any, node: Node, inputs: Inputs) -> Any:
    return _equation(graph, node, node.operand(0, "A"), node.saved("A"))


def _solve_triangular(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Of the matrix one triangle counts, and with ones on the diagonal if it is told so."""
    matrix, upper, unit = node.operand(0, "self"), node.saved("upper"), node.saved("unitriangular")
    values, k = node.saved("self"), int(unit)
    n = values.shape[-1]
    kept = graph.apply("triu" if upper else "tril", matrix, k=k if upper else -k, told=matrix.shape)
    values = values.triu(k) if upper else values.tril(-k)
    if unit:
        ones = torch.eye(n, dtype=values.dtype, device=values.device)
        kept, values = graph.apply("add", kept, graph.data(ones), told=matrix.shape), values + ones
    return _equation(graph, node, kept, values)


def _inv(graph: Any, node: Node, inputs: Inputs) -> Any:
    """torch keeps the inverse only: the matrix is its inverse."""
    return graph.apply("inv", node.behind(0, lambda: torch.linalg.inv(node.saved("inverse"))))


def _det(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("det", node.operand(0, "A"))


def _slogdet(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("slogdet", node.operand(0, "A"))


RULES: dict[str, Rule] = {
    "LinalgSolveExBackward0": _solve,
    "LinalgSolveTriangularBackward0": _solve_triangular,
    "LinalgInvExBackward0": _inv,
    "LinalgDetBackward0": _det,
    "LinalgSlogdetBackward0": _slogdet,
}
