"""What a controller gives along a direction: all partial derivatives of an order, in one sum."""

from itertools import combinations_with_replacement, permutations
from math import factorial, prod
from typing import Any

import numpy as np


def array(x: Any) -> Any:
    """Of NumPy."""
    return np.asarray(x.numpy())


def total(controller: Any, leaves: Any, directions: Any, order: int, what: str = "") -> tuple[Any, float]:
    """The derivative of an order along ``directions`` of all leaves at once, entry by entry of the output; and how large its parts are.

    Every mixed and pure partial is fetched, in each order of its variables, and asserted to be symmetric in those that are the same.
    """
    found, most = 0.0, 0.0
    for key in combinations_with_replacement(range(len(leaves)), order):
        shapes = [leaves[k].shape for k in key]
        dense = array(controller.fetch_hgrad([leaves[k] for k in key])[0])
        rows = dense.shape[0]
        assert dense.shape == (rows, *(n for shape in shapes for n in shape)), what
        flat = dense.reshape(rows, *(prod(shape) for shape in shapes))
        for slots in set(permutations(range(order))):
            other = tuple(key[k] for k in slots)
            turned = array(controller.fetch_hgrad([leaves[k] for k in other])[0]) if other != key else dense
            turned = turned.reshape(rows, *(prod(leaves[k].shape) for k in other))
            same = flat.transpose(0, *(1 + k for k in slots))
            good = np.isfinite(turned) & np.isfinite(same)  # where a derivative does not exist one slot may see it and another not
            atol = 1e-9 * (1 + abs(same[good]).max(initial=0.0))
            np.testing.assert_allclose(turned[good], same[good], rtol=1e-8, atol=atol, err_msg=f"{what} {key} {slots}")
        if key == (key[0],) * order:
            pure = leaves[key[0]].hgrad[order - 1]
            np.testing.assert_array_equal(array(pure), dense, err_msg=f"{what}: hgrad of {key}")
        part, parts = flat, abs(flat)
        for k in reversed(key):
            move = directions[k].reshape(-1)
            part, parts = part @ move, parts @ abs(move)
        times = factorial(order) / prod(factorial(key.count(k)) for k in set(key))
        found, most = found + times * part, max(most, times * parts.max(initial=0.0))
    return found, most


def directions(leaves: Any, seed: int = 0) -> list[Any]:
    """Of which no entry is near zero."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 1.5, tuple(x.shape)) * rng.choice([-1.0, 1.0], tuple(x.shape)) for x in leaves]
