"""Taylor mode: each value carries the first K coefficients of its Taylor series in one variable.

``terms[k - 1]`` is the k-th coefficient, not multiplied by k!. ``None`` is a zero that was never an array, and a short tuple ends in zeros.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from nestgrad.errors import OrderError, ShapeError
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.coats import tied
from nestgrad.levels.level import Level
from nestgrad.levels.recurrence import Lazy, Scope
from nestgrad.ops.table import Op

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor


class Series(Coat):
    """A value with its Taylor coefficients from the first on."""

    __slots__ = ("order", "terms")
    order: int
    terms: tuple[Any, ...]

    @property
    def more(self) -> Any:
        """The coefficients that are not zero."""
        return tuple([t for t in self.terms if t is not None])

    def over(self, inner: Any) -> "Series":
        """The same coefficients beside another inner value."""
        return series(self.tape, inner, self.terms, self.order)

    def mapped(self, f: Callable[[Any], Any]) -> "Series":
        """``f`` on value and coefficients."""
        return series(self.tape, f(self.value), tuple([None if t is None else f(t) for t in self.terms]), self.order)

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Run the recurrence of the op as far as the order goes."""
        tape, order = self.tape, self.order
        raw = not any(isinstance(p, Coat) for a in args for p in (coefficients(a, tape) if isinstance(a, Coat) else ()))
        scope = Scope(b, tape, raw)
        try:
            out = scope.run(op, [scope.known([a.value, *a.terms]) if isinstance(a, Series) and a.tape is tape else a for a in args], params)
            answers = [self._summed(p) for p in (out if op.results else (out,))]
        except RecursionError as error:  # the rule of x**n asks for x**(n - 1), and so on, once for each order
            raise OrderError(
                f"{op.name}: got order {order} in Taylor mode, beyond which Python does not nest; expected up to about 80, since each "
                "coefficient of this op asks for another op. Try a lower order, or (n * x.log()).exp() for a power of positive numbers"
            ) from error
        finally:
            scope.close()
        return tuple(answers) if op.results else answers[0]

    def _summed(self, p: Any) -> Any:
        """A lazy series as far as the order goes; a constant as it is."""
        if not isinstance(p, Lazy):
            return p
        terms = [p[k] for k in range(self.order + 1)]
        while terms[-1] is None:  # the value never is
            terms.pop()
        return series(self.tape, terms[0], tuple(terms[1:]), self.order) if len(terms) > 1 else terms[0]


def series(tape: Tape, value: Any, terms: Sequence[Any], order: int) -> Series:
    """A coat; value and coefficients, of one shape, wear coats of older tapes only."""
    coat = Series()
    coat.tape, coat.value, coat.terms, coat.order = tape, value, tuple(terms), order
    return coat


def coefficients(p: Any, tape: Tape) -> list[Any]:
    """Value and coefficients of ``p``, whose outermost coat is the tape's or is none of it."""
    return [p.value, *p.terms] if isinstance(p, Series) and p.tape is tape else [p]


class Taylor(Level):
    """Taylor mode: derivatives of high order along a line in one pass, in O(order^2) operations.

    Args:
        inner: A backend, or a level.
        order: How many coefficients are carried, from 1 on.

    Raises:
        OrderError: If the order is no positive int.

    >>> from nestgrad.backends import NumpyBackend
    >>> T = Taylor(NumpyBackend(), order=3)
    >>> y = T.series(2.0, 1.0) ** 3
    >>> [c.item() for c in T.terms(y)]
    [8.0, 12.0, 6.0, 1.0]
    """

    name = "taylor"

    def __init__(self, inner: Any, order: int) -> None:
        super().__init__(inner)
        self.order = checked_order("Taylor", order)

    def series(self, x: Any, *terms: Any) -> "Tensor":
        """``x + terms[0] t + terms[1] t^2 + ...``: a value that moves along a curve.

        Args:
            x: A floating Tensor, array or number, on any levels.
            terms: Coefficients of the same shape, as many as the order at most; the others are zero.

        Raises:
            OrderError: If there are more coefficients than the order.
            ShapeError: If the shapes differ.
            DTypeError: Integers, which have no derivative.
            LevelError: If one of them was taken out of this level.
        """
        if not 1 <= len(terms) <= self.order:
            raise OrderError(f"series: got {len(terms)} coefficients for order {self.order}; expected 1 to {self.order}")
        return self.enter("series", x, *terms, dress=self._dressed_in)

    def terms(self, y: "Tensor") -> "tuple[Tensor, ...]":
        """The coefficients 0 to ``order`` of ``y``, each of its shape, marked as taken out of this level. Levels above are taken off.

        Raises:
            LevelError: If ``y`` was taken out of this level before.
        """
        shape = tuple(y.b.shape(y.value))

        def take(coat: Series | None, value: Any) -> list[Any]:
            given = () if coat is None else coat.terms
            terms = [*given, *[None] * (self.order - len(given))]
            zero = y.b.base.full(shape, 0.0, y.b.dtype(value)) if any(t is None for t in terms) else None
            return [value, *(tied(zero if t is None else t, value, shape) for t in terms)]

        return tuple(self.leave("terms", y, take))

    def _dressed_in(self, b: Any, tape: Tape, value: Any, *terms: Any) -> Any:
        if wrong := [t for t in terms if tuple(b.shape(t)) != tuple(b.shape(value))]:
            shapes = f"got a coefficient of shape {b.shape(wrong[0])} for a value of shape {b.shape(value)}"
            raise ShapeError(f"series: {shapes}; expected the same")
        if not any(isinstance(p, Coat) and p.tape.birth >= tape.birth for p in (value, *terms)):
            return series(tape, value, terms, self.order)
        zero, one = (b.base.full((), c, b.dtype(value)) for c in (0.0, 1.0))  # arrays, since a trace may capture them
        for k, term in enumerate(terms):
            value = b.add(value, b.mul(term, series(tape, zero, [*[None] * k, one], self.order)))
        return value


def checked_order(name: str, order: Any, least: int = 1) -> int:
    """``order``, if it is an int from ``least`` on.

    Raises:
        OrderError: If it is not.
    """
    if not isinstance(order, int) or isinstance(order, bool) or order < least:
        raise OrderError(f"{name}: got order {order!r}; expected an int from {least} on. The value itself needs no level")
    return order
