"""What an array library recorded by itself, as plain facts: no node of it is kept alive by them."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)


class Recorded(NamedTuple):
    """One node of a graph of which nodes have numbers, 0 the root's.

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
