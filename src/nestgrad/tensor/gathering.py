"""Indexing by arrays that are on levels themselves: at each sample of a batch other entries."""

from math import prod
from typing import Any


def gathered(b: Any, x: Any, index: tuple[Any, ...]) -> Any:
    """``x[index]`` as NumPy has it, where arrays of the index may wear coats.

    The axes that ints and arrays name are brought to the front and made one, along which ``rows`` takes the entries.

    Args:
        b: The backend over dressed values.
        x: A value.
        index: Ints, slices and integer arrays, one of which at least wears coats; no ints out of range.
    """
    if any(isinstance(item, slice) for item in index):
        x = b.getitem(x, tuple(item if isinstance(item, slice) else slice(None) for item in index))
    shape = tuple(b.shape(x))
    named = [k for k, item in enumerate(index) if not isinstance(item, slice)]
    rest = [k for k in range(len(shape)) if k not in named]
    x = b.reshape(b.permute(x, (*named, *rest)), (prod(shape[k] for k in named), *(shape[k] for k in rest)))
    place, total = _counted(b, index[named[0]], shape[named[0]]), shape[named[0]]
    for k in named[1:]:
        place = _beside(b, place, total, _counted(b, index[k], shape[k]), shape[k])
        total *= shape[k]
    out = b.rows(x, place)
    count = len(b.shape(place))
    if named[-1] - named[0] >= len(named):  # arrays that a slice keeps apart: their axes stay in front
        return out
    before = named[0]
    order = (*range(count, count + before), *range(count), *range(count + before, len(b.shape(out))))
    return b.permute(out, order) if before else out


def _counted(b: Any, item: Any, n: int) -> Any:
    """Positions from 0 on, where negative ones count from the end of an axis of size ``n``. Those out of range become ``n``.

    So they stay out of range on all axes together, where ``rows`` finds them. The numbers are checked before, but not those that a
    recorded program is run on later.
    """
    return item % n if isinstance(item, int) else bounded(b, b.where(b.lt(item, 0), b.add(item, n), item), n)


def bounded(b: Any, places: Any, n: int) -> Any:
    """Positions from 0 to ``n - 1`` as they are, and all others as ``n``."""
    return b.where(b.logical_and(b.ge(places, 0), b.lt(places, n)), places, n)


def _beside(b: Any, place: Any, total: int, item: Any, n: int) -> Any:
    """Positions on axes of ``total`` entries together with an axis of size ``n``; both may be ints, and out of range."""
    ahead = place * n if isinstance(place, int) else b.mul(place, n)
    if isinstance(item, int):
        return ahead + item if isinstance(ahead, int) else b.add(ahead, item)
    return b.where(b.lt(item, n), b.add(item, ahead), total * n)
