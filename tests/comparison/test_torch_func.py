"""What the comparison says of ``torch.func``."""

import warnings

import numpy as np
import pytest
from rows import FIFTH, MATRIX, NESTED, RIGHT_SIDE, SOLVED, TAIL, TWO_ZEROS

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

# torch's own forward mode uses what torch deprecates
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated:DeprecationWarning")


def number(x):
    return torch.tensor(x, dtype=torch.float64)


def orders(f, x, n):
    found = []
    for _ in range(n):
        f = torch.func.grad(f)
        found.append(f(number(x)).item())
    return found


def test_any_order():
    """yes"""
    assert orders(lambda x: (3 * x).exp(), 0.5, 5)[-1] == pytest.approx(FIFTH, rel=1e-14)


def test_linear():
    """0"""
    assert orders(lambda x: 2 * x, 1.0, 2) == [2.0, 0.0]


def test_confusion():
    """right"""
    grad = torch.func.grad
    assert grad(lambda x: x * grad(lambda y: x + y)(number(1.0)))(number(1.0)).item() == 1.0
    assert grad(lambda x: x * grad(lambda y: y * (x * y).sin())(x * x))(number(1.2)).item() == pytest.approx(NESTED, rel=1e-14)


def test_lost():
    """right: each `grad` keeps a graph"""
    u = lambda x: x**3
    loss = lambda x: u(x) + torch.func.grad(u)(x) ** 2
    assert torch.func.grad(loss)(number(1.5)).item() == 3 * 1.5**2 + 36 * 1.5**3


def test_branch():
    """NaN"""
    assert np.isnan(orders(lambda x: torch.where(x < 1, x * x, torch.sqrt(x)), 0.0, 2)).all()


def test_powers():
    """1, 2, NaN, NaN, NaN"""
    found = orders(lambda x: (x ** number([1.0, 2.0, 3.0, 4.0])).sum(), 0.0, 5)
    assert found[:2] == [1.0, 2.0] and np.isnan(found[2:]).all()


def test_tails():
    """0 at 40"""
    assert orders(torch.nn.functional.logsigmoid, 40.0, 2)[1] == 0.0
    assert orders(torch.nn.functional.logsigmoid, -40.0, 2)[1] == pytest.approx(TAIL, rel=1e-10, abs=0.0)


def test_product():
    """right"""
    assert torch.func.hessian(torch.prod)(number([2.0, 3.0, 0.0, 0.0])).tolist() == TWO_ZEROS


def test_sinc():
    """0 by `hessian`, NaN by `grad`"""
    assert torch.func.hessian(torch.sinc)(number(0.0)).item() == 0.0
    assert np.isnan(orders(torch.sinc, 0.0, 2)[1])


def test_det():
    """NaN at both"""
    for a in (np.eye(3), np.ones((3, 3))):
        assert torch.func.hessian(torch.det)(number(a)).isnan().any()


def test_solved():
    """wrong, silently"""
    jvp = torch.func.jvp
    x = lambda t: torch.linalg.solve(number(MATRIX) + t * number(np.eye(2)), number(RIGHT_SIDE))
    found = jvp(lambda t: jvp(x, (t,), (number(1.0),))[1], (number(0.0),), (number(1.0),))[1].numpy()
    assert np.isfinite(found).all() and (np.abs(found - SOLVED) > 0.1 * np.abs(SOLVED)).all()


def test_coupled():
    """not checked"""
    assert torch.func.grad(lambda x: x.cumsum(0).sum())(number([1.0, 2.0, 3.0])).tolist() == [3.0, 2.0, 1.0]


def test_shared():
    """wrong, silently"""
    data = np.array([1.0, 2.0])
    _, pullback = torch.func.vjp(lambda x: (x * x).sum(), torch.from_numpy(data))
    data[0] = 100.0
    assert pullback(number(1.0))[0].tolist() == [200.0, 4.0]  # right: 2, 4


def test_twice():
    """yes"""
    _, pullback = torch.func.vjp(lambda x: x**2, number(1.5))
    assert pullback(number(1.0))[0].item() == pullback(number(1.0))[0].item() == 3.0


def test_laplacian():
    """no"""
    assert not [name for name in dir(torch.func) if "lapl" in name.lower()]


def test_sparse():
    """no"""
    assert torch.func.hessian(lambda x: (x**3).sum())(number([1.0, 2.0])).layout == torch.strided


def test_digits():
    """no"""
    with pytest.raises(TypeError, match="object"):
        torch.func.grad(lambda x: x * x)(torch.tensor(np.array(1, dtype=object)))


def test_complex():
    """yes"""
    z = torch.tensor(1 + 2j, dtype=torch.complex128)
    assert torch.func.grad(lambda z: z.abs() ** 2)(z).item() == pytest.approx(2 + 4j)


def test_modes():
    """forward mode, `vmap`, `torch.compile`"""
    assert torch.func.jvp(lambda x: x * x, (number(3.0),), (number(1.0),))[1].item() == 6.0
    assert torch.func.vmap(lambda x: x * x)(number([1.0, 2.0])).tolist() == [1.0, 4.0]


@pytest.mark.slow  # torch.compile takes seconds to load
def test_modes_compile():
    """The last word of the cell of ``test_modes``; without code generation, which needs a C++ compiler."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        assert torch.compile(torch.func.grad(lambda x: x**3), backend="eager")(number(2.0)).item() == 12.0


# what docs/comparison.md says beside the table


def test_a_batched_gradient_keeps_samples_apart():
    f = lambda x: x**2
    assert torch.func.vmap(torch.func.grad(f))(number([1.0, 2.0])).tolist() == [2.0, 4.0]
