"""Methods that take entries by arrays of positions, and tell where entries are. Names and arguments as in NumPy."""

from math import prod
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.levels.marks import NONE
from nestgrad.tensor.axes import one_axis
from nestgrad.tensor.contractions import dot
from nestgrad.tensor.handle import Handle, Operand, as_tensor, is_scalar, make
from nestgrad.tensor.indexing import Indexing
from nestgrad.tensor.places import inside, known, whole

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor

MODES = ("raise", "wrap", "clip")


class Picking(Indexing):
    """Positions may differ by the sample of a batch, or be traced, wherever shapes do not depend on them."""

    __slots__ = ()

    def take(self, indices: Operand, axis: int | None = None, mode: str = "raise") -> "Tensor":
        """Entries, or slices along an axis, by whole numbers of any shape.

        Args:
            indices: Positions; negative ones count from the end. They may name one several times.
            axis: Which axis; ``None``: the flattened array.
            mode: What is done with those out of range: ``"raise"``; ``"wrap"``: counted round and round; ``"clip"``: the nearest, negative
                ones too.

        Returns:
            The axes of ``indices`` in the place of ``axis``.

        Raises:
            IndexRangeError: A position out of range.
            DTypeError: Positions that are no whole numbers.
        """
        b, shape = self.b, tuple(self.b.shape(self.value))
        if axis is None:
            return make(b, b.reshape(self.value, (prod(shape),)), self.marks).take(indices, 0, mode)
        k = one_axis(self, axis, "take")
        places = _moded("take", b, whole("take", b, indices), shape[k], mode)
        return self[(slice(None),) * k + (make(b, places, NONE),)]

    def put(self, indices: Operand, values: Operand, mode: str = "raise") -> "Tensor":
        """A new Tensor with entries of the flattened array replaced; as ``np.put``, which writes into its array.

        Args:
            indices: Positions in the flattened array, each named once.
            values: As many, or fewer, which are repeated; differentiable.
            mode: See ``take``.

        Raises:
            IndexRangeError: A position out of range.
            ShapeError: An entry that is named twice: which value stays would be undefined. Or no values.
            DTypeError: Positions that are no whole numbers; floats into integers.
        """
        b, shape = self.b, tuple(self.b.shape(self.value))
        flat: Any = make(b, b.reshape(self.value, (prod(shape),)), self.marks)
        places = known("put", b, _moded("put", b, whole("put", b, indices), prod(shape), mode))
        count = prod(b.shape(places))
        given: Any = values
        if not is_scalar(values):
            given = as_tensor(values, b).reshape(-1)
            if not given.size and count:
                raise ShapeError(f"put: got {count} positions and no values; expected at least one")
            if count != given.size and count:
                given = given.tile(-(-count // given.size))[:count]
        return flat.at[b.reshape(places, (count,))].set(given).reshape(shape) if count else self  # type: ignore[return-value]

    def nonzero(self) -> "tuple[Tensor, ...]":
        """Where entries are not 0: an array of int64 for each axis, last axis fastest. Constants.

        Their shape depends on the entries, so these must be the same for all samples of a batch, and known in a trace.

        Raises:
            ShapeError: Of an array without axes.
            LevelError: If they differ by the sample of a batch.
            TraceError: If they are traced.
        """
        if not self.b.shape(self.value):
            raise ShapeError("nonzero: got an array without axes; expected at least one. Try x.reshape(1)")
        return tuple(make(self.b, found, NONE) for found in where_true(self, "nonzero"))

    def dot(self, other: Operand) -> "Tensor":
        """Product that sums over the last axis of this and the second-to-last of ``other``, or its only one; with a number ``x * y``."""
        return dot(self, other)


def where_true(x: Handle, name: str) -> tuple[Any, ...]:
    """Native positions of entries that are not 0, an array for each axis."""
    b = x.b
    value = known(name, b, x.value)
    return tuple(b.base.nonzero(value if b.base.kind(value) == "bool" else b.base.ne(value, 0)))


def _moded(name: str, b: Any, places: Any, n: int, mode: str) -> Any:
    """Positions on an axis of size ``n``, from 0 on."""
    if mode not in MODES:
        raise ArgumentError(f"{name}: got mode {mode!r}; expected one of {MODES}")
    if mode == "raise":
        return inside(name, b, places, n)
    if not n and 0 not in b.shape(places):
        raise ShapeError(f"{name}: got positions on an axis without entries; expected some entries, or no positions")
    if mode == "clip":
        return b.where(b.lt(places, 0), 0, b.where(b.lt(places, n), places, n - 1))
    rounds = b.cast(b.floor(b.div(b.cast(places, "float64"), n)), b.base.resolve_dtype(int))
    return b.sub(places, b.mul(rounds, n))
