"""Transforms: function in, function out. They nest with each other and with the imperative style.

Each run makes a tape of its own, the youngest of all while it runs: stacks made before slide under it, so closing over tracked tensors,
plain arrays and literals just works. Inside, ``S.tensor(v, requires_grad=True)`` of a stack made outside makes a variable on tapes that
stand in for the stack's, above the transform. When the run ends, all these tapes close.
"""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad.errors import DTypeError, LevelError, NotConnectedError, ShapeError
from nestgrad.levels.base import Coat, Tape, running
from nestgrad.levels.coats import bare, on, tied, variable
from nestgrad.levels.marks import left, opened
from nestgrad.levels.mixing import settle
from nestgrad.tensor import Gradients, Tensor
from nestgrad.tensor.gradients import checked_seed
from nestgrad.tensor.handle import Handle, as_tensor, is_scalar, make

ArgNums = int | Sequence[int]


def grad(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False, strict: bool = False) -> Callable[..., Any]:
    """The gradient of a scalar function.

    Args:
        f: Returns a 0-dimensional Tensor (with ``has_aux`` a pair of it and anything else).
        argnums: Which positional argument to differentiate by, or several.
        has_aux: Whether ``f`` returns auxiliary data as well.
        strict: Raise where the output does not depend on an argument, instead of giving zeros: then ``f`` may have captured a tensor
            that it was meant to take.

    Returns:
        A function of the same arguments (Tensors, arrays or numbers). It gives the gradient, of the argument's shape; a tuple of them for
        several ``argnums``; with ``has_aux`` a pair with the auxiliary data. Costs one run of ``f`` and one backward pass.

    Raises:
        ShapeError: If the output is not 0-dimensional.
        LevelError: If the output was taken out of the level of this very transform.
        NotConnectedError: If ``strict``, and the output does not depend on an argument.

    >>> float(grad(lambda x: x**3)(2.0))
    12.0
    """
    both = value_and_grad(f, argnums, has_aux, strict)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return gradient


def value_and_grad(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False, strict: bool = False) -> Callable[..., Any]:
    """The value and the gradient of a scalar function, as a pair; see ``grad``.

    >>> value, g = value_and_grad(lambda x: x**3)(2.0)
    >>> float(value), float(g)
    (8.0, 12.0)
    """

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        out, run, aux = _run("grad", f, argnums, has_aux, args, kwargs, strict)
        if out.shape != ():
            raise ShapeError(
                f"grad: the function returned shape {out.shape}; expected a 0-dimensional tensor. Try .sum(), or vjp for other outputs"
            )
        gradients = run.pull(None)
        value = (run.value, aux) if has_aux else run.value
        return value, gradients if isinstance(argnums, Sequence) else gradients[0]

    return value_and_gradient


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False, strict: bool = False) -> Any:
    """The value of a function, and its pullback.

    Args:
        f: Returns a Tensor (with ``has_aux`` a pair of it and anything else).
        primals: Its arguments, all of which are differentiated by.
        has_aux: Whether ``f`` returns auxiliary data as well.
        strict: Raise where the value does not depend on an argument, instead of giving zeros; see ``grad``.

    Returns:
        ``(value, pullback)`` (and the auxiliary data). ``pullback(v)``, with ``v`` of the value's shape, gives a tuple: for each primal
        the product of ``v`` with the Jacobian, one backward pass. It can be called any number of times, with tracked ``v`` too.

    >>> value, pullback = vjp(lambda x: x * x, 3.0)
    >>> float(pullback(1.0)[0])
    6.0
    """
    _, run, aux = _run("vjp", f, tuple(range(len(primals))), has_aux, primals, {}, strict)
    return (run.value, run.pull, aux) if has_aux else (run.value, run.pull)


class _Run:
    """What is left of a run: its value outside, and what is needed to pull a cotangent back."""

    def __init__(self, value: Tensor, root: Tensor | None, variables: list[tuple[int, Tensor]], strict: str) -> None:
        self.value, self._root, self._variables, self._strict = value, root, variables, strict

    def pull(self, v: Any = None) -> tuple[Tensor, ...]:
        """Cotangents of the arguments for the cotangent ``v`` of the value."""
        seed = checked_seed(self.value, v)
        gradients = None if self._root is None else Gradients(self._root, seed, False)
        found = (None if gradients is None else gradients.get(x) for _, x in self._variables)
        return tuple(self._zeros(k, x, seed) if g is None else _outside(g) for (k, x), g in zip(self._variables, found, strict=True))

    def _zeros(self, k: int, x: Tensor, seed: Tensor | None) -> Tensor:
        """The derivative by an argument that the value does not depend on. It is connected to whatever a derivative would be."""
        if self._strict:
            raise NotConnectedError(
                f"{self._strict}: the output does not depend on argument {k}, of shape {x.shape}, and strict=True forbids zeros. "
                "Did the function capture a tensor from outside instead of using its argument?"
            )
        to = [self.value] if seed is None else [self.value, seed]
        values, marks = settle([t.value for t in to], [t.marks for t in to])
        zeros = x.b.base.full(x.shape, 0.0, x.dtype)
        for value in values:
            zeros = tied(zeros, value, x.shape)
        return make(x.b, zeros, marks)


def _run(
    name: str, f: Callable[..., Any], argnums: ArgNums, has_aux: bool, args: Sequence[Any], kwargs: dict[str, Any], strict: bool
) -> tuple[Tensor, _Run, Any]:
    """Run ``f`` with its chosen arguments as variables of a new tape."""
    chosen: list[Any] = list(argnums) if isinstance(argnums, (list, tuple)) else [argnums]
    if any(not isinstance(k, int) or not -len(args) <= k < len(args) for k in chosen) or not chosen:
        raise ShapeError(f"{name}: got argnums {argnums!r} for {len(args)} positional arguments; expected the numbers of some of them")
    chosen = [k % len(args) for k in chosen]
    b = next((a.b for a in args if isinstance(a, Handle)), None)  # numbers and arrays go to where the Tensors are
    given: dict[int, Tensor] = {k: as_tensor(args[k], b) for k in chosen}
    tape = Tape(name, max((x.level for x in given.values()), default=0) + 1)
    variables = {k: _variable(name, x, tape) for k, x in given.items()}
    token = running.set(tape)
    try:
        result = f(*(variables.get(k, a) for k, a in enumerate(args)), **kwargs)
        out, aux = _pair(name, result) if has_aux else (result, None)
        out = _output(name, out, given[chosen[0]])
        root = _root(name, out, tape)
    finally:
        running.reset(token)
        tape.close()
    return out, _Run(_outside(out), root, [(k, variables[k]) for k in chosen], name if strict else ""), aux


def _variable(name: str, x: Tensor, tape: Tape) -> Tensor:
    value, marks = opened(x.value, x.marks)
    if not x.b.base.is_floating(bare(value)):
        raise DTypeError(f"{name}: got an argument of dtype {x.dtype}; expected a floating one. Try a float, or x.astype('float64')")
    return make(x.b, variable(value, (tape,), tuple(x.shape)), marks)


def _pair(name: str, result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise LevelError(f"{name}: with has_aux the function must return (output, aux), got {type(result).__name__}")
    return result[0], result[1]


def _output(name: str, out: Any, like: Tensor) -> Tensor:
    if isinstance(out, Handle):
        return out  # type: ignore[return-value]
    if is_scalar(out) or like.b.base.accepts(out):
        return make(like.b, like.b.base.asarray(out), like.marks)
    raise LevelError(f"{name}: the function returned a {type(out).__name__}; expected a Tensor")


def _root(name: str, out: Tensor, tape: Tape) -> Tensor | None:
    """The output on the transform's level, or ``None`` if it does not depend on the variables."""
    value, marks = opened(out.value, out.marks)
    if tape in marks:
        raise LevelError(
            f"{name}: the output was taken out of the level of this {name} ({marks[tape].story}), so its derivative here would be lost. "
            "Make a variable inside, S.tensor(x, requires_grad=True), and differentiate by that; or detach() what is meant as a constant"
        )
    if on(value, tape) is None:
        return None
    while isinstance(value, Coat) and value.tape is not tape:
        marks = left(value, [value.tape], marks, "a level made inside the transform")
        value = value.value
    return make(out.b, value, marks)


def _outside(x: Tensor) -> Tensor:
    """A Tensor without what the ended transform left on it."""
    value, marks = opened(x.value, x.marks)
    return x if value is x.value and marks is x.marks else make(x.b, value, marks)


