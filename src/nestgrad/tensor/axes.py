"""Arguments that are axes and shapes, which are read before an op is called."""

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.tensor.handle import Handle, Operand, as_tensor

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


def axes_of(rank: int, axis: int | Sequence[int] | None, name: str) -> tuple[int, ...]:
    """``axis`` as a tuple of distinct non-negative ints; ``None`` means all of them.

    Raises:
        ShapeError: An axis out of range, or named twice.
    """
    if axis is None:
        return tuple(range(rank))
    try:
        if isinstance(axis, str):
            raise TypeError
        given = (axis,) if isinstance(axis, int) else tuple(index(k) for k in axis) if isinstance(axis, Sequence) else (index(axis),)
    except TypeError as error:
        raise ShapeError(f"{name}: got axis {axis!r}; expected an int, a tuple of ints, or None for all axes") from error
    if wrong := [k for k in given if not -rank <= k < rank]:
        raise ShapeError(f"{name}: got axis {wrong[0]} of an array with {rank} axes; expected an int from {-rank} to {rank - 1}")
    axes = tuple(k % rank for k in given)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: got axis {axis!r}; expected each axis once")
    return axes


def spelled(name: str, axis: Any, keepdims: bool, dim: Any, keepdim: bool | None, default: int | None = None) -> tuple[Any, bool]:
    """``axis`` and ``keepdims`` where torch's words ``dim`` and ``keepdim`` may have been used for them.

    Raises:
        ArgumentError: If one was given in both spellings.
    """
    if dim is not None:
        if axis != default:
            raise ArgumentError(f"{name}: got axis={axis!r} and dim={dim!r}, which are two words for one; expected one of them. Try axis")
        axis = dim
    if keepdim is not None:
        if keepdims:
            raise ArgumentError(f"{name}: got keepdims={keepdims!r} and keepdim={keepdim!r}, which are two words for one; expected one of "
                                "them. Try keepdims")  # fmt: skip
        keepdims = keepdim
    return axis, keepdims


def one_axis(x: Handle, axis: int, name: str) -> int:
    """``axis`` of ``x`` as a non-negative int.

    Raises:
        ShapeError: If it is not one axis of ``x``.
    """
    return axis_of(len(x.b.shape(x.value)), axis, name)


def axis_of(rank: int, axis: Any, name: str) -> int:
    """``axis`` of an array with ``rank`` axes as a non-negative int.

    Raises:
        ShapeError: If it is not one of them.
    """
    axes = axes_of(rank, axis, name)
    if axis is None or len(axes) != 1:
        raise ShapeError(f"{name}: got axis {axis!r}; expected one axis. Try .flatten() first, to take several")
    return axes[0]


def with_axes(name: str, x: Operand, least: int) -> "Tensor":
    """``x`` as a Tensor.

    Raises:
        ShapeError: If it has fewer axes than ``least``.
    """
    v = as_tensor(x)
    if v.ndim < least:
        raise ShapeError(f"{name}: got shape {v.shape}; expected at least {least} {'axis' if least == 1 else 'axes'}")
    return v


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape that several broadcast to; ``None`` if there is none."""
    rank = max(map(len, shapes))
    wide = [(1,) * (rank - len(s)) + s for s in shapes]
    shape = tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*wide, strict=True))
    return shape if all(n in (1, m) for s in wide for n, m in zip(s, shape, strict=True)) else None


def shape_of(name: str, *shape: Any) -> tuple[int, ...]:
    """``f((2, 3))`` and ``f(2, 3)`` alike.

    Raises:
        ShapeError: If the sizes are no ints.
    """
    sizes = shape[0] if len(shape) == 1 and hasattr(shape[0], "__iter__") else shape
    try:
        return tuple(index(n) for n in sizes)
    except TypeError as error:
        raise ShapeError(f"{name}: got {shape!r:.80}; expected ints, or one tuple of ints") from error
