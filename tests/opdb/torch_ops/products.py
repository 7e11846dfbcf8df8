"""Products that sum."""

from typing import Any

import nestgrad as ng
from torch_ops.table import entry, only

for _name in ("matmul", "mm", "bmm", "mv"):
    entry(_name, "matmul", lambda x, y: ng.matmul(x, y))
entry("__rmatmul__", "matmul", lambda x, y: ng.matmul(y, x))


def _einsum(xs: Any, subscripts: str) -> Any:
    only("..." not in subscripts.partition("->")[0] or "->" not in subscripts or "..." in subscripts.partition("->")[2],
         "einsum that sums over an ellipsis: an error here, as in NumPy")  # fmt: skip
    return ng.einsum(subscripts, *xs)


entry("einsum", "einsum", _einsum)


def _sum_of(product: Any) -> Any:
    return lambda x, y, z, beta=1, alpha=1: x * beta + product(y, z) * alpha


entry("addmm", "linear", lambda x, y, z, beta=1, alpha=1: ng.linear(y * alpha, z, x * beta))
entry("addmm|decomposed", "matmul", _sum_of(ng.matmul))
entry("addmv", "matmul", _sum_of(ng.matmul))
entry("baddbmm", "matmul", _sum_of(ng.matmul))
entry("addbmm", "matmul", _sum_of(lambda y, z: ng.matmul(y, z).sum(axis=0)))
