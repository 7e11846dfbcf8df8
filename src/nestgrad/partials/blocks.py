"""``Block``: one partial derivative, stored by what is there.

``data`` has the axes that ``nestgrad.partials.structure`` tells: one for each leg, then the rest of the output's axes, then the rest of
each slot's. The dense array is made when it is asked for, and not kept: it may be millions of times as large.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import prod
from typing import Any

from nestgrad.backends import spreading
from nestgrad.backends.base import Backend
from nestgrad.errors import MutatedError, ShapeError
from nestgrad.levels.coats import bare
from nestgrad.partials.packing import packed, unpacked
from nestgrad.partials.structure import Leg, Shape, Structure, structure

__all__ = ["Block", "Leg"]

Indeps = tuple[tuple[int | None, ...], ...]
"""For each slot, which axis of its leaf each independent axis is, or ``None``."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block:
    """One partial derivative of an output by a leaf in each slot.

    The dense array ``D[o, i1, ..., ik]`` is the derivative of entry ``o`` of the output by entry ``i1`` of the first leaf, and so on; it is
    zero unless the axes of each leg are at equal positions.

    Attributes:
        base: The operations on ``data``: a backend, or the ops over levels.
        data: What is stored; ``None``: all is zero, and nothing is.
        out_shape: The shape of the output.
        shapes: The shape of the leaf in each slot.
        legs: Which axes are stored once.
        dtype: That of the numbers, native to the backend.

    Raises:
        ShapeError: If data, legs and shapes do not fit.

    >>> from nestgrad.backends import NumpyBackend
    >>> b = NumpyBackend()
    >>> block = Block(b, b.asarray([2.0, 3.0]), (2,), ((2,), (2,)), (Leg(2, 0, (0, 0)),))  # the second derivative of [x0**2, 1.5 x1**2]
    >>> block
    Block(order 2, out (2,), slots (2,), (2,): 2 of 8 numbers)
    >>> block.dense().tolist()
    [[[2.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 3.0]]]
    """

    base: Any
    data: Any
    out_shape: Shape
    shapes: tuple[Shape, ...]
    legs: tuple[Leg, ...] = ()
    dtype: Any = None
    structure: Structure = field(init=False)
    _stamp: Any = field(init=False)

    def __post_init__(self) -> None:
        out_shape, shapes, legs = tuple(self.out_shape), tuple([tuple(shape) for shape in self.shapes]), tuple(self.legs)
        made = structure(out_shape, shapes, legs)
        stamp = dtype = None
        if self.data is not None:
            got, dtype = tuple(self.base.shape(self.data)), self.base.dtype(self.data)
            if got != made.shape:
                raise ShapeError(
                    f"Block: data has shape {got}; expected {made.shape}, because an output of shape {out_shape} by leaves of shapes "
                    f"{shapes} with legs {legs} is stored as its legs, the rest of the output and the rest of each slot. Try Block.of_dense"
                )
            stamp = self.base.stamp(self.data) if isinstance(self.base, Backend) else None
        elif isinstance(self.base, Backend):
            dtype = self.base.resolve_dtype(self.dtype)
        fields = (("out_shape", out_shape), ("shapes", shapes), ("legs", legs), ("dtype", dtype), ("structure", made), ("_stamp", stamp))
        for name, value in fields:
            object.__setattr__(self, name, value)

    def __reduce__(self) -> Any:
        """A copy is of numbers alone, on no level and without a graph."""
        base = self.base if isinstance(self.base, Backend) else self.base.base
        data = None if self.data is None else base.asarray(bare(self.array()))
        return Block, (base, data, self.out_shape, self.shapes, self.legs, self.dtype)

    # ---- other ways to one ----

    @classmethod
    def zero(cls, base: Any, out_shape: Sequence[int], shapes: Sequence[Sequence[int]], dtype: Any = None) -> "Block":
        """A derivative that is zero everywhere. It stores no numbers."""
        return cls(base, None, tuple(out_shape), tuple([tuple(shape) for shape in shapes]), (), dtype)

    @classmethod
    def of_dense(cls, base: Any, dense: Any, out_shape: Sequence[int], shapes: Sequence[Sequence[int]]) -> "Block":
        """The block without legs of a dense array, as ``dense()`` gives it."""
        made = structure(tuple(out_shape), tuple([tuple(shape) for shape in shapes]))
        _expect("of_dense", base, dense, made.dense_shape, made)
        return cls(base, base.reshape(dense, made.shape), made.out_shape, made.shapes)

    @classmethod
    def of_batched(cls, base: Any, batched: Any, out_shape: Sequence[int], shapes: Sequence[Sequence[int]], indeps: Indeps) -> "Block":
        """The block of an array with independent axes, as ``batched()`` gives them; each that a slot has is a leg of slots alone.

        Raises:
            ShapeError: If the array is of another shape.
        """
        leaves = tuple([tuple(shape) for shape in shapes])
        legs, sizes = [], []
        for slots in zip(*indeps, strict=True):
            size = next((leaf[axis] for leaf, axis in zip(leaves, slots, strict=True) if axis is not None), None)
            sizes.append(1 if size is None else size)
            if size is not None:
                legs.append(Leg(size, None, slots))
        made = structure(tuple(out_shape), leaves, tuple(legs))
        lead, rest = len(legs), made.shape[len(legs) + len(made.out_shape) :]
        _expect("of_batched", base, batched, (prod(made.out_shape), *sizes, *rest), made)
        apart = base.reshape(batched, (*made.out_shape, *made.shape[:lead], *rest))
        outs = len(made.out_shape)
        order = (*range(outs, outs + lead), *range(outs), *range(outs + lead, len(made.shape)))
        return cls(base, base.permute(apart, order), made.out_shape, leaves, made.legs)

    @classmethod
    def unpacked(
        cls, base: Any, numbers: Any, out_shape: Sequence[int], shape: Sequence[int], order: int, legs: Sequence[Leg] = ()
    ) -> "Block":
        """The block of an output of ``out_shape`` by the same leaf, of ``shape``, in ``order`` slots, from what ``packed()`` gives of it.

        Args:
            base: The backend.
            numbers: The distinct entries, in the order that ``packed()`` tells.
            out_shape: The shape of the output.
            shape: That of the leaf.
            order: How many slots there are.
            legs: The legs of the block. Only those with the same axis of every slot, or of none, have been kept by ``packed()``.

        Raises:
            ShapeError: If the numbers are not as many.
        """
        made = structure(tuple(out_shape), (tuple(shape),) * order, tuple(legs)).uniform()
        return cls(base, unpacked(base, numbers, made), made.out_shape, made.shapes, made.legs)

    # ---- facts ----

    @property
    def order(self) -> int:
        """How many times it differentiates."""
        return len(self.shapes)

    @property
    def is_zero(self) -> bool:
        """Whether it is known to be zero everywhere, so that nothing is stored. Numbers that are stored may be zeros as well."""
        return self.data is None

    @property
    def size(self) -> int:
        """How many numbers are stored."""
        return 0 if self.data is None else self.structure.size

    @property
    def dense_size(self) -> int:
        """How many numbers the dense array has."""
        return prod(self.structure.dense_shape)

    @property
    def nbytes(self) -> int:
        """How much memory the numbers that are stored take."""
        return 0 if self.data is None else int(self.base.nbytes(self.data))

    def metadata(self, keep_batch: bool = False) -> tuple[tuple[Shape, ...], Indeps, tuple[int, ...]]:
        """What tells how the dense array, or (``keep_batch``) the one with independent axes, is to be read.

        Returns:
            The shape of the leaf in each slot; for each slot which axis of its leaf each independent axis is, or ``None``, as all are in
            the dense array; and which slot each of the requested variables is in: they are in order.
        """
        return _metadata(self.structure, keep_batch)

    def __repr__(self) -> str:
        slots = ", ".join(str(shape) for shape in self.shapes)
        return f"Block(order {self.order}, out {self.out_shape}, slots {slots}: {self.size} of {self.dense_size} numbers)"

    # ---- arrays ----

    def array(self) -> Any:
        """``data``, and zeros where nothing is stored.

        Raises:
            MutatedError: If somebody has written into ``data``, or into an array that shares its memory.
        """
        if self.data is None:
            return self.base.full(self.structure.shape, 0.0, self.dtype)
        if self._stamp is not None and self.base.changed(self.data, self._stamp):
            raise MutatedError(
                f"{self!r}: its numbers have been written over in place since they were computed; expected them to stay, because what is "
                "read of a derivative may share their memory. Try a copy of what was read, and write into that"
            )
        return self.data

    def dense(self) -> Any:
        """All entries: of shape ``(numel(output), *shape of slot 1, ..., *shape of slot k)``.

        It is made anew each time where there are legs; without any it may share memory with ``data``, so nobody is to write into it.

        Raises:
            MutatedError: As ``array`` does.
        """
        made = self.structure
        if self.data is None:
            return self.base.full(made.dense_shape, 0.0, self.dtype)
        return self.base.reshape(self._spread(made.along), made.dense_shape)

    def batched(self) -> tuple[Any, Indeps]:
        """All entries, but with axes along which the slots are independent taken once.

        Independent are the axes of the output, in their order, and then the legs of slots alone. An axis of the output that no slot goes
        along has size 1.

        Returns:
            An array of shape ``(numel(output), *independent axes, *rest of slot 1, ..., *rest of slot k)``, and for each slot which axis of
            its leaf each independent axis is, or ``None``. An entry counts only where each axis of the output is at the same position as
            the independent axis of it: it is zero elsewhere.

        Raises:
            MutatedError: As ``array`` does.
        """
        made = self.structure
        if self.data is None:
            return self.base.full(made.batched_shape, 0.0, self.dtype), made.indeps
        return self.base.reshape(self._spread(made.batched_along), made.batched_shape), made.indeps

    def packed(self) -> Any:
        """The distinct entries of a block whose slots are all the same leaf: C(n + k - 1, k) for the n entries of the leaf's rest.

        Returns:
            An array of axes ``[legs..., rest of the output laid out, entries]``. The entries are those of ``i1 <= i2 <= ... <= ik`` for
            positions in the rest of the leaf laid out, sorted by ``i1``, then by ``i2``, and so on. Legs that do not have the same axis of
            every slot, or of none, are spread first. ``Block.unpacked`` is the inverse.

        Raises:
            ShapeError: If the slots are of different shapes.
            RuleError: If the entries are not symmetric, so that some would get lost.
        """
        if len(set(self.shapes)) > 1:
            raise ShapeError(
                f"packed: got slots of shapes {self.shapes}; expected the same leaf in all of them, because only then are entries equal "
                "that exchange slots. Try data, with legs"
            )
        plain = self.loosened(self.structure.uniform())
        return packed(plain.base, plain.array(), plain.structure)

    def _spread(self, along: tuple[int, ...]) -> Any:
        spread = self.base.spread if isinstance(self.base, Backend) else partial(spreading.spread, self.base)
        return spread(self.array(), along)

    # ---- other structures ----

    def permuted(self, order: Sequence[int]) -> "Block":
        """The derivative by the same leaves in another order: slot ``order[k]`` is slot k there. It shares the numbers.

        Raises:
            ShapeError: If ``order`` is no permutation of the slots.
        """
        order = tuple(order)
        if sorted(order) != [*range(self.order)]:
            raise ShapeError(
                f"permuted: got {order}; expected a permutation of the slots 0 to {self.order - 1}, because each is taken once. "
                f"Try {(*range(self.order),)[::-1]}"
            )
        if order == (*range(self.order),):
            return self
        made, axes = self.structure.permuted(order)
        data = None if self.data is None else self.base.permute(self.array(), axes)
        return Block(self.base, data, made.out_shape, made.shapes, made.legs, self.dtype)

    def loosened(self, coarser: Structure) -> "Block":
        """The same derivative, stored in a structure with fewer diagonals: each of its legs is a part of a leg here."""
        if coarser == self.structure:
            return self
        data = None if self.data is None else self._spread(self.structure.into(coarser))
        return Block(self.base, data, coarser.out_shape, coarser.shapes, coarser.legs, self.dtype)


@lru_cache(maxsize=1024)
def _metadata(made: Structure, keep_batch: bool) -> tuple[tuple[Shape, ...], Indeps, tuple[int, ...]]:
    found = made.indeps if keep_batch else tuple([(None,) * len(axes) for axes in made.indeps])
    return made.shapes, found, tuple(range(made.order))


def _expect(name: str, base: Any, array: Any, shape: Shape, made: Structure) -> None:
    got = tuple(base.shape(array))
    if got != shape:
        raise ShapeError(
            f"{name}: got an array of shape {got}; expected {shape}, because the output has shape {made.out_shape} and the slots have "
            f"{made.shapes}. Try reshape, if the numbers are in that order"
        )
