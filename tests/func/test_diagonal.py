"""The diagonal of a Hessian: the values of the whole Hessian, in few passes, on any levels."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import nestgrad as ng
from nestgrad.errors import DTypeError, PatternError, ShapeError
from nestgrad.func import call, grad, hessian, hessian_diag, jacfwd, jvp, trace, vmap


def chain(x):
    return (x**4).sum() + (x[:-1] * x[1:]).sin().sum()


def field(x):
    return x[0].sin() * (x[1] * x[2]).exp() + x[0] ** 3 * x[2]


FUNCTIONS = {
    "separable": lambda x: (x**4).sum(),
    "chain": chain,
    "dense": lambda x: (x.softmax(0) ** 2).sum(),
    "rows": lambda x: (x.reshape(-1, 4).softmax(1) * x.reshape(-1, 4)).sum(),
    "arrow": lambda x: x[0] * x[1:].sin().sum() + (x**3).sum(),
    "linear": lambda x: x.sum(),
    "constant": lambda x: ng.tensor(2.0) * 3.0,
    "branch": lambda x: chain(x) if x[0] < 0 else x.sum(),
}


class Directions(ng.NumpyBackend):
    """Counts the directions in products of arrays of two axes."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def mul(self, x, y):
        out = super().mul(x, y)
        if getattr(out, "ndim", 0) == 2:
            self.seen.add(out.shape[0])
        return out


def test_13_the_second_derivatives_of_a_field(base):
    found = hessian_diag(field)(base.tensor([0.3, -0.4, 1.2])).numpy()
    assert np.allclose(found, [1.9771370041748446, 0.26332271398822377, 0.029258079332024865], rtol=1e-14)


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("n", [4, 300])
@pytest.mark.parametrize("chunk_size", [None, 1, 37])
def test_it_is_the_diagonal_of_the_hessian(f, n, chunk_size):
    x = np.linspace(-1.0, 1.2, n)
    right = np.diag(hessian(f)(x).numpy())
    assert np.allclose(hessian_diag(f, chunk_size=chunk_size)(x).numpy(), right, rtol=1e-12, atol=1e-14)


def test_a_trace_finds_few_directions():
    for f, count in ((chain, 2), (lambda x: x[0] * x[1:].sin().sum() + (x**3).sum(), 2)):
        base = Directions()
        hessian_diag(f, chunk_size=1000)(base.tensor(np.linspace(-1.0, 1.0, 500)))
        assert base.seen == {count}
    base = Directions()
    hessian_diag(lambda x: (x * x.sin()).sum())(base.tensor(np.linspace(-1.0, 1.0, 500)))
    assert not base.seen  # a single direction, without an axis of its own


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(256, 300))
def test_random_couplings_are_told_apart(seed, n):
    drawing = np.random.default_rng(seed)
    i, j = drawing.integers(0, n, (2, n))
    x = drawing.normal(size=n)
    f = lambda x: (x[i] * x[j]).sin().sum() + (x**3).sum()
    assert np.allclose(hessian_diag(f)(x).numpy(), np.diag(hessian(f)(x).numpy()), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [2, 150])
def test_structures_come_back_as_they_were_given(n):
    p = {"a": np.linspace(1.0, 2.0, n), "b": (2.0, np.ones((2, n)))}
    f = lambda p, k: (k * (p["a"] ** 3).sum() * p["b"][0] ** 2 + (p["b"][1] ** 4).sum(), {"k": k})
    found, aux = hessian_diag(f, has_aux=True)(p, 3.0)
    assert np.allclose(found["a"].numpy(), 3.0 * 6.0 * p["a"] * 4.0)
    assert np.isclose(found["b"][0].item(), 3.0 * (p["a"] ** 3).sum() * 2.0)
    assert np.allclose(found["b"][1].numpy(), 12.0) and found["b"][1].shape == (2, n) and aux == {"k": 3.0}
    by_x, by_y = hessian_diag(lambda x, y: (x**2 * y**3).sum(), argnums=(0, -1))(p["a"], 2.0 * p["a"])
    assert np.allclose(by_x.numpy(), 2.0 * (2.0 * p["a"]) ** 3) and np.allclose(by_y.numpy(), p["a"] ** 2 * 12.0 * p["a"])


@pytest.mark.parametrize("n", [3, 300])
def test_it_is_differentiable_on_any_levels(n):
    f = lambda x: (x**4).sum() + (x[1:] * x[:-1]).sum() ** 2
    x, t = np.linspace(0.5, 1.0, n), np.linspace(1.0, -1.0, n)
    right = lambda x: ng.diagonal(hessian(f)(x))
    total = lambda d: lambda x: (d(x) * t).sum()
    assert np.allclose(grad(total(hessian_diag(f)))(x).numpy(), grad(total(right))(x).numpy(), rtol=1e-11)
    assert np.allclose(jvp(hessian_diag(f), (x,), (t,))[1].numpy(), jvp(right, (x,), (t,))[1].numpy(), rtol=1e-11)
    many = np.stack([x, 2.0 * x])
    assert np.allclose(vmap(hessian_diag(f))(many).numpy(), vmap(right)(many).numpy(), rtol=1e-11)
    assert np.allclose(call(trace(hessian_diag(f))(x), 2.0 * x).numpy(), right(ng.tensor(2.0 * x)).numpy(), rtol=1e-11)


@pytest.mark.parametrize("n", [3, 300])
def test_captured_parameters_may_be_tracked_and_zero_for_now(n):
    level = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))
    w, mask = level.tensor(2.0, requires_grad=True), level.tensor(np.zeros(n - 1), requires_grad=True)
    x = level.tensor(np.linspace(0.5, 1.0, n), requires_grad=True)
    found = hessian_diag(lambda x: (w**2 * x**4).sum() + (mask * (x[1:] * x[:-1]) ** 2).sum())(x)
    assert np.allclose(found.sum().wrt(w).numpy(), (12.0 * x**2).sum().item() * 4.0)
    assert np.allclose(found.sum().wrt(x).numpy(), 24.0 * 4.0 * x.numpy())
    assert np.allclose(found.sum().wrt(mask).numpy(), (2.0 * x[:-1] ** 2 + 2.0 * x[1:] ** 2).numpy())


def test_a_function_of_the_diagonal_is_a_function_like_any_other():
    f = lambda x: (x**5).sum()
    x = np.linspace(0.5, 1.0, 4)
    assert np.allclose(hessian_diag(lambda x: hessian_diag(f)(x).sum())(x).numpy(), 5 * 4 * 3 * 2 * x)
    assert np.allclose(jacfwd(hessian_diag(f))(x).numpy(), np.diag(60.0 * x**2))


def test_a_given_pattern_is_checked():
    x = np.linspace(-1.0, 1.0, 20)
    band = np.abs(np.subtract.outer(np.arange(20), np.arange(20))) <= 1
    right = np.diag(hessian(chain)(x).numpy())
    branching = lambda x: chain(x) if x[0] < 0 else x.sum()
    for f, pattern in ((chain, band), (chain, np.triu(band)), (branching, band)):
        assert np.allclose(hessian_diag(f, pattern=pattern)(x).numpy(), right, rtol=1e-13)
    with pytest.raises(PatternError, match=r"hessian_diag: got a pattern that lacks entries: of the diagonal, .* Try pattern=None"):
        hessian_diag(chain, pattern=np.eye(20))(x)
    with pytest.raises(ShapeError, match=r"got a pattern of shape \(20, 20\) for 19 entries"):
        hessian_diag(chain, pattern=band)(x[1:])
    with pytest.raises(ShapeError, match=r"got a pattern of shape \(20, 2\); expected \(n, n\)"):
        hessian_diag(chain, pattern=band[:, :2])


def test_errors_and_zero_sizes():
    with pytest.raises(ShapeError, match=r"returned shape \(6,\); expected a 0-dimensional tensor"):
        hessian_diag(lambda x: x**2)(np.ones(6))
    with pytest.raises(ShapeError, match=r"returned shape \(300,\); expected a 0-dimensional tensor"):
        hessian_diag(lambda x: x**2)(np.ones(300))
    with pytest.raises(DTypeError, match="hessian_diag: got an argument of dtype int64"):
        hessian_diag(chain)(np.arange(3))
    with pytest.raises(ShapeError, match="hessian_diag: got chunk_size 0"):
        hessian_diag(chain, chunk_size=0)
    assert hessian_diag(lambda x: (x**2).sum())(np.zeros((0, 3))).shape == (0, 3)
    assert hessian_diag(chain)(np.ones(3, "float32")).dtype == np.float32


@pytest.mark.parametrize(
    ("f", "n", "most"),
    [(chain, 2000, 8e6), (FUNCTIONS["dense"], 2000, 16e6), (lambda x: (x**4).sum() + x.sin().sum(), 100_000, 100e6)],
    ids=["chain", "dense", "separable"],
)
def test_no_array_has_as_many_entries_as_the_hessian(peak, f, n, most):
    """Of 32 MB for 2,000 entries, and of 80 GB for 100,000."""
    found, taken = peak(lambda: hessian_diag(f)(np.linspace(-1.0, 1.0, n)))
    assert found.shape == (n,) and taken < most
