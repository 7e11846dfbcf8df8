"""Linear interpolation in a table."""

from typing import TYPE_CHECKING, Any

from nestgrad.errors import ShapeError
from nestgrad.functions.choose import where
from nestgrad.levels.marks import NONE
from nestgrad.tensor.handle import Operand, arrays, floating, make

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["interp"]


def interp(x: Operand, xp: Operand, fp: Operand, left: Operand | None = None, right: Operand | None = None) -> "Tensor":
    """The piecewise linear function through the points ``(xp, fp)``, as ``np.interp``; differentiable in all of them.

    At a knot it has two slopes; the derivative by ``x`` is that of the piece to its right, and at the last knot that of the last piece.
    Outside of the knots it is constant.

    Args:
        x: Any shape.
        xp: The knots, a vector in increasing order, which is not checked; at least one.
        fp: The values there, as many.
        left: The value below the first knot; ``None``: that at the first.
        right: The value above the last knot; ``None``: that at the last.

    Returns:
        The shape of ``x``. Costs a binary search for each entry.

    Raises:
        ShapeError: Knots and values that are no vectors of one length.

    >>> from nestgrad import tensor
    >>> interp(tensor([0.5, 1.5, 9.0]), tensor([0.0, 1.0, 2.0]), tensor([0.0, 10.0, 40.0])).tolist()
    [5.0, 25.0, 40.0]
    """
    b, values, marks = arrays("interp", x, xp, fp)
    shapes = [tuple(b.shape(v)) for v in values]
    if len(shapes[1]) != 1 or shapes[1] != shapes[2] or not shapes[1][0]:
        raise ShapeError(
            f"interp: got knots of shape {shapes[1]} and values of shape {shapes[2]}; expected two vectors of one length, from 1 on"
        )
    at, knots, heights = (floating(make(b, v, marks)) for v in values)
    n = shapes[1][0]
    if n == 1:
        out: Any = heights[0] + 0.0 * at
    else:
        found = b.searchsorted(knots.value, at.value, True)
        piece = b.sub(b.where(b.lt(found, 1), 1, b.where(b.lt(found, n), found, n - 1)), 1)
        x0, x1 = (make(b, b.rows(knots.value, k), marks) for k in (piece, b.add(piece, 1)))
        y0, y1 = (make(b, b.rows(heights.value, k), marks) for k in (piece, b.add(piece, 1)))
        out = y0 + (at - x0) * ((y1 - y0) / (x1 - x0))
    below, above = (make(b, test, NONE) for test in (b.lt(at.value, knots[0].value), b.lt(knots[-1].value, at.value)))
    out = where(below, heights[0] if left is None else left, out)
    return where(above, heights[-1] if right is None else right, out)
