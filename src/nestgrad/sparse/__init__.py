"""Sparse Jacobians and Hessians: in as few products as a colouring of their pattern needs.

The pattern is found by tracing which entries depend on which, or given. Curtis, Powell & Reid, "On the estimation of sparse Jacobian
matrices", IMA J. Appl. Math. 13 (1974), 117-119: columns that share no row are computed in one product.
"""

from nestgrad.sparse.matrices import SparseMap, sparse_hessian, sparse_jacobian

__all__ = ["SparseMap", "sparse_hessian", "sparse_jacobian"]
