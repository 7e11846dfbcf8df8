"""Graphs that an array library recorded by itself: what a backend offers of them, and what there is in one, as plain facts."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)


class Graphs(Protocol):
    """How graphs of a library are adopted as ops, and results go back into one. ``nestgrad.backends.torch.graph`` is such a module."""

    def tracked(self, x: Any) -> bool:
        """Whether the library tracks ``x``; of anything else than its arrays it does not."""
        ...

    def stands_in(self, x: Any) -> bool:
        """Whether ``x`` has no numbers, as arrays have none while a transform of the library runs."""
        ...

    def key(self, x: Any) -> Hashable:
        """What a graph knows a tracked ``x`` by: itself, if it is a leaf."""
        ...

    def index(self) -> Mapping[Any, Callable[..., Any]]:
        """By the kind of a node its rule, ``(graph, node, operands)``, which writes down what the node computed."""
        ...

    def adopt(self, graph: Any, x: Any, index: Mapping[Any, Callable[..., Any]], attached: bool = False) -> Any:
        """Write the graph under ``x`` down with ``graph``, a ``nestgrad.partials.graph.Graph``, and give the value of ``x`` there.

        Args:
            graph: Comes to know all arrays of the graph by their ``key``.
            x: The root.
            index: The rules.
            attached: Whether values keep their graphs.

        Raises:
            UnsupportedNode: Some nodes have no rule.
            GraphFreedError: A part of the graph is gone.
            MutatedError: What it kept was written into.
        """
        ...

    def unsupported(self, x: Any, index: Mapping[Any, Callable[..., Any]]) -> list[str]:
        """The names of the nodes under ``x`` that have no rule, each once."""
        ...

    def recording(self, attached: bool) -> AbstractContextManager[None]:
        """While this holds the library records what is computed, or does not, whatever holds outside."""
        ...

    def called(self, program: Any, pull: Callable[..., Any], values: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs of a program, of which the library knows all derivatives.

        Args:
            program: Of raw arrays.
            pull: ``(program, wanted, seeded, examples)`` to the program of its backward pass, from the inputs and the cotangents of the
                outputs ``seeded`` to those of the inputs that are reached among ``wanted``, and which these are.
            values: Of the inputs.
        """
        ...


class Recorded(NamedTuple):
    """One node of a graph of which nodes have numbers, 0 the root's. It keeps no node of the library alive.

    Attributes:
        name: What made it; "leaf" of a variable.
        kind: What the library tells such nodes apart by, their type or the like.
        shapes: Those of its results; empty if they are not known.
        parents: The numbers of the nodes that made its operands, once for each time that one is read. Constants have none.
        leaf: Whether it is a variable.
    """

    name: str
    kind: Any
    shapes: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]
    leaf: bool = False


def numbered(root: K, parents: Callable[[K], Iterable[K]]) -> dict[K, int]:
    """All nodes under ``root`` with their numbers, in the order in which a reader meets them.

    After a node comes its first operand with all that is under that, then the next operand. Without recursion, so graphs may be as deep as
    they like.
    """
    found: dict[K, int] = {}
    ahead = [root]
    while ahead:
        node = ahead.pop()
        if node not in found:
            found[node] = len(found)
            ahead += reversed([*parents(node)])
    return found
