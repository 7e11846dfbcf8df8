"""Functions that turn, move and repeat axes and parts of arrays. Names and arguments as in NumPy, where it differs from torch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ShapeError
from nestgrad.tensor.arguments import whole_number
from nestgrad.tensor.arranging import Axes
from nestgrad.tensor.axes import axes_of, with_axes
from nestgrad.tensor.handle import Operand, as_tensor

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90", "moveaxis", "repeat", "tile", "flatten", "unflatten"]


def flip(x: Operand, axis: Axes = None) -> "Tensor":
    """The entries in reversed order along the axes; ``None``: along all.

    >>> from nestgrad import tensor
    >>> flip(tensor([[1, 2], [3, 4]]), axis=1).tolist()
    [[2, 1], [4, 3]]
    """
    return as_tensor(x).flip(axis)


def flipud(x: Operand) -> "Tensor":
    """The entries in reversed order along the first axis. ``ShapeError`` of a number."""
    return with_axes("flipud", x, 1).flip(0)


def fliplr(x: Operand) -> "Tensor":
    """The entries in reversed order along the second axis. ``ShapeError`` of fewer than two axes."""
    return with_axes("fliplr", x, 2).flip(1)


def roll(x: Operand, shift: int | Sequence[int], axis: Axes = None) -> "Tensor":
    """The entries moved on by ``shift`` along an axis; those that leave at the end come in at the start. ``None``: the flattened array.

    Args:
        x: Any shape.
        shift: How far, negative numbers too; or one number for each axis.
        axis: Which axes, each once.

    >>> from nestgrad import tensor
    >>> roll(tensor([1, 2, 3, 4]), 1).tolist()
    [4, 1, 2, 3]
    """
    return as_tensor(x).roll(shift, axis)


def rot90(x: Operand, k: int = 1, axes: Sequence[int] = (0, 1)) -> "Tensor":
    """Turned by ``k`` right angles in the plane of two axes, from the first towards the second.

    Raises:
        ShapeError: If these are not two axes.

    >>> from nestgrad import tensor
    >>> rot90(tensor([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    v = as_tensor(x)
    plane = axes_of(v.ndim, tuple(axes), "rot90")
    if len(plane) != 2:
        raise ShapeError(f"rot90: got axes {tuple(axes)}; expected two")
    first, second = plane
    turns = whole_number("rot90", "k", k) % 4
    if turns == 0:
        return v
    if turns == 2:
        return v.flip(plane)
    return v.flip(second).swapaxes(first, second) if turns == 1 else v.flip(first).swapaxes(first, second)


def moveaxis(x: Operand, source: int | Sequence[int], destination: int | Sequence[int]) -> "Tensor":
    """Some axes at other places, the others in their order.

    Raises:
        ShapeError: An axis that there is not, or as many places as there are not axes.

    >>> from nestgrad import zeros
    >>> moveaxis(zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    v = as_tensor(x)
    start, end = axes_of(v.ndim, source, "moveaxis"), axes_of(v.ndim, destination, "moveaxis")
    if len(start) != len(end):
        raise ShapeError(f"moveaxis: got axes {source} for places {destination}; expected as many of each")
    order = [k for k in range(v.ndim) if k not in start]
    for place, k in sorted(zip(end, start, strict=True)):
        order.insert(place, k)
    return v.permute(order)


def repeat(x: Operand, repeats: Any, axis: int | None = None) -> "Tensor":
    """Each entry several times, one beside the other, as ``np.repeat`` and ``torch.repeat_interleave``.

    Args:
        x: Any shape.
        repeats: How many times; or one whole number for each entry along the axis, the same for all samples of a batch.
        axis: Which axis; ``None``: the flattened array. What torch calls ``x.repeat(2, 3)`` is ``tile(x, (2, 3))``.

    Raises:
        ShapeError: Negative numbers, or not as many as entries.

    >>> from nestgrad import tensor
    >>> repeat(tensor([1, 2]), 2).tolist(), repeat(tensor([1, 2]), [0, 3]).tolist()
    ([1, 1, 2, 2], [2, 2, 2])
    """
    return as_tensor(x).repeat(repeats, axis)


def tile(x: Operand, reps: int | Sequence[int]) -> "Tensor":
    """The whole array several times along each axis, as ``np.tile``; what torch calls ``x.repeat``.

    Args:
        x: Any shape.
        reps: How many times, for each axis; for the last ones, if there are fewer numbers than axes.

    Raises:
        ShapeError: Negative numbers.

    >>> from nestgrad import tensor
    >>> tile(tensor([1, 2]), 2).tolist()
    [1, 2, 1, 2]
    """
    return as_tensor(x).tile(reps)


def flatten(x: Operand, start: int = 0, end: int = -1) -> "Tensor":
    """The axes from ``start`` to ``end``, both included, as one."""
    return as_tensor(x).flatten(start, end)


def unflatten(x: Operand, axis: int, sizes: Sequence[int]) -> "Tensor":
    """One axis as several, of the given sizes; one of them may be -1.

    >>> from nestgrad import zeros
    >>> unflatten(zeros((6, 2)), 0, (3, -1)).shape
    (3, 2, 2)
    """
    return as_tensor(x).unflatten(axis, sizes)
