"""Products of vectors and tensors: NumPy's values, derivatives, second derivatives against torch, and what does not fit."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import nestgrad as ng
from nestgrad.errors import ShapeError
from nestgrad.func import vmap

RNG = np.random.default_rng(7)


def draw(*shape):
    return RNG.normal(size=shape)


CALLS = {
    "dot": (ng.dot, np.dot, (4,), (4,)),
    "dot of matrices": (ng.dot, np.dot, (2, 3), (3, 4)),
    "dot of a matrix and a vector": (ng.dot, np.dot, (2, 3), (3,)),
    "dot of a vector and a matrix": (ng.dot, np.dot, (3,), (3, 2)),
    "dot of stacks": (ng.dot, np.dot, (2, 3, 4), (2, 4, 3)),
    "dot of a vector and a stack": (ng.dot, np.dot, (4,), (2, 4, 3)),
    "dot of a stack and a vector": (ng.dot, np.dot, (2, 3, 4), (4,)),
    "dot of a number": (ng.dot, np.dot, (), (2, 3)),
    "method dot": (lambda x, y: x.dot(y), np.dot, (2, 3), (3, 4)),
    "vdot": (ng.vdot, np.vdot, (2, 3), (3, 2)),
    "inner": (ng.inner, np.inner, (4,), (4,)),
    "inner of matrices": (ng.inner, np.inner, (2, 3), (4, 3)),
    "inner of stacks": (ng.inner, np.inner, (2, 2, 3), (1, 3)),
    "inner of a number": (ng.inner, np.inner, (2,), ()),
    "outer": (ng.outer, np.outer, (3,), (2,)),
    "outer of matrices": (ng.outer, np.outer, (2, 2), (1, 3)),
    "tensordot": (ng.tensordot, np.tensordot, (2, 3, 4), (3, 4, 2)),
    "tensordot of none": (lambda x, y: ng.tensordot(x, y, 0), lambda x, y: np.tensordot(x, y, 0), (2,), (3,)),
    "tensordot of one": (lambda x, y: ng.tensordot(x, y, 1), lambda x, y: np.tensordot(x, y, 1), (2, 3), (3, 2)),
    "tensordot by axes": (lambda x, y: ng.tensordot(x, y, ((0, -1), (1, 0))), lambda x, y: np.tensordot(x, y, ((0, -1), (1, 0))),
                          (2, 3, 4), (4, 2, 3)),
    "tensordot by two axes": (lambda x, y: ng.tensordot(x, y, (1, 0)), lambda x, y: np.tensordot(x, y, (1, 0)), (2, 3), (3, 2)),
    "kron": (ng.kron, np.kron, (2, 3), (3, 2)),
    "kron of vectors": (ng.kron, np.kron, (2,), (3,)),
    "kron of a vector and a matrix": (ng.kron, np.kron, (2,), (3, 2)),
    "kron of a stack": (ng.kron, np.kron, (2, 1, 2), (2, 2)),
    "kron of a number": (ng.kron, np.kron, (), (2, 2)),
    "cross": (ng.cross, np.cross, (3,), (3,)),
    "cross of many": (ng.cross, np.cross, (2, 3), (2, 3)),
    "cross of many and one": (ng.cross, np.cross, (4, 2, 3), (3,)),
    "cross of columns": (lambda x, y: ng.cross(x, y, axis=0), lambda x, y: np.cross(x, y, axis=0), (3, 2), (3, 2)),
    "products of nothing": (ng.dot, np.dot, (0,), (0,)),
    "tensordot of nothing": (lambda x, y: ng.tensordot(x, y, 1), lambda x, y: np.tensordot(x, y, 1), (2, 0), (0, 3)),
}  # fmt: skip


@pytest.mark.parametrize(("function", "oracle", "left", "right"), CALLS.values(), ids=CALLS)
def test_values_and_derivatives(function, oracle, left, right, check_derivatives):
    check_derivatives(function, oracle, draw(*left), draw(*right))


@pytest.mark.parametrize(("function", "oracle", "left", "right"), CALLS.values(), ids=CALLS)
def test_on_samples_they_are_the_loop(function, oracle, left, right, base):
    for on in ((0, 0), (0, None), (None, 0)):
        x, y = (draw(*((3, *s) if here == 0 else s)) for s, here in zip((left, right), on, strict=True))
        got = vmap(function, in_axes=on)(base.tensor(x), base.tensor(y)).numpy()
        for k in range(3):
            want = oracle(x[k] if on[0] == 0 else x, y[k] if on[1] == 0 else y)
            np.testing.assert_allclose(got[k], want, rtol=1e-12, atol=1e-13)


def test_third_derivatives_of_a_cross_product_are_torchs(stack):
    torch = pytest.importorskip("torch")
    a, c = draw(2, 3), draw(2, 3)
    S = ng.Autodiff(stack)
    x, t = S.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    f = ng.cross(x.sin(), x * c)
    g = torch.linalg.cross(t.sin(), t * torch.tensor(c))
    for _ in range(3):
        f = (f * f).sum().wrt(x)
        (g,) = torch.autograd.grad((g * g).sum(), t, create_graph=True)
        np.testing.assert_allclose(f.numpy(), g.detach().numpy(), rtol=1e-9)


def test_numbers_and_arrays_are_operands(base):
    x = base.tensor(np.array([1.0, 2.0, 3.0]))
    assert ng.dot(2.0, x).tolist() == [2.0, 4.0, 6.0] and ng.outer(np.array([1.0, 2.0]), x).shape == (2, 3)
    assert ng.kron(x, 2).tolist() == [2.0, 4.0, 6.0] and ng.inner(3, 4.0).item() == 12


BAD = [
    (lambda x, y: ng.dot(x, y), r"dot: got shapes \(2, 3\) and \(2, 3\); expected axis -1 of the first to have the size of axis -2"),
    (lambda x, y: ng.dot(x[0], y[0, :2]), r"dot: got shapes \(3,\) and \(2,\)"),
    (lambda x, y: ng.vdot(x, y[0]), r"vdot: got shapes \(2, 3\) and \(3,\); expected as many entries in both"),
    (lambda x, y: ng.inner(x, y[:, :2]), r"inner: got shapes \(2, 3\) and \(2, 2\) with axes"),
    (lambda x, y: ng.tensordot(x, y, 1), r"tensordot: got shapes \(2, 3\) and \(2, 3\) with axes \(1,\) of the first and \(0,\)"),
    (lambda x, y: ng.tensordot(x, y, 3), r"tensordot: got 3 axes for shapes"),
    (lambda x, y: ng.tensordot(x, y, (0, 1, 2)), r"tensordot: got axes \(0, 1, 2\)"),
    (lambda x, y: ng.cross(x, y, axis=0), r"cross: got shapes \(2, 3\) and \(2, 3\); expected three entries along axis 0 of both"),
    (lambda x, y: ng.cross(x[0], y, axis=2), r"cross: got axis 2"),
]


@pytest.mark.parametrize(("call", "text"), BAD, ids=[text[:24] for _, text in BAD])
def test_what_does_not_fit_is_told(call, text, stack):
    with pytest.raises(ShapeError, match=text):
        call(stack.tensor(draw(2, 3), requires_grad=True), stack.tensor(draw(2, 3), requires_grad=True))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_kron_and_tensordot_are_numpys(data):
    sizes = st.lists(st.integers(0, 3), min_size=0, max_size=3)
    a, c = (RNG.normal(size=data.draw(sizes)) for _ in range(2))
    n = data.draw(st.integers(0, 2))
    shared = data.draw(st.permutations(range(n)))
    d = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    u = RNG.normal(size=(*a.shape, *d))
    v = RNG.normal(size=(*(d[k] for k in shared), *c.shape))
    axes = ([a.ndim + k for k in shared], list(range(n)))
    for backend in ("numpy", "torch"):
        b = ng.get_backend(backend, dtype="float64")
        p, q, r, w = map(b.tensor, (a, c, u, v))
        for got, want in ((ng.kron(p, q), np.kron(a, c)), (ng.tensordot(r, w, axes), np.tensordot(u, v, axes))):
            assert got.shape == want.shape
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-13)
