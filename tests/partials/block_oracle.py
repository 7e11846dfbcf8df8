"""Derivatives with legs, drawn at random, and the dense arrays that they stand for, written entry by entry."""

from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from nestgrad.partials.structure import Leg


@st.composite
def structures(draw: Any, order: int | None = None, same: bool = False, least: int = 0) -> tuple[Any, ...]:
    """An output's shape, shapes of leaves, and legs: of the axes of each place some are on legs of their size."""
    k = order or draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(least, 3), min_size=0, max_size=2))
    places: list[Any] = []
    for place in range(2 if same else k + 1):
        axes: list[Any] = [*draw(st.permutations(range(len(sizes))))[: draw(st.integers(0, len(sizes)))]]
        for _ in range(draw(st.integers(0, 3 - len(axes) if place == 0 else 2 - len(axes)))):
            axes.insert(draw(st.integers(0, len(axes))), None)
        places.append([(leg, draw(st.integers(least, 3)) if leg is None else sizes[leg]) for leg in axes])
    if same:
        places = [places[0], *[places[1]] * k]
    shapes = [tuple(n for _, n in axes) for axes in places]
    legs = []
    for leg, size in enumerate(sizes):
        held = [next((k for k, (name, _) in enumerate(axes) if name == leg), None) for axes in places]
        if any(axis is not None for axis in held):
            legs.append(Leg(size, held[0], tuple(held[1:])))
    return shapes[0], tuple(shapes[1:]), tuple(legs)


def stored_shape(out_shape: Any, shapes: Any, legs: Any) -> tuple[int, ...]:
    """Legs, the rest of the output, the rest of each slot."""
    rest = [n for axis, n in enumerate(out_shape) if axis not in [leg.out for leg in legs]]
    for s, shape in enumerate(shapes):
        rest += [n for axis, n in enumerate(shape) if axis not in [leg.slots[s] for leg in legs]]
    return (*[leg.size for leg in legs], *rest)


def dense(data: Any, out_shape: Any, shapes: Any, legs: Any) -> Any:
    """Every entry by itself: zero unless all axes of each leg are at one position."""
    full = np.zeros((*out_shape, *[n for shape in shapes for n in shape]))
    for position in np.ndindex(full.shape):
        parts, start = [], 0
        for shape in (out_shape, *shapes):
            parts.append(position[start : start + len(shape)])
            start += len(shape)
        where: list[int] = []
        for leg in legs:
            met = {parts[place][axis] for place, axis in enumerate((leg.out, *leg.slots)) if axis is not None}
            if len(met) > 1:
                break
            where.append(met.pop())
        else:
            for place, part in enumerate(parts):
                taken = [leg.out if place == 0 else leg.slots[place - 1] for leg in legs]
                where += [i for axis, i in enumerate(part) if axis not in taken]
            full[position] = data[tuple(where)]
    return full.reshape(int(np.prod(out_shape, dtype=int)), *[n for shape in shapes for n in shape])


def multisets(n: int, k: int) -> list[tuple[int, ...]]:
    """Sorted positions in lexicographic order, by trying all."""
    return [index for index in product(range(n), repeat=k) if list(index) == sorted(index)]
