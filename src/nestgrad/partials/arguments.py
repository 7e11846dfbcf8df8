"""The arguments of ``backward``, checked."""

from collections.abc import Hashable, Iterable
from operator import index
from typing import Any

from nestgrad.errors import ArgumentError, DTypeError, OrderError, ShapeError
from nestgrad.partials.source import Source, told


def checked_order(order: Any) -> int:
    """An order.

    Raises:
        DTypeError: If it is no int.
        OrderError: If it is less than 1.
    """
    words = f"backward: got order={order!r}; expected an int from 1 on, the highest order of derivatives. Try order=2"
    if isinstance(order, bool):
        raise DTypeError(words)
    try:
        number: int = index(order)
    except TypeError:  # arrays have __index__, whatever they hold
        raise DTypeError(words) from None
    if number < 1:
        raise OrderError(words)
    return number


def checked_flags(name: str, **flags: Any) -> None:
    """Flags that are True or False.

    Raises:
        ArgumentError: If one is something else.
    """
    for flag, value in flags.items():
        if not isinstance(value, bool):
            raise ArgumentError(f"{name}: got {flag}={value!r}; expected True or False. Try bool(...)")


def checked_seed(source: Source, root: Any, gradient: Any, attached: bool) -> Any:
    """The weights of the output's entries, as a value.

    Raises:
        DTypeError: If it is no tensor.
        ShapeError: If it has not the output's shape.
    """
    if gradient is None:
        return None
    shape = source.shape(root)
    if source.array(gradient) is None:
        raise DTypeError(
            f"backward: got {told(gradient)} as gradient; expected a tensor of the output's shape {shape}, because it holds a weight for "
            "each entry. Try ones like the output, for the derivatives of its sum"
        )
    if (got := source.shape(gradient)) != shape:
        raise ShapeError(
            f"backward: got a gradient of shape {got}; expected that of the output, {shape}, because it holds a weight for each entry. "
            "Try broadcasting it to that shape"
        )
    return source.seed(root, gradient, attached)


def checked_groups(source: Source, root: Any, groups: Any, crossings: bool, leaves: dict[Hashable, int]) -> list[list[int]]:
    """The groups of leaves, as numbers of inputs. Generators are read once.

    Raises:
        ArgumentError: With crossings, which would make one group of all; if groups overlap; or if a tensor is no leaf of the graph.
        DTypeError: If it is no iterable of iterables of tensors.
    """
    if crossings:
        if groups is not None:
            raise ArgumentError(
                "backward: got crossings=True and groups; expected one of them, because crossings makes one group of all leaves. Try "
                "crossings=False"
            )
        return [list(leaves.values())]
    if groups is None:
        return []
    if not isinstance(groups, Iterable):
        raise DTypeError(f"backward: got {told(groups)} as groups; expected an iterable of groups of leaves. Try [[x, y], [z]]")
    found: list[list[int]] = []
    taken: dict[int, int] = {}
    for k, group in enumerate(groups):
        if source.array(group) is not None or not isinstance(group, Iterable):
            raise DTypeError(f"backward: got {told(group)} as group {k}; expected an iterable of leaves. Try [[x, y], [z]]")
        numbers: list[int] = []
        for i, tensor in enumerate(group):
            number = leaves.get(source.key("backward", root, tensor))
            if number is None:
                raise ArgumentError(
                    f"backward: Cannot find node of entry {i} of group {k}, {told(tensor)}; expected a leaf of the graph, because partial "
                    "derivatives by other tensors are those that require_grad_ names"
                )
            if taken.setdefault(number, k) != k:
                raise ArgumentError(
                    f"backward: got entry {i} of group {k}, {told(tensor)}, in group {taken[number]} as well; expected disjoint groups, "
                    "because each leaf is in one. Try one group of both, or crossings=True"
                )
            if number not in numbers:
                numbers.append(number)
        found.append(numbers)
    return found
