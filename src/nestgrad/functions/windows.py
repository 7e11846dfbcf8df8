"""Windows that slide along axes."""

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING

from nestgrad.errors import ShapeError
from nestgrad.tensor.axes import axes_of
from nestgrad.tensor.handle import Operand, as_tensor
from nestgrad.tensor.windows import windowed

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["sliding_window_view"]


def sliding_window_view(x: Operand, window_shape: int | Sequence[int], axis: int | Sequence[int] | None = None) -> "Tensor":
    """All windows of an array, as ``np.lib.stride_tricks.sliding_window_view``.

    Args:
        x: Any shape.
        window_shape: How many entries a window has along each of the axes.
        axis: Which axes, each once; ``None``: all of them.

    Returns:
        The axes count windows; as many last ones hold their entries.

    Raises:
        ShapeError: Not a size for each axis, or windows larger than the array.
        ArgumentError: A size below 1.

    >>> from nestgrad import arange
    >>> sliding_window_view(arange(4), 3).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """
    x = as_tensor(x)
    axes = axes_of(len(x.b.shape(x.value)), axis, "sliding_window_view")
    try:
        sizes = tuple(index(n) for n in window_shape) if isinstance(window_shape, Sequence) else (index(window_shape),)
    except TypeError:
        sizes = ()
    if len(sizes) != len(axes):
        raise ShapeError(f"sliding_window_view: got window shape {window_shape!r} for axes {axes}; expected an int for each axis")
    return windowed("sliding_window_view", x, axes, sizes, (1,) * len(axes))
