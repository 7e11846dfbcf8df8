"""Free functions whose first operand is a number or an array, and a later one a Tensor of any backend and dtype."""

import numpy as np
import pytest

import nestgrad as ng

BACKENDS = {
    "numpy": ng.NumpyBackend(),
    "numpy32": ng.NumpyBackend("float32"),
    "torch": ng.TorchBackend(),
    "torch64": ng.TorchBackend(dtype="float64"),
}
TWO = (
    "add subtract multiply divide power maximum minimum equal not_equal less less_equal greater greater_equal logical_and logical_or"
).split()
CLAMPS = [(2.5, None, 2.0), (2.5, 3.0, None), (2.5, 0.0, 2.0), (-1.0, 0.0, 2.0), (float("nan"), 0.0, 2.0)]


@pytest.fixture(params=BACKENDS)
def base(request):
    return BACKENDS[request.param]


@pytest.mark.parametrize("first", [2.0, 2, np.array([2.0, 0.5], np.float32)], ids=["float", "int", "array"])
@pytest.mark.parametrize("name", TWO)
def test_the_first_operand_meets_the_second_on_its_backend(name, first, base):
    x = ng.Autodiff(base).tensor([1.0, 3.0], requires_grad=True)
    got = getattr(ng, name)(first, x)
    want = getattr(np, name)(first, x.numpy())
    assert got.backend == base
    assert np.allclose(got.numpy().astype(float), want.astype(float), rtol=1e-6)  # single precision on some
    if want.dtype != bool:
        assert got.dtype == x.dtype and got.level == 1


@pytest.mark.parametrize("x, low, high", CLAMPS)
def test_a_number_is_clamped_by_tensors(x, low, high, base):
    S = ng.Autodiff(base)
    bounds = [None if v is None else S.tensor([v, v], requires_grad=True) for v in (low, high)]
    got = ng.clamp(x, *bounds)
    assert got.backend == base and got.dtype == base.default_dtype
    assert np.array_equal(got.numpy(), np.clip([x, x], low, high), equal_nan=True)
    if high is not None:
        assert np.array_equal(ng.clamp(x, low, bounds[1]).numpy(), np.clip([x, x], low, high), equal_nan=True)


def test_an_array_is_clamped_by_tensors(base):
    S = ng.Autodiff(base)
    high = S.tensor([1.0, 2.0], requires_grad=True)
    got = ng.clamp(np.array([3.0, 3.0], np.float32), 0.0, high)
    assert got.backend == base and got.tolist() == [1.0, 2.0]
    assert got.wrt(high).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("integral", [ng.trapezoid, ng.cumulative_trapezoid])
def test_an_array_of_samples_meets_their_places_on_the_backend_of_these(integral, base):
    places = ng.Autodiff(base).tensor([0.0, 1.0, 3.0], requires_grad=True)
    got = integral(np.array([1.0, 2.0, 4.0]), places)
    assert got.backend == base and got.level == 1
    assert got.reshape(-1)[-1].item() == 1.5 + 6.0
