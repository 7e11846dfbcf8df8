"""``Forward``: dual numbers as a backend decorator.

A value carries its tangent along: the derivative of the value in one direction. An absent tangent is an absent coat, never zeros.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ShapeError
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.coats import tied
from nestgrad.levels.level import Level
from nestgrad.levels.pushforward import push
from nestgrad.ops.table import Op

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor


class Dual(Coat):
    """A value with its tangent."""

    __slots__ = ("tangent",)
    tangent: Any

    @property
    def more(self) -> Any:
        """The tangent."""
        return (self.tangent,)

    def over(self, inner: Any) -> "Dual":
        """The same tangent beside another inner value."""
        return dual(self.tape, inner, self.tangent)

    def mapped(self, f: Callable[[Any], Any]) -> "Dual":
        """``f`` on value and tangent."""
        value, tangent = f(self.value), f(self.tangent)
        return self if value is self.value and tangent is self.tangent else dual(self.tape, value, tangent)

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """The op on the values, and on the tangents what the table says."""
        tape = self.tape
        xs: list[Any] = []
        ts: list[Any] = []
        raw = True
        for a in args:
            if a.__class__ is Dual and a.tape is tape:
                x, t = a.value, a.tangent
                raw = raw and not (isinstance(x, Coat) or isinstance(t, Coat))
            else:
                x, t = a, None
                raw = raw and not isinstance(a, Coat)
            xs.append(x)
            ts.append(t)
        out = b.run(op, xs, params)
        tangent = push(b.bare if raw else b, op, xs, ts, out, params)  # raw arrays need no more than the base's own functions
        if op.results:
            return tuple(v if t is None else dual(tape, v, t) for v, t in zip(out, tangent, strict=True))
        return out if tangent is None else dual(tape, out, tangent)


class Forward(Level):
    """Forward mode: values carry a tangent, the derivative in one direction. Costs two to three times the function.

    Nested, it carries tangents of tangents; over or under ``Autodiff`` it gives products with second derivatives.

    Args:
        inner: A backend, or a level.

    >>> from nestgrad.backends import NumpyBackend
    >>> F = Forward(NumpyBackend())
    >>> y = F.dual(2.0, 1.0) ** 3
    >>> F.primal(y).item(), F.tangent(y).item()
    (8.0, 12.0)
    """

    name = "forward"

    def dual(self, x: Any, tangent: Any) -> "Tensor":
        """``x`` moving in the direction ``tangent``.

        Args:
            x: A floating Tensor, array or number, on any levels.
            tangent: Of the same shape, on any levels.

        Returns:
            ``x`` with the tangent added to what it has on this level already.

        Raises:
            ShapeError: If the shapes differ.
            DTypeError: Integers, which have no derivative.
            LevelError: If one of them was taken out of this level.
        """
        return self.enter("dual", x, tangent, dress=moving)

    def primal(self, y: "Tensor") -> "Tensor":
        """The value of ``y`` without its tangent, marked as taken out of this level. Levels above this one are taken off."""
        return self.leave("primal", y, lambda coat, value: [value], whole=False)[0]

    def tangent(self, y: "Tensor") -> "Tensor":
        """The tangent of ``y``, of its shape, marked as taken out of this level; zeros if it has none. Levels above are taken off.

        Raises:
            LevelError: If ``y`` was taken out of this level before.
        """
        shape = tuple(y.b.shape(y.value))

        def take(coat: Dual | None, value: Any) -> list[Any]:
            t = y.b.base.full(shape, 0.0, y.b.dtype(value)) if coat is None else coat.tangent
            return [tied(t, value, shape)]

        return self.leave("tangent", y, take)[0]


def moving(b: Any, tape: Tape, value: Any, direction: Any) -> Any:
    """``value`` with a tangent: at once where it wears nothing younger, else by adding a multiple of the infinitesimal."""
    if tuple(b.shape(value)) != tuple(b.shape(direction)):
        raise ShapeError(f"dual: got a tangent of shape {b.shape(direction)} for a value of shape {b.shape(value)}; expected the same")
    if any(isinstance(p, Coat) and p.tape.birth >= tape.birth for p in (value, direction)):
        zero, one = (b.base.full((), c, b.dtype(value)) for c in (0.0, 1.0))  # arrays, since a trace may capture them
        return b.add(value, b.mul(direction, dual(tape, zero, one)))
    return dual(tape, value, direction)


def dual(tape: Tape, value: Any, tangent: Any) -> Dual:
    """A coat; value and tangent wear coats of older tapes only."""
    coat = Dual()
    coat.tape, coat.value, coat.tangent = tape, value, tangent
    return coat


def split(p: Any, tape: Tape) -> tuple[Any, Any]:
    """Value and tangent of ``p``, whose outermost coat is the tape's or is none of it; ``None`` for an absent tangent."""
    return (p.value, p.tangent) if isinstance(p, Dual) and p.tape is tape else (p, None)
