"""Nested structures of arguments and outputs: tuples, lists, dicts, namedtuples and what is registered with optree.

Tensors, arrays and numbers are leaves, ``None`` is an empty structure. A single leaf, the common case, never comes to optree.
"""

from collections.abc import Sequence
from typing import Any

import optree

from nestgrad.ops.shapes import NUMBERS
from nestgrad.tensor.handle import Handle

Structure = Any
"""What remains of a nested structure without its leaves: an ``optree.PyTreeSpec``."""

LEAF: Structure = optree.treespec_leaf()
"""The structure of a single leaf."""


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves, and the structure."""
    if isinstance(tree, Handle) or tree.__class__ in NUMBERS:
        return [tree], LEAF
    leaves, structure = optree.tree_flatten(tree)
    return leaves, LEAF if structure == LEAF else structure


def slots(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves, and the structure, where ``None`` is a leaf, too."""
    return optree.tree_flatten(tree, none_is_leaf=True)


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """The structure with these leaves."""
    return leaves[0] if structure is LEAF else optree.tree_unflatten(structure, leaves)


def parted(structures: Sequence[Structure], leaves: Sequence[Any]) -> tuple[Any, ...]:
    """Several structures, with the leaves of all of them in one list."""
    if all(structure is LEAF for structure in structures):
        return tuple(leaves)
    trees, start = [], 0
    for structure in structures:
        stop = start + structure.num_leaves
        trees.append(unflatten(structure, leaves[start:stop]))
        start = stop
    return tuple(trees)


def places(structure: Structure) -> list[str]:
    """How each leaf is reached: ``"['w'][0]"``; ``""`` of a single leaf."""
    return [accessor.codify("") for accessor in optree.treespec_accessors(structure)]


def shown(structure: Structure) -> str:
    """The structure for people, with ``*`` for each leaf."""
    return str(structure).removeprefix("PyTreeSpec(").removesuffix(")").removesuffix(", NoneIsLeaf")
