"""Linear algebra."""

from typing import Any

import nestgrad as ng
from torch_ops.table import entries, entry

entries("linalg.det", "linalg.slogdet", "linalg.inv", within="linalg.")
entry("linalg.inv_ex", "linalg.inv", lambda x: ng.linalg.inv(x), results=(0,))
entry("logdet", "linalg.det", lambda x: ng.log(ng.linalg.det(x)))


def _solve(x: Any, y: Any, left: bool = True) -> Any:
    """Torch takes ``y`` for vectors where it has the shape of rows of ``x``, and solves from the right on request."""
    vectors = y.ndim == 1 or (y.ndim == x.ndim - 1 and y.shape == x.shape[:-1])
    if vectors:
        return ng.linalg.solve(x, y[..., None])[..., 0]
    return ng.linalg.solve(x, y) if left else ng.linalg.solve(x.mT, y.mT).mT


entry("linalg.solve", "linalg.solve", _solve)
entry("linalg.solve_ex", "linalg.solve", _solve, results=(0,))
