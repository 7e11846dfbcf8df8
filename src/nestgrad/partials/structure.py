"""``Structure``: which entries of a partial derivative are stored, because all others are zero.

A partial derivative of order k has *places*: the output, and a slot for each of the k leaves that it is taken by. Each place has axes. A
*leg* is a set of axes, at most one of each place, along which the derivative is zero off the diagonal: unless all of them are at the same
position. Such axes are stored once. All other axes are the *rest*.

What is stored has an axis for each leg, then the rest of the output's axes, then the rest of each slot's.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

from nestgrad.errors import ShapeError

Shape = tuple[int, ...]

Axis = tuple[int, int]
"""A place (0: the output, s: the s-th slot) and the position of one of its axes."""


@dataclass(frozen=True, slots=True)
class Leg:
    """Axes that are stored once, since the derivative is zero unless they are at the same position.

    Attributes:
        size: How long they are.
        out: Which axis of the output is one of them; ``None``: none is.
        slots: For each slot which axis of its leaf is one of them, or ``None``.
    """

    size: int
    out: int | None
    slots: tuple[int | None, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All of them, by place."""
        return tuple([(place, axis) for place, axis in enumerate((self.out, *self.slots)) if axis is not None])


@dataclass(frozen=True, slots=True)
class Structure:
    """Which entries of a partial derivative are stored, and where they belong.

    Attributes:
        out_shape: The shape of the output.
        shapes: The shape of the leaf in each slot.
        legs: What is stored once. No axis is in two of them.
        axes: What runs along each axis of what is stored.
        shape: The shape of what is stored.
        along: For each axis of the output and of all slots, which axis of what is stored runs along it.

    Raises:
        ShapeError: If legs and shapes do not fit.
    """

    out_shape: Shape
    shapes: tuple[Shape, ...]
    legs: tuple[Leg, ...] = ()
    axes: tuple[tuple[Axis, ...], ...] = field(init=False, compare=False, repr=False)
    shape: Shape = field(init=False, compare=False, repr=False)
    along: tuple[int, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        places = (self.out_shape, *self.shapes)
        where: dict[Axis, int] = {}
        for number, leg in enumerate(self.legs):
            self._check(number, leg, where)
            where.update(dict.fromkeys(leg.axes, number))
        axes = [leg.axes for leg in self.legs]
        axes += [((place, axis),) for place, shape in enumerate(places) for axis in range(len(shape)) if (place, axis) not in where]
        where.update({axis: number for number, group in enumerate(axes) for axis in group})
        object.__setattr__(self, "axes", tuple(axes))
        object.__setattr__(self, "shape", tuple([places[place][axis] for (place, axis), *_ in axes]))
        object.__setattr__(self, "along", tuple([where[place, axis] for place, shape in enumerate(places) for axis in range(len(shape))]))

    def _check(self, number: int, leg: Leg, taken: dict[Axis, int]) -> None:
        places = (self.out_shape, *self.shapes)
        name = f"Block: leg {number}, {leg}"
        if len(leg.slots) != len(self.shapes):
            raise ShapeError(
                f"{name}, tells of {len(leg.slots)} slots; expected {len(self.shapes)}, because the leaves have shapes {self.shapes}. "
                "Try None for each slot that has no axis in it"
            )
        if not leg.axes:
            raise ShapeError(f"{name}, has no axes; expected one at least, because nothing would run along it. Try to leave it out")
        for place, axis in leg.axes:
            whose = f"slot {place}" if place else "the output"
            if not 0 <= axis < len(places[place]) or places[place][axis] != leg.size:
                raise ShapeError(
                    f"{name}, has axis {axis} of {whose}, whose shape is {places[place]}; expected an axis of size {leg.size}, because "
                    "a leg is a diagonal of its axes. Try axes that count from 0, and their size"
                )
            if (place, axis) in taken:
                raise ShapeError(
                    f"{name}, has axis {axis} of {whose}, which is in leg {taken[place, axis]}; expected an axis in one leg alone, because "
                    "it is stored once. Try one leg of the axes of both"
                )

    @property
    def order(self) -> int:
        """How many slots there are."""
        return len(self.shapes)

    @property
    def size(self) -> int:
        """How many numbers are stored."""
        return prod(self.shape)

    @property
    def dense_shape(self) -> Shape:
        """The shape of all entries: the output laid out along one axis, then the shape of each slot."""
        return (prod(self.out_shape), *[n for shape in self.shapes for n in shape])

    @property
    def independent(self) -> tuple[int | None, ...]:
        """The independent axes: first those of the output, then the legs of slots alone.

        Returns:
            For each the leg, or ``None`` of an axis of the output that goes with no axis of a slot.
        """
        found: list[int | None] = [None] * len(self.out_shape)
        free = []
        for number, leg in enumerate(self.legs):
            if leg.out is None:
                free.append(number)
            elif len(leg.axes) > 1:
                found[leg.out] = number
        return (*found, *free)

    @property
    def indeps(self) -> tuple[tuple[int | None, ...], ...]:
        """For each slot, which axis of its leaf each of the independent axes is, or ``None``."""
        return tuple([tuple([None if k is None else self.legs[k].slots[s] for k in self.independent]) for s in range(self.order)])

    @property
    def batched_shape(self) -> Shape:
        """The output laid out along one axis, each independent axis (of size 1 where no slot has it), then the rest of each slot."""
        independent = [1 if k is None else self.legs[k].size for k in self.independent]
        return (prod(self.out_shape), *independent, *[self.shape[k] for k in self._rest_of_slots()])

    @property
    def batched_along(self) -> tuple[int, ...]:
        """For each axis of the output, each independent axis that a slot has, and the rest of each slot: which axis of what is stored."""
        return (*self.along[: len(self.out_shape)], *[k for k in self.independent if k is not None], *self._rest_of_slots())

    def _rest_of_slots(self) -> list[int]:
        return [k for k, axes in enumerate(self.axes) if k >= len(self.legs) and axes[0][0]]

    def permuted(self, order: tuple[int, ...]) -> "tuple[Structure, tuple[int, ...]]":
        """The structure with slot ``order[k]`` of this one as its slot k, and the order of the axes of what is stored there."""
        legs = tuple([Leg(leg.size, leg.out, tuple([leg.slots[k] for k in order])) for leg in self.legs])
        found = structure(self.out_shape, tuple([self.shapes[k] for k in order]), legs)
        back = (0, *[k + 1 for k in order])
        here = {axes: number for number, axes in enumerate(self.axes) if number >= len(self.legs)}
        rest = [here[((back[place], axis),)] for ((place, axis), *_) in found.axes[len(legs) :]]
        return found, (*range(len(legs)), *rest)

    def uniform(self) -> "Structure":
        """With those legs alone that have the same axis of all slots, or an axis of none."""
        return structure(self.out_shape, self.shapes, tuple([leg for leg in self.legs if len(set(leg.slots)) < 2]))

    def into(self, other: "Structure") -> tuple[int, ...]:
        """For each axis of what ``other`` stores, which axis of what is stored here runs along it, for a coarser structure ``other``."""
        here = {axis: number for number, axes in enumerate(self.axes) for axis in axes}
        return tuple([here[axes[0]] for axes in other.axes])


@lru_cache(maxsize=4096)
def structure(out_shape: Shape, shapes: tuple[Shape, ...], legs: tuple[Leg, ...] = ()) -> Structure:
    """A ``Structure``, made once: the same ones come again with every call."""
    return Structure(out_shape, shapes, legs)
