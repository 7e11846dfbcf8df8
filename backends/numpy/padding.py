"""Entries of an array repeated around it."""

import numpy as np

from nestgrad.backends.base import Backend, Value
from nestgrad.backends.repeating import around, span

Widths = tuple[tuple[int, int], ...]


class Padding(Backend):
    """One new array, and copies within it."""

    def extend(self, x: Value, widths: Widths, mode: str) -> Value:
        out = np.empty([before + n + after for n, (before, after) in zip(x.shape, widths, strict=True)], x.dtype)
        filled = [slice(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True)]
        out[tuple(filled)] = x
        for axis, (n, (before, after)) in enumerate(zip(x.shape, widths, strict=True)):
            for start, run in around(n, before, after, mode):
                part = out[(*filled[:axis], span(run, before), *filled[axis + 1 :])]
                out[(*filled[:axis], slice(start, start + run[2]), *filled[axis + 1 :])] = np.flip(part, axis) if run[1] < 0 else part
            filled[axis] = slice(None)
        return out

    def gather_in(self, x: Value, widths: Widths, mode: str) -> Value:
        out = np.array(x)
        for axis in range(len(widths) - 1, -1, -1):
            before, after = widths[axis]
            if before or after:
                here = (slice(None),) * axis
                n = out.shape[axis] - before - after
                core = out[(*here, slice(before, before + n))]
                for start, run in around(n, before, after, mode):
                    part = out[(*here, slice(start, start + run[2]))]
                    core[(*here, span(run))] += np.flip(part, axis) if run[1] < 0 else part if run[1] else part.sum(axis, keepdims=True)
                out = core
        return np.ascontiguousarray(out)
