"""Pooling by the mean of each window; ``pooling.py`` says what windows are. All of it is linear."""

from typing import TYPE_CHECKING, Any

from nestgrad.backends.sliding import divisions
from nestgrad.errors import ArgumentError
from nestgrad.nn.sizes import Sizes, parts, sliding, with_samples
from nestgrad.tensor.handle import Operand, as_tensor, make, real

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"]


def avg_pool1d(
    x: Operand, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True
) -> "Tensor":
    """The mean of each window; see ``avg_pool2d``.

    >>> from nestgrad import tensor
    >>> avg_pool1d(tensor([[1.0, 3.0, 2.0, 0.0]]), 2).tolist()
    [[2.0, 1.0]]
    """
    return _avg("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    x: Operand,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> "Tensor":
    """The mean of each window of an input of shape (samples, channels, height, width).

    Args:
        x: The input; without samples, so is the result. Integers become floats.
        kernel_size: How many entries a window takes on each axis.
        stride: How far apart windows begin; ``None``: side by side.
        padding: How many zeros go before and after: at most half of the kernel.
        ceil_mode: Whether there is a last window that hangs over the end. What is beyond the padding is not counted.
        count_include_pad: Whether zeros of the padding are counted.
        divisor_override: By what to divide the sum of a window instead.

    Returns:
        Shape (samples, channels, ...) with a mean for each window.

    Raises:
        ShapeError: Windows that do not fit.
        ArgumentError: Numbers out of range.

    >>> from nestgrad import tensor
    >>> avg_pool2d(tensor([[[1.0, 2.0], [4.0, 3.0]]]), 2).tolist()
    [[[2.5]]]
    """
    return _avg("avg_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    x: Operand,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> "Tensor":
    """The mean of each window of an input of shape (samples, channels, depth, height, width); see ``avg_pool2d``."""
    return _avg("avg_pool3d", 3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool1d(x: Operand, output_size: Sizes) -> "Tensor":
    """The mean of each of ``output_size`` windows; see ``adaptive_avg_pool2d``.

    >>> from nestgrad import tensor
    >>> adaptive_avg_pool1d(tensor([[1.0, 3.0, 2.0]]), 2).tolist()
    [[2.0, 2.5]]
    """
    return _adaptive_avg("adaptive_avg_pool1d", 1, x, output_size)


def adaptive_avg_pool2d(x: Operand, output_size: Any) -> "Tensor":
    """The mean of windows that divide the axes as evenly as can be; ``adaptive_max_pool2d`` says which. Integers become floats."""
    return _adaptive_avg("adaptive_avg_pool2d", 2, x, output_size)


def adaptive_avg_pool3d(x: Operand, output_size: Any) -> "Tensor":
    """The mean of windows of an input of shape (samples, channels, depth, height, width); see ``adaptive_avg_pool2d``."""
    return _adaptive_avg("adaptive_avg_pool3d", 3, x, output_size)


def _avg(
    name: str, n: int, x: Operand, kernel_size: Any, stride: Any, padding: Any, ceil: bool, padded: bool, divisor: int | None
) -> "Tensor":
    x = as_tensor(x)
    _, shape, _ = with_samples(name, x, n)
    if divisor is not None and (not isinstance(divisor, int) or divisor == 0):
        raise ArgumentError(f"{name}: got divisor_override={divisor!r}; expected an int other than 0, or None")
    sizes, strides, pads, _ = sliding(name, n, shape, kernel_size, stride, padding, 1, ceil)
    return make(x.b, x.b.avg_pool(real(x), sizes, strides, pads, bool(ceil), bool(padded), divisor), x.marks)


def _adaptive_avg(name: str, n: int, x: Operand, output_size: Any) -> "Tensor":
    """A mean where windows lie side by side, else a product with a matrix of weights for each axis."""
    x = as_tensor(x)
    _, shape, _ = with_samples(name, x, n)
    counts = parts(name, n, shape, output_size)
    value = real(x)
    if all(size % m == 0 for size, m in zip(shape[2:], counts, strict=True)):
        sizes = tuple(size // m for size, m in zip(shape[2:], counts, strict=True))
        return make(x.b, x.b.avg_pool(value, sizes, sizes, (0,) * n, False, False, None), x.marks)
    for k, (size, m) in enumerate(zip(shape[2:], counts, strict=True)):
        if size != m:
            value = along(x.b, value, k - n, _means(x.b.base, x.b.dtype(value), size, m))
    return make(x.b, value, x.marks)


def along(b: Any, value: Any, axis: int, matrix: Any) -> Any:
    """``value`` with its entries along ``axis``, counted from the end, times a constant matrix of shape (before, after)."""
    rank = len(b.shape(value))
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    turned = b.permute(value, tuple(order)) if axis != -1 else value
    out = b.matmul(turned, matrix)
    return b.permute(out, tuple(order)) if axis != -1 else out


def _means(base: Any, dtype: Any, n: int, m: int) -> Any:
    """The matrix of the means of ``divisions``."""
    spans = divisions(n, m)
    line = base.reshape(base.arange(0, n), (n, 1))
    begins, ends = (base.index([span[k] for span in spans]) for k in range(2))
    inside = base.logical_and(base.ge(line, begins), base.lt(line, ends))
    return base.div(base.cast(inside, dtype), base.cast(base.sub(ends, begins), dtype))
