"""Dense patterns of functions, and the derivatives that they must cover."""

from typing import Any

import numpy as np

from nestgrad.dependence import jacobian_pattern
from nestgrad.func import jacrev, trace


def pattern_of(f: Any, x: Any) -> Any:
    """The pattern of ``f`` at ``x``, as a dense matrix."""
    program = trace(f)(x)
    (found,) = jacobian_pattern(program, [0])
    m = int(np.prod(program.outputs[0].shape))
    return np.zeros((m, int(np.prod(program.inputs[0].shape))), bool) if found is None else found.matrix().toarray()


def nonzeros(f: Any, x: Any) -> Any:
    """Where the Jacobian is not zero."""
    out = jacrev(f)(x).numpy()
    return (out != 0).reshape(-1, int(np.prod(x.shape)))


def chain(x: Any) -> Any:
    """Neighbours coupled: a tridiagonal Hessian."""
    return (x**4).sum() + (x[:-1] * x[1:]).sin().sum()


def arrow(x: Any) -> Any:
    """One entry coupled with all others: a full first row and column beside the diagonal."""
    return x[0] * x[1:].sin().sum() + (x**3).sum()
