"""What losses do with one number for each entry: ``reduction`` is ``"mean"``, ``"sum"`` or ``"none"``."""

from typing import TYPE_CHECKING

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.levels.marks import NONE
from nestgrad.tensor.handle import Operand, as_tensor, first_beside, is_floating, is_scalar, make

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

WAYS = ("mean", "sum", "none")


def known(name: str, reduction: str, ways: tuple[str, ...] = WAYS) -> str:
    """``reduction``, which is one of ``ways``.

    Raises:
        ArgumentError: If it is none of them.
    """
    if reduction not in ways:
        raise ArgumentError(f"{name}: got reduction {reduction!r}; expected {', '.join(map(repr, ways[:-1]))} or {ways[-1]!r}")
    return reduction


def reduced(name: str, loss: "Tensor", reduction: str) -> "Tensor":
    """The mean or sum of all entries, or the entries themselves."""
    known(name, reduction)
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.mean()


def pair(name: str, x: Operand, target: Operand) -> "tuple[Tensor, Operand]":
    """What is to be compared: two of the same shape, or a number beside the first.

    Raises:
        ShapeError: If the shapes differ. Broadcasting would turn shapes ``(n,)`` and ``(n, 1)`` into ``n * n`` differences.
    """
    x = first_beside(x, target)
    if is_scalar(target):
        # an array in the dtype of x: what a rule computes of numbers alone would be rounded as the array library likes
        return x, make(x.b, x.b.base.asarray(target, x.dtype), NONE) if is_floating(x) else target
    other = as_tensor(target, x.b)
    if other.shape != x.shape and other.shape != ():
        raise ShapeError(f"{name}: got shapes {x.shape} and {other.shape}; expected the same. Try .reshape, or ng.broadcast_to")
    return x, other
