"""Entries by their place in the order along an axis."""

import numpy as np

from nestgrad.backends.base import Backend, Value


class Sorting(Backend):
    """Without sorting all entries, where no two of those asked for are equal."""

    def ranked(self, x: Value, ranks: tuple[int, ...], axis: int) -> tuple[Value, Value]:
        if x.size > 1000 and len(ranks) < 4:
            positions = np.take(np.argpartition(x, ranks, axis), ranks, axis)
            values = np.take_along_axis(x, positions, axis)
            # of equal entries the order would say which is meant, and NaN equals none
            if all((np.equal(x, np.take(values, [k], axis)).sum(axis) == 1).all() for k in range(len(ranks))):
                return values, positions
        return super().ranked(x, ranks, axis)
