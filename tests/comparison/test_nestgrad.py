"""What the comparison says of nestgrad."""

import gc
from typing import Any

import numpy as np
import pytest
from rows import DET, FIFTH, MATRIX, NESTED, RIGHT_SIDE, SINC, SOLVED, TAIL, TWO_ZEROS

import nestgrad as ng
from nestgrad.errors import CoupledError, DTypeError, MutatedError, NoLevelLeft
from nestgrad.func import grad


def levels(n: int, base: Any = None) -> Any:
    """``n`` levels over NumPy, or over ``base``."""
    stack = ng.NumpyBackend() if base is None else base
    for _ in range(n):
        stack = ng.Autodiff(stack)
    return stack


def orders(f: Any, x: float, n: int) -> list[float]:
    variable = levels(n).tensor(x, requires_grad=True)
    found, derivative = [], f(variable)
    for _ in range(n):
        derivative = derivative.wrt(variable)
        found.append(derivative.item())
    return found


def test_any_order():
    """yes"""
    assert orders(lambda x: (3 * x).exp(), 0.5, 5)[-1] == pytest.approx(FIFTH, rel=1e-14)  # a handful of roundings


def test_linear():
    """0"""
    assert orders(lambda x: 2 * x, 1.0, 2) == [2.0, 0.0]


def test_confusion():
    """right"""
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0).item() == 1.0
    assert grad(lambda x: x * grad(lambda y: y * (x * y).sin())(x * x))(1.2).item() == pytest.approx(NESTED, rel=1e-14)


def test_lost():
    """error that says so"""
    x = levels(1).tensor(1.5, requires_grad=True)
    u = x**3
    loss = u + u.wrt(x) ** 2
    with pytest.raises(NoLevelLeft, match="one more Autodiff around the backend if it is not"):
        loss.backward()
    x = levels(2).tensor(1.5, requires_grad=True)
    u = x**3
    assert (u + u.wrt(x) ** 2).wrt(x).item() == 3 * 1.5**2 + 36 * 1.5**3


def test_branch():
    """0, 2"""
    assert orders(lambda x: ng.where(x < 1, x * x, x.sqrt()), 0.0, 2) == [0.0, 2.0]


def test_powers():
    """1, 2, 6, 24, 0"""
    assert orders(lambda x: (x ** ng.tensor([1.0, 2.0, 3.0, 4.0])).sum(), 0.0, 5) == [1.0, 2.0, 6.0, 24.0, 0.0]


def test_tails():
    """right at both"""
    for x in (40.0, -40.0):
        assert orders(lambda x: -(-x).softplus(), x, 2)[1] == pytest.approx(TAIL, rel=1e-10, abs=0.0)


def test_product():
    """right"""
    x = levels(2).tensor([2.0, 3.0, 0.0, 0.0], requires_grad=True)
    gradient = x.prod().wrt(x)
    assert [gradient[i].wrt(x).tolist() for i in range(4)] == TWO_ZEROS


def test_sinc():
    """right"""
    assert orders(ng.sinc, 0.0, 2)[1] == pytest.approx(SINC, rel=1e-15)


def test_det():
    """right at both"""
    for a, want in zip((np.eye(3), np.ones((3, 3))), DET, strict=True):
        assert np.array_equal(ng.func.hessian(ng.linalg.det)(a).numpy(), want)


def test_solved():
    """right"""
    x = lambda t: ng.linalg.solve(MATRIX + t * np.eye(2), RIGHT_SIDE)
    found = ng.func.jvp(lambda t: ng.func.jvp(x, t, 1.0)[1], 0.0, 1.0)[1]
    assert found.numpy() == pytest.approx(SOLVED, rel=1e-14)


def test_coupled():
    """error, if asked to check"""
    x = levels(1).tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = ng.tensor(np.tril(np.ones((3, 3)))) @ x
    assert x.grad(y.backward()).tolist() == [3.0, 2.0, 1.0]
    with pytest.raises(CoupledError, match="depends on other rows"):
        for _ in range(64):  # each look-up draws one row; row 0 couples to none before it
            x.grad(y.backward(check_independent=True))


def test_shared():
    """copied; or shared, and an error"""
    data = np.array([1.0, 2.0])
    x = levels(1).tensor(data, requires_grad=True)
    y = (x * x).sum()
    data[0] = 100.0
    assert y.wrt(x).tolist() == [2.0, 4.0]
    shared = np.array([1.0, 2.0])
    x = levels(1).from_numpy(shared, requires_grad=True)
    y = (x * x).sum()
    with pytest.raises(ValueError, match="read-only"):
        shared[0] = 100.0
    shared.flags.writeable = True
    shared[0] = 100.0
    with pytest.raises(MutatedError, match="was written into"):
        y.wrt(x)


def test_twice():
    """yes"""
    x = levels(1).tensor(1.5, requires_grad=True)
    y = x**2
    assert x.grad(y.backward()).item() == x.grad(y.backward()).item() == 3.0


def test_cycle():
    """yes"""
    stack = levels(2)
    x = stack.tensor([1.0, 2.0], requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        before = [stack.tape.stats().nodes, stack.inner.tape.stats().nodes]
        u = x.tanh().sum()
        slope = u.wrt(x)
        assert slope.wrt(x).shape == (2,)
        del u, slope
        assert [stack.tape.stats().nodes, stack.inner.tape.stats().nodes] == before
    finally:
        gc.enable()


def test_columns():
    """yes"""
    x = np.array([1.0, 2.0])
    assert ng.functional.jacobian(lambda x: x**3, x, strategy="forward-mode").tolist() == [[3.0, 0.0], [0.0, 12.0]]
    z = levels(1).tensor(x, requires_grad=True)
    for vectorize in (False, True):
        found = ng.functional.jacobian(lambda z: z**3, z, create_graph=True, strategy="forward-mode", vectorize=vectorize)
        assert found.sum().wrt(z).tolist() == [6.0, 12.0]


def test_strict():
    """yes"""
    x = np.array([1.0, 2.0])
    assert ng.functional.jacobian(lambda x: x**3, x, strict=True, vectorize=True).tolist() == [[3.0, 0.0], [0.0, 12.0]]
    with pytest.raises(ng.errors.FunctionalError, match="is independent of input 1"):
        ng.functional.jacobian(lambda x, y: x**3, (x, x), strict=True, vectorize=True)


def test_laplacian():
    """yes: `pde.laplacian`"""
    runs = []

    def u(p):
        runs.append(p)
        return p[0] ** 2 * p[1] ** 3

    assert ng.pde.laplacian(u)(np.array([[1.0, 2.0], [2.0, 1.0]])).tolist() == [2 * 2.0**3 + 6 * 2.0, 2 + 6 * 2.0**2]
    assert len(runs) == 1


def test_sparse():
    """yes: `ng.sparse`"""
    compute = ng.sparse.sparse_hessian(lambda x: (x**3).sum() + (x[1:] * x[:-1]).sum())
    found = compute(np.ones(100))
    assert found.format == "csr" and found.nnz == 100 + 2 * 99 and compute.products == 3


def test_digits():
    """yes: a backend"""
    mpmath = pytest.importorskip("mpmath", reason="the arithmetic of fifty digits is mpmath's")
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parents[1] / "backends"))
    from mpmath_backend import MpmathBackend, mp

    x = levels(3, MpmathBackend()).tensor(0.7, requires_grad=True)
    third = (3 * x).exp().wrt(x).wrt(x).wrt(x).inner()
    want = 27 * mp.exp(3 * mp.mpf(0.7))
    assert abs(third.value.item() - want) < mpmath.mpf(10) ** -46  # fifty digits, less two for the size and two for roundings


def test_complex():
    """refused"""
    with pytest.raises(DTypeError, match="real and imaginary parts as two tensors"):
        levels(1).tensor(1 + 2j, requires_grad=True)


def test_modes():
    """forward and Taylor mode, `vmap`, `jit`"""
    assert ng.func.jvp(lambda x: x * x, 3.0, 1.0)[1].item() == 6.0
    assert [c.item() for c in ng.func.taylor(lambda x: x * x, 3.0, 1.0, 3)] == [9.0, 6.0, 1.0, 0.0]
    assert ng.func.vmap(lambda x: x * x)(np.array([1.0, 2.0])).tolist() == [1.0, 4.0]
    assert ng.jit(ng.func.grad(ng.jit(lambda x: x * x)))(3.0).item() == 6.0
