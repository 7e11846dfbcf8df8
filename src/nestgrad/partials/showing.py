"""Seeing a graph: what was recorded under a tensor of nestgrad or of torch, as plain facts and as a tree of text.

A view holds names and shapes only, so it keeps no array and no node alive. Its numbers are the order of the walk from the root, which
is the same for the same program: nothing that is shown depends on addresses.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nestgrad.backends.recorded import numbered
from nestgrad.errors import NotTrackedError
from nestgrad.levels.coats import worn
from nestgrad.levels.marks import opened
from nestgrad.levels.reverse.bundle import packed
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.tensor.handle import Handle, default_backend

WIDEST = 60
"""How far a tree is indented. What branches further on the right is shown below, from the left margin."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One node, as it is shown.

    Attributes:
        name: What made it: an op's name, that of a node of torch, or "leaf".
        shapes: Those of its results; empty if they are not known.
        levels: The numbers of the levels that are known to have recorded it; torch's graph has none.
        supported: Whether partial derivatives go through it.
        parents: Positions of the nodes that made its operands, once for each time that one is read. Constants have none.
        leaf: Whether it is a variable.
        freed: Whether what it read is gone, and with it its parents.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    levels: tuple[int, ...]
    supported: bool
    parents: tuple[int, ...]
    leaf: bool = False
    freed: bool = False

    def facts(self) -> list[str]:
        """What is told of it beside the name, shape first; whether it is supported last."""
        told = [sizes(self.shapes)] if self.shapes else []
        told += [f"{'level' if len(self.levels) == 1 else 'levels'} {', '.join(map(str, self.levels))}"] if self.levels else []
        return [*told, *(["(freed)"] if self.freed else []), *([] if self.supported else ["(not supported)"])]

    def title(self, number: int | None = None) -> str:
        """Its name on one line, and its number if one is given."""
        name = " ".join(self.name.split())
        return name if number is None else f"{name} #{number}"


View = Sequence[Shown]
"""The nodes of a graph, by number. The root is the first; the rest stands in the order in which a reader of the tree meets it."""


def view(tensor: Any, supported: Callable[[Any], bool] = lambda kind: True) -> View:
    """What was recorded under a tensor.

    Args:
        tensor: A Tensor, of which the youngest level's graph is shown; or a ``torch.Tensor`` that requires gradients.
        supported: Tells whether partial derivatives go through an op: of a Tensor's by its name, of a torch tensor's by the type of its
            ``grad_fn``. It is not asked about leaves, through which they always go.

    Returns:
        Its nodes; the walk is without recursion and comes to each node once.

    Raises:
        NotTrackedError: If nothing was recorded under the Tensor.
        BackendError: If it is neither a Tensor nor what its array library records a graph of.

    >>> from nestgrad.backends import NumpyBackend
    >>> from nestgrad.levels import Autodiff
    >>> x = Autodiff(NumpyBackend()).tensor([1.0, 2.0], requires_grad=True)
    >>> print(tree(view((x * x.sin()).sum())))
    sum () level 1
    mul (2,) level 1
    ├─ leaf #2 (2,) level 1
    └─ sin (2,) level 1
       merge: leaf #2
    """
    if isinstance(tensor, Handle):
        return _of_levels(tensor, supported)
    return tuple(
        Shown(name, shapes, (), leaf or supported(kind), parents, leaf)
        for name, kind, shapes, parents, leaf in default_backend(tensor).recorded(tensor)
    )


def tree(view: View, most: int | None = None) -> str:
    """A graph as text, the root first and what it was made of below it.

    A node with one operand stands right above it. The operands of a node with several branch off below it, in their order. A node that was
    shown before is named with its number, and not followed again: ``"merge: mul #2"``. One that branches too far on the right is named
    likewise, ``"below: mul #2"``, and shown after the rest. Lines of nodes that are not supported end in ``" (not supported)"``.

    Args:
        view: The nodes.
        most: How many lines to write at most, for graphs that may be huge; one line more tells how many nodes were left out.

    Returns:
        Lines no more than ``WIDEST`` wider than their text, so that their total length is linear in the number of edges.
    """
    told = merged(view) | {number for number, node in enumerate(view) if node.leaf}
    lines: list[str] = []
    shown: set[int] = set()
    heads = [0]  # a list that grows: what is too far on the right is shown after the rest
    put_off: set[int] = set()
    for head in heads:
        if most is not None and len(lines) + bool(head) >= most:
            break
        lines += [""] if head else []
        ahead = [(head, "", "")]
        while ahead and (most is None or len(lines) < most):
            number, first, rest = ahead.pop()
            node = view[number]
            if number in shown or (number in put_off and number != head):
                lines.append(f"{first}merge: {node.title(number)}")
                continue
            if len(rest) >= WIDEST and len(node.parents) > 1:
                lines.append(f"{first}below: {node.title(number)}")
                heads.append(number)
                put_off.add(number)
                told.add(number)
                continue
            shown.add(number)
            lines.append(first + " ".join([node.title(number if number in told else None), *node.facts()]))
            if len(node.parents) == 1:
                ahead.append((node.parents[0], rest, rest))
            elif node.parents:
                ahead.append((node.parents[-1], f"{rest}└─ ", f"{rest}   "))
                ahead += [(parent, f"{rest}├─ ", f"{rest}│  ") for parent in reversed(node.parents[:-1])]
    if len(shown) < len(view):
        lines.append(left_out(len(view) - len(shown), "node", "nodes"))
    return "\n".join(lines)


def merged(view: View) -> set[int]:
    """Numbers of the nodes that are read more than once."""
    once: set[int] = set()
    again: set[int] = set()
    for node in view:
        for parent in node.parents:
            (again if parent in once else once).add(parent)
    return again


def sizes(shapes: Sequence[tuple[int, ...]]) -> str:
    """Shapes of results: ``"(2, 3)"``, or ``"(2,) x 100"`` of a hundred alike."""
    if len(shapes) > 1 and len(set(shapes)) == 1:
        return f"{shapes[0]} x {len(shapes)}"
    return ", ".join(map(str, shapes))


def left_out(count: int, one: str, many: str) -> str:
    """The line that tells that there is more."""
    return f"... {count:,} {one if count == 1 else many} left out"


def _of_levels(tensor: Handle, supported: Callable[[Any], bool]) -> View:
    value, _ = opened(tensor.value, tensor.marks)
    coat = next((coat for coat in worn(value) if isinstance(coat, Tracked)), None)
    if coat is None:
        raise NotTrackedError(
            "view: got a Tensor that no level tracks; expected one that depends on a variable, because nothing else has a graph. "
            "Try stack.tensor(x, requires_grad=True) for what it is made of"
        )
    numbers = numbered(coat.node, lambda node: [parent for parent, _, _ in _passing(node)])
    shared = {parent for node in numbers for parent, rule, _ in node.edges or () if rule is packed}
    levels = (coat.tape.number,)

    def facts(node: Node) -> Shown:
        edges = _passing(node)
        parents = tuple([numbers[parent] for parent, _, _ in edges])
        if node.edges == ():
            return Shown("leaf", (tuple(node.shape),), levels, True, parents, leaf=True)
        if edges and edges[0][1] is packed:  # one result of the several that its parent has
            return Shown(f"{node.name}[{edges[0][2][0]}]", (tuple(node.shape),), levels, True, parents)
        shapes = () if node in shared else (tuple(node.shape),)
        return Shown(node.name, shapes, levels, supported(node.name), parents, freed=node.edges is None)

    return tuple([facts(node) for node in numbers])


def _passing(node: Node) -> list[tuple[Node, Any, tuple[Any, ...]]]:
    """The edges along which derivatives flow: not those that connect without passing anything."""
    return [edge for edge in node.edges or () if edge[1] is not None]
