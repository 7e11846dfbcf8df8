"""Products of derivatives with vectors: ``jvp``, ``vjp``, ``hvp``, ``vhp``."""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad import func as transforms
from nestgrad.errors import ArgumentError, FunctionalError
from nestgrad.func.run import outside
from nestgrad.functional.inputs import Inputs
from nestgrad.functional.outputs import Function, Scalar
from nestgrad.functional.strictness import blocks_depend, gradient_depends, refuse_constant, some_depend
from nestgrad.tensor import Tensor


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """A vector times the Jacobian of a function, and the value. One run of the function, and one backward pass.

    Args:
        func: Takes as many Tensors as there are inputs; returns a Tensor, or a tuple of them.
        inputs: A Tensor, NumPy array or torch tensor, or a tuple of them. Floating.
        v: The vector: of the shapes of the outputs. May be left out for a single output with one entry; it then is 1. It is cast to the
            outputs' dtype if that holds all of it.
        create_graph: Keep both results on the levels of the inputs, of ``v``, and of what ``func`` closes over, so that they can be
            differentiated further. Otherwise they are constants.
        strict: Raise where an output depends on no input, or no output on an input, instead of giving zeros; with ``create_graph`` also
            where the product depends on nothing. Runs ``func`` once more to see.

    Returns:
        ``(outputs, product)``, as what the inputs were, Tensors or arrays: the outputs as ``func`` returns them, and the product in the
        shapes and dtypes of the inputs, a tuple if they are.

    Raises:
        FunctionalError: If ``v`` is left out or has other shapes, or as ``jacobian``.
        FunctionalTypeError: If ``v`` is no Tensor, or of a dtype that cannot be cast without loss; or as ``jacobian``.
        DTypeError, ConversionError, LevelError: As ``jacobian``.

    >>> from nestgrad import tensor
    >>> def exp_reducer(x):
    ...     return x.exp().sum(dim=1)
    >>> outputs, product = vjp(exp_reducer, tensor([[0.0, 1.0], [2.0, 0.5]]), tensor([1.0, 10.0]))
    >>> outputs.round(4).tolist(), product.round(4).tolist()
    ([3.7183, 9.0378], [[1.0, 2.7183], [73.8906, 16.4872]])
    """
    given = Inputs("vjp", func, inputs, create_graph)
    f = Function("vjp", func, strict)
    if strict:
        some_depend(given, f)
    values, pullback = transforms.vjp(f, *given.tensors)
    if v is not None:
        seed = given.vector(v, values, bool(f.several))
    elif len(values) == 1 and values[0].size == 1:
        seed = given.ones(values[0])
    else:
        raise _needed("vjp", "user-provided function returns a single Tensor with a single element.")
    if strict and create_graph and not _tracked(seed):
        refuse_constant([any(column) for column in zip(*blocks_depend(given, f, len(values)), strict=True)])
    return _nested(given, f, values), given.nested([given.back(g) for g in pullback(seed)])


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False, mode: str = "forward"
) -> Any:
    """The Jacobian of a function times a vector, and the value.

    Args:
        func: As for ``vjp``.
        inputs: As for ``vjp``.
        v: The vector: of the shapes of the inputs. May be left out for a single input with one entry; it then is 1. It is cast to the
            inputs' dtypes if they hold all of it.
        create_graph: As for ``vjp``.
        strict: As for ``vjp``.
        mode: ``"forward"``: one run of ``func`` that carries the derivative along, without a graph. ``"reversed"``: the transpose of the
            backward pass, which is recorded; costs about twice as much. The answer is the same.

    Returns:
        ``(outputs, product)``, as what the inputs were, Tensors or arrays: both as ``func`` returns its outputs.

    Raises:
        ArgumentError: If there is no such mode.
        As ``vjp``.

    >>> from nestgrad import tensor
    >>> def exp_reducer(x):
    ...     return x.exp().sum(dim=1)
    >>> outputs, product = jvp(exp_reducer, tensor([[0.0, 1.0], [2.0, 0.5]]), tensor([[1.0, 1.0], [1.0, 0.0]]))
    >>> outputs.round(4).tolist(), product.round(4).tolist()
    ([3.7183, 9.0378], [3.7183, 7.3891])
    >>> def adder(x, y):
    ...     return 2 * x + 3 * y
    >>> outputs, product = jvp(adder, (tensor([1.0, 2.0]), tensor([3.0, 4.0])), (tensor([1.0, 0.0]), tensor([1.0, 1.0])))
    >>> outputs.tolist(), product.tolist()
    ([11.0, 16.0], [5.0, 3.0])
    """
    if mode not in ("forward", "reversed"):
        raise ArgumentError(f'Expected mode to be either "forward" or "reversed". Got {mode!r}. The answer is the same by both. '
                            'Try "forward", which costs less')  # fmt: skip
    given = Inputs("jvp", func, inputs, create_graph)
    along = _direction(given, v)
    f = Function("jvp", func, strict)
    if strict:
        some_depend(given, f)
        if create_graph and not _tracked(along):
            refuse_constant([any(row) for row in blocks_depend(given, f, len(f.shapes))])
    if mode == "forward":
        values, found = transforms.jvp(f, given.tensors, along)
    else:
        values, pushforward = transforms.linearize(f, *given.tensors)
        found = pushforward(*along)
    return _nested(given, f, values), _nested(given, f, found)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The Hessian of a scalar function times a vector, and the value: forward mode over reverse mode, about two gradients.

    Args:
        func: Takes as many Tensors as there are inputs; returns a Tensor with one entry, of any shape.
        inputs: As for ``vjp``.
        v: As for ``jvp``.
        create_graph: As for ``vjp``.
        strict: Raise where ``func`` does not depend on an input, or is linear in one, instead of giving zeros. Records the gradient once
            more to see.

    Returns:
        ``(output, product)``, as what the inputs were, Tensors or arrays: the output as ``func`` returns it, and the product in the shapes
        and dtypes of the inputs, a tuple if they are.

    Raises:
        FunctionalError: If the output is a tuple, or has several entries; or as ``vjp``.
        FunctionalTypeError, DTypeError, ConversionError, LevelError: As ``vjp``.

    >>> from nestgrad import tensor
    >>> def pow_reducer(x):
    ...     return x.pow(3).sum()
    >>> output, product = hvp(pow_reducer, tensor([1.0, 2.0]), tensor([1.0, 10.0]))
    >>> output.item(), product.tolist()
    (9.0, [6.0, 120.0])
    """

    def product(gradient: Callable[..., Any], xs: tuple[Tensor, ...], along: tuple[Tensor, ...]) -> list[Tensor]:
        _, found, value = transforms.jvp(gradient, xs, along, has_aux=True)
        return [outside(value), *found]

    return _second("hvp", func, inputs, v, create_graph, strict, product)


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """A vector times the Hessian of a scalar function, and the value: reverse mode over reverse mode.

    Arguments, results and errors are those of ``hvp``. The product is the same, since a Hessian is symmetric where second derivatives are
    continuous; ``hvp`` keeps less in memory.

    >>> from nestgrad import tensor
    >>> def pow_reducer(x):
    ...     return x.pow(3).sum()
    >>> output, product = vhp(pow_reducer, tensor([1.0, 2.0]), tensor([1.0, 10.0]))
    >>> output.item(), product.tolist()
    (9.0, [6.0, 120.0])
    """

    def product(gradient: Callable[..., Any], xs: tuple[Tensor, ...], along: tuple[Tensor, ...]) -> list[Tensor]:
        _, pullback, value = transforms.vjp(gradient, *xs, has_aux=True)
        return [outside(value), *pullback(along)]

    return _second("vhp", func, inputs, v, create_graph, strict, product)


def _second(
    name: str,
    func: Callable[..., Any],
    inputs: Any,
    v: Any,
    create_graph: bool,
    strict: bool,
    product: Callable[[Callable[..., Any], tuple[Tensor, ...], tuple[Tensor, ...]], list[Tensor]],
) -> tuple[Any, Any]:
    """``hvp`` and ``vhp``, which differ by how the gradient is differentiated: ``product`` of it, with the value beside it."""
    given = Inputs(name, func, inputs, create_graph)
    along = _direction(given, v)
    f = Scalar(name, func, strict)
    both = f.with_gradient(given.numbers)
    if strict:
        gradient_depends(given, both, unused=True, every=False)

    def gradient(*xs: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        value, *derivatives = both(*xs)
        return tuple(derivatives), value

    value, *found = product(gradient, given.tensors, along)
    return given.back(value.reshape(f.shapes[0])), given.nested([given.back(x) for x in found])


def _direction(given: Inputs, v: Any) -> tuple[Tensor, ...]:
    """``v`` for functions whose inputs it stands for."""
    if v is not None:
        return given.vector(v, given.tensors, given.several)
    if len(given.tensors) == 1 and given.tensors[0].size == 1:
        return given.ones(given.tensors[0])
    raise _needed(given.name, "input to the user-provided function is a single Tensor with a single element.")


def _needed(name: str, when: str) -> FunctionalError:
    return FunctionalError(f"The vector v can only be None if the {when} {name} would not know in which direction. Try v=...")


def _tracked(v: Sequence[Tensor]) -> bool:
    """Whether a product with ``v`` can be differentiated in any case: by what ``v`` depends on."""
    return any(x.level for x in v)


def _nested(given: Inputs, f: Function, results: Sequence[Tensor]) -> Any:
    """Results, one for each output, as the outputs came."""
    found = [given.back(x) for x in results]
    return tuple(found) if f.several else found[0]
