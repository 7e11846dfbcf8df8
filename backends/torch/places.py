"""Indices as torch takes them: slices that step forward, and arrays beside arrays."""

import math
from typing import Any

import torch

from nestgrad.backends.base import Index

_at_least_1d: Any = torch.atleast_1d


def native(x: torch.Tensor, index: Index) -> tuple[Index, tuple[int, ...]]:
    """``index`` for ``x`` flipped on some axes, so that no slice goes backwards; and these axes."""
    flipped: tuple[int, ...] = ()
    arrays = ints = False
    for axis, part in enumerate(index):
        if isinstance(part, slice):
            if part.step is not None and part.step < 0:
                flipped += (axis,)
        elif isinstance(part, torch.Tensor) and part.dim():
            arrays = True
        else:
            ints = True
    if not flipped and not (arrays and ints):
        return index, flipped
    native = list(index)
    for axis in flipped:
        n = x.shape[axis]
        start, stop, step = index[axis].indices(n)
        native[axis] = slice(n - 1 - start, max(n - 1 - stop, n - 1 - start), -step)
    if arrays:  # torch would take an int out first, which puts the axes in another order
        native = [p if isinstance(p, slice) else _at_least_1d(torch.as_tensor(p, device=x.device)) for p in native]
    return tuple(native), flipped


def merged(x: torch.Tensor, index: Index) -> tuple[int, int, torch.Tensor, torch.Size] | None:
    """An index by arrays alone on one axis of ``x``, or on its first ones, as positions along these axes laid one after the other.

    Torch's functions for one axis are several times faster than its indexing.

    Returns:
        The first of the axes, their number, positions from 0 on in one vector, and the shape that they have; ``None`` for other indices,
        and on devices, where looking at the positions would wait.

    Raises:
        IndexError: If a position is out of range.
    """
    if not x.is_cpu:
        return None
    arrays = [axis for axis, part in enumerate(index) if isinstance(part, torch.Tensor)]
    if not arrays or any(part != _WHOLE for part in index if not isinstance(part, torch.Tensor)):
        return None
    first, count = arrays[0], len(arrays)
    if arrays != [*range(first, first + count)] or (first and count > 1):
        return None
    places = _counted(index[first], x.shape[first], first)
    for axis in arrays[1:]:
        places = places * x.shape[axis] + _counted(index[axis], x.shape[axis], axis)
    return first, count, places.reshape(-1), places.shape


_WHOLE = slice(None)


def _counted(places: torch.Tensor, n: int, axis: int) -> torch.Tensor:
    """Positions on an axis of size ``n``, counted from its start."""
    if not places.numel():
        return places
    low, high = (int(end) for end in torch.aminmax(places))
    if low < -n or high >= n:
        raise IndexError(f"index {high if high >= n else low} is out of bounds for dimension {axis} with size {n}")
    return torch.where(places < 0, places + n, places) if low < 0 else places


def get_at(x: torch.Tensor, index: Index) -> torch.Tensor:
    """``x[index]``."""
    found = merged(x, index)
    if found is None:
        return x[index]
    first, count, places, shape = found
    sizes = x.shape
    whole = x if count == 1 else x.reshape(math.prod(sizes[:count]), *sizes[count:])
    return whole.index_select(first, places).reshape((*sizes[:first], *shape, *sizes[first + count :]))


def add_at(x: torch.Tensor, v: Any, index: Index, look: bool = True) -> None:
    """``x[index] += v`` in place, where an element named twice is added to twice. ``x`` is contiguous.

    ``look``: whether the positions may be looked at, for a faster way.
    """
    if not any(isinstance(part, torch.Tensor) for part in index):
        x[index].add_(v)
        return
    v = torch.as_tensor(v, dtype=x.dtype, device=x.device)
    found = merged(x, index) if look else None
    if found is not None:
        first, count, places, shape = found
        sizes = x.shape
        lead, rest = sizes[:first], sizes[first + count :]
        v = v.expand((*lead, *shape, *rest)).reshape((*lead, places.shape[0], *rest))
        whole = x if count == 1 else x.view(math.prod(sizes[:count]), *rest)
        (whole.index_add_ if whole.dim() > 1 else whole.scatter_add_)(first, places, v)
        return
    if all(isinstance(part, torch.Tensor) for part in index):
        x.index_put_(index, v, accumulate=True)
        return
    places = torch.arange(x.numel(), device=x.device).reshape(x.shape)[index]
    x.view(-1).index_add_(0, places.reshape(-1), v.expand(places.shape).reshape(-1))
