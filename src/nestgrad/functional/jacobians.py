"""Whole matrices: ``jacobian`` and ``hessian``."""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad import func as transforms
from nestgrad.errors import ArgumentError
from nestgrad.functional.inputs import Inputs
from nestgrad.functional.outputs import Function, Scalar
from nestgrad.functional.strictness import all_depend, computed, gradient_depends
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
    f = Function("jacobian", func, strict)
    if strict:
        all_depend(given, f)

    def blocks(*xs: Tensor) -> list[Tensor]:
        return [block.astype(x.dtype) for row in matrix(f, given.numbers)(*xs) for block, x in zip(row, given.tensors, strict=True)]

    table = _rows(given, computed(given, blocks, strict, lambda k: k % len(given.tensors)))
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
    f = Scalar("hessian", func, strict)
    if strict:
        gradient_depends(given, f.with_gradient(given.numbers), unused=False, every=True)

    def blocks(*xs: Tensor) -> list[Tensor]:
        rows = matrix(transforms.grad(f, given.numbers), given.numbers)(*xs)
        return [block.astype(x.dtype) for row, x in zip(rows, given.tensors, strict=True) for block in row]

    return given.nested(_rows(given, blocks(*given.tensors)))


def _strategy(name: str, vectorize: bool) -> Callable[[Callable[..., Any], tuple[int, ...]], Callable[..., tuple[tuple[Tensor, ...], ...]]]:
    if not isinstance(name, str) or name not in _STRATEGIES:
        raise ArgumentError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode". Got {name!r}. The answer is the same by both. '
            'Try "forward-mode" where there are more outputs than inputs'
        )
    made = _STRATEGIES[name]
    return lambda f, numbers: made(f, numbers, chunk_size=None if vectorize else 1)


def _rows(given: Inputs, blocks: Sequence[Tensor]) -> list[Any]:
    """The blocks, row by row, as what came in; each row as the inputs came."""
    n = len(given.tensors)
    found = [given.back(block) for block in blocks]
    return [given.nested(found[k : k + n]) for k in range(0, len(found), n)]
