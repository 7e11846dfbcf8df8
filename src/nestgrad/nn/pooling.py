"""Pooling by the greatest of each window. Windows slide over the last axes, or divide them.

Shapes and parameters are those of ``torch.nn.functional``: the input is (samples, channels, *spatial axes), or the same without the
samples. ``kernel_size``, ``stride``, ``padding`` and ``dilation`` are ints, or one for each spatial axis; without a stride, windows lie
side by side.

The derivative of the greatest goes to the entry that it is, whole: of equal ones to the first of the window, the last axis fastest. That is
torch's convention; ``x.max(axis)``, which is no pooling, divides it among equal ones.
"""

from typing import TYPE_CHECKING, Any, Literal, overload

from nestgrad.backends.sliding import places
from nestgrad.errors import ShapeError
from nestgrad.levels.marks import NONE
from nestgrad.nn.sizes import Sizes, parts, sliding, with_samples
from nestgrad.tensor.handle import Operand, as_tensor, make

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"]


@overload
def max_pool1d(
    x: Operand, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> "Tensor": ...
@overload
def max_pool1d(
    x: Operand, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ...,
    *, return_indices: Literal[True],
) -> "tuple[Tensor, Tensor]": ...
def max_pool1d(
    x: Operand,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> "Tensor | tuple[Tensor, Tensor]":
    """The greatest of each window; see ``max_pool2d``.

    >>> from nestgrad import tensor
    >>> max_pool1d(tensor([[1.0, 3.0, 2.0, 0.0]]), 2).tolist()
    [[3.0, 2.0]]
    """
    return _max("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overload
def max_pool2d(
    x: Operand, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> "Tensor": ...
@overload
def max_pool2d(
    x: Operand, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ...,
    *, return_indices: Literal[True],
) -> "tuple[Tensor, Tensor]": ...
def max_pool2d(
    x: Operand,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> "Tensor | tuple[Tensor, Tensor]":
    """The greatest of each window of an input of shape (samples, channels, height, width); NaN if there is one.

    Args:
        x: The input; without samples, so is the result.
        kernel_size: How many entries a window takes on each axis.
        stride: How far apart windows begin; ``None``: side by side.
        padding: How far windows begin before the input, and end behind it: at most half of what they span. It has no say.
        dilation: How far apart the entries of a window are.
        ceil_mode: Whether there is a last window that hangs over the end.
        return_indices: Whether to return positions beside values.

    Returns:
        Values of the dtype of ``x``. With ``return_indices`` also positions in the spatial axes together, as int64; constants.

    Raises:
        ShapeError: Windows that do not fit, or lie in the padding altogether.
        ArgumentError: Numbers out of range.

    >>> from nestgrad import tensor
    >>> values, positions = max_pool2d(tensor([[[1.0, 2.0], [4.0, 3.0]]]), 2, return_indices=True)
    >>> values.tolist(), positions.tolist()
    ([[[4.0]]], [[[2]]])
    """
    return _max("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overload
def max_pool3d(
    x: Operand, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> "Tensor": ...
@overload
def max_pool3d(
    x: Operand, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ...,
    *, return_indices: Literal[True],
) -> "tuple[Tensor, Tensor]": ...
def max_pool3d(
    x: Operand,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> "Tensor | tuple[Tensor, Tensor]":
    """The greatest of each window of an input of shape (samples, channels, depth, height, width); see ``max_pool2d``."""
    return _max("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overload
def adaptive_max_pool1d(x: Operand, output_size: Any, return_indices: Literal[False] = ...) -> "Tensor": ...
@overload
def adaptive_max_pool1d(x: Operand, output_size: Any, return_indices: Literal[True]) -> "tuple[Tensor, Tensor]": ...
def adaptive_max_pool1d(x: Operand, output_size: Any, return_indices: bool = False) -> "Tensor | tuple[Tensor, Tensor]":
    """The greatest of each of ``output_size`` windows; see ``adaptive_max_pool2d``."""
    return _adaptive_max("adaptive_max_pool1d", 1, x, output_size, return_indices)


@overload
def adaptive_max_pool2d(x: Operand, output_size: Any, return_indices: Literal[False] = ...) -> "Tensor": ...
@overload
def adaptive_max_pool2d(x: Operand, output_size: Any, return_indices: Literal[True]) -> "tuple[Tensor, Tensor]": ...
def adaptive_max_pool2d(x: Operand, output_size: Any, return_indices: bool = False) -> "Tensor | tuple[Tensor, Tensor]":
    """The greatest of windows that divide the axes of an input of shape (samples, channels, height, width) as evenly as can be.

    Args:
        x: The input; without samples, so is the result.
        output_size: How many windows there are; or one for each axis, ``None`` for as many as entries. They overlap where sizes do not
            divide: window ``k`` of ``m`` begins at ``floor(k * n / m)`` and ends before ``ceil((k + 1) * n / m)``.
        return_indices: Whether to return positions beside values, as ``max_pool2d``.

    Raises:
        ShapeError: An axis without entries.
        ArgumentError: Sizes out of range.

    >>> from nestgrad import tensor
    >>> adaptive_max_pool2d(tensor([[[1.0, 2.0, 0.0], [4.0, 3.0, 5.0]]]), (1, 2)).tolist()
    [[[4.0, 5.0]]]
    """
    return _adaptive_max("adaptive_max_pool2d", 2, x, output_size, return_indices)


@overload
def adaptive_max_pool3d(x: Operand, output_size: Any, return_indices: Literal[False] = ...) -> "Tensor": ...
@overload
def adaptive_max_pool3d(x: Operand, output_size: Any, return_indices: Literal[True]) -> "tuple[Tensor, Tensor]": ...
def adaptive_max_pool3d(x: Operand, output_size: Any, return_indices: bool = False) -> "Tensor | tuple[Tensor, Tensor]":
    """The greatest of windows of an input of shape (samples, channels, depth, height, width); see ``adaptive_max_pool2d``."""
    return _adaptive_max("adaptive_max_pool3d", 3, x, output_size, return_indices)


def _max(
    name: str, n: int, x: Operand, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, both: bool
) -> "Tensor | tuple[Tensor, Tensor]":
    x = as_tensor(x)
    _, shape, _ = with_samples(name, x, n)  # for the check: axes before the windows' own are as many as there may be
    sizes, strides, pads, dilations = sliding(name, n, shape, kernel_size, stride, padding, dilation, ceil)
    if any(p and d > 1 for p, d in zip(pads, dilations, strict=True)):
        try:
            for row in zip(shape[2:], sizes, strides, pads, dilations, strict=True):
                places(*row, bool(ceil))
        except ShapeError as error:
            raise ShapeError(f"{name}: {error}") from error
    found = x.b.max_pool(x.value, sizes, strides, pads, dilations, bool(ceil))
    return _chosen(x, found, both)


def _adaptive_max(name: str, n: int, x: Operand, output_size: Any, both: bool) -> "Tensor | tuple[Tensor, Tensor]":
    x = as_tensor(x)
    _, shape, _ = with_samples(name, x, n)
    return _chosen(x, x.b.adaptive_max_pool(x.value, parts(name, n, shape, output_size)), both)


def _chosen(x: Any, found: tuple[Any, Any], both: bool) -> "Tensor | tuple[Tensor, Tensor]":
    values = make(x.b, found[0], x.marks)
    return (values, make(x.b, found[1], NONE)) if both else values
