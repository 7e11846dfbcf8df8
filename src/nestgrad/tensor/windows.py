"""Windows that slide along axes."""

from typing import TYPE_CHECKING

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.tensor.axes import one_axis
from nestgrad.tensor.handle import Handle, make

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor

Ints = tuple[int, ...]


class Windows(Handle):
    """Names and arguments as in torch."""

    __slots__ = ()

    def unfold(self, dimension: int, size: int, step: int) -> "Tensor":
        """Windows of ``size`` entries along an axis, one every ``step`` entries, as ``torch.Tensor.unfold``.

        Args:
            dimension: Which axis.
            size: How many entries a window has.
            step: How far apart windows begin.

        Returns:
            The axis counts windows; a last one holds their entries. ``ng.nn.unfold`` makes columns of the windows of an image.

        Raises:
            ShapeError: No such axis, or fewer entries than ``size``.
            ArgumentError: A size or a step below 1.
        """
        axis = one_axis(self, dimension, "unfold")
        if not isinstance(step, int) or step < 1:
            raise ArgumentError(f"unfold: got step {step!r}; expected an int from 1 on")
        return windowed("unfold", self, (axis,), (size,), (step,))


def windowed(name: str, x: Handle, axes: Ints, sizes: Ints, steps: Ints) -> "Tensor":
    """Windows along ``axes``, each of which counts them then; last axes of ``sizes`` hold their entries.

    Raises:
        ShapeError: Fewer entries than a window has.
        ArgumentError: A size below 1.
    """
    b, shape = x.b, tuple(x.b.shape(x.value))
    if any(not isinstance(n, int) or n < 1 for n in sizes):
        raise ArgumentError(f"{name}: got window sizes {sizes}; expected ints from 1 on")
    if wrong := [(k, n) for k, n in zip(axes, sizes, strict=True) if n > shape[k]]:
        axis, n = wrong[0]
        raise ShapeError(f"{name}: got windows of {n} entries along axis {axis} of shape {shape}; expected as many at most")
    if not axes:
        return make(b, x.value, x.marks)
    order = (*(k for k in range(len(shape)) if k not in axes), *axes)
    out = b.windows(b.permute(x.value, order), sizes, steps, (1,) * len(axes))
    back = (*(order.index(k) for k in range(len(shape))), *range(len(shape), len(shape) + len(axes)))
    return make(b, b.permute(out, back), x.marks)
