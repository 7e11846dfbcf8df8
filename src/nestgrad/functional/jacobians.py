"""Whole matrices: ``jacobian`` and ``hessian``."""

from collections.abc import Callable
from typing import Any

from nestgrad import func as transforms
from nestgrad.errors import ArgumentError
from nestgrad.functional.inputs import Inputs
from nestgrad.functional.outputs import Function, Scalar
from nestgrad.tensor import Tensor

_STRATEGIES = {"reverse-mode": transforms.jacrev, "forward-mode": transforms.jacfwd}


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of a function."""
    matrix = _strategy(strategy, vectorize)
    given = Inputs("jacobian", func, inputs, create_graph)
    f = Function("jacobian", func)
    numbers = tuple(range(len(given.tensors)))
    rows = matrix(f, numbers)(*given.tensors)
    table = [given.nested([given.back(block.astype(x.dtype)) for block, x in zip(row, given.tensors, strict=True)]) for row in rows]
    return tuple(table) if f.several else table[0]


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar function."""
    matrix = _strategy(outer_jacobian_strategy, vectorize)
    given = Inputs("hessian", func, inputs, create_graph)
    f = Scalar("hessian", func)
    numbers = tuple(range(len(given.tensors)))
    rows = matrix(transforms.grad(f, numbers), numbers)(*given.tensors)
    return given.nested(
        [given.nested([given.back(block.astype(x.dtype)) for block in row]) for row, x in zip(rows, given.tensors, strict=True)]
    )


def _strategy(name: str, vectorize: bool) -> Callable[[Callable[..., Any], tuple[int, ...]], Callable[..., tuple[tuple[Tensor, ...], ...]]]:
    if not isinstance(name, str) or name not in _STRATEGIES:
        raise ArgumentError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode". Got {name!r}. The answer is the same by both. '
            'Try "forward-mode" where there are more outputs than inputs'
        )
    made = _STRATEGIES[name]
    return lambda f, numbers: made(f, numbers, chunk_size=None if vectorize else 1)
