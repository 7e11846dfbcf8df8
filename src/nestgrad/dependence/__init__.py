"""Which entries of a program's outputs depend on which entries of its inputs, for every value of these.

A pattern is a boolean matrix: a row for each entry of a value, a column for each entry of the inputs in question. Patterns are carried
through a program op by op, by the kind of each op and what the table says of it. They are supersets of the truth: where an op tells
nothing of itself, all of its answer depends on all of its arguments.

Dependence here is what derivatives see: what a derivative is zero by, for every value, does not count.
"""

from nestgrad.dependence.coloring import columns_apart, neighbours_apart, rows_of, stars
from nestgrad.dependence.given import given_pattern, symmetric
from nestgrad.dependence.pattern import Pattern, TooDense, sparse_arrays
from nestgrad.dependence.walk import jacobian_pattern

__all__ = [
    "Pattern", "TooDense", "columns_apart", "given_pattern", "jacobian_pattern", "neighbours_apart", "rows_of", "sparse_arrays", "stars",
    "symmetric",
]  # fmt: skip
