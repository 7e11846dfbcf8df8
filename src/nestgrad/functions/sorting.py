"""Functions that order entries."""

from typing import TYPE_CHECKING

from nestgrad.errors import ShapeError
from nestgrad.tensor.arguments import whole_number
from nestgrad.tensor.axes import one_axis
from nestgrad.tensor.handle import Operand, as_tensor, results

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["sort", "argsort", "topk", "kthvalue"]


def sort(x: Operand, axis: int = -1, descending: bool = False) -> "Tensor":
    """The entries in order along an axis. Equal ones keep their order, which says who gets the derivative.

    It is no method of tensors, since that of NumPy's arrays changes the array, and that of torch's tensors gives the positions, too.

    Args:
        x: At least one axis.
        axis: Along which axis.
        descending: Whether the greatest comes first.

    Returns:
        The shape and dtype of ``x``. NaN counts as greater than every number.

    Raises:
        ShapeError: If there is no such axis.

    >>> from nestgrad import tensor
    >>> sort(tensor([3.0, 1.0, 2.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    x = as_tensor(x)
    return results("sort", x, axis=one_axis(x, axis, "sort"), descending=bool(descending))[0]


def argsort(x: Operand, axis: int = -1, descending: bool = False) -> "Tensor":
    """The positions of the entries in order, as int64; a constant. ``sort`` says which order.

    >>> from nestgrad import tensor
    >>> argsort(tensor([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
    return as_tensor(x).argsort(axis, descending)


def topk(x: Operand, k: int, axis: int = -1, largest: bool = True) -> "tuple[Tensor, Tensor]":
    """The ``k`` greatest entries along an axis, the greatest first, or the smallest ones; and their positions.

    Args:
        x: At least one axis.
        k: How many, from 0 to the size of the axis.
        axis: Along which axis.
        largest: Whether the greatest are wanted.

    Returns:
        The values, and the positions as int64, which are constants. They are the first of ``sort``: equal entries keep their order, which
        says which are taken and who gets the derivative. NaN counts as greater than every number.

    Raises:
        ShapeError: If there is no such axis, or are not so many entries.

    >>> from nestgrad import tensor
    >>> values, positions = topk(tensor([3.0, 1.0, 4.0, 1.0]), 2)
    >>> values.tolist(), positions.tolist()
    ([4.0, 3.0], [2, 0])
    """
    x = as_tensor(x)
    place, count = _counted("topk", x, axis, k, 0)
    values, positions = results("topk", x, k=count, axis=place, largest=bool(largest))
    return values, positions


def kthvalue(x: Operand, k: int, axis: int = -1, keepdims: bool = False) -> "tuple[Tensor, Tensor]":
    """The ``k``-th smallest entry along an axis, counted from 1 as in torch, and its position.

    Args:
        x: At least one axis.
        k: From 1 to the size of the axis.
        axis: Along which axis.
        keepdims: Whether it stays, with size 1.

    Returns:
        The values, and the positions as int64, which are constants. Equal entries count in their order, which says who gets the
        derivative. NaN counts as greater than every number.

    Raises:
        ShapeError: If there is no such axis, or are not so many entries.

    >>> from nestgrad import tensor
    >>> [v.item() for v in kthvalue(tensor([3.0, 1.0, 4.0]), 2)]
    [3.0, 0]
    """
    x = as_tensor(x)
    place, rank = _counted("kthvalue", x, axis, k, 1)
    values, positions = results("ranked", x, ranks=(rank - 1,), axis=place)
    return (values, positions) if keepdims else (values.squeeze(place), positions.squeeze(place))


def _counted(name: str, x: "Tensor", axis: int, k: int, least: int) -> tuple[int, int]:
    """The axis, and a number from ``least`` to its size."""
    place = one_axis(x, axis, name)
    size, count = x.shape[place], whole_number(name, "k", k)
    if not least <= count <= size:
        raise ShapeError(f"{name}: got k={k!r} for {size} entries along axis {place}; expected an int from {least} to {size}")
    return place, count
