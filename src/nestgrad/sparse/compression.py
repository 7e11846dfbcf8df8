"""``Compression``: a pattern, its colours, and which product holds which entry."""

from typing import Any

from nestgrad.dependence.checking import compared, direction
from nestgrad.dependence.coloring import columns_apart, rows_of, stars
from nestgrad.dependence.pattern import HOST, sparse_arrays
from nestgrad.errors import PatternError

_SYMMETRIC = "symmetric"

_SMALL = 65536
"""A pattern of so many entries is coloured though it be dense; of a greater dense one each column is a colour."""


class Compression:
    """How a sparse matrix is computed from products with sums of its columns, or of its rows.

    Attributes:
        pattern: A boolean ``csr_array``.
        mode: ``"columns"``, ``"rows"`` or ``"symmetric"``.
        colors: A colour for each column, or row.
        products: How many colours there are.
    """

    __slots__ = ("_entry", "_product", "colors", "mode", "pattern", "products")

    def __init__(self, pattern: Any, mode: str, colors: list[int]) -> None:
        self.pattern, self.mode = pattern, mode
        self.colors = HOST.cast(HOST.asarray(colors), "int64")
        self.products = max(colors, default=-1) + 1
        rows = HOST.arange(0, pattern.shape[0]).repeat(pattern.indptr[1:] - pattern.indptr[:-1])
        columns = pattern.indices
        if mode == "rows":
            self._product, self._entry = self.colors[rows], columns
            return
        self._product, self._entry = self.colors[columns], rows
        if mode == _SYMMETRIC:  # where another column of that colour meets the row, the entry across the diagonal stands alone
            spread = _counts(pattern, self.colors, self.products)
            crowded = spread[rows, self._product] > 1
            self._product = HOST.where(crowded, self.colors[rows], self._product)
            self._entry = HOST.where(crowded, columns, self._entry)

    def seeds(self, start: int, stop: int) -> Any:
        """The sums of unit vectors of the colours from ``start`` to ``stop``, one in each row."""
        return HOST.cast(self.colors[None, :] == HOST.arange(start, stop)[:, None], "float64")

    def matrix(self, products: Any) -> Any:
        """The matrix, as a ``csr_array``, from its products, one in each row."""
        data = products[self._product, self._entry] if self.products else products.reshape(-1)[:0]
        made = sparse_arrays("sparse").csr_array((data, self.pattern.indices, self.pattern.indptr), shape=self.pattern.shape)
        return made.copy()

    def checked(self, name: str, found: Any, product: Any, eps: float) -> None:
        """Compare a matrix with its product with ``direction``, which was not used for it; ``eps`` is the resolution of their dtype.

        Raises:
            PatternError: If it is not the product, by more than rounding.
        """
        v = direction(len(self.colors))
        across = found.T if self.mode == "rows" else found
        off = compared(across @ v, product, abs(across) @ abs(v), eps)
        if off is not None:
            raise PatternError(
                f"{name}: got a pattern of {self.pattern.nnz} entries that does not hold all of the matrix: of a product with it, {off[0]} "
                f"of {len(product)} numbers are off, by {off[1]:.3g} at most; expected each entry that is not zero for some value of the "
                f"argument. Try pattern=None, which traces the function; or make a new {name}, if what the function closes over has changed"
            )


def compression(pattern: Any, mode: str) -> Compression:
    """The colouring of a pattern that needs the fewest products.

    Args:
        pattern: A boolean ``csr_array`` with sorted columns.
        mode: ``"columns"``, ``"rows"``, ``"auto"`` (one of these), or ``"symmetric"``, for which the pattern must be.
    """
    m, n = pattern.shape
    if not pattern.nnz:
        mode = "columns" if mode == "auto" else mode
        return Compression(pattern, mode, [-1] * (m if mode == "rows" else n))
    if mode == _SYMMETRIC:
        dense = pattern.nnz > max(n * n // 2, _SMALL)
        return Compression(pattern, mode, list(range(n)) if dense else stars(_others(pattern)))
    by_columns = None if mode == "rows" else columns_apart(rows_of(pattern), n)
    by_rows = None if mode == "columns" else columns_apart(rows_of(sparse_arrays("sparse").csr_array(pattern.T)), m)
    if by_columns is None or (by_rows is not None and max(by_rows, default=-1) < max(by_columns, default=-1)):
        assert by_rows is not None
        return Compression(pattern, "rows", by_rows)
    return Compression(pattern, "columns", by_columns)


def _others(pattern: Any) -> list[list[int]]:
    """The neighbours of each vertex, itself not among them."""
    return [[j for j in row if j != i] for i, row in enumerate(rows_of(pattern))]


def _counts(pattern: Any, colors: Any, count: int) -> Any:
    """For each row and each colour, how many columns of that colour meet the row."""
    sp = sparse_arrays("sparse")
    n = len(colors)
    of = sp.csr_array((HOST.full((n,), 1), colors, HOST.arange(0, n + 1)), shape=(n, count))
    return (pattern.astype("int64") @ of).toarray()
