"""Entries by their place in the order along an axis."""

import math

import torch

from nestgrad.backends.base import Backend, Value


class Sorting(Backend):
    """Without sorting all entries, where no two of those asked for are equal: of equal ones torch takes any."""

    def topk(self, x: Value, k: int, axis: int, largest: bool = True) -> tuple[Value, Value]:
        n = x.shape[axis]
        if 0 < k < n and x.dtype != torch.bool:
            values, positions = torch.topk(x, k + 1, axis, largest)  # one more, which tells whether the last has an equal
            later, earlier = values.narrow(axis, 1, k), values.narrow(axis, 0, k)
            if bool((later < earlier if largest else later > earlier).all()):  # NaN is neither
                return earlier, positions.narrow(axis, 0, k)
        return super().topk(x, k, axis, largest)

    def ranked(self, x: Value, ranks: tuple[int, ...], axis: int) -> tuple[Value, Value]:
        first = ranks[0]
        if x.numel() > 1000 and x.is_floating_point() and ranks in ((first,), (first, first + 1)):
            found = _selected(x, first, len(ranks), axis)
            if found is not None:
                return found
        return super().ranked(x, ranks, axis)


def _selected(x: torch.Tensor, rank: int, count: int, axis: int) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The entry of a rank, and the next one if ``count`` is 2; ``None`` if one of them has an equal, or is infinite or NaN."""
    values, positions = torch.kthvalue(x, rank + 1, axis, True)
    if not _single(x, values, axis):
        return None
    if count == 1:
        return values, positions
    above = torch.min(torch.where(x > values, x, math.inf), axis, True)
    if not _single(x, above.values, axis):
        return None
    return torch.cat((values, above.values), axis), torch.cat((positions, above.indices), axis)


def _single(x: torch.Tensor, values: torch.Tensor, axis: int) -> bool:
    """Whether each of the values is a number that one entry along the axis equals."""
    return bool(torch.isfinite(values).all()) and bool((torch.count_nonzero(x == values, axis) == 1).all())
