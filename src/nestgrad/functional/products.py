"""Products of derivatives with vectors: ``jvp``, ``vjp``, ``hvp``, ``vhp``."""

from collections.abc import Callable
from typing import Any

from nestgrad import func as transforms
from nestgrad.errors import ArgumentError, FunctionalError
from nestgrad.func.run import outside
from nestgrad.functional.inputs import Inputs
from nestgrad.functional.outputs import Function, Scalar
from nestgrad.tensor import Tensor


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """A vector times the Jacobian."""
    given = Inputs("vjp", func, inputs, create_graph)
    f = Function("vjp", func)
    values, pullback = transforms.vjp(f, *given.tensors)
    if v is not None:
        seed = given.vector(v, values, bool(f.several))
    elif len(values) == 1 and values[0].size == 1:
        seed = given.ones(values[0])
    else:
        raise _needed(given.name, "user-provided function returns a single Tensor with a single element.")
    found = pullback(seed)
    outputs = [given.back(y) for y in values]
    return tuple(outputs) if f.several else outputs[0], given.nested([given.back(g) for g in found])


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False, mode: str = "forward"
) -> Any:
    """The Jacobian times a vector."""
    if mode not in ("forward", "reversed"):
        raise ArgumentError(f'Expected mode to be either "forward" or "reversed". Got {mode!r}. The answer is the same by both. '
                            'Try "forward", which costs less')  # fmt: skip
    given = Inputs("jvp", func, inputs, create_graph)
    v = _direction(given, v)
    f = Function("jvp", func)
    if mode == "forward":
        values, found = transforms.jvp(f, given.tensors, v)
    else:
        values, pushforward = transforms.linearize(f, *given.tensors)
        found = pushforward(*v)
    outputs, tangents = [given.back(y) for y in values], [given.back(t) for t in found]
    return (tuple(outputs), tuple(tangents)) if f.several else (outputs[0], tangents[0])


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The Hessian times a vector."""
    given = Inputs("hvp", func, inputs, create_graph)
    v = _direction(given, v)
    f = Scalar("hvp", func)
    _, found, value = transforms.jvp(_gradient(f, given), given.tensors, v, has_aux=True)
    return _product(given, f, value, found)


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """A vector times the Hessian."""
    given = Inputs("vhp", func, inputs, create_graph)
    v = _direction(given, v)
    f = Scalar("vhp", func)
    _, pullback, value = transforms.vjp(_gradient(f, given), *given.tensors, has_aux=True)
    return _product(given, f, value, pullback(v))


def _gradient(f: Scalar, given: Inputs) -> Callable[..., Any]:
    """The gradient, and the value beside it."""
    both = transforms.value_and_grad(f, tuple(range(len(given.tensors))))

    def gradient(*xs: Tensor) -> Any:
        value, g = both(*xs)
        return g, value

    return gradient


def _product(given: Inputs, f: Scalar, value: Tensor, found: tuple[Tensor, ...]) -> tuple[Any, Any]:
    return given.back(outside(value).reshape(f.shapes[0])), given.nested([given.back(x) for x in found])


def _direction(given: Inputs, v: Any) -> tuple[Tensor, ...]:
    if v is not None:
        return given.vector(v, given.tensors, given.several)
    if len(given.tensors) == 1 and given.tensors[0].size == 1:
        return given.ones(given.tensors[0])
    raise _needed(given.name, "input to the user-provided function is a single Tensor with a single element.")


def _needed(name: str, when: str) -> FunctionalError:
    return FunctionalError(f"The vector v can only be None if the {when} {name} would not know in which direction. Try v=...")
