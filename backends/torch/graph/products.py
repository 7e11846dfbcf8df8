"""Nodes of products that sum: of matrices, vectors and stacks of these, with what is added to them; and of distances between rows.

torch saves each factor if the other one is tracked, which is when a derivative reads it.
"""

from collections.abc import Sequence
from typing import Any

from nestgrad.backends.torch.graph.elementwise import scaled
from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule
from nestgrad.backends.torch.graph.reductions import norm


def _product(first: str, second: str, op: str = "matmul") -> Rule:
    """The rule of a node that saved its factors by these names."""
    return lambda graph, node, inputs: graph.apply(op, node.operand(0, first), node.operand(1, second))


def _mv(graph: Any, node: Node, inputs: Inputs) -> Any:
    """A matrix times a vector: the vector times the matrix's transpose."""
    matrix, vector = node.operand(0, "self"), node.operand(1, "vec")
    return graph.apply("vecmat", vector, matrix, ty=True)


def _dot(first: str, second: str) -> Rule:
    return lambda graph, node, inputs: graph.apply("vecdot", node.operand(0, first), node.operand(1, second), axis=0)


def _factors(node: Node, first: str, second: str) -> tuple[Any, Any] | None:
    """The second and the third operand, factors of a product; ``None`` where neither is tracked, since then neither is known."""
    if node.tracked(1) or node.tracked(2):
        return node.operand(1, first), node.operand(2, second)
    return None


def _plus(graph: Any, node: Node, product: Any) -> Any:
    """``beta x + alpha product`` of the first operand; of beta 0 without it, whatever it is. ``None`` is a product that is unknown."""
    beta = node.saved("beta")
    if product is None:
        product = graph.unknown_value(node.shape, node.dtype)
    product = scaled(graph, product, node.saved("alpha"))
    return product if beta == 0 else graph.apply("add", scaled(graph, node.operand(0), beta), product)


def _addmm(graph: Any, node: Node, inputs: Inputs) -> Any:
    found = _factors(node, "mat1", "mat2")
    if found is not None and node.saved("alpha") == 1 == node.saved("beta"):
        return graph.apply("linear", *found, node.operand(0))
    return _plus(graph, node, None if found is None else graph.apply("matmul", *found))


def _addmv(graph: Any, node: Node, inputs: Inputs) -> Any:
    found = _factors(node, "mat", "vec")
    return _plus(graph, node, None if found is None else graph.apply("vecmat", found[1], found[0], ty=True))


def _addr(graph: Any, node: Node, inputs: Inputs) -> Any:
    found = _factors(node, "vec1", "vec2")
    if found is None:
        return _plus(graph, node, None)
    column = graph.apply("reshape", found[0], shape=(node.shape[0], 1))
    return _plus(graph, node, graph.apply("mul", column, found[1]))


def _addbmm(graph: Any, node: Node, inputs: Inputs) -> Any:
    found = _factors(node, "batch1", "batch2")
    return _plus(graph, node, None if found is None else graph.apply("sum", graph.apply("matmul", *found), axes=(0,), keepdims=False))


def _baddbmm(graph: Any, node: Node, inputs: Inputs) -> Any:
    found = _factors(node, "batch1", "batch2")
    return _plus(graph, node, None if found is None else graph.apply("matmul", *found))


def _cross(graph: Any, node: Node, inputs: Inputs) -> Any:
    return graph.apply("cross", node.operand(0, "self"), node.operand(1, "other"), axis=node.dim("dim", len(node.shape)))


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _trilinear(graph: Any, node: Node, inputs: Inputs) -> Any:
    """A product of three arrays of the same axes, of which each lacks some, summed over axes."""
    lacking: Sequence[Sequence[int]] = [node.saved(f"expand{k}") for k in (1, 2, 3)]
    summed: Sequence[int] = node.saved("sumdim")
    letters = _LETTERS[: len(node.shape) + len(summed)]

    def without(axes: Sequence[int]) -> str:
        return "".join(c for k, c in enumerate(letters) if k not in axes)

    subscripts = f"{','.join(map(without, lacking))}->{without(summed)}"
    return graph.apply("einsum", *[node.operand(k, f"i{k + 1}") for k in range(3)], subscripts=subscripts)


def _distances(graph: Any, node: Node, inputs: Inputs) -> Any:
    """The norm of the difference of each row of one array and each of another."""
    x, y, p = node.operand(0, "x1"), node.operand(1, "x2"), float(node.saved("p"))
    rows = graph.apply("reshape", x, shape=(*x.shape[:-1], 1, x.shape[-1]))
    columns = graph.apply("reshape", y, shape=(*y.shape[:-2], 1, *y.shape[-2:]))
    far = graph.apply("sub", rows, columns)
    return norm(graph, far, p, (len(node.shape),), False, node)


RULES: dict[str, Rule] = {
    "MmBackward0": _product("self", "mat2"),
    "BmmBackward0": _product("self", "mat2"),
    "MvBackward0": _mv,
    "DotBackward0": _dot("self", "tensor"),
    "VdotBackward0": _dot("self", "other"),
    "AddmmBackward0": _addmm,
    "AddmvBackward0": _addmv,
    "AddrBackward0": _addr,
    "AddbmmBackward0": _addbmm,
    "BaddbmmBackward0": _baddbmm,
    "LinalgCrossBackward0": _cross,
    "TrilinearBackward0": _trilinear,
    "CdistBackward0": _distances,
}
