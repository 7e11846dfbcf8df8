"""Cases C: rules of single operations. The right values come from sympy, jax or a formula worked by hand."""

import itertools
import math

import numpy as np
import pytest
from orders import HESSIANS, check

import nestgrad as ng
from nestgrad import Autodiff
from nestgrad.errors import ImmutableError, TraceError
from nestgrad.func import grad


def _product_hessian(x):
    """Entry (i, j) is the product of all other entries."""
    n = len(x)
    pairs = itertools.product(range(n), repeat=2)
    return np.array([0.0 if i == j else math.prod(x[k] for k in range(n) if k not in (i, j)) for i, j in pairs]).reshape(n, n)


def test_24_a_product_with_two_zeros_has_its_hessian(hessian):
    right = np.zeros((4, 4))
    right[2, 3] = right[3, 2] = 6.0
    check(hessian(lambda x: x.prod(), [2.0, 3.0, 0.0, 0.0]), right)


ZEROS = [[2.0, 3.0, -4.0, 0.5], [2.0, 0.0, 3.0], [0.0, 5.0, 0.0], [0.0, 0.0, 0.0, 7.0], [0.0] * 5, [-3.0, 0.0], [2.0]]


@pytest.mark.parametrize("x", ZEROS, ids=str)
def test_24_products_with_any_number_of_zeros_are_exact(hessian, x):
    check(hessian(lambda v: v.prod(), x), _product_hessian(x), rtol=1e-14)


@pytest.mark.parametrize("axis", [0, 1, (0, 1), None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_24_products_over_axes_with_zeros_are_exact(hessian, axis, keepdims):
    x = np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0]])
    weights = np.array([[1.0, 10.0, 100.0], [1000.0, 7.0, 3.0]])
    shape = np.prod(x, axis=axis, keepdims=keepdims).shape
    w = weights.reshape(-1)[: int(np.prod(shape))].reshape(shape)
    groups = {0: [[(i, j) for i in (0, 1)] for j in range(3)], 1: [[(i, j) for j in range(3)] for i in (0, 1)]}
    everything = [[(i, j) for i in (0, 1) for j in range(3)]]
    right = np.zeros((2, 3, 2, 3))
    for factor, group in zip(w.reshape(-1), groups.get(axis, everything), strict=True):
        for p, q in itertools.permutations(group, 2):
            right[p + q] = factor * math.prod(x[k] for k in group if k not in (p, q))
    check(hessian(lambda v: (v.prod(axis, keepdims=keepdims) * w).sum(), x), right)


def _det2(a):
    return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]


DETERMINANTS = {"written out": _det2, "det": ng.linalg.det}


@pytest.fixture(params=DETERMINANTS)
def family(request):
    det = DETERMINANTS[request.param]
    return lambda t: det(ng.stack([ng.stack([t + 1.0, t * t]), ng.stack([2.0, 3.0 * t - 1.0])]))


def test_25_the_second_derivative_of_a_determinant_reverse_over_reverse(orders, family):
    check(orders(family, 0.7, 2)[1], 2.0)


def test_25_a_transform_inside_a_level_and_a_level_inside_a_transform_agree(base, family):
    t = Autodiff(base).tensor(0.7, requires_grad=True)
    check(grad(family)(t).wrt(t), 2.0)

    def first(v):
        v = Autodiff(base).tensor(v, requires_grad=True)
        return family(v).wrt(v)

    check(grad(first)(base.tensor(0.7)), 2.0)


@pytest.mark.parametrize("outer", ["jvp", "grad"])
def test_25_all_compositions_with_forward_mode_agree(outer, family):
    first = lambda t: ng.func.jvp(family, (t,), (1.0,))[1]
    check(grad(first)(0.7) if outer == "grad" else ng.func.jvp(first, (0.7,), (1.0,))[1], 2.0)


def _det3(a):
    even, odd = ((0, 1, 2), (1, 2, 0), (2, 0, 1)), ((0, 2, 1), (1, 0, 2), (2, 1, 0))
    return sum(a[0, i] * a[1, j] * a[2, k] for i, j, k in even) - sum(a[0, i] * a[1, j] * a[2, k] for i, j, k in odd)


def test_26_the_hessian_of_an_explicit_determinant_at_the_identity(hessian):
    d = np.eye(3)
    right = np.einsum("ij,kl->ijkl", d, d) - np.einsum("il,jk->ijkl", d, d)
    check(hessian(_det3, np.eye(3)), right)


def test_26_the_hessian_of_det_at_the_identity(hessian):
    d = np.eye(3)
    check(hessian(ng.linalg.det, np.eye(3)), np.einsum("ij,kl->ijkl", d, d) - np.einsum("il,jk->ijkl", d, d))


def test_27_a_layer_norm_has_four_derivatives(orders):
    w = np.array([1.0, -2.0, 3.0])

    def g(t):
        x = ng.stack([t, 2.0 * t * t, 1.0])
        return (w * ((x - x.mean()) / (x.var() + 0.25).sqrt())).sum()

    check(orders(g, 0.7, 4), [-13.75434502488564, -18.404361696935315, 229.0066253335901, 1738.488800864094])


def test_28_a_sorted_sum_has_a_diagonal_hessian(hessian):
    weights = np.array([1.0, 10.0, 100.0, 1000.0])
    check(hessian(lambda x: (ng.sort(x) ** 2 * weights).sum(), [3.0, 1.0, 2.0, 5.0]), np.diag([200.0, 2.0, 20.0, 2000.0]))


CUBES = {
    "argmax": lambda x: x[x.argmax()] ** 3,
    "max": lambda x: x.max() ** 3,
    "where": lambda x: ng.where(x == x.max(), x**3, 0.0).sum(),
}


@pytest.mark.parametrize("cube", CUBES.values(), ids=CUBES)
def test_29_an_index_computed_from_the_input_is_a_constant(hessian, cube):
    check(hessian(cube, [1.0, -2.0, 9.0, 4.0]), np.diag([0.0, 0.0, 54.0, 0.0]))


@pytest.mark.parametrize("style", HESSIANS)
def test_29_a_mask_computed_from_the_input_is_a_constant_and_cannot_be_compiled(style, base):
    cube = lambda x: (x[x == x.max()] ** 3).sum()
    if "compiled" in style:
        with pytest.raises(TraceError, match=r"got a traced bool\[4\] whose entries must be known here, as a mask"):
            HESSIANS[style](cube, base, [1.0, -2.0, 9.0, 4.0])
    else:
        check(HESSIANS[style](cube, base, [1.0, -2.0, 9.0, 4.0]), np.diag([0.0, 0.0, 54.0, 0.0]))


def test_30_a_bilinear_interpolation_has_a_cross_derivative_only(hessian):
    corners = np.array([[1.0, 2.0], [4.0, 7.0]])

    def interpolated(p):
        weights = [ng.stack([1.0 - q, q]) for q in p]
        return weights[0] @ corners @ weights[1]

    check(hessian(interpolated, [0.3, 0.6]), [[0.0, 2.0], [2.0, 0.0]])


def test_31_a_recurrent_cell_has_a_symmetric_hessian(hessian):
    def last(x):
        h = 0.0
        for v in x:
            h = (0.8 * v - 0.5 * h + 0.1).tanh()
        return h

    upper = np.array(
        [
            [-0.04330614419398061, 0.05100671387110346, -0.05280436264658579],
            [0.0, -0.11426765620922928, 0.11829483413684184],
            [0.0, 0.0, -0.31370881004169154],
        ]
    )
    check(hessian(last, [0.3, -0.6, 1.1]), upper + np.triu(upper, 1).T)


A = [[0.5, -1.0], [2.0, 3.0]]


def _block(a, base):
    return base.tensor(np.zeros((4, 4))).at[:2, :2].set(a)


def test_32_a_block_that_was_written_has_gradient_and_hessian(hessian, base):
    a = np.array(A)
    check(grad(lambda v: (_block(v, base) ** 3).sum())(base.tensor(A)), 3.0 * a * a)
    check(hessian(lambda v: (_block(v, base) ** 3).sum(), A), np.diag([3.0, -6.0, 12.0, 18.0]).reshape(2, 2, 2, 2))


PLACES = {
    "block": (slice(2), slice(2)),
    "backwards": (slice(None, None, -2), slice(3, 1, -1)),
    "rows": ([0, 3], slice(0, 4, 3)),
    "grid": ([[0], [2]], [1, 3]),
}


@pytest.mark.parametrize("index", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("how", ["set", "add"])
def test_32_every_way_to_write_is_differentiable_in_both(hessian, base, index, how):
    """Half of the argument is written over a copy of the other half: what is set hides what was there, what is added does not."""
    frame = np.arange(16.0).reshape(4, 4)
    places = np.zeros((4, 4))
    places[index] = 1.0

    def f(v):
        return (getattr((frame * v[0, 0]).at[index], how)(v) ** 3).sum()

    x, right = np.array(A), np.zeros((2, 2, 2, 2))
    positions = np.arange(16).reshape(4, 4)[index]
    entries = frame * x[0, 0]
    entries[index] = x if how == "set" else entries[index] + x
    slopes = np.zeros((16, 2, 2))
    slopes[:, 0, 0] = (frame * (1.0 - places) if how == "set" else frame).reshape(-1)
    for i, j in itertools.product((0, 1), repeat=2):
        slopes[positions[i, j], i, j] += 1.0
    right = np.einsum("n,nij,nkl->ijkl", 6.0 * entries.reshape(-1), slopes, slopes)
    check(hessian(f, A), right, atol=1e-12)


def test_32_item_assignment_is_refused_with_the_functional_form(base):
    b = base.tensor(np.zeros((4, 4)))
    with pytest.raises(ImmutableError, match=r"Try y = x\.at\[index\]\.set\(value\)"):
        b[:2, :2] = base.tensor(A)


LOGARITHMS = {
    "written out": lambda f: _det2(f).log(),
    "det": lambda f: ng.linalg.det(f).log(),
    "slogdet": lambda f: ng.linalg.slogdet(f)[1],
}


@pytest.mark.parametrize("logarithm", LOGARITHMS.values(), ids=LOGARITHMS)
def test_34_the_material_tangent_of_a_neo_hookean_solid(hessian, logarithm):
    def energy(f):
        log_j = logarithm(f)
        return ((f * f).sum() - 2.0 - 2.0 * log_j) / 2.0 + log_j**2

    upper = np.array(
        [
            [3.366317482617261, 0.2629241647352512, -0.5258483294705024, 1.921770427638591],
            [0.0, 1.0292137960816945, 0.911967792285783, 0.3213517568986404],
            [0.0, 0.0, 1.1168551843267782, -0.6427035137972807],
            [0.0, 0.0, 0.0, 4.534869325885044],
        ]
    )
    check(hessian(energy, [[1.1, 0.2], [-0.1, 0.9]]).reshape(4, 4), upper + np.triu(upper, 1).T)
