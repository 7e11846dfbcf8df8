"""The arguments of ``backward``, checked."""

from collections.abc import Hashable, Iterable
from typing import Any

from nestgrad.errors import ArgumentError, DTypeError, OrderError, ShapeError
from nestgrad.partials.sources import Source, told


def checked_order(order: Any) -> int:
    """An order.

    Raises:
        DTypeError: If it is no int.
        OrderError: If it is less than 1.
    """
    if isinstance(order, bool) or not isinstance(order, int):
        raise DTypeError(f"backward: got order={order!r}; expected an int from 1 on, the highest order of derivatives")
    if order < 1:
        raise OrderError(f"backward: got order={order}; expected an int from 1 on, the highest order of derivatives")
    return order


def checked_flags(name: str, **flags: Any) -> None:
    """Flags that are True or False.

    Raises:
        ArgumentError: If one is something else.
    """
    for flag, value in flags.items():
        if not isinstance(value, bool):
            raise ArgumentError(f"{name}: got {flag}={value!r}; expected True or False")


def checked_seed(source: Source, gradient: Any, shape: tuple[int, ...]) -> Any:
    """The weights of the output's entries, as an array.

    Raises:
        DTypeError: If it is no tensor.
        ShapeError: If it has not the output's shape.
    """
    if gradient is None:
        return None
    array = source.array(gradient)
    if array is None:
        raise DTypeError(
            f"backward: got a {type(gradient).__name__} as gradient; expected a tensor of the output's shape {shape}, its weights"
        )
    if (got := tuple(source.base.shape(array))) != shape:
        raise ShapeError(
            f"backward: got a gradient of shape {got}; expected that of the output, {shape}, because it holds a weight for each entry"
        )
    return array


def checked_groups(source: Source, root: Any, groups: Any, crossings: bool, leaves: dict[Hashable, int]) -> list[list[int]]:
    """The groups of leaves, as numbers of inputs. Generators are read once.

    Raises:
        ArgumentError: With crossings, which would make one group of all; if groups overlap; or if a tensor is no leaf of the graph.
        DTypeError: If it is no iterable of iterables of tensors.
    """
    if crossings:
        if groups is not None:
            raise ArgumentError(
                "backward: got crossings=True and groups; expected one of them, because crossings makes one group of all leaves"
            )
        return [list(leaves.values())]
    if groups is None:
        return []
    if not isinstance(groups, Iterable):
        raise DTypeError(f"backward: got groups={groups!r}; expected an iterable of iterables of leaves")
    found: list[list[int]] = []
    taken: dict[int, int] = {}
    for k, group in enumerate(groups):
        if source.array(group) is not None or not isinstance(group, Iterable):
            raise DTypeError(f"backward: got {told(group)} as group {k}; expected an iterable of leaves")
        numbers: list[int] = []
        for tensor in group:
            number = leaves.get(source.key("backward", root, tensor))
            if number is None:
                raise ArgumentError(f"backward: got {told(tensor)} in group {k}, which is no leaf of the graph. Cannot find node for it")
            if taken.setdefault(number, k) != k:
                raise ArgumentError(
                    f"backward: got {told(tensor)} in groups {taken[number]} and {k}; expected disjoint groups. Try one group of both, "
                    "or crossings=True"
                )
            if number not in numbers:
                numbers.append(number)
        found.append(numbers)
    return found
