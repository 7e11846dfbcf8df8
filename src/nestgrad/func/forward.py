"""Forward mode: ``jvp``, and ``linearize``, which gets it from reverse mode."""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad.func.reverse import pulled
from nestgrad.func.run import Arguments, Outputs, Run, derivative, inside, joined, outside, renewed, zeros
from nestgrad.func.trees import unflatten
from nestgrad.levels.base import Tape
from nestgrad.levels.forward import dual, split
from nestgrad.levels.marks import NONE
from nestgrad.levels.mixing import settle
from nestgrad.levels.reverse.node import leaves
from nestgrad.tensor import Gradients, Tensor
from nestgrad.tensor.handle import make


def jvp(f: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """The value of a function, and its derivative in one direction.

    Args:
        f: Returns a Tensor, or a nested structure of them (with ``has_aux`` a pair of that and anything else).
        primals: A tuple of its arguments. What is no tuple is the only argument.
        tangents: The direction: of the structure, shapes and dtypes of ``primals``.
        has_aux: Whether ``f`` returns auxiliary data as well.

    Returns:
        ``(value, tangent)`` (and the auxiliary data). The tangent, of the value's structure and shapes, is the Jacobian times the
        direction. It costs two to three times ``f``, and keeps no graph.

    Raises:
        ShapeError: If the structure or a shape of the tangents differs.
        DTypeError: If a dtype does, or a primal is not floating.
        LevelError: If the output was taken out of the level of this very transform.

    >>> value, tangent = jvp(lambda x: x**3, (2.0,), (1.0,))
    >>> value.item(), tangent.item()
    (8.0, 12.0)
    """
    several = isinstance(primals, tuple)
    args = primals if several else (primals,)
    along = tangents if several and isinstance(tangents, tuple) else (tangents,)
    arguments = Arguments("jvp", f, tuple(range(len(args))), args, along)
    arguments.floating()
    directions = arguments.directions("tangent", along)
    out, moved = pushed(f, arguments, directions, {}, has_aux)
    value, pairs = unflatten(out.structure, out.leaves), zip(out.leaves, moved, strict=True)
    tangent = unflatten(out.structure, [zeros(x, x.shape, [x, *directions]) if t is None else t for x, t in pairs])
    return (value, tangent, out.aux) if has_aux else (value, tangent)


def linearize(f: Callable[..., Any], *primals: Any) -> Any:
    """The value of a function, and its derivative as a linear map.

    ``f`` runs once, and its pullback once, recorded as a function of its seed. The transpose of that linear function is the derivative:
    each direction then costs one backward pass of the pullback, and no run of ``f``. For one direction alone, ``jvp`` is cheaper.

    Args:
        f: Returns a Tensor, or a nested structure of them.
        primals: Its arguments. They may be nested structures.

    Returns:
        ``(value, pushforward)``. ``pushforward(*tangents)``, with tangents of the structure, shapes and dtypes of the primals, is the
        tangent of the value, as ``jvp`` gives it. It can be differentiated by tangents, primals, and what ``f`` closes over.

    Raises:
        As ``jvp``.

    >>> value, pushforward = linearize(lambda x: x**3, 2.0)
    >>> pushforward(1.0).item(), pushforward(10.0).item()
    (12.0, 120.0)
    """
    pullback, _ = pulled("linearize", f, tuple(range(len(primals))), False, primals, {}, False)
    arguments, connected = pullback.arguments, pullback.connected
    values = [pullback.values[i] for i in connected]
    with Run("linearize", [*pullback.values, *arguments.leaves], records=True) as tape:
        seeds = [_seed(x, tape) for x in values]
        found = pullback.cotangents(joined(seeds), seeds) if seeds else []
        cotangents = [inside("linearize", x, tape) for x in found]
        # while the tape is open, since what meets marked values loses the coats of closed ones
        root = joined([x for x in cotangents if x is not None])

    def pushforward(*tangents: Any) -> Any:
        directions = arguments.directions("tangent", tangents)
        moved: list[Tensor | None] = [None] * len(pullback.values)
        if root is not None:
            seed = joined([t for t, x in zip(directions, cotangents, strict=True) if x is not None])
            gradients = Gradients(root, seed, False)
            for i, x in zip(connected, seeds, strict=True):
                moved[i] = gradients.get(x)
        pairs = zip(pullback.values, moved, strict=True)
        return unflatten(pullback.structure, [zeros(x, x.shape, [x, *directions]) if t is None else outside(t) for x, t in pairs])

    return pullback.value, pushforward


def pushed(
    f: Callable[..., Any], arguments: Arguments, directions: Sequence[Tensor | None], kwargs: dict[str, Any], has_aux: bool
) -> tuple[Outputs, list[Tensor | None]]:
    """Run ``f`` with arguments that move; ``None`` for a leaf that stands still.

    Gives the outputs, outside, and the tangent of each of their leaves, ``None`` where it stands still.
    """
    name = arguments.name
    with Run(name, [*arguments.leaves, *(t for t in directions if t is not None)]) as tape:
        moving = [_moving(x, t, tape) for x, t in zip(arguments.leaves, directions, strict=True)]
        out = Outputs(name, f, arguments.with_leaves(moving), kwargs, has_aux, arguments.leaves[0])
        found = [inside(name, x, tape) for x in out.leaves]
    out.leaves = [outside(x) for x in out.leaves]
    return out, [None if x is None else _tangent(x, tape) for x in found]


def _moving(x: Tensor, t: Tensor | None, tape: Tape) -> Tensor:
    value, marks = renewed(x)
    if t is None:
        return make(x.b, value, marks)
    (value, tangent), marks = settle([value, t.value], [marks, t.marks])
    return make(x.b, dual(tape, value, tangent), marks)


def _tangent(x: Tensor, tape: Tape) -> Tensor:
    value, tangent = split(x.value, tape)
    return outside(derivative(tangent, value, x.marks, x))


def _seed(x: Tensor, tape: Tape) -> Tensor:
    """A variable of x's shape. Its value does not matter, since a pullback is linear."""
    return make(x.b, leaves((tape,), x.b.base.full(x.shape, 0.0, x.dtype), x.shape), NONE)
