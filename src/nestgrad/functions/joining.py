"""Arrays put together, brought to as many axes, or to one shape."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.functions.shaping import concat, operands
from nestgrad.tensor.axes import broadcast
from nestgrad.tensor.handle import Operand, arrays, as_tensor, make

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = [
    "hstack", "vstack", "dstack", "column_stack", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "meshgrid",
]  # fmt: skip


def atleast_1d(x: Operand) -> "Tensor":
    """A number as a vector of one entry; anything else as it is."""
    v = as_tensor(x)
    return v if v.ndim else v.reshape(1)


def atleast_2d(x: Operand) -> "Tensor":
    """A number or a vector as a matrix of one row; anything else as it is."""
    v = as_tensor(x)
    return v if v.ndim >= 2 else v.reshape(1, v.size)


def atleast_3d(x: Operand) -> "Tensor":
    """At least three axes: a vector as ``(1, n, 1)``, a matrix as ``(n, m, 1)``, as in NumPy."""
    v = as_tensor(x)
    return v if v.ndim >= 3 else v.reshape(1, v.size, 1) if v.ndim < 2 else v.reshape(*v.shape, 1)


def hstack(xs: Sequence[Operand]) -> "Tensor":
    """Arrays side by side: along the second axis, or along the only one.

    Raises:
        ShapeError: No arrays, or shapes that differ along another axis.

    >>> from nestgrad import tensor
    >>> hstack([tensor([[1], [2]]), tensor([[3], [4]])]).tolist()
    [[1, 3], [2, 4]]
    """
    parts = [atleast_1d(x) for x in _together("hstack", xs)]
    return concat(parts, axis=1 if parts and parts[0].ndim > 1 else 0)


def vstack(xs: Sequence[Operand]) -> "Tensor":
    """Arrays one under the other: along the first axis; vectors are rows.

    >>> from nestgrad import tensor
    >>> vstack([tensor([1, 2]), tensor([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    return concat([atleast_2d(x) for x in _together("vstack", xs)])


def dstack(xs: Sequence[Operand]) -> "Tensor":
    """Arrays one behind the other: along the third axis."""
    return concat([atleast_3d(x) for x in _together("dstack", xs)], axis=2)


def column_stack(xs: Sequence[Operand]) -> "Tensor":
    """Arrays side by side; vectors are columns.

    >>> from nestgrad import tensor
    >>> column_stack([tensor([1, 2]), tensor([3, 4])]).tolist()
    [[1, 3], [2, 4]]
    """
    return concat([x if x.ndim > 1 else x.reshape(x.size, 1) for x in _together("column_stack", xs)], axis=1)


def _together(name: str, xs: Sequence[Operand]) -> "list[Tensor]":
    """Tensors that may meet. Arrays are those of the backend of the Tensors, and numbers have their dtype."""
    b, values, marks = operands(name, xs)
    return [make(b, v, marks) for v in values]


def broadcast_arrays(*xs: Operand) -> "tuple[Tensor, ...]":
    """All in the shape that they broadcast to.

    Raises:
        ShapeError: If there is none.
    """
    if not xs:
        return ()
    b, values, marks = arrays("broadcast_arrays", *xs)
    shapes = [tuple(b.shape(v)) for v in values]
    shape = broadcast(shapes)
    if shape is None:
        raise ShapeError(f"broadcast_arrays: got shapes {shapes}; expected sizes on each axis, from the last on, that are equal or 1")
    return tuple(make(b, v if s == shape else b.broadcast_to(v, shape), marks) for v, s in zip(values, shapes, strict=True))


def meshgrid(*xs: Operand, indexing: str = "xy") -> "tuple[Tensor, ...]":
    """Coordinates of the points of a grid, one array for each axis.

    Args:
        xs: Vectors; numbers are vectors of one entry. Each keeps its own levels.
        indexing: ``"ij"``: axis ``k`` of the results goes with vector ``k``. ``"xy"``: the first two axes are exchanged, as in pictures.

    Raises:
        ShapeError: Arrays with more axes.
        ArgumentError: Another word for ``indexing``.

    >>> from nestgrad import tensor
    >>> x, y = meshgrid(tensor([1, 2]), tensor([3, 4, 5]))
    >>> x.tolist(), y.shape
    ([[1, 2], [1, 2], [1, 2]], (3, 2))
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: got indexing {indexing!r}; expected 'xy' or 'ij'")
    vectors: list[Any] = [atleast_1d(x) for x in xs]
    if wrong := [v.shape for v in vectors if v.ndim > 1]:
        raise ShapeError(f"meshgrid: got an array of shape {wrong[0]}; expected vectors")
    place = [*range(len(vectors))]
    if indexing == "xy" and len(vectors) > 1:
        place[:2] = [1, 0]
    shape = [vectors[place.index(k)].size for k in range(len(vectors))]
    return tuple(
        v.reshape([v.size if k == place[i] else 1 for k in range(len(shape))]).broadcast_to(shape) for i, v in enumerate(vectors)
    )
