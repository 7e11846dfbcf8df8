"""``Pattern``: for each entry of a value, the set of input entries that it depends on. And links, which carry patterns on.

Rows that hold every column are not stored but flagged: what depends on everything, such as whatever was divided by a sum of all, costs a
bit for each entry, and not a row.

Arrays of positions are NumPy's, as those of ``scipy.sparse`` are; they are made by the NumPy backend.
"""

from collections.abc import Sequence
from typing import Any

from nestgrad.backends.numpy import NumpyBackend
from nestgrad.errors import BackendError

HOST = NumpyBackend()
"""Makes arrays of positions."""

Links = Any
"""A boolean ``csr_array``: which entries of an answer (rows) depend on which of an argument (columns)."""


class TooDense(Exception):
    """A pattern would have more entries than it may."""


def sparse_arrays(name: str) -> Any:
    """The module ``scipy.sparse``.

    Raises:
        BackendError: If it is not installed.
    """
    try:
        import scipy.sparse
    except ImportError as error:
        raise BackendError(f"{name} needs scipy, which is not installed. Try pip install nestgrad[scipy], or pip install scipy") from error
    return scipy.sparse


class Pattern:
    """A boolean matrix.

    Attributes:
        rows: A ``csr_array``, in which the full rows are empty.
        full: Which rows are full.
        limit: How many entries may be stored; ``None``: any number.
    """

    __slots__ = ("full", "limit", "rows")

    def __init__(self, rows: Any, full: Any = None, limit: int | None = None) -> None:
        m, n = rows.shape
        found = (rows.indptr[1:] - rows.indptr[:-1]) == n if n else HOST.full((m,), False)
        if full is not None:
            found = found | full
        if found.any() and rows.nnz:
            rows = _kept(~found) @ rows
        self.rows, self.full, self.limit = rows, found, limit
        if limit is not None and rows.nnz > limit:
            raise TooDense

    @property
    def size(self) -> int:
        """How many rows there are."""
        return int(self.rows.shape[0])

    @property
    def empty(self) -> bool:
        """Whether nothing depends on anything."""
        return self.rows.nnz == 0 and not self.full.any()

    @classmethod
    def stacked(cls, patterns: "Sequence[Pattern]") -> "Pattern":
        """The rows of several patterns, one after the other."""
        rows = sparse_arrays("pattern").vstack([p.rows for p in patterns], format="csr")
        return cls(rows, HOST.concat(*(p.full for p in patterns), axis=0), patterns[0].limit)

    def through(self, links: Links) -> "Pattern":
        """The pattern of an answer from that of the argument.

        Raises:
            TooDense: If it would have more entries than the limit.
        """
        if self.limit is not None and links.nnz * self.rows.shape[1] > self.limit:
            stored = self.rows.indptr[1:] - self.rows.indptr[:-1]
            if int((links.astype("int64") @ stored.astype("int64")).sum()) > 8 * self.limit + 1024:  # before they are united
                raise TooDense
        return Pattern(links @ self.rows, links @ self.full if self.full.any() else None, self.limit)

    def taken(self, places: Any) -> "Pattern":
        """Row ``places[k]`` as row ``k``; an empty one where that is -1."""
        if len(places) == self.size and (places == HOST.arange(0, self.size)).all():
            return self
        return self.through(taking(places, self.size))

    def union(self, other: "Pattern") -> "Pattern":
        """What is in either, of as many rows."""
        if self is other:
            return self
        return Pattern(self.rows + other.rows, self.full | other.full, self.limit)

    def matrix(self) -> Any:
        """All entries, the full rows too, as a boolean ``csr_array`` with sorted columns."""
        rows = self.rows
        count = int(self.full.sum())
        if count:
            m, n = rows.shape
            sp = sparse_arrays("pattern")
            places = self.full.nonzero()[0].repeat(n)
            columns = HOST.broadcast_to(HOST.arange(0, n), (count, n)).reshape(-1)
            rows = rows + sp.csr_array((HOST.full((count * n,), True), (places, columns)), shape=(m, n))
        rows = sparse_arrays("pattern").csr_array(rows)
        rows.sum_duplicates()
        rows.sort_indices()
        return rows


def united(patterns: Sequence[Pattern]) -> Pattern | None:
    """What is in any of them; ``None`` of none."""
    if not patterns:
        return None
    total, *rest = patterns
    for pattern in rest:
        total = total.union(pattern)
    return total


def identity(size: int, n: int, start: int, limit: int | None = None) -> Pattern:
    """The pattern of an input: its ``size`` entries are the columns from ``start`` on, of ``n``."""
    return Pattern(taking(HOST.arange(start, start + size), n), limit=limit)


def taking(places: Any, size: int) -> Links:
    """Links by which entry ``k`` of an answer is entry ``places[k]`` of the argument, or nothing where that is -1."""
    sp = sparse_arrays("pattern")
    there = places >= 0
    if there.all():
        ends, chosen = HOST.arange(0, len(places) + 1), places
    else:
        ends, chosen = HOST.concat(HOST.full((1,), 0), there.cumsum(), axis=0), places[there]
    return sp.csr_array((HOST.full((len(chosen),), True), chosen, ends), shape=(len(places), size))


def gathering(places: Any, size: int) -> Links:
    """Links by which entry ``k`` of the argument goes into entry ``places[k]`` of the answer, which has ``size``; nowhere if that is -1."""
    return sparse_arrays("pattern").csr_array(taking(places, size).T)


def linked(rows: Any, columns: Any, shape: tuple[int, int]) -> Links:
    """Links with these entries, which may be named more than once."""
    links = sparse_arrays("pattern").csr_array((HOST.full((len(rows),), True), (rows, columns)), shape=shape)
    links.sum_duplicates()
    return links


def _kept(mask: Any) -> Links:
    places = HOST.arange(0, len(mask))
    return taking(HOST.where(mask, places, -1), len(mask))
