"""Faà di Bruno's formula by a loop over partitions, on arrays of partial derivatives that sympy gives."""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np
import sympy as sp

Tensors = dict[int, np.ndarray]
"""By order, the derivatives of a function of several numbers with several answers: axes (answer, variable, ..., variable)."""


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    """All ways to set some things apart."""
    if not items:
        yield []
        return
    first, *others = items
    for rest in partitions(others):
        yield [[first], *rest]
        for k, part in enumerate(rest):
            yield [*rest[:k], [first, *part], *rest[k + 1 :]]


def derivatives(answers: Sequence[Any], variables: Sequence[Any], point: dict[Any, float], orders: int) -> Tensors:
    """Those of sympy's expressions at a point."""
    found: Tensors = {}
    level: dict[tuple[int, ...], list[Any]] = {(): list(answers)}
    for k in range(1, orders + 1):
        array = np.zeros((len(answers), *(len(variables),) * k))
        level = {
            (*index, i): [sp.diff(e, v) for e in level[index]]
            for index in level for i, v in enumerate(variables) if not index or i >= index[-1]
        }  # fmt: skip
        for index, several in level.items():
            for order in set(permutations(index)):
                array[(slice(None), *order)] = [float(e.subs(point)) if e.free_symbols else float(e) for e in several]
        found[k] = array
    return found


def composed(outer: Tensors, inner: Tensors) -> Tensors:
    """The derivatives of an outer function of an inner one."""
    found = {}
    for k, array in outer.items():
        total = np.zeros((array.shape[0], *(inner[1].shape[1],) * k))
        for parts in partitions(range(k)):
            slots, middle = ascii_lowercase[1 : 1 + k], ascii_uppercase[: len(parts)]
            words = [name + "".join(slots[i] for i in part) for name, part in zip(middle, parts, strict=True)]
            total += np.einsum(f"a{middle},{','.join(words)}->a{slots}", outer[len(parts)], *(inner[len(part)] for part in parts))
        found[k] = total
    return found


def changed(tensors: Tensors, slots: Sequence[Sequence[int]], f: Callable[[np.ndarray], np.ndarray]) -> Tensors:
    """The same with ``f`` of the derivative by some groups of variables, one for each slot; all its permutations alike."""
    k = len(slots)
    found = {order: array.copy() for order, array in tensors.items()}
    answers = range(tensors[k].shape[0])
    new = f(tensors[k][np.ix_(answers, *slots)])
    for index in product(*(range(len(slot)) for slot in slots)):
        entries = [slot[i] for slot, i in zip(slots, index, strict=True)]
        for order in permutations(range(k)):
            found[k][(slice(None), *(entries[i] for i in order))] = new[(slice(None), *index)]
    return found
