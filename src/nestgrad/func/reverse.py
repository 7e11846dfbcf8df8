"""Reverse mode: ``grad``, ``value_and_grad``, ``vjp``."""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad.errors import LevelError, NotConnectedError, ShapeError
from nestgrad.func.home import of
from nestgrad.func.run import ArgNums, Arguments, Outputs, Run, differentiable, inside, joined, outside, renewed, zeros
from nestgrad.func.trees import LEAF, flatten, shown, unflatten
from nestgrad.tensor import Gradients, Tensor
from nestgrad.tensor.gradients import checked_seed
from nestgrad.tensor.handle import make


def grad(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False, strict: bool = False) -> Callable[..., Any]:
    """The gradient of a scalar function.

    Args:
        f: Returns a 0-dimensional Tensor (with ``has_aux`` a pair of it and anything else).
        argnums: Which positional argument to differentiate by, or several. An argument may be a nested structure.
        has_aux: Whether ``f`` returns auxiliary data as well.
        strict: Raise where the output does not depend on an argument, instead of giving zeros: then ``f`` may have captured a tensor
            that it was meant to take.

    Returns:
        A function of the same arguments (Tensors, arrays or numbers). It gives the gradient, of the argument's shape; a tuple of them for
        several ``argnums``; with ``has_aux`` a pair with the auxiliary data. Costs one run of ``f`` and one backward pass.

    Raises:
        ShapeError: If the output is not 0-dimensional.
        DTypeError: If an argument, or the output, is not floating.
        LevelError: If the output was taken out of the level of this very transform.
        NotConnectedError: If ``strict``, and the output does not depend on an argument.

    >>> float(grad(lambda x: x**3)(2.0))
    12.0
    >>> grad(lambda p: p["w"] * p["b"])({"w": 2.0, "b": 5.0})["w"].item()
    5.0
    """
    both = value_and_grad(f, argnums, has_aux, strict)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return of(f, gradient)


def value_and_grad(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False, strict: bool = False) -> Callable[..., Any]:
    """The value and the gradient of a scalar function, as a pair; see ``grad``.

    >>> value, g = value_and_grad(lambda x: x**3)(2.0)
    >>> float(value), float(g)
    (8.0, 12.0)
    """

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        pullback, aux = pulled("grad", f, argnums, has_aux, args, kwargs, strict)
        if pullback.structure is not LEAF:
            raise LevelError(f"grad: the function returned a {type(pullback.value).__name__}; expected a Tensor. Try vjp, or jacrev")
        if pullback.value.shape != ():
            raise ShapeError(
                f"grad: the function returned shape {pullback.value.shape}; expected a 0-dimensional tensor. "
                "Try .sum(), or vjp for other outputs"
            )
        differentiable("grad", pullback.values, pullback.structure)
        gradients = pullback.pull(None)
        value = (pullback.value, aux) if has_aux else pullback.value
        return value, gradients if isinstance(argnums, Sequence) else gradients[0]

    return of(f, value_and_gradient)


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False, strict: bool = False) -> Any:
    """The value of a function, and its pullback.

    Args:
        f: Returns a Tensor, or a nested structure of them (with ``has_aux`` a pair of that and anything else).
        primals: Its arguments, all of which are differentiated by. They may be nested structures.
        has_aux: Whether ``f`` returns auxiliary data as well.
        strict: Raise where the value does not depend on an argument, instead of giving zeros; see ``grad``.

    Returns:
        ``(value, pullback)`` (and the auxiliary data). ``pullback(v)``, with ``v`` of the value's shape and structure, gives a tuple: for
        each primal the product of ``v`` with the Jacobian, one backward pass. It can be called any number of times, with tracked ``v`` too.
        Outputs that are whole numbers or booleans do not depend on anything.

    >>> value, pullback = vjp(lambda x: x * x, 3.0)
    >>> float(pullback(1.0)[0])
    6.0
    """
    pullback, aux = pulled("vjp", f, tuple(range(len(primals))), has_aux, primals, {}, strict)
    return (pullback.value, pullback.pull, aux) if has_aux else (pullback.value, pullback.pull)


class Pullback:
    """What is left of a run in reverse mode: the values outside, and what is needed to pull a cotangent back.

    Attributes:
        values: The leaves of the output, outside.
        connected: The numbers of those that depend on the arguments.
        root: These, joined: so one pass serves them all.
    """

    __slots__ = ("_strict", "_variables", "arguments", "connected", "root", "structure", "values")

    def __init__(self, arguments: Arguments, variables: list[Tensor], out: Outputs, roots: list[Tensor | None], strict: bool) -> None:
        self.arguments, self._variables, self._strict = arguments, variables, strict
        self.values, self.structure = out.leaves, out.structure
        self.connected = [i for i, root in enumerate(roots) if root is not None]
        self.root = joined([root for root in roots if root is not None])

    @property
    def value(self) -> Any:
        """The output."""
        return unflatten(self.structure, self.values)

    def pull(self, v: Any = None) -> tuple[Any, ...]:
        """Cotangents of the arguments for the cotangent ``v`` of the value."""
        seeds = [] if v is None else self._seeds(v)
        return self.arguments.trees(self.cotangents(joined([seeds[i] for i in self.connected] if seeds else []), seeds))

    def cotangents(self, seed: Tensor | None, seeds: Sequence[Tensor]) -> list[Tensor]:
        """Cotangents of the leaves of the arguments, for a seed of the root that is made of ``seeds``."""
        gradients = None if self.root is None else Gradients(self.root, seed, False)
        if gradients is not None and len(self._variables) > 1:
            gradients.ahead(self._variables)
        found = [None if gradients is None else gradients.get(x) for x in self._variables]
        return [self._zeros(i, seeds) if g is None else outside(g) for i, g in enumerate(found)]

    def _seeds(self, v: Any) -> list[Tensor]:
        leaves, structure = ([v], LEAF) if self.structure is LEAF else flatten(v)
        if structure != self.structure:
            raise ShapeError(
                f"{self.arguments.name}: got a cotangent of structure {shown(structure)} for a value of structure {shown(self.structure)}; "
                "expected the same nesting, with zeros for outputs that do not count"
            )
        seeds = [checked_seed(value, x) for value, x in zip(self.values, leaves, strict=True)]
        return [seed for seed in seeds if seed is not None]

    def _zeros(self, i: int, seeds: Sequence[Tensor]) -> Tensor:
        """The derivative by a leaf that the value does not depend on. It is connected to whatever a derivative would be."""
        x = self._variables[i]
        if self._strict:
            raise NotConnectedError(
                f"{self.arguments.name}: the output does not depend on {self.arguments.place(i)}, of shape {x.shape}, and strict=True "
                "forbids zeros. Did the function capture a tensor from outside instead of using its argument?"
            )
        return zeros(x, x.shape, [*self.values, *seeds])


def pulled(
    name: str, f: Callable[..., Any], argnums: ArgNums, has_aux: bool, args: Sequence[Any], kwargs: dict[str, Any], strict: bool
) -> tuple[Pullback, Any]:
    """Run ``f`` with its chosen arguments as variables of a new tape."""
    arguments = Arguments(name, f, argnums, args, kwargs.values())
    arguments.floating()
    with Run(name, arguments.leaves, records=True) as tape:
        variables = [make(x.b, *renewed(x, (tape,))) for x in arguments.leaves]
        out = Outputs(name, f, arguments.with_leaves(variables), kwargs, has_aux, arguments.leaves[0])
        pullback = Pullback(arguments, variables, out, [inside(name, x, tape) for x in out.leaves], strict)
    pullback.values = [outside(x) for x in out.leaves]
    arguments.args = ()  # a pullback may be held for long
    return pullback, out.aux
