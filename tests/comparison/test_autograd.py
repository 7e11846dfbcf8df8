"""What the comparison says of HIPS autograd."""

import numpy as np
import pytest
from rows import DET, FIFTH, MATRIX, NESTED, RIGHT_SIDE, TAIL

pytest.importorskip("autograd", reason="autograd is not installed")
import autograd.numpy as anp
from autograd import elementwise_grad, grad, hessian, make_jvp, make_vjp


def orders(f, x, n):
    found = []
    for _ in range(n):
        f = grad(f)
        found.append(float(f(x)))
    return found


def test_any_order():
    """yes"""
    assert orders(lambda x: anp.exp(3 * x), 0.5, 5)[-1] == pytest.approx(FIFTH, rel=1e-14)


def test_linear():
    """0, with a warning"""
    with pytest.warns(UserWarning, match="independent of input"):
        assert orders(lambda x: 2 * x, 1.0, 2) == [2.0, 0.0]


def test_confusion():
    """right"""
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0) == 1.0
    assert grad(lambda x: x * grad(lambda y: y * anp.sin(x * y))(x * x))(1.2) == pytest.approx(NESTED, rel=1e-14)


def test_lost():
    """right: each `grad` keeps a graph"""
    u = lambda x: x**3
    assert grad(lambda x: u(x) + grad(u)(x) ** 2)(1.5) == 3 * 1.5**2 + 36 * 1.5**3


def test_branch():
    """NaN"""
    with np.errstate(all="ignore"):
        assert np.isnan(orders(lambda x: anp.where(x < 1, x * x, anp.sqrt(x)), np.array(0.0), 2)).all()


def test_powers():
    """1, 2, 6, 24, 0"""
    with np.errstate(all="ignore"):
        assert orders(lambda x: anp.sum(x ** np.array([1.0, 2.0, 3.0, 4.0])), 0.0, 5) == [1.0, 2.0, 6.0, 24.0, 0.0]


def test_tails():
    """0 at -40"""
    log_sigmoid = lambda x: -anp.logaddexp(0.0, -x)
    assert orders(log_sigmoid, 40.0, 2)[1] == pytest.approx(TAIL, rel=1e-10, abs=0.0)
    assert orders(log_sigmoid, -40.0, 2)[1] == 0.0


def test_product():
    """NaN"""
    with np.errstate(all="ignore"):
        assert np.isnan(hessian(anp.prod)(np.array([2.0, 3.0, 0.0, 0.0]))).all()


def test_sinc():
    """NaN"""
    with np.errstate(all="ignore"):
        assert np.isnan(orders(anp.sinc, 0.0, 2)[1])


def test_det():
    """right at the first, error at the second"""
    assert np.allclose(hessian(anp.linalg.det)(np.eye(3)), DET[0], rtol=1e-14)
    with pytest.raises(np.linalg.LinAlgError):
        hessian(anp.linalg.det)(np.ones((3, 3)))


def test_solved():
    """error"""
    with pytest.raises(NotImplementedError, match="JVP of solve wrt argnums"):
        make_jvp(lambda t: anp.linalg.solve(MATRIX + t * np.eye(2), RIGHT_SIDE))(0.0)(1.0)


def test_coupled():
    """not checked"""
    assert elementwise_grad(anp.cumsum)(np.array([1.0, 2.0, 3.0])).tolist() == [3.0, 2.0, 1.0]


def test_shared():
    """wrong, silently"""
    data = np.array([1.0, 2.0])
    pullback, _ = make_vjp(lambda x: anp.sum(x * x))(data)
    data[0] = 100.0
    assert pullback(1.0).tolist() == [200.0, 4.0]  # right: 2, 4


def test_twice():
    """yes"""
    pullback, _ = make_vjp(lambda x: x**2)(1.5)
    assert pullback(1.0) == pullback(1.0) == 3.0


def test_laplacian():
    """no"""
    import autograd

    assert not [name for name in dir(autograd) if "lapl" in name.lower()]


def test_sparse():
    """no"""
    assert type(hessian(lambda x: anp.sum(x**3))(np.ones(2))) is np.ndarray


def test_digits():
    """no"""
    mpmath = pytest.importorskip("mpmath", reason="the arithmetic of fifty digits is mpmath's")
    with pytest.raises(TypeError, match="Can't differentiate"):
        grad(lambda x: anp.sum(x * x))(np.array([mpmath.mpf(1) / 3], dtype=object))


def test_complex():
    """yes"""
    assert grad(lambda z: anp.real(z * anp.conj(z)))(1 + 2j) == pytest.approx(2 - 4j)


def test_modes():
    """forward mode"""
    assert make_jvp(lambda x: x * x)(3.0)(1.0)[1] == 6.0


# what docs/comparison.md says beside the table


def test_a_second_where_helps():
    f = lambda x: anp.where(x < 1, x * x, anp.sqrt(anp.where(x < 1, 1.0, x)))
    assert orders(f, 0.0, 2) == [0.0, 2.0]
