"""Derivatives of order 1 to n of a function of one scalar or of independent entries, in the two styles; with ``jit`` in either."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nestgrad import Autodiff, jit
from nestgrad.func import grad


def by_levels(base: Any, f: Callable[[Any], Any], x: Any, n: int) -> list[Any]:
    """``u.wrt(x)`` again and again, on n levels: the gradient of the sum of the entries."""
    stack = base
    for _ in range(n):
        stack = Autodiff(stack)
    x = stack.tensor(x, requires_grad=True)
    u, found = f(x), []
    for _ in range(n):
        u = u.wrt(x)
        found.append(u.numpy())
    return found


def by_transforms(base: Any, f: Callable[[Any], Any], x: Any, n: int) -> list[Any]:
    """``grad`` of ``grad`` of ..."""
    x, found, g = base.tensor(x), [], f
    for _ in range(n):
        g = _gradient_of_sum(g)
        found.append(g(x).numpy())
    return found


def _gradient_of_sum(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return grad(lambda x: f(x).sum())


def by_compiled_transforms(base: Any, f: Callable[[Any], Any], x: Any, n: int) -> list[Any]:
    """``jit`` of ``grad`` of ``jit`` of ``grad`` of ..."""
    x, found, g = base.tensor(x), [], f
    for _ in range(n):
        g = jit(_gradient_of_sum(g))
        g(x * 0.9)  # at another point first
        found.append(g(x).numpy())
    return found


STYLES = {
    "levels": by_levels,
    "transforms": by_transforms,
    "levels of a compiled function": lambda base, f, x, n: by_levels(base, jit(f), x, n),
    "compiled transforms": by_compiled_transforms,
}


def check(got: Any, want: Any, rtol: float = 1e-9, atol: float = 0.0) -> None:
    """Equal shapes, and equal numbers to the tolerance that the cases ask for."""
    got, want = (np.asarray(x.numpy() if hasattr(x, "numpy") else x) for x in (got, want))
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def hessian(f: Callable[[Any], Any], base: Any, x: Any) -> Any:
    """All second derivatives of a scalar function of one array, row by row, on two levels: shape ``x.shape + x.shape``."""
    x = Autodiff(Autodiff(base)).tensor(x, requires_grad=True)
    g = f(x).wrt(x)
    rows = [g.reshape(-1)[k].wrt(x).numpy() for k in range(x.size)]
    return np.stack(rows).reshape(x.shape + x.shape)


def hessian_by_transforms(f: Callable[[Any], Any], base: Any, x: Any) -> Any:
    """The same by ``grad`` of each entry of ``grad``."""
    x = base.tensor(x)
    rows = [grad(lambda v, k=k: grad(f)(v).reshape(-1)[k])(x).numpy() for k in range(x.size)]
    return np.stack(rows).reshape(x.shape + x.shape)


def compiled_hessian(f: Callable[[Any], Any], base: Any, x: Any) -> Any:
    """The same by ``grad`` of each entry of a compiled ``grad``."""
    g, x = jit(grad(f)), base.tensor(x)
    rows = [grad(lambda v, k=k: g(v).reshape(-1)[k])(x).numpy() for k in range(x.size)]
    return np.stack(rows).reshape(x.shape + x.shape)


HESSIANS = {
    "levels": hessian,
    "transforms": hessian_by_transforms,
    "levels of a compiled function": lambda f, base, x: hessian(jit(f), base, x),
    "a compiled gradient": compiled_hessian,
}
