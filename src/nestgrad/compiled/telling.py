"""Why a function is traced again, in words."""

from typing import Any

from nestgrad.func.trees import places, shown
from nestgrad.levels.traced.printing import typed


def difference(old: Any, new: Any) -> str:
    """What two keys of a jitted function differ in.

    Args:
        old, new: ``(backend, structure, leaves, pattern)``.
    """
    if old[0] is not new[0]:
        return f"the backend: {old[0].base!r} became {new[0].base!r}"
    if old[1] != new[1]:
        return f"the structure of the arguments: {_structure(old[1])} became {_structure(new[1])}"
    names = _names(new[1])
    leaves = zip(names, old[2], new[2], strict=True)
    changed = [f"{name}: {_leaf(before)} became {_leaf(after)}" for name, before, after in leaves if before != after]
    return "; ".join(changed) if changed else "the levels of the arguments, or the order in which they were made"


def _structure(structure: Any) -> str:
    return f"{structure} Tensors" if isinstance(structure, int) else shown(structure)


def _names(structure: Any) -> list[str]:
    if isinstance(structure, int):
        return [f"argument {k}" for k in range(structure)]
    found = [place[len("[0][") :].partition("]") for place in places(structure)]  # in the pair of positional and named ones
    return [f"argument {name}{inside}" for name, _, inside in found]


def _leaf(key: Any) -> str:
    """One leaf of a signature."""
    if key is float:
        return "a float"
    if isinstance(key[0], tuple):
        shape, dtype, device = key
        return typed(dtype, shape) + ("" if device == "cpu" else f" on {device}")
    return key[1] if key[0] is float else repr(key[1])
