"""Whole matrices: ``jacobian`` and ``hessian``."""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad import func as transforms
from nestgrad.errors import ArgumentError
from nestgrad.functional.inputs import Inputs
from nestgrad.functional.outputs import Function, Scalar
from nestgrad.functional.strictness import all_depend, blocks_depend, gradient_depends, refuse_constant
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
    """The Jacobian of a function: the derivative of each entry of its outputs by each entry of its inputs.

    Args:
        func: Takes as many Tensors as there are inputs; returns a Tensor, or a tuple of them.
        inputs: A Tensor, NumPy array or torch tensor, or a tuple of them. Floating.
        create_graph: Keep the result on the levels of the inputs, and of what ``func`` closes over, so that it can be differentiated
            further. Otherwise it is a constant.
        strict: Raise where an output does not depend on an input, instead of giving zeros; with ``create_graph`` also where a block
            depends on nothing, so that its own derivative would be zero. Runs ``func`` once more to see.
        vectorize: One batched pass for all rows, or columns, instead of one pass for each: faster, and all of them are in memory at once.
            ``func`` then must not branch on values in ``"forward-mode"``.
        strategy: ``"reverse-mode"``: one run of ``func``, and one backward pass for each entry of the outputs. ``"forward-mode"``: one
            run for each entry of the inputs, and no graph. The answer is the same.

    Returns:
        What the inputs were, Tensors or arrays. For one input and one output, of shape ``output.shape + input.shape``. Where inputs or
        outputs are a tuple, a tuple of them: ``J[i][j]`` is the derivative of output ``i`` by input ``j``, in the dtype of the latter.

    Raises:
        FunctionalTypeError: If inputs or outputs are neither a Tensor nor a tuple of them.
        FunctionalError: If ``strict`` forbids what it finds, or ``func`` returns other shapes in another call.
        DTypeError: If an input or output is not floating.
        ArgumentError: If there is no such strategy.
        ConversionError: If the result is to be tracked, and an array cannot be.
        LevelError: If an output was taken out of the level of the derivative.

    >>> from nestgrad import tensor
    >>> def exp_reducer(x):
    ...     return x.exp().sum(dim=1)
    >>> inputs = tensor([[0.0, 1.0], [2.0, 0.5]])
    >>> jacobian(exp_reducer, inputs).round(4).tolist()
    [[[1.0, 2.7183], [0.0, 0.0]], [[0.0, 0.0], [7.3891, 1.6487]]]

    With ``create_graph`` it can be differentiated, by what the inputs are tracked on:

    >>> from nestgrad import Autodiff, NumpyBackend
    >>> x = Autodiff(NumpyBackend()).tensor([[0.0, 1.0]], requires_grad=True)
    >>> jacobian(exp_reducer, x, create_graph=True).sum().wrt(x).round(4).tolist()
    [[1.0, 2.7183]]
    """
    matrix = _strategy(strategy, vectorize)
    given = Inputs("jacobian", func, inputs, create_graph)
    f = Function("jacobian", func, strict)
    if strict:
        all_depend(given, f)
        if create_graph:
            for row in blocks_depend(given, f, len(f.shapes)):
                refuse_constant(row)
    rows = matrix(f, given.numbers)(*given.tensors)
    table = [_row(given, [block.astype(x.dtype) for block, x in zip(row, given.tensors, strict=True)]) for row in rows]
    return tuple(table) if f.several else table[0]


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar function: all its second derivatives.

    Args:
        func: Takes as many Tensors as there are inputs; returns a Tensor with one entry, of any shape.
        inputs: As for ``jacobian``.
        create_graph: As for ``jacobian``.
        strict: Raise where ``func`` is linear in an input, or a block would be zero because its gradient by the one input does not depend
            on the other. Records the gradient once more to see.
        vectorize: As for ``jacobian``.
        outer_jacobian_strategy: How the gradient, which reverse mode gives, is differentiated. ``"reverse-mode"``: one backward pass for
            each row. ``"forward-mode"``: one run of the gradient for each column. The answer is the same.

    Returns:
        What the inputs were, Tensors or arrays: of shape ``input.shape + input.shape``. For a tuple of inputs, a tuple of tuples:
        ``H[i][j]`` is the derivative by inputs ``i`` and ``j``, in the dtype and on the device of input ``i``.

    Raises:
        FunctionalError: If the output is a tuple, or has several entries; or as ``jacobian``.
        FunctionalTypeError, DTypeError, ArgumentError, ConversionError, LevelError: As ``jacobian``.

    >>> from nestgrad import tensor
    >>> def pow_reducer(x):
    ...     return x.pow(3).sum()
    >>> hessian(pow_reducer, tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    >>> def pow_adder_reducer(x, y):
    ...     return (2 * x.pow(2) + 3 * y.pow(2)).sum()
    >>> (xx, xy), (yx, yy) = hessian(pow_adder_reducer, (tensor([1.0, 2.0]), tensor([3.0, 4.0])))
    >>> xx.tolist(), xy.tolist(), yy.tolist()
    ([[4.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]], [[6.0, 0.0], [0.0, 6.0]])
    """
    matrix = _strategy(outer_jacobian_strategy, vectorize)
    given = Inputs("hessian", func, inputs, create_graph)
    f = Scalar("hessian", func, strict)
    if strict:
        gradient_depends(given, f.with_gradient(given.numbers), unused=False, every=True)
    rows = matrix(transforms.grad(f, given.numbers), given.numbers)(*given.tensors)
    return given.nested([_row(given, [block.astype(x.dtype) for block in row]) for row, x in zip(rows, given.tensors, strict=True)])


def _strategy(name: str, vectorize: bool) -> Callable[[Callable[..., Any], tuple[int, ...]], Callable[..., tuple[tuple[Tensor, ...], ...]]]:
    if not isinstance(name, str) or name not in _STRATEGIES:
        raise ArgumentError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode". Got {name!r}. The answer is the same by both. '
            'Try "forward-mode" where there are more outputs than inputs'
        )
    made = _STRATEGIES[name]
    return lambda f, numbers: made(f, numbers, chunk_size=None if vectorize else 1)


def _row(given: Inputs, blocks: Sequence[Tensor]) -> Any:
    """The blocks for each of the inputs, as what came in."""
    return given.nested([given.back(block) for block in blocks])
