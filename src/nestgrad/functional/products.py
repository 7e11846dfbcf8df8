"""Products of derivatives with vectors: ``jvp``, ``vjp``, ``hvp``, ``vhp``."""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad import func as transforms
from nestgrad.errors import ArgumentError, FunctionalError
from nestgrad.func.run import outside
from nestgrad.functional.inputs import Inputs
from nestgrad.functional.outputs import Function, Scalar
from nestgrad.functional.strictness import computed, gradient_depends, some_depend
from nestgrad.tensor import Tensor


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """A vector times the Jacobian."""
    given = Inputs("vjp", func, inputs, create_graph)
    f = Function("vjp", func, strict)
    if strict:
        some_depend(given, f)

    def product(*xs: Tensor) -> list[Tensor]:
        values, pullback = transforms.vjp(f, *xs)
        if v is not None:
            seed = given.vector(v, values, bool(f.several))
        elif not f.several and values[0].size == 1:
            seed = given.ones(values[0])
        else:
            raise _needed("vjp", "user-provided function returns a single Tensor with a single element.")
        return [*values, *pullback(seed)]

    outputs, found = _apart(f, computed(given, product, strict, lambda k: k - len(f.shapes)))
    return _nested(given, f, outputs), given.nested([given.back(g) for g in found])


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False, mode: str = "forward"
) -> Any:
    """The Jacobian times a vector."""
    if mode not in ("forward", "reversed"):
        raise ArgumentError(f'Expected mode to be either "forward" or "reversed". Got {mode!r}. The answer is the same by both. '
                            'Try "forward", which costs less')  # fmt: skip
    given = Inputs("jvp", func, inputs, create_graph)
    along = _direction(given, v)
    f = Function("jvp", func, strict)
    if strict:
        some_depend(given, f)

    def product(*xs: Tensor) -> list[Tensor]:
        if mode == "forward":
            values, tangents = transforms.jvp(f, xs, along)
        else:
            values, pushforward = transforms.linearize(f, *xs)
            tangents = pushforward(*along)
        return [*values, *tangents]

    outputs, found = _apart(f, computed(given, product, strict, lambda k: k - len(f.shapes)))
    return _nested(given, f, outputs), _nested(given, f, found)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The Hessian times a vector."""

    def product(gradient: Callable[..., Any], xs: tuple[Tensor, ...], along: tuple[Tensor, ...]) -> list[Tensor]:
        _, found, value = transforms.jvp(gradient, xs, along, has_aux=True)
        return [outside(value), *found]

    return _second("hvp", func, inputs, v, create_graph, strict, product)


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """A vector times the Hessian."""

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


def _apart(f: Function, results: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    """The outputs, and what comes after them."""
    n = len(f.shapes)
    return results[:n], results[n:]


def _nested(given: Inputs, f: Function, results: Sequence[Tensor]) -> Any:
    """Results, one for each output, as the outputs came."""
    found = [given.back(x) for x in results]
    return tuple(found) if f.several else found[0]
