"""Graphs that our own levels recorded: which level is meant, what a graph knows a Tensor by, and the graph as ops."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nestgrad.errors import LevelError, UnsupportedNode
from nestgrad.levels.base import Tape
from nestgrad.levels.coats import on, transparent, worn
from nestgrad.levels.marks import opened
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.ops.table import TABLE, Op
from nestgrad.partials.graph import Graph, Ref
from nestgrad.partials.walk import Walk
from nestgrad.tensor.differentiation import untracked

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor


def rooted(x: "Tensor") -> Tracked:
    """What ``x`` wears for the youngest level that recorded something of it, the one that ``x.backward()`` differentiates.

    Raises:
        NoLevelLeft: It was taken out of every level that recorded it.
        NotTrackedError: Nothing that it was made of requires gradients.
        LevelError: It lives on a level without a backward pass, or it is one of many samples.
    """
    value, marks = opened(x.value, x.marks)
    root = transparent(value)
    if not isinstance(root, Tracked):
        raise untracked(x, value, marks)
    for coat in worn(root):
        if coat.hidden:
            raise LevelError(
                f"backward: got a value of shape {tuple(x.b.shape(value))} that is many samples of {coat.tape}; expected one, since it "
                "would leave that level. Try to call it outside, on the whole batch, of which the samples are an independent axis"
            )
    return root


def key(x: "Tensor", tape: Tape | None = None) -> Node:
    """What the graph of ``tape`` knows ``x`` by; of the youngest one that recorded something of it if it is ``None``.

    Raises:
        NotTrackedError, NoLevelLeft, LevelError: ``x`` is not on that tape, or on none.
    """
    value, marks = opened(x.value, x.marks)
    found = transparent(value) if tape is None else on(value, tape)
    if not isinstance(found, Tracked):
        raise untracked(x, value, marks) if tape is None else LevelError(
            f"backward: got a tensor of shape {tuple(x.b.shape(value))} that is not tracked on {tape}; expected one on the level that is "
            "differentiated. Try a tensor that the output was made of, not one made anew"
        )
    return found.node


def adopt(graph: Graph, x: "Tensor", attached: bool = False, rules: Mapping[str, Op] = TABLE) -> Ref:
    """Write down what the youngest level of ``x`` recorded. The graph knows each node by itself, leaves (without edges) among them.

    Args:
        graph: Over the base of ``x``.
        x: The root.
        attached: Whether values keep the coats of the older levels that ``x`` is on, so that what is computed of them is recorded there.
        rules: By the names of ops, what is written down for them; of an op that is not in the table, and not among these, itself is.

    Returns:
        The value of ``x``.

    Raises:
        UnsupportedNode: Nodes that keep too little to be computed again.
        NoLevelLeft, NotTrackedError, LevelError: As ``rooted``.
        GraphFreedError: A pass has freed the graph.
        MutatedError: A value that was kept shares memory that was written into.

    Cost: about 10 us a node.
    """
    walk = Walk(graph, rooted(x), attached, rules)
    ref = walk.run()
    if walk.missing:
        raise UnsupportedNode(
            f"backward: got a graph with {', '.join(walk.missing)}; expected nodes that can be computed again from what they keep, because "
            "derivatives of any order are made of their ops. Try ops of the table, or nestgrad.define for an op of your own"
        )
    return ref


def unsupported(x: "Tensor", rules: Mapping[str, Op] = TABLE) -> list[str]:
    """The names of the nodes under ``x`` that ``adopt`` does not support, each once."""
    walk = Walk(Graph(x.b.base), rooted(x), False, rules)
    walk.run()
    return [*walk.missing]
