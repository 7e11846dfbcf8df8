"""All kinds of level on a CUDA device: what they compute stays there, and is what the CPU computes."""

import pytest

import nestgrad as ng
from nestgrad import func

POINTS = [[0.3, -0.5], [1.2, 0.7]]
WAYS = {
    "reverse over reverse": lambda f, x: func.grad(lambda x: (func.grad(f)(x) ** 2).sum())(x),
    "forward over reverse": lambda f, x: func.jvp(func.grad(f), (x,), (x,))[1],
    "Taylor": lambda f, x: func.taylor(f, x, x, 3)[3],
    "batched": lambda f, x: func.vmap(func.hessian(f))(x),
    "program": lambda f, x: func.grad(lambda x: func.call(func.trace(f)(x), x))(x),
    "region": lambda f, x: func.grad(ng.checkpoint(f))(x),
}


def f(x):
    return (ng.softmax(x * x, -1) * x.tanh()).sum() + (x.exp() * x.norm()).sum()


@pytest.mark.gpu
@pytest.mark.parametrize("way", WAYS)
def test_on_a_device_as_on_the_cpu(way):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    found = WAYS[way](f, ng.TorchBackend(device="cuda", dtype="float64").tensor(POINTS))
    right = WAYS[way](f, ng.NumpyBackend().tensor(POINTS))
    assert str(found.device).startswith("cuda")
    assert found.numpy() == pytest.approx(right.numpy(), rel=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_on_torch_as_on_numpy(way):
    pytest.importorskip("torch")
    found = WAYS[way](f, ng.TorchBackend(dtype="float64").tensor(POINTS))
    assert found.numpy() == pytest.approx(WAYS[way](f, ng.NumpyBackend().tensor(POINTS)).numpy(), rel=1e-9)
