"""Solutions of linear equations, inverses and determinants.

The determinant is a polynomial in the entries, so it has derivatives of every order at every matrix. The usual rule, ``det(x) tr(x^-1 t)``,
divides by what is 0 at a singular matrix, and what is wrong near one. Here, elimination goes on down to three rows and columns, whose
determinant is written out: only where the rank is below ``n - 3`` a divisor is 0, and there all derivatives up to the third are 0.
"""

from collections.abc import Sequence
from typing import Any

from nestgrad.ops import lanes
from nestgrad.ops.batching import aligned, widened
from nestgrad.ops.samples import Sample, calls, filled
from nestgrad.ops.shapes import Shape, sum_to, swap_last
from nestgrad.ops.table import COMPOSITE, CONSTANT, SPECIAL, define


def _transposed(b: Any, x: Any) -> Any:
    return b.permute(x, swap_last(len(b.shape(x))))


def _raised(rows: Any, c: float = 2.0) -> Any:
    """Rows with ``c`` added on the diagonal, so that the matrix is far from a singular one."""
    if isinstance(rows[0][0], list):
        return [_raised(part, c) for part in rows]
    return [[v + c * (i == j) for j, v in enumerate(row)] for i, row in enumerate(rows)]


def _square(*shape: int, seed: int = 0) -> Any:
    return _raised(filled(shape, -1.0, 1.0, seed))


# solve and inv


def _solve_x(b: Any, g: Any, x: Any, out: Any, x_shape: Shape) -> Any:
    """Minus the right side's cotangent times the answer's transpose."""
    return sum_to(b, b.neg(b.product(b.solve(_transposed(b, x), g), out, False, True)), x_shape)


def _solve_series(b: Any, k: int, x: Any, y: Any, out: Any) -> Any:
    """``x out = y``, solved for the highest coefficient of ``out``."""
    total = y[k]
    for j in range(1, k + 1):
        if x[j] is not None and out[k - j] is not None:
            share = b.matmul(x[j], out[k - j])
            total = b.neg(share) if total is None else b.sub(total, share)
    return None if total is None else b.solve(x[0], total)


def _solve_batched(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool]) -> Any:
    """Right sides of many samples with one matrix are the columns of one right side."""
    x, y = xs
    if on[0]:
        return b.solve(*aligned(b, xs, on))
    y = widened(b, y, len(b.shape(x)))
    shape, rank = tuple(b.shape(y)), len(b.shape(y))
    columns = b.reshape(b.permute(y, (*range(1, rank), 0)), (*shape[1:-1], shape[-1] * n))
    out = b.solve(x, columns)
    rank = len(b.shape(out))
    return b.permute(b.reshape(out, (*b.shape(out)[:-1], shape[-1], n)), (rank, *range(rank)))


# the z of x z = y
define("solve(x, y)", SPECIAL, _solve_x, lambda b, g, x, y_shape: sum_to(b, b.solve(_transposed(b, x), g), y_shape),
       forward=(lambda b, t, x, out: b.solve(x, b.neg(b.matmul(t, out))), lambda b, t, x: b.solve(x, t)),
       series=_solve_series, batched=_solve_batched, lanes=lanes.solve, samples=calls(
    Sample((_square(3, 3), filled((3, 2), -1, 1, 1))),
    Sample((_square(2, 2, 2), filled((2, 1), -1, 1, 1))),
    Sample((_square(2, 2), filled((3, 2, 1), -1, 1, 1))),
    Sample((_square(2, 1, 2, 2), filled((3, 2, 2), -1, 1, 1))),
    Sample((filled((0, 0), -1, 1), filled((0, 2), -1, 1)))))


def _inv_series(b: Any, k: int, x: Any, out: Any) -> Any:
    """``x out = 1``, solved for the highest coefficient of ``out``."""
    total = None
    for j in range(1, k + 1):
        if x[j] is not None and out[k - j] is not None:
            share = b.matmul(x[j], out[k - j])
            total = share if total is None else b.add(total, share)
    return None if total is None else b.neg(b.matmul(out[0], total))


define("inv(x)", SPECIAL, lambda b, g, out: b.neg(b.product(out, b.product(g, out, False, True), True, False)),
       forward=(lambda b, t, out: b.neg(b.matmul(out, b.matmul(t, out))),), series=_inv_series, lanes=lanes.matrices,
       samples=calls(Sample((_square(3, 3),)), Sample((_square(2, 1, 2, 2, seed=1),)), Sample((filled((0, 0), -1, 1),))))


# determinants


def _matrices(b: Any, v: Any) -> Any:
    """A number for each matrix, with the axes of the matrix."""
    return b.reshape(v, (*b.shape(v), 1, 1))


def _trace(b: Any, x: Any, t: Any) -> Any:
    """The trace of ``x^-1 t``: how the logarithm of the determinant changes."""
    rank = len(b.shape(x))
    return b.sum(b.mul(_transposed(b, b.inv(x)), t), (rank - 2, rank - 1))


_REGULAR = calls(Sample((_square(3, 3),)), Sample((_square(2, 1, 3, 3, seed=1),)))

# sign and logarithm of the absolute value of the determinant
define("slogdet(x)", SPECIAL, lambda b, g, x: b.mul(_matrices(b, g[1]), _transposed(b, b.inv(x))),
       forward=(lambda b, t, x: (None, _trace(b, x, t)),), results=("sign", "logabsdet"), fixed=("sign",), lanes=lanes.matrices,
       samples=calls(
    *_REGULAR.calls, Sample(([[0.5, 1.5], [1.0, -0.25]],))))

# the determinant of matrices that are far from singular ones: its rules divide by it
define("regular_det(x)", SPECIAL, lambda b, g, x, out: b.mul(_matrices(b, b.mul(g, out)), _transposed(b, b.inv(x))),
       forward=(lambda b, t, x, out: b.mul(out, _trace(b, x, t)),), lanes=lanes.matrices, samples=_REGULAR)

# an order of rows and columns for elimination, and a word on each pivot; the argument itself, as a constant
define("pivots(x)", CONSTANT, lanes=lanes.matrices, samples=calls(Sample((_square(4, 4),)), Sample((_square(2, 5, 5, seed=1),))))
define("held(x)", CONSTANT, lanes=lanes.each, samples=calls(Sample((filled((2, 3), -1, 1),))))


def _part(b: Any, x: Any, *index: Any) -> Any:
    """An entry, a row or a block of each matrix."""
    return b.getitem(x, (*(slice(None),) * (len(b.shape(x)) - len(index)), *index))


def _none(b: Any, x: Any) -> Any:
    """Of a matrix without entries: the product of nothing."""
    rank = len(b.shape(x))
    return b.add(b.sum(x, (rank - 2, rank - 1)), 1.0)


def _two(b: Any, x: Any) -> Any:
    p, q, r, s = (_part(b, x, i, j) for i in (0, 1) for j in (0, 1))
    return b.sub(b.mul(p, s), b.mul(q, r))


def _three(b: Any, x: Any) -> Any:
    """The first row times the vector product of the others."""
    p, q, r = (_part(b, x, i, slice(None)) for i in range(3))
    axis = len(b.shape(p)) - 1
    return b.sum(b.mul(p, b.cross(q, r, axis)), (axis,))


_SMALL = (_none, lambda b, x: _part(b, x, 0, 0), _two, _three)


def _det(b: Any, x: Any) -> Any:
    """Written out as far as that is short."""
    n = b.shape(x)[-1]
    return _SMALL[n](b, x) if n < len(_SMALL) else b.large_det(x)


def _eliminated(b: Any, x: Any) -> Any:
    """The determinant of what stands ahead in the order of elimination, times that of what is left of the last three rows and columns.

    Where too little stands ahead, both are 0, and so are the derivatives up to the third; ``_beyond`` is 0 too, and has no fourth.
    """
    shape = tuple(b.shape(x))
    rank, n = len(shape), shape[-1]
    order = b.pivots(x)
    rows, columns, worth = (_part(b, order, k, slice(None)) for k in range(3))
    x = b.take_along(x, b.broadcast_to(b.reshape(rows, (*shape[:-1], 1)), shape), rank - 2)
    x = b.take_along(x, b.broadcast_to(b.reshape(columns, (*shape[:-2], 1, n)), shape), rank - 1)
    ahead, last = slice(0, n - 3), slice(n - 3, n)
    least = _part(b, worth, n - 4)
    lost = b.ge(least, 2)
    head = b.where(_matrices(b, lost), _identity(b, n - 3, b.dtype(x)), _part(b, x, ahead, ahead))
    rest = b.sub(_part(b, x, last, last), b.matmul(_part(b, x, last, ahead), b.solve(head, _part(b, x, ahead, last))))
    out = b.where(lost, 0.0, b.mul(b.regular_det(head), _three(b, rest)))
    return b.add(out, b.where(b.ge(least, 1), _beyond(b, x), 0.0))


def _identity(b: Any, n: int, dtype: Any) -> Any:
    line = b.base.arange(0, n)
    return b.base.cast(b.base.eq(b.base.reshape(line, (n, 1)), line), dtype)


def _beyond(b: Any, x: Any) -> Any:
    """0, as its derivatives up to the third are; from the fourth on they are infinite or NaN.

    It is the power 3.5 of a linear function of how far the entries are from what they are, with coefficients that stand in no relation.
    """
    n = b.shape(x)[-1]
    line = b.base.arange(1.0, n + 1.0, 1.0, b.dtype(x))
    left, right = b.base.reshape(b.base.sin(line), (1, n)), b.base.reshape(b.base.cos(line), (n, 1))
    return b.powf(_part(b, b.matmul(left, b.matmul(b.sub(x, b.held(x)), right)), 0, 0), 3.5)


_LARGE = (Sample((_square(4, 4),)), Sample((_square(2, 5, 5, seed=1),)))
define("large_det(x)", COMPOSITE, _eliminated, lanes=lanes.matrices, samples=calls(*_LARGE))
define("det(x)", COMPOSITE, _det, lanes=lanes.matrices, samples=calls(
    *_REGULAR.calls, *_LARGE, Sample((filled((2, 0, 0), -1, 1),)), Sample((_square(1, 1),)), Sample(([[1.0, 2.0], [2.0, 4.0]],)),
    Sample(([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [-1.0, 0.5, 2.0]],))))
