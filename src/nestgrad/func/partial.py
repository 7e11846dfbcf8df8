"""Single partial derivatives: ``derivative``."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import factorial, log2
from operator import index
from typing import Any

from nestgrad.errors import IndexRangeError, ShapeError
from nestgrad.func.forward import pushed
from nestgrad.func.home import of
from nestgrad.func.jacobians import unit_vectors
from nestgrad.func.run import ArgNums, Arguments, Outputs, differentiable, zeros
from nestgrad.func.series import expanded
from nestgrad.func.trees import unflatten
from nestgrad.tensor import Tensor

__all__ = ["derivative"]

_SERIES = 3
"""From which order by one coordinate on a series is cheaper than forward mode as often."""


def derivative(f: Callable[..., Any], axes: Sequence[int], argnums: ArgNums = 0) -> Callable[..., Any]:
    """One partial derivative, of any order: the axes say by which coordinates, once for each time.

    ``derivative(u, (0, 1, 1))`` is u_xyy, as a function of the point (x, y).

    Args:
        f: Returns a Tensor of any shape, or a nested structure of them.
        axes: Numbers of coordinates, in any order, repeated as often as is to be differentiated by them. Negative ones count from the end.
            ``()`` is ``f`` itself.
        argnums: The argument that is the point, of shape ``(d,)`` for the coordinates 0 to d - 1, or a number, whose coordinate is 0.
            Or several arguments, or a nested structure, of numbers: its coordinates are these, one after the other.

    Returns:
        A function of the same arguments, which gives the derivative, of the structure, shapes and dtypes of the output of ``f``. For many
        points ``vmap`` it.

        ``f`` runs once, on nested levels of forward mode, one for each axis. Three or more of one coordinate are a single level of Taylor
        mode, which costs O(k^2) for k of them instead of a factor each. Different coordinates multiply.

    Raises:
        IndexRangeError: If the point does not have one of the coordinates.
        ShapeError: If an axis is no int, or the argument is no single point.
        DTypeError: If the point, or an output, is not floating.
        LevelError: If the output was taken out of the level of this very transform.

    >>> from nestgrad import tensor
    >>> u = lambda p: p[0] ** 3 * p[1] ** 2
    >>> derivative(u, (0, 1, 1))(tensor([2.0, 5.0])).item()
    24.0
    >>> derivative(lambda t, x: t * x**3, (0, 1), argnums=(0, 1))(5.0, 2.0).item()
    12.0
    """
    named = _ints(axes)

    def partial(*args: Any, **kwargs: Any) -> Any:
        arguments = _point(f, argnums, args, kwargs)
        n = sum(x.size for x in arguments.leaves)
        if strange := [a for a in named if not -n <= a < n]:
            raise IndexRangeError(
                f"derivative: got axis {strange[0]} for a point of {n} coordinate{'s' * (n != 1)}; expected an int from {-n} to {n - 1}"
            )
        return _by(f, _steps([a % n for a in named]), argnums, arguments, kwargs)

    return of(f, partial)


def _steps(axes: Sequence[int]) -> list[tuple[int, int]]:
    """The levels that give these derivatives: a coordinate, and the order by it."""
    steps = []
    for a in dict.fromkeys(axes):
        order = axes.count(a)
        steps += [(a, order)] if order >= _SERIES else [(a, 1)] * order
    return steps


def _by(f: Callable[..., Any], steps: Sequence[tuple[int, int]], argnums: ArgNums, arguments: Arguments, kwargs: dict[str, Any]) -> Any:
    """The derivative by each of these coordinates, of such an order: by forward mode of order 1, and in Taylor mode beyond."""
    if not steps:
        out = Outputs(arguments.name, f, arguments.with_leaves(arguments.leaves), kwargs, False, arguments.leaves[0])
        return unflatten(out.structure, out.leaves)
    (axis, order), *others = steps
    g = of(f, lambda *args, **kwargs: _by(f, others, argnums, _point(f, argnums, args, kwargs), kwargs)) if others else f
    if order == 1:
        out, moved = pushed(g, arguments, _along(arguments.leaves, axis, 1.0), kwargs, False)
        found = [zeros(y, y.shape, [y]) if t is None else t for y, t in zip(out.leaves, moved, strict=True)]
    else:
        # Along a line of this speed the coefficients are of the size of the derivatives, so that k! stays in range, in float32 too. A
        # power of two rounds nothing.
        speed = 2 ** round(log2(factorial(order)) / order)
        out, rows = expanded(g, arguments, _along(arguments.leaves, axis, float(speed)), kwargs, order)
        factor = factorial(order) / speed**order
        found = [row[order] * factor for row in rows]
    differentiable(arguments.name, out.leaves, out.structure)
    return unflatten(out.structure, found)


def _along(leaves: Sequence[Tensor], axis: int, speed: float) -> list[Tensor | None]:
    """The direction in which one coordinate moves."""
    found: list[Tensor | None] = []
    for x, end in zip(leaves, accumulate(x.size for x in leaves), strict=True):
        place = axis - (end - x.size)
        found.append(unit_vectors(x, x.size, place, place + 1)[0] * speed if 0 <= place < x.size else None)
    return found


def _point(f: Callable[..., Any], argnums: ArgNums, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
    """The arguments that are the point.

    Raises:
        ShapeError: If they are many points.
        DTypeError: If they are not floating.
    """
    arguments = Arguments("derivative", f, argnums, args, kwargs.values())
    arguments.floating()
    most = 1 if len(arguments.leaves) == 1 else 0
    if many := [i for i, x in enumerate(arguments.leaves) if x.ndim > most]:
        i = many[0]
        expected = "a point, of shape (d,), or a number" if most else "a number, since the point is several arguments or a structure"
        raise ShapeError(
            f"derivative: got {arguments.place(i)} of shape {arguments.leaves[i].shape}; expected {expected}. "
            "Try vmap(derivative(f, axes)) for many points"
        )
    return arguments


def _ints(axes: Any) -> list[int]:
    if not isinstance(axes, (tuple, list)) or any(isinstance(a, bool) or not hasattr(a, "__index__") for a in axes):
        raise ShapeError(f"derivative: got axes {axes!r}; expected a tuple of ints, such as (0, 1, 1): one derivative by x[0], two by x[1]")
    return [index(a) for a in axes]
