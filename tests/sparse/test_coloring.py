"""Colourings: what each is for, checked by its definition; and how many colours well-known patterns take."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nestgrad.dependence import columns_apart, neighbours_apart, rows_of, stars
from nestgrad.sparse.compression import compression

scipy_sparse = pytest.importorskip("scipy.sparse")


def matrix(dense):
    made = scipy_sparse.csr_array(np.asarray(dense, dtype=bool))
    made.sort_indices()
    return made


def others(dense):
    return [[j for j in np.flatnonzero(row) if j != i] for i, row in enumerate(np.asarray(dense))]


def symmetric(n, seed, share):
    some = np.random.default_rng(seed).random((n, n)) < share
    return some | some.T | np.eye(n, dtype=bool)


graphs = st.builds(symmetric, st.integers(1, 12), st.integers(0, 10**6), st.floats(0.05, 0.6))


@settings(max_examples=100, deadline=None)
@given(graphs)
def test_in_a_star_colouring_no_path_of_four_has_two_colours(dense):
    colors, around = stars(others(dense)), others(dense)
    for v, near in enumerate(around):
        assert all(colors[w] != colors[v] for w in near)
    for b, near in enumerate(around):
        for a, c in itertools.permutations(near, 2):
            for d in around[c]:
                assert d in (a, b) or len({colors[a], colors[b], colors[c], colors[d]}) > 2


@settings(max_examples=50, deadline=None)
@given(graphs)
def test_neighbours_have_different_colours(dense):
    colors = neighbours_apart(rows_of(matrix(dense)))
    assert all(colors[i] != colors[j] for i, j in zip(*np.nonzero(dense), strict=True) if i != j)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 10**6))
def test_columns_of_one_colour_share_no_row(m, n, seed):
    dense = np.random.default_rng(seed).random((m, n)) < 0.3
    colors = columns_apart(rows_of(matrix(dense)), n)
    for i in range(m):
        met = [colors[j] for j in np.flatnonzero(dense[i])]
        assert len(set(met)) == len(met)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 10**6), st.sampled_from(["symmetric", "columns", "rows", "auto"]))
def test_a_matrix_is_recovered_from_its_products(m, n, seed, mode):
    """Small whole numbers, so that every product is exact."""
    drawing = np.random.default_rng(seed)
    n = m if mode == "symmetric" else n
    dense = drawing.integers(-9, 10, (m, n)) * (drawing.random((m, n)) < 0.35)
    dense = dense + dense.T if mode == "symmetric" else dense
    pattern = dense != 0 if mode != "symmetric" else (dense != 0) | (dense.T != 0)
    made = compression(matrix(pattern), mode)
    seeds = made.seeds(0, made.products)
    products = seeds @ dense if made.mode == "rows" else seeds @ dense.T
    assert np.array_equal(made.matrix(products).toarray(), dense)


def band(n, width):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= width


def arrowhead(n):
    dense = np.eye(n, dtype=bool)
    dense[0] = dense[:, 0] = True
    return dense


SYMMETRIC = {
    "diagonal": (np.eye(40, dtype=bool), 1),
    "tridiagonal": (band(50, 1), 3),
    "arrow": (arrowhead(300), 2),
    "arrow, last": (arrowhead(300)[::-1, ::-1], 2),
    "blocks": (np.kron(np.eye(20), np.ones((3, 3))).astype(bool), 3),
    "dense": (np.ones((6, 6), bool), 6),
    "nothing": (np.zeros((5, 5), bool), 0),
    "no entry": (np.zeros((0, 0), bool), 0),
}


@pytest.mark.parametrize(("dense", "colors"), SYMMETRIC.values(), ids=SYMMETRIC)
def test_how_many_products_a_hessian_takes(dense, colors):
    assert compression(matrix(dense), "symmetric").products == colors


JACOBIANS = {
    "diagonal": (np.eye(40, dtype=bool), "columns", 1),
    "bidiagonal": (band(50, 1) & np.tri(50, dtype=bool), "columns", 2),
    "a full row": (arrowhead(40) & np.tri(40, dtype=bool).T, "rows", 2),
    "a full column": (arrowhead(40) & np.tri(40, dtype=bool), "columns", 2),
    "one row": (np.ones((1, 9), bool), "rows", 1),
    "one column": (np.ones((9, 1), bool), "columns", 1),
}


@pytest.mark.parametrize(("dense", "mode", "colors"), JACOBIANS.values(), ids=JACOBIANS)
def test_a_jacobian_is_taken_by_whichever_needs_fewer_products(dense, mode, colors):
    made = compression(matrix(dense), "auto")
    assert (made.mode, made.products) == (mode, colors)


def test_five_colours_of_a_grid_are_not_many_more():
    """A five-point stencil on a grid; planar graphs of this kind need about 5, a greedy colouring a few more."""
    n = 20
    step = band(n, 1)
    dense = np.kron(step, np.eye(n)).astype(bool) | np.kron(np.eye(n), step).astype(bool)
    assert compression(matrix(dense), "symmetric").products <= 9


def test_a_dense_pattern_of_many_entries_is_not_coloured():
    made = compression(matrix(np.ones((400, 400), bool)), "symmetric")
    assert made.products == 400
