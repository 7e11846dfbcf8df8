"""Derivatives along a direction by differences of values of fifty digits. It knows no derivative of anything."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "backends"))

from mpmath_backend import MpmathBackend, mp

DIGITS = MpmathBackend()
STEP = mp.mpf(10) ** -8

STENCILS = (
    ((-1, -0.5), (1, 0.5)),
    ((-1, 1.0), (0, -2.0), (1, 1.0)),
    ((-2, -0.5), (-1, 1.0), (1, -1.0), (2, 0.5)),
    ((-2, 1.0), (-1, -4.0), (0, 6.0), (1, -4.0), (2, 1.0)),
)
"""By order: at which steps the values are taken, and how often. The error is about the square of a step."""


def along(f: Callable[[list[Any]], Any], points: Sequence[Any], directions: Sequence[Any], order: int) -> list[Any]:
    """The derivatives of orders 1, 2, ... of ``f`` on the line through ``points``, as arrays of NumPy."""
    values: dict[int, Any] = {}
    pairs = [*zip(points, directions, strict=True)]

    def at(k: int) -> Any:
        if k not in values:
            values[k] = f([np.asarray(DIGITS.cast(p, float) + k * STEP * DIGITS.cast(v, float)) for p, v in pairs])
        return values[k]

    found = []
    for n, stencil in enumerate(STENCILS[:order], 1):
        total = sum(mp.mpf(weight) * at(k) for k, weight in stencil)
        found.append(np.asarray(total / STEP**n, float))
    return found
