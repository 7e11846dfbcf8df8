"""Indices as torch takes them: slices that step forward, and arrays beside arrays."""

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


def add_at(x: torch.Tensor, v: Any, index: Index) -> None:
    """``x[index] += v`` in place, where an element named twice is added to twice. ``x`` is contiguous."""
    if not any(isinstance(part, torch.Tensor) for part in index):
        x[index].add_(v)
        return
    v = torch.as_tensor(v, dtype=x.dtype, device=x.device)
    if all(isinstance(part, torch.Tensor) for part in index):
        x.index_put_(index, v, accumulate=True)
        return
    places = torch.arange(x.numel(), device=x.device).reshape(x.shape)[index]
    x.view(-1).index_add_(0, places.reshape(-1), v.expand(places.shape).reshape(-1))
