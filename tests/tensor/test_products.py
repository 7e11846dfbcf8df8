"""Matrix products in all ranks, linear layers, Einstein sums: NumPy's values, derivatives in every operand, of first and second order."""

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import ShapeError


def array(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, shape)


RANKS = [((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 2)), ((5, 2, 3), (3, 4)),
         ((2, 3), (5, 3, 4)),
         ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)), ((1, 2, 3), (5, 3, 1)), ((1, 1), (1, 1)), ((2, 0), (0, 3)),
         ((0, 2), (2, 3)), ((0,), (0,)),
         ((4, 0, 3), (3, 2))]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), RANKS)
def test_matmul_in_all_ranks(left, right, check_derivatives):
    check_derivatives(lambda x, y: x @ y, np.matmul, array(*left), array(*right, seed=1))
    check_derivatives(ng.matmul, np.matmul, array(*left), array(*right, seed=1))


def test_matmul_says_what_does_not_fit(base):
    one, two = base.tensor(1.0), base.tensor(array(2, 3))
    with pytest.raises(ShapeError, match=r"matmul: got shapes \(\) and \(2, 3\).*x \* y"):
        one @ two
    with pytest.raises(ShapeError, match=r"last axis of the first \(3\) must equal the second-to-last of the second \(2\)"):
        two @ two
    with pytest.raises(ShapeError, match=r"matmul"):
        two @ base.tensor(array(4))
    with pytest.raises(ShapeError, match=r"do not broadcast"):
        base.tensor(array(2, 2, 3)) @ base.tensor(array(3, 3, 2))


@pytest.mark.parametrize("lead", [(4,), (2, 4), (), (0,)])
def test_linear(lead, check_derivatives):
    x, w, c = array(*lead, 3), array(3, 2, seed=1), array(2, seed=2)
    check_derivatives(ng.linear, lambda x, w, c: x @ w + c, x, w, c)
    check_derivatives(ng.linear, lambda x, w: x @ w, x, w)
    check_derivatives(lambda x, w: ng.linear(x, w, 1.5), lambda x, w: x @ w + 1.5, x, w)


@pytest.mark.parametrize("lead", [(3,), (5, 3)])
def test_linear_by_a_stack_of_matrices(lead, check_derivatives):
    x, w, c = array(*lead, 3), array(5, 3, 2, seed=1), array(2, seed=2)
    check_derivatives(ng.linear, lambda x, w, c: x @ w + c, x, w, c)


SUMS = {
    "ij,jk->ik": [(2, 3), (3, 4)], "ij,jk": [(2, 3), (3, 4)], "ij->ji": [(2, 3)], "ji": [(2, 3)], "ij->": [(2, 3)], "ij->j": [(2, 3)],
    "i,i": [(3,), (3,)], "i,j->ji": [(2,), (3,)], "ii": [(3, 3)], "ii->i": [(3, 3)], "iij->j": [(3, 3, 2)], "iji->ji": [(3, 2, 3)],
    "iiii->": [(2,) * 4],
    "...ij,...jk->...ik": [(5, 2, 3), (5, 3, 4)], "...ij,jk->...ik": [(5, 6, 2, 3), (3, 4)], "...i,i": [(2, 4, 3), (3,)],
    "...->...": [(2, 3)],
    "i...->...": [(2, 3, 4)], "i...->...i": [(2, 3, 4)], "...i->i...": [(2, 3, 4)], "...ii->...i": [(2, 3, 3)],
    "...,...->...": [(3, 1), (2, 1, 4)],
    "...ij,...jk": [(2, 3), (5, 3, 4)], "...,i->...i": [(), (3,)], "ij,j,i->ij": [(2, 3), (3,), (2,)],
    "bij,bjk,bkl->bil": [(2, 2, 3), (2, 3, 2), (2, 2, 1)],
    "ij,jk->ikj": [(2, 3), (3, 4)], "ij , jk -> ik": [(2, 3), (3, 4)], "aB,Bc": [(2, 3), (3, 4)], ",i->i": [(), (3,)], "->": [()],
    "i->i": [(0,)],
    "ij,jk->ik ": [(2, 0), (0, 4)], "ij,jk-> ik": [(2, 1), (3, 4)], "ij,ij->ij": [(1, 3), (2, 1)], "ij,jk,kl->il": [(2, 1), (3, 1), (4, 2)],
    "i,ij->j": [(1,), (3, 2)], "ij,ij->": [(2, 3), (2, 1)], "ii,i->i": [(3, 3), (1,)],
}  # fmt: skip


@pytest.mark.parametrize(("subscripts", "shapes"), SUMS.items(), ids=SUMS)
def test_einsum_is_numpys(subscripts, shapes, check_derivatives):
    points = [array(*s, seed=k) for k, s in enumerate(shapes)]
    check_derivatives(lambda *xs: ng.einsum(subscripts, *xs), lambda *xs: np.einsum(subscripts, *xs), *points)


def test_einsum_takes_arrays_and_numbers(stack, native):
    a = array(2, 3)
    x = stack.tensor(a, requires_grad=True)
    for other in (a, native(a), stack.tensor(a)):
        np.testing.assert_allclose(ng.einsum("ij,ij->i", x, other).numpy(), (a * a).sum(1), rtol=1e-15)
        np.testing.assert_allclose(ng.einsum("ij,ij->i", other, x).numpy(), (a * a).sum(1), rtol=1e-15)
    np.testing.assert_array_equal(ng.einsum("ij,->ij", x, 2.0).numpy(), 2 * a)
    assert isinstance(ng.einsum("ij->i", a), ng.Tensor)


def test_einsum_with_many_entries(base):
    """Past some size the backends go another way."""
    x, y, z = array(30, 40), array(40, 20, seed=1), array(20, 30, seed=2)
    for subscripts in ("ij,jk,ki->", "ij,jk,kl->il", "ij,jk,ki->i"):
        got = ng.einsum(subscripts, *(base.tensor(v) for v in (x, y, z)))
        np.testing.assert_allclose(got.numpy(), np.einsum(subscripts, x, y, z), rtol=1e-11, atol=1e-11)  # sums of up to 24,000 products


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,ij->", "ij,jk->ikj"])
def test_second_derivatives_of_products(subscripts, stack):
    """The derivative of ``<c, x y>`` by x, differentiated by y, is what it is with NumPy."""
    a, c = array(3, 3), array(3, 3, seed=1)
    x, y = stack.tensor(a, requires_grad=True), stack.tensor(c, requires_grad=True)
    first = ng.einsum(subscripts, x, y).wrt(x)
    w = array(3, 3, seed=2)
    got = (first * w).sum().wrt(y)
    # bilinear: d/dy <w, d/dx f(x, y)> = d/dy f(w, y), exactly
    z = stack.tensor(c, requires_grad=True)
    np.testing.assert_allclose(got.numpy(), ng.einsum(subscripts, stack.tensor(w), z).wrt(z).numpy(), rtol=1e-14)
    want = w if subscripts == "ij,ij->" else np.repeat(w.sum(0)[:, None], 3, 1)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)


WRONG = {
    "too few operands": ("ij,jk->ik", [(2, 3)], r"1 operands; expected 2"), "none": ("ij", [], r"no operands"),
    "axes": ("ij->i", [(2,)], r"has 1 axes, expected 2"), "sizes": ("ij,jk->ik", [(2, 3), (4, 2)], r"'j' is 3 in one and 4 in another"),
    "diagonal": ("ii->i", [(2, 3)], r"sizes \[2, 3\] for the letter 'i'"), "unknown letter": ("ij->k", [(2, 3)], r"not \['k'\]"),
    "output twice": ("i->ii", [(2,)], r"once"), "ellipsis dropped": ("...i->i", [(2, 3)], r"lacks the ellipsis"),
    "digits": ("1->1", [(2,)], r"letters"),
    "two ellipses": ("......->...", [(2,)], r"ellipsis"), "ellipsis of too few": ("...ij->...", [(2,)], r"has 1 axes"),
    "arrows": ("i->i->i", [(2,)], r"letters"),
}  # fmt: skip


@pytest.mark.parametrize(("subscripts", "shapes", "match"), WRONG.values(), ids=WRONG)
def test_einsum_says_what_is_wrong(subscripts, shapes, match, base):
    with pytest.raises(ShapeError, match=rf"einsum: .*{match}"):
        ng.einsum(subscripts, *(base.tensor(array(*s)) for s in shapes))


def test_products_of_mixed_dtypes_promote(base):
    x, y = base.tensor(array(2, 3), dtype="float32"), base.tensor(array(3, 2))
    for product in (x @ y, ng.linear(x, y, y[0]), ng.einsum("ij,jk", x, y), x @ base.tensor(np.ones((3, 2), int)) @ y[:2]):
        assert product.dtype == y.dtype
    assert (x @ base.tensor(np.ones((3, 2)) > 0)).shape == (2, 2)


def test_gradients_of_mixed_dtypes_come_in_each_ones_own(stack):
    x = stack.tensor(array(2, 3), requires_grad=True, dtype="float32")
    y = stack.tensor(array(3, 2), requires_grad=True)
    for product in (x @ y, ng.einsum("ij,jk", x, y), ng.linear(x, y, y[0]).tanh()):
        grads = product.backward()
        assert grads.wrt(x).dtype == x.dtype and grads.wrt(y).dtype == y.dtype
