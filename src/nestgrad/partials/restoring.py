"""What our nodes do not keep, and how it is found from what they do keep, for those ops of the table that need it."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from nestgrad.ops.shapes import Shape
from nestgrad.partials.graph import Graph, Ref

Params = Mapping[str, Any]


def _recur(b: Any, out: Any, known: Sequence[Any], params: Params) -> Any:
    axis, y = params["axis"], known[1]
    if params["reverse"]:
        return b.sub(out, b.shift(b.mul0(out, y), -1, axis))
    return b.sub(out, b.mul0(b.shift(out, 1, axis), y))


RESTORED: dict[str, Callable[[Any, Any, Sequence[Any], Params], Any]] = {
    "softmax": lambda b, out, known, params: b.log(out),  # of many that have this answer: its derivatives are those of all
    "log_softmax": lambda b, out, known, params: out,
    "inv": lambda b, out, known, params: b.inv(out),
    "solve": lambda b, out, known, params: b.matmul(known[0], out),
    "recur": _recur,
}
"""Of ops that keep their answer: a value of the one argument that they do not keep, ``(b, answer, arguments, params)``."""


def _taken(graph: Graph, x: Ref, positions: Any, shapes: tuple[Shape, Shape], params: Params) -> Ref:
    taken: Ref = graph.apply("take_along", x, graph.data(positions), axis=params["axis"], told=shapes[1])
    return taken


def _pooled(graph: Graph, x: Ref, positions: Any, shapes: tuple[Shape, Shape], params: Params) -> Ref:
    whole, part = shapes
    b, lead = graph.base.dressed, len(whole) - len(params["sizes"])
    flat = graph.apply("reshape", x, shape=(*whole[:lead], prod(whole[lead:])))
    places = graph.data(b.reshape(positions, (*part[:lead], prod(part[lead:]))))
    taken: Ref = graph.apply("reshape", graph.apply("take_along", flat, places, axis=lead), shape=part)
    return taken


KNOWN_POSITIONS = {
    "sort": _taken, "topk": _taken, "ranked": _taken, "cummax": _taken, "cummin": _taken, "max_pool": _pooled, "adaptive_max_pool": _pooled,
}  # fmt: skip
"""Ops that choose entries, when it is known which ones: ``(graph, argument, positions, shapes of argument and choice, params)``."""


def _standardised(graph: Graph, x: Ref, y: Ref, z: Ref, params: Params) -> tuple[Ref, ...]:
    h, mean, r = graph.apply("standardise", x, 1.0, 0.0, **params)
    return graph.apply("add", graph.apply("mul", h, y), z), mean, r


def _rms_normed(graph: Graph, x: Ref, y: Ref, params: Params) -> tuple[Ref, ...]:
    h, r = graph.apply("rms_norm", x, 1.0, **params)
    return graph.apply("mul", h, y), r


APART: dict[str, Callable[..., tuple[Ref, ...]]] = {"standardise": _standardised, "rms_norm": _rms_normed}
"""Ops of which some results depend on fewer arguments, in terms of ops in which they do: where one argument is unknown, those are not."""

SHAPES: dict[str, Callable[[int, Mapping[int, Shape], Mapping[str, Shape], tuple[Any, ...]], Shape]] = {
    "linear": lambda i, args, out, params: ((*out["out"][:-1], 1), (1, out["out"][-1]), ())[i],
    "index_set": lambda i, args, out, params: () if i else out["out"],
    "index_add": lambda i, args, out, params: () if i else out["out"],
    "set_along": lambda i, args, out, params: args[1] if i else out["out"],
    "standardise": lambda i, args, out, params: () if i else out.get("values", next(iter(out.values()))),
    "solve": lambda i, args, out, params: out["out"],
    "recur": lambda i, args, out, params: out["out"],
    "stack": lambda i, args, out, params: (*out["out"][: params[0]], *out["out"][params[0] + 1 :]),
}
"""A shape that a constant argument may have of which nothing was kept, by its position, the shapes of those that were kept, and of the
results. Where the op broadcasts, any that gives the right answer will do."""
