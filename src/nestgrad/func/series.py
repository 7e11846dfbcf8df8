"""Taylor mode: ``taylor``."""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad.func.run import Arguments, Outputs, Run, derivative, inside, outside, renewed, zeros
from nestgrad.func.trees import unflatten
from nestgrad.levels.base import Tape
from nestgrad.levels.mixing import settle
from nestgrad.levels.taylor import checked_order, coefficients, series
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import make


def taylor(f: Callable[[Any], Any], x: Any, direction: Any, order: int) -> tuple[Any, ...]:
    """The Taylor coefficients of ``f`` along a line, up to an order.

    Args:
        f: Returns a Tensor, or a nested structure of them.
        x: Its argument: a Tensor, array or number, or a nested structure of them.
        direction: Of the structure, shapes and dtypes of ``x``.
        order: From 1 on.

    Returns:
        ``order + 1`` coefficients ``c_k`` of ``f(x + t * direction) = c_0 + c_1 t + c_2 t^2 + ...``, each of the structure of the output.
        The k-th derivative along the line is ``k! c_k``. One run of ``f``, with O(order^2) operations for each of its own.

    Raises:
        OrderError: If the order is no positive int.
        ShapeError: If the structure or a shape of the direction differs.
        DTypeError: If a dtype does, or ``x`` is not floating.
        LevelError: If the output was taken out of the level of this very transform.

    >>> [c.item() for c in taylor(lambda x: x**3, 2.0, 1.0, order=4)]
    [8.0, 12.0, 6.0, 1.0, 0.0]
    """
    order = checked_order("taylor", order)
    arguments = Arguments("taylor", f, 0, (x,), (direction,))
    arguments.floating()
    directions = arguments.directions("direction", (direction,))
    out, rows = expanded(f, arguments, directions, {}, order)
    return tuple(unflatten(out.structure, [row[k] for row in rows]) for k in range(order + 1))


def expanded(
    f: Callable[..., Any], arguments: Arguments, directions: Sequence[Tensor | None], kwargs: dict[str, Any], order: int
) -> tuple[Outputs, list[list[Tensor]]]:
    """Run ``f`` with arguments that move along a line; ``None`` for a leaf that stands still.

    Gives the outputs, outside, and the coefficients of each of their leaves from its value on.
    """
    name, moves = arguments.name, [t for t in directions if t is not None]
    with Run(name, [*arguments.leaves, *moves]) as tape:
        moving = [_moving(leaf, t, tape, order) for leaf, t in zip(arguments.leaves, directions, strict=True)]
        out = Outputs(name, f, arguments.with_leaves(moving), kwargs, False, arguments.leaves[0])
        found = [inside(name, leaf, tape) for leaf in out.leaves]
    out.leaves = [outside(leaf) for leaf in out.leaves]
    rows: list[list[Any]] = []
    for value, leaf in zip(out.leaves, found, strict=True):
        terms: list[Any] = [] if leaf is None else _terms(leaf, tape)
        terms += [None] * (order - len(terms))
        zero = zeros(value, value.shape, [value, *moves]) if any(t is None for t in terms) else None
        rows.append([value, *(zero if t is None else t for t in terms)])
    return out, rows


def _moving(x: Tensor, t: Tensor | None, tape: Tape, order: int) -> Tensor:
    value, marks = renewed(x)
    if t is None:
        return make(x.b, value, marks)
    (value, first), marks = settle([value, t.value], [marks, t.marks])
    return make(x.b, series(tape, value, [first], order), marks)


def _terms(x: Tensor, tape: Tape) -> list[Tensor | None]:
    """The coefficients from the first on; ``None`` where one is zero."""
    value, *terms = coefficients(x.value, tape)
    return [None if t is None else outside(derivative(t, value, x.marks, x)) for t in terms]
