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
    place: Any = 0
    for k in named:
        item, n = index[k], shape[k]
        item = item % n if isinstance(item, int) else b.where(b.lt(item, 0), b.add(item, n), item)
        place = item if k == named[0] else _beside(b, place, n, item)
    out = b.rows(x, place)
    count = len(b.shape(place))
    if named[-1] - named[0] >= len(named):  # arrays that a slice keeps apart: their axes stay in front
        return out
    before = named[0]
    order = (*range(count, count + before), *range(count), *range(count + before, len(b.shape(out))))
    return b.permute(out, order) if before else out


def _beside(b: Any, place: Any, n: int, item: Any) -> Any:
    """Positions on one more axis, of size ``n``; both may be ints."""
    ahead = place * n if isinstance(place, int) else b.mul(place, n)
    return ahead + item if isinstance(ahead, int) and isinstance(item, int) else b.add(ahead, item)
