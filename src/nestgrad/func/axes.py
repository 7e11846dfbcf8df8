"""Along which axis the samples of each argument and output are: ``in_axes`` and ``out_axes`` of ``vmap``."""

from collections.abc import Callable
from typing import Any

import optree

from nestgrad.errors import ShapeError
from nestgrad.func.trees import shown, slots
from nestgrad.tensor import Tensor

Axes = Any
"""An int, ``None``, or a structure of them, which may end before the structure that it is for does."""


def spread(name: str, axes: Axes, tree: Any) -> list[int | None]:
    """An axis for each leaf of ``tree``, of which ``None`` is one.

    Raises:
        ShapeError: If the structure of the axes is no beginning of the tree's, or one is neither an int nor ``None``.
    """
    if axes is None or isinstance(axes, int):
        found: list[Any] = [axes] * len(slots(tree)[0])
    else:
        try:
            found = optree.broadcast_prefix(axes, tree, none_is_leaf=True)
        except ValueError as error:
            raise ShapeError(
                f"vmap: got {name} {axes!r} for the structure {shown(slots(tree)[1])}; expected that structure or a beginning of it, with "
                "an int or None in each place. Try one int for all"
            ) from error
    if strange := [a for a in found if a is not None and type(a) is not int]:
        raise ShapeError(f"vmap: got {strange[0]!r} in {name}; expected an int, or None where nothing is mapped")
    return found


def in_axis(x: Tensor, axis: int | None, place: Callable[[], str]) -> int | None:
    """``axis`` of an argument, counted from the front.

    Raises:
        ShapeError: If there is none.
    """
    if axis is None:
        return None
    rank = x.ndim
    if not rank:
        raise ShapeError(
            f"vmap: got {place()}, of shape (), to be mapped along axis {axis}; expected an axis of samples. Try in_axes=None for it"
        )
    if not -rank <= axis < rank:
        raise ShapeError(f"vmap: got axis {axis} for {place()}, of shape {x.shape}; expected an int from {-rank} to {rank - 1}")
    return axis % rank


def out_axis(x: Tensor, axis: int, place: Callable[[], str]) -> int:
    """``axis`` of an output that does not have it yet, counted from the front.

    Raises:
        ShapeError: If there is none.
    """
    rank = x.ndim + 1
    if not -rank <= axis < rank:
        raise ShapeError(
            f"vmap: got out_axes {axis} for {place()}, of shape {x.shape} for each sample; expected an int from {-rank} to {rank - 1}"
        )
    return axis % rank
