"""Windows of images as columns, and back."""

from math import prod
from typing import TYPE_CHECKING

from nestgrad.backends.sliding import count
from nestgrad.errors import ShapeError
from nestgrad.nn.sizes import Sizes, for_each, with_samples
from nestgrad.tensor.handle import Operand, as_tensor, make

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["unfold", "fold"]


def unfold(x: Operand, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> "Tensor":
    """The windows of images as columns, as ``torch.nn.functional.unfold``. ``x.unfold(axis, size, step)`` keeps axes apart.

    Args:
        x: Shape (samples, channels, height, width); without samples, so is the result.
        kernel_size: How many entries a window takes on each axis.
        dilation: How far apart these are.
        padding: How many zeros go before and after.
        stride: How far apart windows begin.

    Returns:
        Shape (samples, channels * entries of a window, windows).

    Raises:
        ShapeError: Another number of axes, or windows larger than the padded image.
        ArgumentError: Numbers out of range.

    >>> from nestgrad import tensor
    >>> unfold(tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]), 2).tolist()
    [[1.0, 2.0], [2.0, 3.0], [4.0, 5.0], [5.0, 6.0]]
    """
    x = as_tensor(x)
    value, shape, samples = with_samples("unfold", x, 2)
    sizes, dilations = for_each("unfold", "kernel_size", kernel_size, 2, 1), for_each("unfold", "dilation", dilation, 2, 1)
    pads, strides = for_each("unfold", "padding", padding, 2, 0), for_each("unfold", "stride", stride, 2, 1)
    places = tuple(count(*row) for row in zip(shape[2:], sizes, strides, pads, dilations, strict=True))
    if min(places) < 1:
        raise ShapeError(
            f"unfold: got an image of {shape[2:]}, padding {pads}, and windows of {sizes} with dilation {dilations}; expected windows that "
            "are not larger than the padded image"
        )
    b = x.b
    value = b.pad(value, ((0, 0), (0, 0), *((p, p) for p in pads))) if any(pads) else value
    out = b.permute(b.windows(value, sizes, strides, dilations), (0, 1, 4, 5, 2, 3))
    out = b.reshape(out, (shape[0], shape[1] * prod(sizes), prod(places)))
    return make(b, out if samples else b.reshape(out, tuple(b.shape(out)[1:])), x.marks)


def fold(
    x: Operand, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> "Tensor":
    """Columns added up as the windows of images, as ``torch.nn.functional.fold``: the transpose of ``unfold``.

    Args:
        x: Shape (samples, channels * entries of a window, windows); without samples, so is the result.
        output_size: Height and width of the images.
        kernel_size: As for ``unfold``, and so are the others.
        dilation: How far apart the entries of a window are.
        padding: How many entries are cut off before and after.
        stride: How far apart windows begin.

    Returns:
        Shape (samples, channels, height, width).

    Raises:
        ShapeError: Not as many columns as windows, or rows that are not as many for each channel.
        ArgumentError: Numbers out of range.

    >>> from nestgrad import tensor
    >>> fold(tensor([[1.0, 2.0], [2.0, 3.0]]), (1, 3), (1, 2)).tolist()
    [[[1.0, 4.0, 3.0]]]
    """
    x = as_tensor(x)
    value, shape, samples = with_samples("fold", x, 1, "channels * entries of a window")
    spaces, sizes = for_each("fold", "output_size", output_size, 2, 1), for_each("fold", "kernel_size", kernel_size, 2, 1)
    dilations, strides = for_each("fold", "dilation", dilation, 2, 1), for_each("fold", "stride", stride, 2, 1)
    pads = for_each("fold", "padding", padding, 2, 0)
    places = tuple(count(*row) for row in zip(spaces, sizes, strides, pads, dilations, strict=True))
    if min(places) < 1 or shape[2] != prod(places) or shape[1] % prod(sizes):
        raise ShapeError(
            f"fold: got {shape[1]} rows and {shape[2]} columns for output size {spaces} and windows of {sizes}; expected a multiple of "
            f"{prod(sizes)} rows, and {prod(max(k, 0) for k in places)} columns, one for each of {places} windows"
        )
    b, channels = x.b, shape[1] // prod(sizes)
    columns = b.permute(b.reshape(value, (shape[0], channels, *sizes, *places)), (0, 1, 4, 5, 2, 3))
    out = b.from_windows(columns, tuple(n + 2 * p for n, p in zip(spaces, pads, strict=True)), strides, dilations)
    if any(pads):
        out = b.getitem(out, (slice(None), slice(None), *(slice(p, p + n) for n, p in zip(spaces, pads, strict=True))))
    return make(b, out if samples else b.reshape(out, tuple(b.shape(out)[1:])), x.marks)
