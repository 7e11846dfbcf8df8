"""Constants made of values: ``stop_gradient``."""

from typing import Any

from nestgrad.func.trees import flatten, unflatten
from nestgrad.tensor.handle import Handle

__all__ = ["stop_gradient"]


def stop_gradient(tree: Any) -> Any:
    """The same values, as constants on every level: no derivative goes through them, in any mode and at any order.

    Args:
        tree: A Tensor, or a nested structure. What is no Tensor in it stays as it is.

    Returns:
        The structure, with ``detach()`` of each Tensor.

    >>> from nestgrad.func import grad
    >>> grad(lambda x: x * stop_gradient(x))(3.0).item()
    3.0
    """
    leaves, structure = flatten(tree)
    return unflatten(structure, [x.detach() if isinstance(x, Handle) else x for x in leaves])  # type: ignore[attr-defined]
