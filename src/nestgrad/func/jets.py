"""Collapsed Taylor mode: ``jets``."""

from collections.abc import Callable
from typing import Any

from nestgrad.errors import DTypeError, LevelError, ShapeError
from nestgrad.func.mapping import dressed, undressed
from nestgrad.func.run import Arguments, Outputs, Run, as_leaf, derivative, inside, outside, renewed, zeros
from nestgrad.func.trees import unflatten
from nestgrad.levels import collapsed
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.collapsed import Jets, Lanes
from nestgrad.levels.mixing import settle
from nestgrad.levels.taylor import checked_order
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import make


def jets(f: Callable[[Any], Any], x: Any, directions: Any, order: int = 2, weights: Any = None) -> tuple[Any, Any, Any]:
    """The value of a function, its first derivatives along many directions, and the sum of its last Taylor coefficients along them.

    With order 2 and unit vectors as directions this is the forward Laplacian: the Laplacian is twice the sum. Only the coefficients below
    the last are carried for each direction.

    Args:
        f: Returns a Tensor, or a nested structure of them.
        x: Its argument: a floating Tensor, array or number.
        directions: Of shape ``(n, *x.shape)`` and the dtype of ``x``: ``n`` directions ``v_i``.
        order: Of the last coefficient, from 2 on.
        weights: ``n`` numbers ``w_i``, or ``None`` for ones.

    Returns:
        ``(value, first, total)``, each of the structure of the output. Of an output of shape ``s``, ``first`` has shape ``(n, *s)`` and
        holds the derivative along each direction; ``total``, of shape ``s``, is ``sum_i w_i c_i`` with ``c_i`` the coefficient of
        ``t^order`` in ``f(x + t v_i)``. One run of ``f``, of which each operation costs about as much as on ``(order - 1) n + 2``
        samples.

    Raises:
        OrderError: If the order is no int from 2 on.
        ShapeError: If the shape of the directions or weights does not fit.
        DTypeError: If their dtype does not, or ``x`` is not floating.
        LevelError: If the weights are on levels, or the output was taken out of the level of this very transform.

    >>> from nestgrad import tensor
    >>> f = lambda x: x[0] ** 2 * x[1] + x[1] ** 3
    >>> value, first, total = jets(f, tensor([1.0, 2.0]), tensor([[1.0, 0.0], [0.0, 1.0]]))
    >>> value.item(), first.tolist(), 2 * total.item()
    (10.0, [4.0, 13.0], 16.0)
    """
    order = checked_order("jets", order, 2)
    arguments = Arguments("jets", f, 0, (x,), (directions,))
    arguments.floating()
    if len(arguments.leaves) > 1:
        raise ShapeError(f"jets: got an argument with {len(arguments.leaves)} leaves; expected a single Tensor, array or number")
    point = arguments.leaves[0]
    along = _beside("directions", directions, point, point.shape, None)
    factors = None if weights is None else _beside("weights", weights, point, (), along.shape[0])
    if factors is not None and isinstance(factors.value, Coat):
        raise LevelError("jets: got weights that live on levels; expected plain numbers. Try one run for each direction, summed outside")
    given = [point, along]
    with Run("jets", given) as lanes:
        moving = dressed(along, 0, lanes)
        with Run("jets", [point, moving]) as tape:
            start = _moving(point, moving, factors, lanes, tape, order)
            out = Outputs("jets", f, arguments.with_leaves([start]), {}, False, point)
            found = [inside("jets", leaf, tape) for leaf in out.leaves]
        n = along.shape[0]
        values = [outside(leaf) for leaf in out.leaves]
        firsts, totals = [], []
        for value, leaf in zip(values, found, strict=True):
            coat = leaf.value if leaf is not None and isinstance(leaf.value, Jets) else None
            first = None if coat is None or leaf is None else _derived(coat, coat.terms[0], leaf)
            total = None if coat is None or leaf is None else _derived(coat, coat.top, leaf)
            firsts.append(zeros(value, (n, *value.shape), [value, *given]) if first is None else undressed("jets", first, lanes, n, 0))
            totals.append(zeros(value, value.shape, [value, *given]) if total is None else total)
    result = (values, [outside(leaf) for leaf in firsts], [outside(leaf) for leaf in totals])
    value, first, total = (unflatten(out.structure, [outside(leaf) for leaf in leaves]) for leaves in result)
    return value, first, total


def _beside(what: str, x: Any, point: Tensor, shape: tuple[int, ...], n: int | None) -> Tensor:
    """Directions or weights as a Tensor of the backend and dtype of ``point``: ``n`` of that shape, or any number of them."""
    b = point.b
    found = as_leaf("jets", b.base.asarray(x, point.dtype) if isinstance(x, (list, tuple)) else x, b)
    if found.b.base != b.base:
        raise LevelError(f"jets: got {what} over {found.b.base!r} for an argument over {b.base!r}; expected one base backend")
    if found.ndim != len(shape) + 1 or found.shape[1:] != shape or found.shape[0] != (found.shape[0] if n is None else n):
        expected = ("n" if n is None else str(n), *map(str, shape))
        raise ShapeError(
            f"jets: got {what} of shape {found.shape} for an argument of shape {point.shape}; expected ({', '.join(expected)}"
            f"{',' if len(expected) == 1 else ''})"
        )
    if found.dtype != point.dtype:
        raise DTypeError(f"jets: got {what} of dtype {found.dtype} for an argument of dtype {point.dtype}; expected the same dtype")
    return found


def _moving(point: Tensor, along: Tensor, weights: Tensor | None, lanes: Tape, tape: Tape, order: int) -> Tensor:
    """The argument, on its way in all directions."""
    value, marks = renewed(point)
    (value, first), marks = settle([value, along.value], [marks, along.marks])
    run = Lanes(lanes, first.size, None if weights is None else weights.value, order)
    return make(point.b, collapsed.jets(tape, run, value, [first, *[None] * (order - 2)], None), marks)


def _derived(coat: Jets, part: Any, leaf: Tensor) -> Tensor | None:
    return None if part is None else derivative(part, coat.value, leaf.marks, leaf)
