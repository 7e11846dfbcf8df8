"""Fields as SymPy expressions, from which both our functions and the right values are made; points; and all operators."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy

import nestgrad as ng
from nestgrad import pde

X = sympy.symbols("x0:4", real=True)
x, y, z, w = X

SCALARS: dict[int, Any] = {
    1: sympy.sin(2 * x) * sympy.exp(-(x**2) / 2) + x**5,
    2: sympy.exp(-(x**2) - y**2) * sympy.sin(x + 2 * y) + x**3 * y**2,
    3: sympy.tanh(x + y * z) + x**2 * y * z**3,
    4: sympy.cos(x * y + z * w) + x**4 * w**2 * y,
}
VECTORS: dict[int, list[Any]] = {
    1: [sympy.exp(sympy.sin(x))],
    2: [sympy.sin(x * y), x**3 - sympy.exp(y)],
    3: [sympy.sin(x * y) * z, x**3 - sympy.exp(y * z), sympy.cos(x + z) * y**2],
    4: [sympy.sin(x * w), x * y * z * w, sympy.exp(-z * z), w**3 - x],
}

FIRST = ["auto", "reverse", "forward"]
SECOND = ["auto", "reverse", "forward", "taylor"]

OPERATORS: dict[str, Callable[..., Any]] = {
    "gradient": pde.gradient,
    "jacobian": pde.jacobian,
    "divergence": pde.divergence,
    "curl": pde.curl,
    "laplacian": pde.laplacian,
    "hessian_diag": pde.hessian_diag,
    "value_gradient_laplacian": pde.value_gradient_laplacian,
    "biharmonic": pde.biharmonic,
    "directional": lambda f, **options: pde.directional(f, [1.0, 2.0], 3, **options),
}
"""For points of two coordinates."""

_OURS = {name: getattr(ng, name) for name in ("sin", "cos", "exp", "tanh", "log", "sqrt")}


def points(d: int, n: int = 3) -> np.ndarray:
    """Random points, the same at each call."""
    return np.random.default_rng(d).uniform(-1.2, 1.2, size=(n, d))


def ours(expressions: Any, d: int) -> Callable[[Any], Any]:
    """A function of one point, with the shape of nested lists of expressions."""
    if isinstance(expressions, list):
        parts = [ours(e, d) for e in expressions]
        return lambda p: ng.stack([part(p) for part in parts])
    compiled = sympy.lambdify(X[:d], expressions, [_OURS])
    return lambda p: compiled(*[p[i] for i in range(d)]) + 0.0 * p[0]


def values(expressions: Any, at: np.ndarray) -> np.ndarray:
    """The values at each point, to 30 digits before they are rounded."""
    if isinstance(expressions, Sequence):
        return np.stack([values(e, at) for e in expressions], 1)
    return np.array([_value(sympy.sympify(expressions), tuple(map(float, p))) for p in at])


@functools.cache
def _value(expression: Any, point: tuple[float, ...]) -> float:
    with mpmath.workdps(30):
        return float(_precise(expression, len(point))(*map(mpmath.mpf, point)))


@functools.cache
def _precise(expression: Any, d: int) -> Callable[..., Any]:
    return sympy.lambdify(X[:d], expression, "mpmath")


def by(expression: Any, *coordinates: int) -> Any:
    """The derivative by these coordinates; of nested lists, that of each entry."""
    if isinstance(expression, list):
        return [by(e, *coordinates) for e in expression]
    return _diff(expression, coordinates)


@functools.cache
def _diff(expression: Any, coordinates: tuple[int, ...]) -> Any:
    return sympy.diff(expression, *[X[i] for i in coordinates])


def total(expressions: Sequence[Any]) -> Any:
    """The sum of expressions, or of nested lists of one shape."""
    if isinstance(expressions[0], list):
        return [total(e) for e in zip(*expressions, strict=True)]
    return sum(expressions)


def laplace(expression: Any, d: int) -> Any:
    """The Laplacian of an expression, or of each in nested lists."""
    return total([by(expression, i, i) for i in range(d)])


def close(found: Any, want: Any, rtol: float = 1e-11, atol: float = 1e-12) -> None:
    """The same shape and values; fourth derivatives of these fields are of the size 1 to 1000, and some hundred roundings go into them."""
    assert found.shape == want.shape
    np.testing.assert_allclose(found.numpy(), want, rtol=rtol, atol=atol)
