"""What the comparison says of ``torch.autograd``: ``backward`` and ``grad`` with ``create_graph``."""

import gc
import inspect
import weakref

import numpy as np
import pytest
from rows import DET, FIFTH, TAIL, TWO_ZEROS

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

# torch's own forward mode uses what torch deprecates
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated:DeprecationWarning")


def variable(x):
    return torch.tensor(x, dtype=torch.float64, requires_grad=True)


def number(x):
    return torch.tensor(x, dtype=torch.float64)


def orders(f, x, n):
    x = variable(x)
    found, derivative = [], f(x)
    for _ in range(n):
        (derivative,) = torch.autograd.grad(derivative, x, create_graph=True)
        found.append(derivative.item())
    return found


def test_any_order():
    """yes"""
    assert orders(lambda x: (3 * x).exp(), 0.5, 5)[-1] == pytest.approx(FIFTH, rel=1e-14)


def test_linear():
    """error"""
    with pytest.raises(RuntimeError, match="does not require grad"):
        orders(lambda x: 2 * x, 1.0, 2)


def test_lost():
    """term missing, silently"""
    x = variable(1.5)
    u = x**3
    (u_x,) = torch.autograd.grad(u, x, retain_graph=True)  # without create_graph
    (gradient,) = torch.autograd.grad(u + u_x**2, x)
    assert gradient.item() == 3 * 1.5**2  # 36 x^3 is not there


def test_branch():
    """NaN"""
    assert np.isnan(orders(lambda x: torch.where(x < 1, x * x, torch.sqrt(x)), 0.0, 2)).all()


def test_powers():
    """1, 2, NaN, NaN, NaN"""
    found = orders(lambda x: (x ** torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)).sum(), 0.0, 5)
    assert found[:2] == [1.0, 2.0] and np.isnan(found[2:]).all()


def test_tails():
    """0 at 40"""
    assert orders(torch.nn.functional.logsigmoid, 40.0, 2)[1] == 0.0
    assert orders(torch.nn.functional.logsigmoid, -40.0, 2)[1] == pytest.approx(TAIL, rel=1e-10, abs=0.0)


def test_product():
    """right"""
    found = torch.autograd.functional.hessian(torch.prod, torch.tensor([2.0, 3.0, 0.0, 0.0], dtype=torch.float64))
    assert found.tolist() == TWO_ZEROS


def test_sinc():
    """NaN"""
    assert np.isnan(orders(torch.sinc, 0.0, 2)[1])


def test_det():
    """right at the first, NaN at the second"""
    found = [torch.autograd.functional.hessian(torch.det, a) for a in (number(np.eye(3)), number(np.ones((3, 3))))]
    assert np.allclose(found[0], DET[0], rtol=1e-14) and found[1].isnan().any()


def test_solved():
    """error"""
    with (
        torch.autograd.forward_ad.dual_level(),
        pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"),
        torch.autograd.forward_ad.dual_level(),
    ):
        pass


def test_coupled():
    """not checked"""
    x = variable([1.0, 2.0, 3.0])
    (gradient,) = torch.autograd.grad(x.cumsum(0).sum(), x)
    assert gradient.tolist() == [3.0, 2.0, 1.0]


def test_shared():
    """wrong, silently"""
    data = np.array([1.0, 2.0])
    x = torch.from_numpy(data).requires_grad_()
    y = (x * x).sum()
    data[0] = 100.0
    y.backward()
    assert x.grad.tolist() == [200.0, 4.0]  # right: 2, 4


def test_twice():
    """with `retain_graph`"""
    x = variable(1.5)
    y = x**2
    assert torch.autograd.grad(y, x, retain_graph=True)[0].item() == torch.autograd.grad(y, x)[0].item() == 3.0
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y, x)


def test_cycle():
    """not after `backward(create_graph=True)`"""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else only the first in a process
    try:
        x = variable(1.5)
        with pytest.warns(UserWarning, match="reference cycle"):
            (x**2).backward(create_graph=True)
    finally:
        torch.set_warn_always(always)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is not None
    alive().grad = None  # torch's own advice
    gc.collect()
    assert alive() is None


def test_columns():
    """error"""
    for options in ({"vectorize": True, "create_graph": True}, {"vectorize": False}):
        with pytest.raises(NotImplementedError):
            torch.autograd.functional.jacobian(lambda x: x**3, number([1.0, 2.0]), strategy="forward-mode", **options)


def test_strict():
    """error"""
    with pytest.raises(RuntimeError, match="not supported together"):
        torch.autograd.functional.jacobian(lambda x: x**3, number([1.0, 2.0]), strict=True, vectorize=True)


def test_laplacian():
    """no"""
    assert not [name for name in dir(torch.autograd.functional) if "lapl" in name.lower()]


def test_sparse():
    """no"""
    found = torch.autograd.functional.hessian(lambda x: (x**3).sum(), number([1.0, 2.0]))
    assert found.layout == torch.strided and "layout" not in inspect.signature(torch.autograd.functional.hessian).parameters


def test_digits():
    """no"""
    with pytest.raises(TypeError, match="object"):
        torch.tensor(np.array([1, 2], dtype=object))


def test_complex():
    """yes"""
    z = torch.tensor(1 + 2j, dtype=torch.complex128, requires_grad=True)
    (z.abs() ** 2).backward()
    assert z.grad.item() == pytest.approx(2 + 4j)


def test_modes():
    """forward mode"""
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        assert torch.autograd.forward_ad.unpack_dual(x * x).tangent.item() == 6.0


# what docs/comparison.md says beside the table


def test_its_own_writes_are_noticed():
    x = variable([1.0, 2.0])
    square = x * x
    y = (square * square).sum()
    square.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_second_where_helps():
    f = lambda x: torch.where(x < 1, x * x, torch.sqrt(torch.where(x < 1, torch.ones_like(x), x)))
    assert orders(f, 0.0, 2) == [0.0, 2.0]


def test_grad_makes_no_cycle():
    x = variable(1.5)
    (slope,) = torch.autograd.grad(x**2, x, create_graph=True)
    alive = weakref.ref(x)
    gc.disable()
    try:
        del x, slope
        assert alive() is None
    finally:
        gc.enable()
