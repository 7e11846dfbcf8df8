"""What the tests of adopted graphs share: programs along a line, and whether they read what nobody knows."""

from typing import Any

import numpy as np

import nestgrad as ng
from nestgrad.levels.base import Tape
from nestgrad.levels.forward import dual, split
from nestgrad.levels.marks import NONE
from nestgrad.levels.traced.recording import recorded
from nestgrad.partials.graph import Graph
from nestgrad.partials.known import unpinned
from nestgrad.partials.own import adopt
from nestgrad.tensor.handle import make

ORDER = 3


def along(b: Any, f: Any, points: Any, directions: Any, order: int = ORDER) -> list[Any]:
    """Derivatives of order 0, 1, ... of ``f`` of values on the line through ``points``; ``None`` for zero. By nested dual numbers."""
    tapes = [Tape("line", 0, records=False) for _ in range(order)]

    def lifted(p: Any, v: Any) -> Any:
        for tape in tapes if v is not None else ():
            p = dual(tape, p, v)
        return p

    out = f([lifted(p, v) for p, v in zip(points, directions, strict=True)])
    found = []
    for k in range(order + 1):
        part = out
        for j, tape in reversed([*enumerate(tapes)]):
            part = split(part, tape)[1 if j < k else 0] if part is not None else None
        found.append(part)
    return found


def directions(graph: Graph, given: dict[Any, Any]) -> list[Any]:
    """For each input of the program the direction of its variable, of which ``given`` tells some by their keys."""
    found = {number: given[key] for key, number in (graph.leaves | graph.inside).items() if key in given}
    return [found.get(k) for k in range(len(graph.values))]


def program_along(graph: Graph, ref: Any, given: dict[Any, Any], order: int = ORDER) -> list[Any]:
    """Derivatives of an adopted graph, after the check that none of them reads what is unknown."""
    b, moves = graph.base.dressed, directions(graph, given)
    program = graph.program(ref)
    derived = along(b, lambda xs: program.run(b, xs)[0], graph.values, moves, order)
    kept = [k for k, part in enumerate(derived) if part is not None and k]

    def flat(wires: list[Any]) -> list[Any]:
        parts = along(b, lambda xs: program.run(b, xs)[0], wires, moves, order)
        return [parts[k] for k in kept]

    if kept:
        made = unpinned(recorded(graph.base, "derivatives", graph.values, flat))
        read = {v.number for step in made.instructions for v in step.operands if hasattr(v, "number")} | {v.number for v in made.outputs}
        assert not read & graph.unknown, f"derivatives read what is unknown:\n{made.pretty()}"
    return derived


def adopted(y: ng.Tensor, wanted: Any = ()) -> tuple[Graph, Any]:
    """The graph of a Tensor, and its root."""
    graph = Graph(y.b.base, wanted)
    return graph, adopt(graph, y)


def tensor(b: Any, value: Any) -> ng.Tensor:
    """A value as a Tensor without marks."""
    return make(b, value, NONE)


def agree(found: list[Any], want: list[Any], message: str = "", rtol: float = 1e-9) -> None:
    """Derivatives of orders from 1 on are the same; ``None`` is zero."""
    for k, (have, should) in enumerate(zip(found, want, strict=True)):
        if k:
            have, should = (0.0 if p is None else np.asarray(p) for p in (have, should))
            np.testing.assert_allclose(have, should, rtol=rtol, atol=1e-9, err_msg=f"{message}, order {k}")
