"""What the tests of tracing share: backends, and functions with arguments."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import nestgrad as ng
from nestgrad import func


def _fifty_digits() -> Any:
    path = Path(__file__).parents[1] / "backends" / "mpmath_backend.py"
    spec = importlib.util.spec_from_file_location("nestgrad_tests_traced_mpmath_backend", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MpmathBackend()


DOUBLE = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}
BACKENDS = {**DOUBLE, "fifty digits": _fifty_digits()}

X = [0.3, -0.7, 1.1]
Y = [0.9, 0.4, -0.2]
U, V = [0.2, -1.0, 0.5], [-0.3, 0.4, 0.9]
W = [[0.5, -0.2, 0.3], [0.1, 0.8, -0.6], [-0.4, 0.2, 0.7]]


def net(x: Any, y: Any) -> Any:
    """Layers, a softmax and a choice."""
    h = (ng.tensor(W, backend=x.backend) @ x).tanh() + y
    return ng.where(h > 0, h.exp(), h * h).sum() * ng.softmax(y * h).max()


def field(x: Any, y: Any) -> Any:
    """First and second derivatives inside, by a stack that is made inside."""
    S = ng.Autodiff(ng.Autodiff(x.backend))
    t = S.tensor(x, requires_grad=True)
    u = (t * y).sin() * t
    u_t = u.wrt(t)
    return (u_t.wrt(t) + u * u_t).sum()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "product": lambda x, y: (x * y).sum(),
    "powers": lambda x, y: ((x**2 + 1.0) ** y / (2.0 + y**3)).sum(),
    "net": net,
    "shapes": lambda x, y: (ng.concat([x[1:], y[::-1]]).reshape(5, 1) * ng.stack([x, y])[0, :2]).sum(),
    "extremes": lambda x, y: (x.max() * y.min()) * ng.maximum(x, y).prod() + x.var() + y.norm(),
    "gradient": lambda x, y: (func.grad(lambda z: (z.sin() * y).sum())(x) * x).sum(),
    "hessian": lambda x, y: func.grad(lambda z: (func.grad(lambda s: (s.exp() * y * s).sum())(z) ** 2).sum())(x).sum(),
    "field": field,
    "ignores one": lambda x, y: (x.cos() * x).sum(),
    "linear": lambda x, y: (3.0 * x - y).sum(),
}
"""From two vectors of three to a number."""


def close(got: Any, want: Any, rtol: float = 1e-11) -> None:
    """Two Tensors are equal to rounding: a derivative may add in another order."""
    assert tuple(got.shape) == tuple(want.shape) and got.dtype == want.dtype
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=rtol, atol=1e-12)


def called(f: Callable[..., Any], backend: Any) -> Callable[..., Any]:
    """``f`` by way of a program, recorded at another point."""
    program = ng.func.trace(f)(backend.tensor(Y), backend.tensor(X))
    return lambda *xs: ng.func.call(program, *xs)


def stack(backend: Any, n: int) -> Any:
    """``n`` levels of reverse mode."""
    for _ in range(n):
        backend = ng.Autodiff(backend)
    return backend
