"""An array of a graph in parts along an axis: ops with as many results as there are parts, or if these are many, parts of parts."""

from typing import Any

from nestgrad.ops.splitting import MOST, splitting, unstacking


def split(graph: Any, x: Any, sizes: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    """Parts of these sizes one after the other. ``x`` knows its shape, and so do they."""
    shape = x.shape
    if len(sizes) <= MOST:
        made: tuple[Any, ...] = graph.apply(splitting(len(sizes)), x, sizes=sizes, axis=axis)
        for part, n in zip(made, sizes, strict=True):
            part.shape = (*shape[:axis], n, *shape[axis + 1 :])
        return made
    step = -(-len(sizes) // MOST)
    groups = [sizes[k : k + step] for k in range(0, len(sizes), step)]
    wholes = split(graph, x, tuple(map(sum, groups)), axis)
    return tuple([part for whole, group in zip(wholes, groups, strict=True) for part in split(graph, whole, group, axis)])


def unstack(graph: Any, x: Any, axis: int) -> tuple[Any, ...]:
    """The slices along an axis, without it."""
    count, item = x.shape[axis], (*x.shape[:axis], *x.shape[axis + 1 :])
    if count > MOST:
        return tuple([graph.apply("reshape", part, shape=item) for part in split(graph, x, (1,) * count, axis)])
    made: tuple[Any, ...] = graph.apply(unstacking(count), x, axis=axis) if count else ()
    for part in made:
        part.shape = item
    return made
