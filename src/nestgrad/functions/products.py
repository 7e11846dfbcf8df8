"""Products that sum. They are defined beside the methods of ``Tensor``, which are the same functions."""

from nestgrad.tensor.contractions import cross, dot, inner, kron, outer, tensordot, vdot, vecdot
from nestgrad.tensor.products import einsum, linear, matmul

__all__ = ["einsum", "linear", "matmul", "dot", "vdot", "vecdot", "inner", "outer", "tensordot", "kron", "cross"]
