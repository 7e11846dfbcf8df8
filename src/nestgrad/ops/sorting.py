"""Ops that order entries. Their results are entries of the array at positions, and these are what the rules read.

Equal entries keep their order, which says who gets the derivative. NaN counts as greater than every number.
"""

from typing import Any

from nestgrad.ops.samples import Sample, Samples, calls, filled
from nestgrad.ops.table import SPECIAL, define


def _back(b: Any, g: Any, positions: Any, x_shape: tuple[int, ...], axis: int) -> Any:
    """To each entry what came for it; others get 0."""
    return b.add_along(g[0], positions, axis, x_shape[axis])


def _tangent(b: Any, t: Any, positions: Any, axis: int) -> tuple[Any, None]:
    return b.take_along(t, positions, axis), None


def _define(signature: str, samples: Samples, *defaults: Any) -> None:
    """Add an op that gives entries of its array, and their positions."""
    define(signature, SPECIAL, _back, forward=(_tangent,), defaults=defaults, results=("values", "positions"), fixed=("positions",),
           samples=samples)


_define("sort(x, axis, descending)", calls(
    Sample((filled((4,), -1, 1),), {"axis": 0}), Sample((filled((2, 3), -1, 1),), {"axis": 1, "descending": True})), False)
_define("topk(x, k, axis, largest)", calls(
    Sample((filled((2, 4), -1, 1),), {"k": 2, "axis": 1}), Sample((filled((3, 2), -1, 1),), {"k": 2, "axis": 0, "largest": False})), True)
# the entries of some ranks in ascending order, which cost less than all of it
_define("ranked(x, ranks, axis)", calls(
    Sample((filled((4,), -1, 1),), {"ranks": (1, 2), "axis": 0}), Sample((filled((2, 3), -1, 1),), {"ranks": (2,), "axis": 1})))
