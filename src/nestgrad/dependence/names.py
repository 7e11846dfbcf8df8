"""Links by axes that are named: the same name in argument and answer means the same position.

An axis that the answer lacks is united over; one that only the answer has is filled alike.
"""

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

from nestgrad.dependence.pattern import HOST, Pattern, TooDense, gathering, linked

Names = Sequence[Hashable]
Shape = tuple[int, ...]


def by_names(pattern: Pattern, names: Names, shape: Shape, out_names: Names, out_shape: Shape) -> Pattern:
    """The pattern of an answer with axes ``out_names`` from that of an argument with axes ``names``.

    Args:
        pattern: Of the argument, a row for each entry.
        names, shape: Its axes. An axis of size 1 is broadcast, so it says nothing.
        out_names, out_shape: Those of the answer.
    """
    sizes = {name: n for name, n in zip(names, shape, strict=True) if n != 1}
    kept = [name for name in out_names if name in sizes]
    if len(kept) < len(sizes):  # more axes than the answer has: they are united over
        pattern = pattern.through(gathering(_grid(kept, sizes, names, shape), prod(sizes[name] for name in kept)))
    elif kept == [name for name in names if name in sizes] and prod(out_shape) == pattern.size:
        return pattern
    else:  # from the order of the argument to that of the answer
        places = _grid([name for name in names if name in sizes], sizes, kept, tuple(sizes[name] for name in kept))
        pattern = pattern.taken(places)
    return pattern.taken(_grid(kept, sizes, out_names, out_shape))


def by_nonzeros(pattern: Pattern, names: Names, shape: Shape, mask: Any, mask_names: Names, out_names: Names, out_shape: Shape) -> Pattern:
    """As ``by_names`` for a product with an array of numbers that are known, of which ``mask`` tells where they are not zero."""
    where = dict(zip(mask_names, mask.nonzero(), strict=True))
    count = int(mask.sum())
    sizes = dict(zip(names, shape, strict=True)) | dict(zip(out_names, out_shape, strict=True))
    free = [name for name in sizes if name not in where]
    spread = prod(sizes[name] for name in free)
    if pattern.limit is not None and count * spread > 8 * pattern.limit:
        raise TooDense
    grid = HOST.arange(0, spread)
    found: dict[Hashable, Any] = {name: where[name].repeat(spread) for name in where}
    stride = spread
    for name in free:
        stride //= sizes[name]
        steps = grid // stride % sizes[name]
        found[name] = HOST.broadcast_to(steps, (count, spread)).reshape(-1)
    links = linked(_flat(found, out_names, out_shape), _flat(found, names, shape), (prod(out_shape), prod(shape)))
    return pattern.through(links)


def _grid(kept: Names, sizes: dict[Hashable, int], names: Names, shape: Shape) -> Any:
    """For each entry of an array with axes ``names`` its number in the array with axes ``kept``."""
    order = [name for name in names if name in kept]
    numbers = HOST.arange(0, prod(sizes[name] for name in kept)).reshape(tuple(sizes[name] for name in kept))
    numbers = numbers.transpose([list(kept).index(name) for name in order]) if order else numbers
    wide = tuple(n if name in order and n != 1 else 1 for name, n in zip(names, shape, strict=True))
    return HOST.broadcast_to(numbers.reshape(wide), shape).reshape(-1)


def _flat(found: dict[Hashable, Any], names: Names, shape: Shape) -> Any:
    """Numbers of entries from positions along axes."""
    some = next(iter(found.values()), None)
    total = HOST.full((0 if some is None else len(some),), 0)
    for name, n in zip(names, shape, strict=True):
        total = total * n + (found[name] if n != 1 else 0)
    return total
