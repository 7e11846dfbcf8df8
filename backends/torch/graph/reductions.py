"""Nodes of sums, products, extrema, norms, spread, and of running ones; and those that only spread or convert."""

import math
from typing import Any

from nestgrad.backends.torch.graph.elementwise import constant
from nestgrad.backends.torch.graph.places import ordered, shared
from nestgrad.backends.torch.graph.reading import Inputs, Node, Rule
from nestgrad.errors import BackendError


def _ndim(node: Node) -> int:
    """How many axes the operand has."""
    sizes = getattr(node.fn, "_saved_self_sym_sizes", None)
    return len(sizes) if sizes is not None else int(node.saved("self").dim())


def _axes(node: Node) -> dict[str, Any]:
    """The parameters of a reduction: over all axes, where the node names none."""
    named = hasattr(node.fn, "_saved_dim")
    ndim = _ndim(node)
    return {
        "axes": node.dims("dim", ndim) if named else tuple(range(ndim)),
        "keepdims": bool(node.saved("keepdim")) if hasattr(node.fn, "_saved_keepdim") else False,
    }


def _reduced(op: str, name: str = "") -> Rule:
    """A reduction; ``name``: that of the argument, if derivatives read it."""
    return lambda graph, node, inputs: graph.apply(op, node.operand(0, name), **_axes(node))


def _prod(graph: Any, node: Node, inputs: Inputs) -> Any:
    if not hasattr(node.fn, "_saved_dim"):
        return graph.apply("prod", node.operand(0, "self"), **_axes(node))
    ndim = _ndim(node)
    axes = (node.dim("dim", ndim),) if ndim else ()
    return graph.apply("prod", node.operand(0, "self"), axes=axes, keepdims=bool(node.saved("keepdim")))


def _nansum(graph: Any, node: Node, inputs: Inputs) -> Any:
    kept = graph.apply("where", graph.data(node.saved("self").isnan()), 0.0, node.operand(0))
    return graph.apply("sum", kept, **_axes(node))


def _extrema(graph: Any, node: Node, inputs: Inputs) -> Any:
    """The least and the greatest entries, along an axis or of all."""
    ndim = _ndim(node)
    dim = getattr(node.fn, "_saved_dim")  # noqa: B009
    axes = tuple(range(ndim)) if dim is None or not ndim else (node.dim("dim", ndim),)
    x, keepdims = node.operand(0, "self"), bool(node.saved("keepdim"))
    return graph.apply("amin", x, axes=axes, keepdims=keepdims), graph.apply("amax", x, axes=axes, keepdims=keepdims)


def _cumsum(graph: Any, node: Node, inputs: Inputs) -> Any:
    ndim = len(node.shape)
    return graph.apply("cumsum", inputs[0], axis=node.dim("dim", ndim), reverse=False) if ndim else inputs[0]


def _cumprod(graph: Any, node: Node, inputs: Inputs) -> Any:
    ndim = len(node.shape)
    return graph.apply("cumprod", node.operand(0, "self"), axis=node.dim("dim", ndim)) if ndim else inputs[0]


def norm(graph: Any, x: Any, p: float, axes: tuple[int, ...], keepdims: bool, node: Node) -> Any:
    """The norm of any power, along axes."""
    params: dict[str, Any] = {"axes": axes, "keepdims": keepdims}
    if p == 2.0:
        return graph.apply("norm", x, **params)
    if p == 1.0:
        return graph.apply("sum", graph.apply("abs", x), **params)
    if math.isinf(p):
        return graph.apply("amax" if p > 0 else "amin", graph.apply("abs", x), **params)
    return graph.apply("pnorm", x, p=p, **params) if p else constant(graph, node, (x,))


def _norm(name: str) -> Rule:
    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        p = node.saved(name)
        return norm(graph, node.operand(0, "self"), 2.0 if p is None else float(p), **_axes(node), node=node)

    return rule


def _distance(graph: Any, node: Node, inputs: Inputs) -> Any:
    apart = graph.apply("sub", node.operand(0, "self"), node.operand(1, "other"))
    ndim = max(node.saved(name).dim() for name in ("self", "other"))
    return norm(graph, apart, float(node.saved("p")), tuple(range(ndim)), False, node)


def _correction(node: Node) -> float:
    given = node.saved("correction")
    c = 1.0 if given is None else float(given)
    return int(c) if c.is_integer() else c


def _spread(op: str) -> Rule:
    return lambda graph, node, inputs: graph.apply(op, node.operand(0, "self"), correction=_correction(node), **_axes(node))


def _spread_and_mean(op: str) -> Rule:
    def rule(graph: Any, node: Node, inputs: Inputs) -> Any:
        return _spread(op)(graph, node, inputs), graph.apply("mean", graph[node.key(0)], **_axes(node))

    return rule


def _converted(graph: Any, node: Node, inputs: Inputs) -> Any:
    """Another dtype; all on one device."""
    here, there = node.device, node.device_of(0)
    if here != there:
        raise BackendError(
            f"backward: got a graph on {there} and {here}, by {node.fn.name()}; expected one device, because a program runs on one. "
            "Try moving the leaves there before they are used"
        )
    return graph.apply("cast", inputs[0], dtype=node.dtype)


RULES: dict[str, Rule] = {
    "SumBackward0": _reduced("sum"),
    "SumBackward1": _reduced("sum"),
    "NansumBackward0": _nansum,
    "MeanBackward0": _reduced("mean"),
    "MeanBackward1": _reduced("mean"),
    "ProdBackward0": _prod,
    "ProdBackward1": _prod,
    "AmaxBackward0": _reduced("amax", "self"),
    "AminBackward0": _reduced("amin", "self"),
    "MaxBackward0": ordered,
    "MinBackward0": ordered,
    "MaxBackward1": shared,
    "MinBackward1": shared,
    "AminmaxBackward0": _extrema,
    "CumsumBackward0": _cumsum,
    "CumprodBackward0": _cumprod,
    "LinalgVectorNormBackward0": _norm("ord"),
    **{f"NormBackward{k}": _norm("p") for k in range(4)},
    "DistBackward0": _distance,
    "VarBackward0": _spread("var"),
    "StdBackward0": _spread("std"),
    "VarMeanBackward0": _spread_and_mean("var"),
    "StdMeanBackward0": _spread_and_mean("std"),
    "ToCopyBackward0": _converted,
    "ExpandBackward0": lambda graph, node, inputs: graph.apply("broadcast_to", inputs[0], shape=node.shape),
}
"""By the names of nodes."""
