"""What the tests of Tensor share: base backends, stacks over them, and derivatives by central differences of NumPy functions."""

import numpy as np
import pytest

import nestgrad as ng

BACKENDS = {"numpy": {}, "torch": {"dtype": "float64"}}


@pytest.fixture(params=BACKENDS)
def base(request):
    """A base backend in float64."""
    if request.param == "torch":
        pytest.importorskip("torch")
    return ng.get_backend(request.param, **BACKENDS[request.param])


@pytest.fixture(params=["numpy", "torch"])
def single(request):
    """A base backend whose default is float32."""
    if request.param == "torch":
        pytest.importorskip("torch")
    return ng.get_backend(request.param, dtype="float32")


@pytest.fixture
def stack(base):
    """Two levels, for second derivatives."""
    return ng.Autodiff(ng.Autodiff(base))


@pytest.fixture
def native(base):
    """Turns a NumPy array into an array of the library of ``base``."""
    return base.asarray


def _slopes(f, points, k, h=1e-6):
    """Derivative of ``sum(w * f(*points))`` by entry of ``points[k]``, with fixed weights ``w``, by central differences."""
    weights = None
    slope = np.zeros(np.shape(points[k]))
    for place in np.ndindex(slope.shape):
        ends = []
        for step in (h, -h):
            moved = [np.array(p, float) for p in points]
            moved[k][place] += step
            ends.append(np.asarray(f(*moved)))
        if weights is None:
            weights = np.cos(np.arange(ends[0].size)).reshape(ends[0].shape)
        slope[place] = (weights * (ends[0] - ends[1])).sum() / (2 * h)
    return slope


@pytest.fixture
def check_derivatives(stack):
    """``check(f, oracle, *points)``: value of ``f`` of Tensors against ``oracle`` of arrays, first derivatives against its differences."""

    def check(f, oracle, *points):
        points = [np.asarray(p, float) for p in points]
        tensors = [stack.tensor(p, requires_grad=True) for p in points]
        y = f(*tensors)
        want = np.asarray(oracle(*points))
        assert y.shape == want.shape
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-13, atol=1e-13)  # the same formula in another order
        grads = y.backward(stack.tensor(np.cos(np.arange(want.size)).reshape(want.shape)))
        for k, x in enumerate(tensors):
            got = grads.wrt(x)
            assert got.shape == x.shape and got.dtype == x.dtype
            # error of central differences: h^2 |f'''| + eps |f| / h, about 1e-9 for entries of order 1
            np.testing.assert_allclose(got.numpy(), _slopes(oracle, points, k), rtol=1e-6, atol=1e-7)

    return check
