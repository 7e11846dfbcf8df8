"""Solutions, inverses and determinants in terms of the required operations, by Gaussian elimination with complete pivoting.

Stacks of matrices are eliminated together, each in an order of its own: entries are picked by masks, and nothing is moved.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from nestgrad.backends.derived.along import Along
from nestgrad.backends.primitives import Value
from nestgrad.errors import SingularMatrixError


@dataclass
class Elimination:
    """What was found on the way.

    Attributes:
        places: For each step a mask of the matrix, which holds where its pivot stands.
        pivots: The pivots, of shape ``(...)``.
        grains: For each pivot the sum of the sizes of what it is the difference of, with which its rounding error grows.
        sides: The right sides, as they are in the end: row by row the solution, in the order of the pivots' rows.
    """

    sides: Value = None
    places: list[Value] = field(default_factory=list)
    pivots: list[Value] = field(default_factory=list)
    grains: list[Value] = field(default_factory=list)


class Linalg(Along):
    """What rests on elimination."""

    def solve(self, x: Value, y: Value) -> Value:
        """The ``z`` of ``x z = y``, matrices in the last two axes; leading axes broadcast.

        Raises:
            SingularMatrixError: If a pivot is 0.
        """
        return self._solved("solve", x, y)

    def inv(self, x: Value) -> Value:
        """The inverse of each matrix in the last two axes.

        Raises:
            SingularMatrixError: If a pivot is 0.
        """
        return self._solved("inv", x, self._identity(x))

    def _solved(self, name: str, x: Value, y: Value) -> Value:
        """``solve``, for the op of that name."""
        rank, n = len(self.shape(x)), self.shape(x)[-1]
        wide = max(rank, len(self.shape(y)))
        y = self.reshape(y, (*(1,) * (wide - len(self.shape(y))), *self.shape(y)))
        lead = self.shape(self.add(self.sum(x, (rank - 2, rank - 1), True), self.sum(y, (wide - 2, wide - 1), True)))[:-2]
        found = self._elimination(x, n, sides=self.broadcast_to(y, (*lead, *self.shape(y)[-2:])))
        if any(self.to_numpy(self.eq(pivot, 0)).any() for pivot in found.pivots):
            raise singular(name, self.shape(x))
        order = self.mul(self._identity(x), 0)
        for place in found.places:  # the row of the pivot has become that of its column
            order = self.add(order, self.cast(self._transposed(place), self.dtype(x)))
        return self.matmul(order, found.sides)

    def _identity(self, x: Value) -> Value:
        """The identity matrix of as many rows, in the dtype."""
        n = self.shape(x)[-1]
        line = self._upto(n)
        return self.cast(self.eq(self.reshape(line, (n, 1)), line), self.dtype(x))

    def large_det(self, x: Value) -> Value:
        """The determinant of each matrix in the last two axes; 1 of a matrix without entries."""
        found = self._elimination(x, self.shape(x)[-1])
        out = self._sign_of(x, found)
        for pivot in found.pivots:
            out = self.mul(out, pivot)
        return out

    def regular_det(self, x: Value) -> Value:
        """``large_det`` of matrices that are not singular, for its derivatives divide by it."""
        return self.large_det(x)

    def slogdet(self, x: Value) -> tuple[Value, Value]:
        """The sign of the determinant, and the logarithm of its absolute value: 0 and -inf of a singular matrix."""
        found = self._elimination(x, self.shape(x)[-1])
        sign = self._sign_of(x, found)
        total = self.mul(sign, 0)
        for pivot in found.pivots:
            sign = self.mul(sign, self.sign(pivot))
            total = self.add(total, self.log(self.abs(pivot)))
        return sign, total

    def pivots(self, x: Value) -> Value:
        """An order of rows and columns in which elimination goes well: of shape ``(..., 3, n)``, for ``n`` from 4 on, as int64.

        First the rows, then the columns, by complete pivoting down to the last three, which stand in order; but the last two rows are
        exchanged where both permutations together would be odd. Then a word on each pivot, and on those before it: 2 if nothing is left
        but rounding errors, 1 if so little is left that derivatives of higher orders lose their digits (``vague``), 0 otherwise.
        """
        n, lead = self.shape(x)[-1], self.shape(x)[:-2]
        axis, line = len(lead), self._upto(n)
        eps = resolution(self, self.dtype(x))
        found = self._elimination(x, n - 3, noise=noise(n, eps))
        orders = []
        for order in self._orders(found):
            taken = self.eq(self.reshape(order, (*lead, n - 3, 1)), line)
            free = self.eq(self.sum(taken, (axis,)), 0)
            last = self.sort(self.where(free, line, n), axis)[0]
            orders.append(self.concat(order, self.getitem(last, (*(slice(None),) * axis, slice(0, 3))), axis=axis))
        rows, columns = orders
        ahead, (one, other) = (*(slice(None),) * axis,), (slice(n - 2, n - 1), slice(n - 1, n))
        swapped = self.concat(*(self.getitem(rows, (*ahead, part)) for part in (slice(0, n - 2), other, one)), axis=axis)
        rows = self.where(self.reshape(self._odd(rows, columns), (*lead, 1)), swapped, rows)
        words, word = [], self.mul(self.getitem(rows, (*ahead, 0)), 0)
        for pivot, grain in zip(found.pivots, found.grains, strict=True):
            size = self.abs(pivot)
            lost, small = (self.le(size, self.mul(grain, limit)) for limit in (noise(n, eps), vague(eps)))
            word = self.maximum(word, self.add(self._whole(lost), self._whole(small)))
            words.append(self.reshape(word, (*lead, 1)))
        words += [self.reshape(word, (*lead, 1))] * 3
        return self.concat(*(self.reshape(v, (*lead, 1, n)) for v in (rows, columns, self.concat(*words, axis=axis))), axis=axis)

    def held(self, x: Value) -> Value:
        """``x`` itself, which is a constant on every level."""
        return x

    # elimination

    def _elimination(self, x: Value, steps: int, sides: Value = None, noise: float = 0.0) -> Elimination:
        """Eliminate in all rows but the pivot's, which is divided by it. What may be ``noise`` is no pivot while there is anything else."""
        *lead, n, _ = self.shape(x)
        found, axes = Elimination(sides), (len(lead), len(lead) + 1)
        grain = self.abs(x)
        cells = self.reshape(self._upto(n * n), (n, n))
        free = self.eq(cells, cells)
        for _ in range(steps):
            size = self.abs(x)
            size = self.where(self.lt(self.mul(grain, noise), size), size, self.where(self.isnan(size), size, 0))
            line = self.reshape(self.where(free, size, -1), (*lead, n * n))
            place = self.eq(cells, self.reshape(self.argmax(line, len(lead)), (*lead, 1, 1)))
            in_row, in_column = (self.ne(self.sum(place, axis, True), 0) for axis in (axes[1:], axes[:1]))
            pivot, weight = (self.sum(self.where(place, v, 0), axes, True) for v in (x, grain))
            divisor = self.where(self.eq(pivot, 0), 1, pivot)
            share = self.div(self.sum(self.where(in_column, x, 0), axes[1:], True), divisor)
            row = self.sum(self.where(in_row, x, 0), axes[:1], True)
            change = self.mul(share, row)
            x = self.where(in_row, self.div(row, divisor), self.sub(x, change))
            grain = self.add(grain, self.abs(change))
            if sides is not None:
                row = self.sum(self.where(in_row, sides, 0), (len(self.shape(sides)) - 2,), True)
                sides = self.where(in_row, self.div(row, divisor), self.sub(sides, self.mul(share, row)))
            free = self.logical_and(free, self.logical_not(self.logical_or(in_row, in_column)))
            found.places.append(place)
            found.pivots.append(self.reshape(pivot, tuple(lead)))
            found.grains.append(self.reshape(weight, tuple(lead)))
        found.sides = sides
        return found

    def _orders(self, found: Elimination) -> tuple[Value, Value]:
        """The rows and the columns of the pivots."""
        *lead, n, _ = self.shape(found.places[0])
        line, axis = self._upto(n), len(lead)
        orders = []
        for numbers in (self.reshape(line, (n, 1)), line):
            at = [self.sum(self.where(place, numbers, 0), (axis, axis + 1)) for place in found.places]
            orders.append(self.concat(*(self.reshape(p, (*lead, 1)) for p in at), axis=axis))
        return orders[0], orders[1]

    def _odd(self, *orders: Value) -> Value:
        """Whether permutations are odd together, by the pairs that stand in the wrong order."""
        total = None
        for order in orders:
            *lead, n = self.shape(order)
            line = self._upto(n)
            earlier = self.lt(self.reshape(line, (n, 1)), line)
            wrong = self.lt(self.reshape(order, (*lead, 1, n)), self.reshape(order, (*lead, n, 1)))
            count = self.sum(self.logical_and(earlier, wrong), (len(lead), len(lead) + 1))
            total = count if total is None else self.add(total, count)
        return self.ne(self.mul(self.floor(self.div(total, 2)), 2), total)

    def _sign_of(self, x: Value, found: Elimination) -> Value:
        """1 or -1: the sign of the permutation of rows and columns."""
        axes = (len(self.shape(x)) - 2, len(self.shape(x)) - 1)
        if not found.places:
            return self.add(self.sum(x, axes), 1)
        return self.where(self._odd(*self._orders(found)), self.asarray(-1, self.dtype(x)), 1)

    def _whole(self, mask: Value) -> Value:
        return self.where(mask, self.asarray(1), 0)


def noise(n: int, eps: float) -> float:
    """Up to which share of its grain an entry may be rounding errors alone, after elimination of an ``(n, n)`` matrix."""
    return 8.0 * n * eps


def vague(eps: float) -> float:
    """Up to which share of its grain a pivot is *vague*: from the fourth order on, each order divides errors of ``eps`` by that share."""
    return float(eps**0.25)


def singular(name: str, shape: Any) -> SingularMatrixError:
    """The error for a matrix that is singular."""
    kind = "a singular matrix" if len(shape) == 2 else "a singular matrix in a stack"
    return SingularMatrixError(
        f"{name}: got {kind} of shape {tuple(shape)}; expected one that has an inverse, since elimination came upon a pivot of 0. "
        "Try x + c * eye(n) for a small c, or det, which has derivatives there, too"
    )


@cache
def resolution(b: Any, dtype: Any) -> float:
    """The distance from 1 to the next number of a dtype."""
    one, eps = b.asarray(1.0, dtype), 1.0
    while eps > 1e-300 and b.to_numpy(b.lt(one, b.add(one, eps / 2))):
        eps /= 2
    return eps
