"""Methods that run along an axis, and that order entries. ``axis=None`` runs through the flattened array, as in NumPy.

``dim`` is torch's word for ``axis``, and means the same.
"""

from math import prod
from typing import TYPE_CHECKING, Any

from nestgrad.tensor.axes import one_axis, spelled
from nestgrad.tensor.handle import Handle, is_floating, make, results

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


class Scans(Handle):
    """Running sums and products, differences, and positions in order."""

    __slots__ = ()

    def cumsum(self, axis: int | None = None, reverse: bool = False, *, dim: int | None = None) -> "Tensor":
        """For each entry the sum of all up to it; with ``reverse`` of all from it on. Integers and booleans give int64."""
        if dim is not None:
            axis, _ = spelled("cumsum", axis, False, dim, None)
        value, k = line_of(self, axis, "cumsum")
        return make(self.b, self.b.cumsum(value, k, reverse), self.marks)

    def cumprod(self, axis: int | None = None, *, dim: int | None = None) -> "Tensor":
        """For each entry the product of all up to it. Exact with zeros at every order. Integers and booleans give int64."""
        if dim is not None:
            axis, _ = spelled("cumprod", axis, False, dim, None)
        value, k = line_of(self, axis, "cumprod")
        return make(self.b, self.b.cumprod(value, k), self.marks)

    def argsort(self, axis: int = -1, descending: bool = False, *, dim: int | None = None) -> "Tensor":
        """The positions of the entries in order along an axis, as int64; a constant. Equal entries keep their order.

        NaN counts as greater than every number.
        """
        if dim is not None:
            axis, _ = spelled("argsort", axis, False, dim, None, -1)
        return results("sort", self, axis=one_axis(self, axis, "argsort"), descending=bool(descending))[1]


def line_of(x: Handle, axis: int | None, name: str) -> tuple[Any, int]:
    """The value to run along an axis of, and that axis: of the flattened array for ``None``. Integers and booleans become int64."""
    value = x.value if is_floating(x) else x.b.cast(x.value, "int64")
    if axis is None:
        return x.b.reshape(value, (prod(x.b.shape(value)),)), 0
    return value, one_axis(x, axis, name)
