"""Methods that reduce axes. ``axis`` is an int, a tuple of ints, or ``None`` for all axes.

``dim`` and ``keepdim`` are torch's words for ``axis`` and ``keepdims``, and mean the same.
"""

from collections.abc import Sequence
from math import inf, prod
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.levels.marks import NONE
from nestgrad.tensor.arguments import MOST, number
from nestgrad.tensor.axes import axes_of, one_axis, spelled
from nestgrad.tensor.handle import Handle, is_floating, make, real

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor

Axis = int | Sequence[int] | None


class Reductions(Handle):
    """Sums, products, extrema and norms over axes. Cost: a pass over the entries."""

    __slots__ = ()

    def _reduce(self, name: str, value: Any, axis: Axis, keepdims: bool) -> "Tensor":
        axes = axes_of(len(self.b.shape(value)), axis, name)
        return make(self.b, getattr(self.b, name)(value, axes, bool(keepdims)), self.marks)

    def sum(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> "Tensor":
        """Sum; 0 over no entries. Integers and booleans give int64."""
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("sum", axis, keepdims, dim, keepdim)
        return self._reduce("sum", self.value, axis, keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> "Tensor":
        """Mean; NaN over no entries."""
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("mean", axis, keepdims, dim, keepdim)
        return self._reduce("mean", real(self), axis, keepdims)

    def prod(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> "Tensor":
        """Product; 1 over no entries. Exact with zeros at every order: a pairwise tree. Integers and booleans give int64."""
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("prod", axis, keepdims, dim, keepdim)
        value = self.value if is_floating(self) else self.b.cast(self.value, "int64")
        return self._reduce("prod", value, axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> "Tensor":
        """Largest entry; equal ones share the derivative evenly.

        Raises:
            ShapeError: Over no entries.
            ArgumentError: ``dim`` and ``keepdim``, with which torch gives a pair of values and positions.
        """
        if dim is not None or keepdim is not None:
            raise _pair("max")
        return self.amax(axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> "Tensor":
        """Smallest entry; equal ones share the derivative evenly.

        Raises:
            ShapeError: Over no entries.
            ArgumentError: ``dim`` and ``keepdim``, with which torch gives a pair of values and positions.
        """
        if dim is not None or keepdim is not None:
            raise _pair("min")
        return self.amin(axis, keepdims)

    def amax(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> "Tensor":
        """As ``max``."""
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("amax", axis, keepdims, dim, keepdim)
        self._some("max", axis)
        return self._reduce("amax", self.value, axis, keepdims)

    def amin(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> "Tensor":
        """As ``min``."""
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("amin", axis, keepdims, dim, keepdim)
        self._some("min", axis)
        return self._reduce("amin", self.value, axis, keepdims)

    def _some(self, name: str, axis: Axis) -> None:
        shape = tuple(self.b.shape(self.value))
        if any(shape[k] == 0 for k in axes_of(len(shape), axis, name)):
            raise ShapeError(f"{name}: got shape {shape}; expected at least one entry along axis {axis}")

    def var(
        self, axis: Axis = None, correction: float = 0, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None
    ) -> "Tensor":
        """Variance: the sum of squared deviations over ``n - correction``. 0 is the population's, as in NumPy; 1 is the sample's."""
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("var", axis, keepdims, dim, keepdim)
        axes, correction = axes_of(len(self.b.shape(self.value)), axis, "var"), _taken("var", correction)
        return make(self.b, self.b.var(real(self), axes, correction, bool(keepdims)), self.marks)

    def std(
        self, axis: Axis = None, correction: float = 0, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None
    ) -> "Tensor":
        """Standard deviation: the root of ``var``. A spread of 0 is a kink: the first derivative is given as 0, higher ones as NaN."""
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("std", axis, keepdims, dim, keepdim)
        axes, correction = axes_of(len(self.b.shape(self.value)), axis, "std"), _taken("std", correction)
        return make(self.b, self.b.std(real(self), axes, correction, bool(keepdims)), self.marks)

    def norm(
        self, axis: Axis = None, keepdims: bool = False, ord: float = 2, *, dim: Axis = None, keepdim: bool | None = None
    ) -> "Tensor":
        """Norm over the axes, as of a vector: Euclid's, or of another order.

        At the origin it has no derivative: the first is given as 0, higher ones come out as NaN. Write ``(x * x).sum()`` where the
        square is meant; that is exact.

        Args:
            axis: Over which axes.
            keepdims: Whether they stay, with size 1.
            ord: A positive number ``p``: the ``p``-th root of the sum of ``abs(x)**p``. 1 is the sum of sizes; infinity the greatest size
                and minus infinity the smallest, of which equal ones share the derivative evenly; 0 how many entries are not 0, a constant.

        Raises:
            ArgumentError: If ``ord`` is none of these.
            ShapeError: Over no entries, if it is infinite.
        """
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("norm", axis, keepdims, dim, keepdim)
        if ord == 2:
            return self._reduce("norm", real(self), axis, keepdims)
        if isinstance(ord, bool) or not isinstance(ord, (int, float)) or not (ord >= 0 or ord == -inf):
            raise ArgumentError(f"norm: got ord={ord!r}; expected a number from 0 on, infinity, or minus infinity")
        if ord == 0:
            count = self._count("norm", axis, keepdims)
            return make(self.b, self.b.cast(count.value, self.b.dtype(real(self))), NONE)
        size = self.b.abs(real(self))
        if ord == 1:
            return self._reduce("sum", size, axis, keepdims)
        if ord in (inf, -inf):
            self._some("norm", axis)
            return self._reduce("amax" if ord > 0 else "amin", size, axis, keepdims)
        axes = axes_of(len(self.b.shape(self.value)), axis, "norm")
        return make(self.b, self.b.pnorm(real(self), float(ord), axes, bool(keepdims)), self.marks)

    def logsumexp(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> "Tensor":
        """``log(sum(exp(x)))`` without overflow."""
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("logsumexp", axis, keepdims, dim, keepdim)
        self._some("logsumexp", axis)
        return self._reduce("logsumexp", real(self), axis, keepdims)

    def softmax(self, axis: int = -1, *, dim: int | None = None) -> "Tensor":
        """``exp(x) / sum(exp(x))`` along an axis, without overflow."""
        if dim is not None:
            axis, _ = spelled("softmax", axis, False, dim, None, -1)
        return make(self.b, self.b.softmax(real(self), one_axis(self, axis, "softmax")), self.marks)

    def log_softmax(self, axis: int = -1, *, dim: int | None = None) -> "Tensor":
        """``x - logsumexp(x)`` along an axis."""
        if dim is not None:
            axis, _ = spelled("log_softmax", axis, False, dim, None, -1)
        return make(self.b, self.b.log_softmax(real(self), one_axis(self, axis, "log_softmax")), self.marks)

    def argmax(
        self, axis: int | None = None, keepdims: bool = False, *, dim: int | None = None, keepdim: bool | None = None
    ) -> "Tensor":
        """Position of the largest entry, the first one of several; a constant. ``None``: in the flattened array."""
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("argmax", axis, keepdims, dim, keepdim)
        return self._position("argmax", axis, keepdims)

    def argmin(
        self, axis: int | None = None, keepdims: bool = False, *, dim: int | None = None, keepdim: bool | None = None
    ) -> "Tensor":
        """Position of the smallest entry, the first one of several; a constant. ``None``: in the flattened array."""
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("argmin", axis, keepdims, dim, keepdim)
        return self._position("argmin", axis, keepdims)

    def _position(self, name: str, axis: int | None, keepdims: bool) -> "Tensor":
        self._some(name, axis)
        shape = tuple(self.b.shape(self.value))
        if axis is None:
            found = getattr(self.b, name)(self.b.reshape(self.value, (prod(shape),)), 0)
            return make(self.b, self.b.reshape(found, (1,) * len(shape)) if keepdims else found, NONE)
        k = one_axis(self, axis, name)
        return make(self.b, getattr(self.b, name)(self.value, k, bool(keepdims)), NONE)

    def any(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> "Tensor":
        """Whether an entry is True, or not 0; a constant. False over no entries."""
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("any", axis, keepdims, dim, keepdim)
        return self._count("any", axis, keepdims) > 0

    def all(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> "Tensor":
        """Whether every entry is True, or not 0; a constant. True over no entries."""
        if dim is not None or keepdim is not None:
            axis, keepdims = spelled("all", axis, keepdims, dim, keepdim)
        shape = self.b.shape(self.value)
        total = prod(shape[k] for k in axes_of(len(shape), axis, "all"))
        every: Tensor = self._count("all", axis, keepdims) > total - 1
        return every

    def _count(self, name: str, axis: Axis, keepdims: bool) -> "Tensor":
        """How many entries are not 0."""
        axes = axes_of(len(self.b.shape(self.value)), axis, name)
        return make(self.b, self.b.sum(self.b.ne(self.value, 0), axes, bool(keepdims)), NONE)


def _taken(name: str, correction: Any) -> float:
    """What is taken off a count. Whole ones stay ints, as programs print them."""
    return correction if correction.__class__ is int and abs(correction) <= MOST else number(name, "correction", correction)


def _pair(name: str) -> ArgumentError:
    return ArgumentError(
        f"{name}: got dim or keepdim, with which torch gives a pair of values and positions, and this is the values alone; expected axis "
        f"and keepdims. Try x.a{name}(dim=...), which is the same in torch, and x.arg{name}(dim=...) for the positions"
    )
