"""Functions that change shapes. Entries, dtype and levels stay; what does not fit raises ``ShapeError``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nestgrad.errors import DTypeError, ShapeError
from nestgrad.levels.base import Coat
from nestgrad.levels.coats import bare
from nestgrad.tensor.axes import axis_of
from nestgrad.tensor.handle import Handle, Operand, as_tensor, is_scalar, make, meet, weak

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = [
    "reshape", "ravel", "permute", "transpose", "swapaxes", "squeeze", "expand_dims", "broadcast_to", "pad", "concat", "concatenate",
    "stack",
]  # fmt: skip


def reshape(x: Operand, shape: int | Sequence[int]) -> "Tensor":
    """The same entries, last axis fastest, in another shape; one size may be -1.

    >>> from nestgrad import arange
    >>> reshape(arange(4), (2, -1)).tolist()
    [[0, 1], [2, 3]]
    """
    return as_tensor(x).reshape(shape)


def ravel(x: Operand) -> "Tensor":
    """All entries along one axis."""
    return as_tensor(x).ravel()


def permute(x: Operand, axes: Sequence[int]) -> "Tensor":
    """The axes in another order: axis ``k`` of the result is axis ``axes[k]`` of ``x``."""
    return as_tensor(x).permute(axes)


def transpose(x: Operand, axes: Sequence[int] | None = None) -> "Tensor":
    """The axes in another order; ``None`` reverses it."""
    return as_tensor(x).transpose() if axes is None else permute(x, axes)


def swapaxes(x: Operand, first: int, second: int) -> "Tensor":
    """Two axes exchanged."""
    return as_tensor(x).swapaxes(first, second)


def squeeze(x: Operand, axis: int | Sequence[int] | None = None) -> "Tensor":
    """Without axes of size 1: the given ones, or all."""
    return as_tensor(x).squeeze(axis)


def expand_dims(x: Operand, axis: int | Sequence[int]) -> "Tensor":
    """With new axes of size 1 at the given places of the result."""
    return as_tensor(x).expand_dims(axis)


def broadcast_to(x: Operand, shape: int | Sequence[int]) -> "Tensor":
    """Repeated along axes of size 1 and new leading axes."""
    return as_tensor(x).broadcast_to(shape)


def pad(x: Operand, widths: Any, value: float = 0.0, mode: str = "constant") -> "Tensor":
    """With ``(before, after)`` entries of ``value`` added along each axis.

    >>> from nestgrad import tensor
    >>> pad(tensor([1.0, 2.0]), [(1, 0)]).tolist()
    [0.0, 1.0, 2.0]
    """
    return as_tensor(x).pad(widths, value, mode)


def concat(xs: Sequence[Operand], axis: int = 0) -> "Tensor":
    """Arrays one after the other along an axis that they have.

    Args:
        xs: At least one, whose shapes agree but for that axis. Mixed dtypes are promoted.
        axis: Which one.

    Raises:
        ShapeError: No arrays, 0-dimensional ones, or shapes that differ.

    >>> from nestgrad import tensor
    >>> concat([tensor([1.0]), tensor([2.0, 3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    b, values, marks = operands("concat", xs)
    shapes = [tuple(b.shape(v)) for v in values]
    if not shapes[0]:
        raise ShapeError("concat: got 0-dimensional arrays; expected at least one axis. Try stack, which makes one")
    k = axis_of(len(shapes[0]), axis, "concat")
    if any(s[:k] + s[k + 1 :] != shapes[0][:k] + shapes[0][k + 1 :] or len(s) != len(shapes[0]) for s in shapes):
        raise ShapeError(f"concat: got shapes {shapes}; expected them to differ along axis {k} alone")
    return make(b, _joined(b, values, k), marks)


concatenate = concat


def stack(xs: Sequence[Operand], axis: int = 0) -> "Tensor":
    """Arrays of one shape along a new axis, which stands at ``axis`` of the result. Numbers and 0-dimensional tensors make a vector.

    Raises:
        ShapeError: No arrays, or shapes that differ.

    >>> stack([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    b, values, marks = operands("stack", xs)
    shapes = [tuple(b.shape(v)) for v in values]
    if any(s != shapes[0] for s in shapes):
        raise ShapeError(f"stack: got shapes {shapes}; expected one shape")
    k = axis_of(len(shapes[0]) + 1, axis, "stack")
    return make(b, b.stack(*values, axis=k), marks)


_MOST = 512
"""How many arrays on levels one op takes. Each of its edges adds up the sizes of those before, so very many are joined in groups first."""


def _joined(b: Any, values: Sequence[Any], axis: int) -> Any:
    while len(values) > _MOST and any(isinstance(v, Coat) for v in values):
        values = [b.concat(*values[k : k + _MOST], axis=axis) for k in range(0, len(values), _MOST)]
    return b.concat(*values, axis=axis)


def operands(name: str, xs: Sequence[Operand]) -> tuple[Any, list[Any], Any]:
    """Operands that may meet, none of them a bare number or list. A number takes the dtype of the first floating Tensor."""
    if not hasattr(xs, "__iter__"):
        raise DTypeError(f"{name}: got a {type(xs).__name__}; expected a list or tuple of Tensors. Try {name}([x, y])")
    parts = list(xs)
    if not parts:
        raise ShapeError(f"{name}: got no arrays; expected at least one")
    b, values, marks = meet(name, *parts)
    values = weak(b, values, parts)
    floating = [v for v, x in zip(values, parts, strict=True) if isinstance(x, Handle) and b.base.is_floating(bare(v))]
    dtype = b.dtype(floating[0]) if floating else None
    return b, [b.base.asarray(v, dtype) if is_scalar(x) else v for v, x in zip(values, parts, strict=True)], marks
