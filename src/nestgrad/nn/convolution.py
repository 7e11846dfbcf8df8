"""Convolutions, by which networks mean correlations: the kernel is not turned round.

They are bilinear, so derivatives of any order are convolutions again, and run on the kernels of the backend. Shapes and parameters are
those of ``torch.nn.functional``: the input is (samples, channels, *spatial axes), or the same without the samples; the weight (channels
out, channels in / groups, *kernel), or for a transpose (channels in, channels out / groups, *kernel); a bias has one number for each
channel out. Each of ``stride``, ``padding``, ``dilation`` is an int, or one for each spatial axis.
"""

from typing import TYPE_CHECKING, Any

from nestgrad.backends.sliding import count
from nestgrad.errors import ArgumentError, DTypeError, ShapeError
from nestgrad.levels.coats import bare
from nestgrad.nn.sizes import Ints, Sizes, for_each, with_samples
from nestgrad.tensor.handle import Operand, make, meet

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


def conv1d(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> "Tensor":
    """Each window of an input of shape (samples, channels, length) times the weight, summed; see ``conv2d``.

    >>> from nestgrad import tensor
    >>> conv1d(tensor([[1.0, 2.0, 4.0]]), tensor([[[-1.0, 1.0]]])).tolist()
    [[1.0, 2.0]]
    """
    return _conv("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> "Tensor":
    """Each window of an input of shape (samples, channels, height, width) times the weight, summed.

    Args:
        x: The input; without samples, so is the result.
        weight: Shape (channels out, channels / groups, height, width of the kernel), of the dtype of ``x``.
        bias: One number for each channel out, added to it.
        stride: How far apart windows begin.
        padding: How many zeros go before and after. ``"valid"``: none. ``"same"``: as many as keep the size; where that is odd, one more
            goes after; the stride is 1 then.
        dilation: How far apart the entries of a window are.
        groups: Into how many groups channels in and out are divided, each convolved by itself.

    Returns:
        Shape (samples, channels out, ...), with ``(n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1`` windows on each axis.

    Raises:
        ShapeError: Shapes that do not fit; a kernel larger than the padded input.
        ArgumentError: Numbers out of range.
        DTypeError: Dtypes that differ, or are not floating.

    >>> from nestgrad import tensor
    >>> conv2d(tensor([[[1.0, 2.0], [3.0, 4.0]]]), tensor([[[[1.0, 0.0], [0.0, 1.0]]]])).tolist()
    [[[5.0]]]
    """
    return _conv("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def conv3d(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> "Tensor":
    """Each window of an input of shape (samples, channels, depth, height, width) times the weight, summed; see ``conv2d``."""
    return _conv("conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> "Tensor":
    """The transpose of ``conv1d`` by its input; see ``conv_transpose2d``.

    >>> from nestgrad import tensor
    >>> conv_transpose1d(tensor([[1.0, 2.0]]), tensor([[[1.0, 10.0]]])).tolist()
    [[1.0, 12.0, 20.0]]
    """
    return _transposed("conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> "Tensor":
    """The transpose of ``conv2d`` by its input: each entry times the kernel, added where the window was.

    Args:
        x: Shape (samples, channels, height, width); without samples, so is the result.
        weight: Shape (channels, channels out / groups, height, width of the kernel), of the dtype of ``x``.
        bias: One number for each channel out, added to it.
        stride: How far apart windows begin in the result.
        padding: How many entries are cut off before and after.
        output_padding: How many more there are at the end, fewer than the stride or the dilation.
        groups: Into how many groups channels in and out are divided.
        dilation: How far apart the entries of a window are.

    Returns:
        Shape (samples, channels out, ...), with ``(n - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1`` entries
        on each axis.

    Raises:
        ShapeError: Shapes that do not fit; a result without entries.
        ArgumentError: Numbers out of range.
        DTypeError: Dtypes that differ, or are not floating.
    """
    return _transposed("conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> "Tensor":
    """The transpose of ``conv3d`` by its input; see ``conv_transpose2d``."""
    return _transposed("conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, groups, dilation)


def _conv(
    name: str, n: int, x: Operand, weight: Operand, bias: Operand | None, stride: Sizes, padding: Sizes | str, dilation: Sizes, groups: int
) -> "Tensor":
    b, values, marks = _met(name, x, weight, bias)
    strides, dilations = for_each(name, "stride", stride, n, 1), for_each(name, "dilation", dilation, n, 1)
    value, shape, samples = with_samples(name, make(b, values[0], marks), n)
    kernel = _checked(name, n, b, values, shape, groups, 0)
    if shape[1] != groups * b.shape(values[1])[1]:
        raise ShapeError(
            f"{name}: got {shape[1]} channels, a weight of shape {tuple(b.shape(values[1]))} and groups={groups}; expected "
            f"{b.shape(values[1])[1]} * {groups} channels, since axis 1 of the weight is the channels of a group"
        )
    if isinstance(padding, str):
        pads, more = _named(name, padding, kernel, strides, dilations)
        if any(more):
            value = b.pad(value, ((0, 0), (0, 0), *((0, k) for k in more)))
            shape = tuple(b.shape(value))
    else:
        pads = for_each(name, "padding", padding, n, 0)
    if any(count(*row) < 1 for row in zip(shape[2:], kernel, (1,) * n, pads, dilations, strict=True)):
        raise ShapeError(
            f"{name}: got spatial sizes {shape[2:]}, padding {pads}, and a kernel of {kernel} with dilation {dilations}; expected a kernel "
            "that is not larger than the padded input. Try more padding"
        )
    out = b.conv(value, values[1], strides, pads, dilations, groups)
    return _finished(b, out, values, n, samples, marks)


def _named(name: str, padding: str, kernel: Ints, strides: Ints, dilations: Ints) -> tuple[Ints, Ints]:
    """Zeros on both sides, and zeros that go after beside these."""
    if padding == "valid":
        return (0,) * len(kernel), (0,) * len(kernel)
    if padding != "same":
        raise ArgumentError(f"{name}: got padding {padding!r}; expected 'same', 'valid', or how many zeros")
    if any(s != 1 for s in strides):
        raise ArgumentError(f"{name}: got padding 'same' and stride {strides}; expected stride 1, which alone keeps the size. Try numbers")
    total = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
    return tuple(k // 2 for k in total), tuple(k % 2 for k in total)


def _transposed(
    name: str, n: int, x: Operand, weight: Operand, bias: Operand | None,
    stride: Sizes, padding: Sizes, output_padding: Sizes, groups: int, dilation: Sizes,
) -> "Tensor":  # fmt: skip
    b, values, marks = _met(name, x, weight, bias)
    strides, dilations = for_each(name, "stride", stride, n, 1), for_each(name, "dilation", dilation, n, 1)
    pads, more = for_each(name, "padding", padding, n, 0), for_each(name, "output_padding", output_padding, n, 0)
    value, shape, samples = with_samples(name, make(b, values[0], marks), n)
    kernel = _checked(name, n, b, values, shape, groups, 1)
    if shape[1] != b.shape(values[1])[0]:
        raise ShapeError(
            f"{name}: got {shape[1]} channels and a weight of shape {tuple(b.shape(values[1]))}; expected as many channels as axis 0 of "
            "the weight has entries. The weight of a transpose has the channels that go in first"
        )
    if wrong := [row for row in zip(more, strides, dilations, strict=True) if row[0] >= max(row[1:])]:
        raise ArgumentError(
            f"{name}: got output_padding {more}, stride {strides} and dilation {dilations}; expected output_padding {wrong[0][0]} to be "
            "smaller than the stride or the dilation"
        )
    rows = list(zip(shape[2:], strides, pads, dilations, kernel, more, strict=True))
    spaces = tuple((m - 1) * s - 2 * p + d * (k - 1) + extra + 1 for m, s, p, d, k, extra in rows)
    if min(spaces) < 1 or min(shape[2:]) < 1:
        raise ShapeError(
            f"{name}: got spatial sizes {shape[2:]} and padding {pads}, which give a result of sizes {spaces}; expected at least one entry "
            "on each axis. Try less padding"
        )
    if all(extra < s for _, s, _, _, _, extra in rows):
        out = b.conv_input(value, values[1], spaces, strides, pads, dilations, groups)
    else:  # more than a window's step, which the convolution of that size would have another window for: cut it out of all there is
        whole = tuple((m - 1) * s + d * (k - 1) + 1 for m, s, _, d, k, _ in rows)
        out = b.conv_input(value, values[1], whole, strides, (0,) * n, dilations, groups)
        ends = [p + m for p, m in zip(pads, spaces, strict=True)]
        out = b.getitem(out, (slice(None), slice(None), *(slice(p, end) for p, end in zip(pads, ends, strict=True))))
        short = [max(0, end - max(m, p)) for end, m, p in zip(ends, whole, pads, strict=True)]
        out = b.pad(out, ((0, 0), (0, 0), *((0, k) for k in short)))
    return _finished(b, out, values, n, samples, marks)


def _met(name: str, x: Operand, weight: Operand, bias: Operand | None) -> tuple[Any, list[Any], Any]:
    """Operands of one floating dtype."""
    b, values, marks = meet(name, *((x, weight) if bias is None else (x, weight, bias)))
    if any(isinstance(v, (bool, int, float)) for v in values):
        raise ShapeError(f"{name}: got a number; expected arrays. Try tensor(...), of a shape that is a convolution's")
    dtypes = [b.dtype(v) for v in values]
    if any(d != dtypes[0] for d in dtypes) or not b.base.is_floating(bare(values[0])):
        told = " and ".join(f"{what} of {d}" for what, d in zip(("an input", "a weight", "a bias"), dtypes, strict=False))
        raise DTypeError(f"{name}: got {told}; expected one floating dtype for all. Try .astype({str(b.base.default_dtype)!r})")
    return b, values, marks


def _checked(name: str, n: int, b: Any, values: list[Any], shape: Ints, groups: int, axis: int) -> Ints:
    """The kernel's shape, after the checks that weight, bias and groups fit; ``axis`` of the weight is not that of a group."""
    weight = tuple(b.shape(values[1]))
    order = "(channels out, channels / groups, *kernel)" if axis == 0 else "(channels, channels out / groups, *kernel)"
    if len(weight) != n + 2 or 0 in weight:
        raise ShapeError(f"{name}: got a weight of shape {weight}; expected {order} with {n} spatial {'axis' if n == 1 else 'axes'}")
    if not isinstance(groups, int) or groups < 1 or weight[0] % groups or shape[1] % groups:
        raise ShapeError(
            f"{name}: got groups={groups!r} for {shape[1]} channels and a weight of shape {weight}; expected a number that divides the "
            f"channels and the first axis of the weight, which is {order}"
        )
    out = weight[0] if axis == 0 else weight[1] * groups
    if len(values) == 3 and tuple(b.shape(values[2])) != (out,):
        raise ShapeError(f"{name}: got a bias of shape {tuple(b.shape(values[2]))}; expected ({out},), a number for each channel out")
    return weight[2:]


def _finished(b: Any, out: Any, values: list[Any], n: int, samples: bool, marks: Any) -> "Tensor":
    """With the bias, and without the axis of samples if there was none."""
    if len(values) == 3:
        out = b.add(out, b.reshape(values[2], (b.shape(out)[1], *(1,) * n)))
    return make(b, out if samples else b.reshape(out, tuple(b.shape(out)[1:])), marks)
