"""Entries by their place in the order along an axis."""

import math

import torch

from nestgrad.backends.base import Backend, Value


class Sorting(Backend):
    """Without sorting all entries, where no two of those asked for are equal: of equal ones torch takes any."""

    def topk(self, x: Value, k: int, axis: int, largest: bool = True) -> tuple[Value, Value]:
        if not 0 < k < x.shape[axis] or x.dtype == torch.bool:
            return super().topk(x, k, axis, largest)
        values, positions = torch.topk(x, k + 1, axis, largest)  # one more, which tells whether the last has an equal
        later, earlier = values.narrow(axis, 1, k), values.narrow(axis, 0, k)
        single = (later < earlier if largest else later > earlier).all(axis)  # NaN is neither
        values, positions = earlier, positions.narrow(axis, 0, k)
        if not bool(single.all()):
            _mend(x, values, positions, ~single, axis, slice(0, k), largest)
        return values, positions

    def ranked(self, x: Value, ranks: tuple[int, ...], axis: int) -> tuple[Value, Value]:
        first = ranks[0]
        if not x.is_floating_point() or x.numel() < 1000 or ranks not in ((first,), (first, first + 1)):
            return super().ranked(x, ranks, axis)
        values, positions = torch.kthvalue(x, first + 1, axis, True)
        single = _single(x, values, axis)
        if len(ranks) == 2:
            above = torch.min(torch.where(x > values, x, math.inf), axis, True)
            single = single & _single(x, above.values, axis)
            values, positions = torch.cat((values, above.values), axis), torch.cat((positions, above.indices), axis)
        if not bool(single.all()):
            _mend(x, values, positions, ~single, axis, slice(first, first + len(ranks)), False)
        return values, positions


def _single(x: torch.Tensor, values: torch.Tensor, axis: int) -> torch.Tensor:
    """Along which lines the value is a finite number that one entry equals."""
    return (torch.count_nonzero(x == values, axis) == 1) & torch.isfinite(values.squeeze(axis))


def _mend(
    x: torch.Tensor, values: torch.Tensor, positions: torch.Tensor, where: torch.Tensor, axis: int, part: slice, descending: bool
) -> None:
    """Put a part of the sorted entries in place, along some lines."""
    lines = x.movedim(axis, -1)[where]
    found = torch.sort(lines, dim=-1, descending=descending, stable=True)
    values.movedim(axis, -1)[where] = found.values[..., part]
    positions.movedim(axis, -1)[where] = found.indices[..., part]
