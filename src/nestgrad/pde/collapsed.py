"""Sums over directions from one run in collapsed Taylor mode: value, first derivatives and Laplacian, and the biharmonic operator."""

from math import cos, pi, sin, sqrt

from nestgrad.func.jets import jets
from nestgrad.functions.arranging import moveaxis
from nestgrad.functions.create import eye, tensor
from nestgrad.functions.shaping import concat
from nestgrad.pde.points import AT_ONCE, Field
from nestgrad.tensor import Tensor


def up_to_laplacian(field: Field, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Value, first derivatives (in the last axis) and Laplacian at a point. Of many coordinates, a run for so many at a time."""
    d = x.shape[0]
    runs = []
    for start in range(0, max(d, 1), AT_ONCE):
        units = eye(min(AT_ONCE, d - start), d, k=start, dtype=x.dtype, backend=x.b.base)
        runs.append(jets(field, x, units, 2))
    value, first, total = runs[0]
    for _, _, more in runs[1:]:
        total = total + more
    return value, moveaxis(concat([f for _, f, _ in runs]) if len(runs) > 1 else first, 0, -1), 2.0 * total


def biharmonic(field: Field, x: Tensor) -> Tensor:
    """The Laplacian of the Laplacian at a point: one series of order 4 in up to three dimensions, series within series beyond.

    The former costs ``3 n + 2`` for n directions, the latter ``(d + 2)^2``; directions are ``d^2`` where no fewer are known.
    """
    d = x.shape[0]
    if not 1 <= d <= 3:
        return up_to_laplacian(lambda x: up_to_laplacian(field, x)[2], x)[2]
    directions, weight = _EVEN[d - 1]
    vectors = tensor(directions, backend=x.b.base, dtype=x.dtype)
    total: Tensor = jets(field, x, vectors, 4)[2]
    return 24.0 * weight * total


def _hexagon() -> list[list[float]]:
    """The axes through the corners of a regular hexagon."""
    return [[cos(k * pi / 3.0), sin(k * pi / 3.0)] for k in range(3)]


def _icosahedron() -> list[list[float]]:
    """The axes through the corners of a regular icosahedron."""
    golden = (1.0 + sqrt(5.0)) / 2.0
    a, b = 1.0 / sqrt(1.0 + golden**2), golden / sqrt(1.0 + golden**2)
    return [[0.0, a, b], [0.0, a, -b], [a, b, 0.0], [a, -b, 0.0], [b, 0.0, a], [-b, 0.0, a]]


_EVEN = ([[1.0]], 1.0), (_hexagon(), 8.0 / 9.0), (_icosahedron(), 5.0 / 6.0)
"""For one, two and three dimensions: unit vectors ``v`` and a weight ``w`` such that ``w sum (v . x)^4 = |x|^4`` for all ``x``.

So ``w`` times the sum of the fourth derivatives along them is the biharmonic operator. No fewer vectors can do that.
"""
