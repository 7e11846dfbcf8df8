"""What the comparison says of JAX."""

import numpy as np
import pytest
from rows import DET, FIFTH, MATRIX, NESTED, RIGHT_SIDE, SINC, SOLVED, TAIL, TWO_ZEROS

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def double():
    """JAX computes with single precision unless told otherwise."""
    with jax.enable_x64(True):
        yield


def orders(f, x, n):
    found = []
    for _ in range(n):
        f = jax.grad(f)
        found.append(float(f(x)))
    return found


def test_any_order():
    """yes"""
    assert orders(lambda x: jnp.exp(3 * x), 0.5, 5)[-1] == pytest.approx(FIFTH, rel=1e-14)


def test_linear():
    """0"""
    assert orders(lambda x: 2 * x, 1.0, 2) == [2.0, 0.0]


def test_confusion():
    """right"""
    grad = jax.grad
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0) == 1.0
    assert float(grad(lambda x: x * grad(lambda y: y * jnp.sin(x * y))(x * x))(1.2)) == pytest.approx(NESTED, rel=1e-14)


def test_lost():
    """right: each `grad` keeps a graph"""
    u = lambda x: x**3
    assert float(jax.grad(lambda x: u(x) + jax.grad(u)(x) ** 2)(1.5)) == 3 * 1.5**2 + 36 * 1.5**3


def test_branch():
    """NaN"""
    assert np.isnan(orders(lambda x: jnp.where(x < 1, x * x, jnp.sqrt(x)), 0.0, 2)).all()


def test_powers():
    """1, NaN, NaN, NaN, NaN"""
    found = orders(lambda x: (x ** jnp.array([1.0, 2.0, 3.0, 4.0])).sum(), 0.0, 5)
    assert found[0] == 1.0 and np.isnan(found[1:]).all()


def test_tails():
    """0 at -40"""
    assert orders(jax.nn.log_sigmoid, 40.0, 2)[1] == pytest.approx(TAIL, rel=1e-10, abs=0.0)
    assert orders(jax.nn.log_sigmoid, -40.0, 2)[1] == 0.0


def test_product():
    """right"""
    assert jax.hessian(jnp.prod)(jnp.array([2.0, 3.0, 0.0, 0.0])).tolist() == TWO_ZEROS


def test_sinc():
    """right"""
    assert orders(jnp.sinc, 0.0, 2)[1] == pytest.approx(SINC, rel=1e-15)


def test_det():
    """right at both"""
    for a, want in zip((np.eye(3), np.ones((3, 3))), DET, strict=True):
        assert np.allclose(jax.hessian(jnp.linalg.det)(a), want, rtol=1e-14)


def test_solved():
    """right"""
    x = lambda t: jnp.linalg.solve(MATRIX + t * np.eye(2), RIGHT_SIDE)
    found = jax.jvp(lambda t: jax.jvp(x, (t,), (1.0,))[1], (0.0,), (1.0,))[1]
    assert np.allclose(found, SOLVED, rtol=1e-14)


def test_coupled():
    """not checked"""
    assert jax.grad(lambda x: jnp.cumsum(x).sum())(jnp.array([1.0, 2.0, 3.0])).tolist() == [3.0, 2.0, 1.0]


def test_shared():
    """`jnp.array` copies; passed as it is: wrong, silently"""
    for into, found in ((jnp.array, [2.0, 4.0]), (lambda data: data, [200.0, 4.0])):
        data = np.array([1.0, 2.0])
        _, pullback = jax.vjp(lambda x: (x * x).sum(), into(data))
        data[0] = 100.0
        assert pullback(1.0)[0].tolist() == found


def test_twice():
    """yes"""
    _, pullback = jax.vjp(lambda x: x**2, 1.5)
    assert float(pullback(1.0)[0]) == float(pullback(1.0)[0]) == 3.0


def test_laplacian():
    """no: `jet`, along one direction"""
    from jax.experimental.jet import jet

    u = lambda p: p[0] ** 2 * p[1] ** 3
    along = [jet(u, (jnp.array([1.0, 2.0]),), ((e, jnp.zeros(2)),))[1][1] for e in jnp.eye(2)]
    assert [float(c) for c in along] == pytest.approx([2 * 2.0**3, 6 * 2.0], rel=1e-13)
    assert not [name for name in (*dir(jax), *dir(jax.experimental)) if "lapl" in name.lower()]


def test_sparse():
    """no"""
    from jax.experimental import sparse

    assert isinstance(jax.hessian(lambda x: (x**3).sum())(jnp.ones(2)), jax.Array) and not hasattr(sparse, "hessian")


def test_digits():
    """no"""
    with pytest.raises(TypeError, match="JAX"):
        jnp.array(np.array([1, 2], dtype=object))


def test_complex():
    """yes"""
    assert complex(jax.grad(lambda z: jnp.abs(z) ** 2)(1 + 2j)) == pytest.approx(2 - 4j)


def test_modes():
    """forward mode, `vmap`, `jit`"""
    assert jax.jvp(lambda x: x * x, (3.0,), (1.0,))[1] == 6.0
    assert jax.vmap(lambda x: x * x)(jnp.array([1.0, 2.0])).tolist() == [1.0, 4.0]
    assert jax.jit(lambda x: x * x)(3.0) == 9.0


# what docs/comparison.md says beside the table


def test_a_second_where_helps():
    f = lambda x: jnp.where(x < 1, x * x, jnp.sqrt(jnp.where(x < 1, 1.0, x)))
    assert orders(f, 0.0, 2) == [0.0, 2.0]


def test_a_batched_gradient_keeps_samples_apart():
    assert jax.vmap(jax.grad(lambda x: x**2))(jnp.array([1.0, 2.0])).tolist() == [2.0, 4.0]
