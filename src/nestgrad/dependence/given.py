"""Patterns that users give."""

from typing import Any

from nestgrad.dependence.pattern import HOST, sparse_arrays
from nestgrad.errors import ShapeError
from nestgrad.tensor import Tensor


def given_pattern(name: str, pattern: Any, square: bool) -> Any:
    """A pattern of the user as a boolean ``csr_array`` with sorted columns; of a symmetric matrix with both of its triangles.

    Args:
        name: Who asks.
        pattern: A matrix of ``scipy.sparse``, or an array.
        square: Whether the matrix is symmetric.

    Raises:
        ShapeError: If it is no matrix, or not square where that is expected.
        BackendError: If scipy is not installed.
    """
    sp = sparse_arrays(name)
    if not sp.issparse(pattern):
        pattern = HOST.asarray(pattern.numpy() if isinstance(pattern, Tensor) else pattern)
    if len(pattern.shape) != 2 or (square and pattern.shape[0] != pattern.shape[1]):
        expected = "(n, n) for n entries of the argument" if square else "(m, n) for m entries of the output and n of the argument"
        hint = f". Try {name}(f)(x) if that is the argument" if len(pattern.shape) != 2 else ""
        raise ShapeError(f"{name}: got a pattern of shape {tuple(pattern.shape)}; expected {expected}{hint}")
    matrix = sp.csr_array(sp.csr_array(pattern) != 0)
    return symmetric(matrix) if square else _sorted(matrix)


def symmetric(matrix: Any) -> Any:
    """A pattern together with its transpose."""
    return _sorted(sparse_arrays("pattern").csr_array(matrix + matrix.T))


def _sorted(matrix: Any) -> Any:
    matrix.eliminate_zeros()
    matrix.sum_duplicates()
    matrix.sort_indices()
    return matrix
