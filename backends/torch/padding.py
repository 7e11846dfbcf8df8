"""Entries of an array repeated around it."""

import torch

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.repeating import around, span

Widths = tuple[tuple[int, int], ...]


class Padding(Backend):
    """One new array, and copies within it."""

    def extend(self, x: Value, widths: Widths, mode: str) -> Value:
        out = x.new_empty([before + n + after for n, (before, after) in zip(x.shape, widths, strict=True)])
        filled = [slice(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True)]
        out[tuple(filled)] = x
        for axis, (n, (before, after)) in enumerate(zip(x.shape, widths, strict=True)):
            for start, run in around(n, before, after, mode):
                part = out[(*filled[:axis], span(run, before), *filled[axis + 1 :])]
                out[(*filled[:axis], slice(start, start + run[2]), *filled[axis + 1 :])] = part.flip(axis) if run[1] < 0 else part
            filled[axis] = slice(None)
        return out

    def gather_in(self, x: Value, widths: Widths, mode: str) -> Value:
        out = x.clone(memory_format=torch.contiguous_format)
        for axis in range(len(widths) - 1, -1, -1):
            before, after = widths[axis]
            if before or after:
                n = out.shape[axis] - before - after
                core = out.narrow(axis, before, n)
                for start, run in around(n, before, after, mode):
                    part, place = out.narrow(axis, start, run[2]), span(run)
                    part = part.flip(axis) if run[1] < 0 else part if run[1] else part.sum(axis, keepdim=True)
                    core.narrow(axis, place.start, place.stop - place.start).add_(part)
                out = core
        return out.contiguous()
