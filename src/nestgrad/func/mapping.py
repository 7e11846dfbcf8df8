"""Batching: ``vmap``."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import optree

from nestgrad.errors import LevelError, ShapeError
from nestgrad.func.axes import Axes, in_axis, out_axis, spread
from nestgrad.func.home import home, of
from nestgrad.func.run import Outputs, Run, as_leaf, inside, outside, same_outputs
from nestgrad.func.trees import Structure, places, slots, unflatten
from nestgrad.functions.shaping import concat
from nestgrad.levels.base import Tape
from nestgrad.levels.batched import batch, unbatch
from nestgrad.levels.marks import opened
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import make


def vmap(f: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0, chunk_size: int | None = None) -> Callable[..., Any]:
    """A function of one sample as a function of many, which runs once for all of them.

    Args:
        f: Returns a Tensor, or a nested structure of them. It sees its arguments without the axis of the samples.
        in_axes: Along which axis the samples of an argument are; ``None`` for an argument that is the same for all, which is passed on as
            it is. One for all arguments, or a tuple with one for each; an argument that is a nested structure may have a structure of
            axes. Negative ones count from the end.
        out_axes: Where the axis goes in the output, likewise. ``None`` only for what is the same for all samples.
        chunk_size: How many samples to take at once; ``None``: all. Bounds memory, and runs ``f`` once for each chunk.

    Returns:
        A function of the same arguments. Keyword arguments are passed on as they are. What does not depend on the samples is repeated.

    Raises:
        ShapeError: Axes that an argument or output does not have, numbers of samples that differ, or nothing mapped.
        LevelError: ``out_axes=None`` for an output that depends on the samples. Or inside: a branch on a value (``if x > 0:``),
            ``.item()``, or a derivative by a tensor from outside, since what holds many samples is no plain number. Derivatives of each
            sample are ``vmap(grad(f))``.

    >>> from nestgrad import tensor
    >>> vmap(lambda x, y: (x * y).sum(), in_axes=(0, None))(tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([1.0, 10.0])).tolist()
    [21.0, 43.0]
    """
    step = checked_chunk("vmap", chunk_size)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        samples = _Samples(f, in_axes, args, kwargs.values())
        n = samples.size
        if step is None or n <= step:
            chunk = samples.run(f, 0, n, kwargs, out_axes)
            return unflatten(chunk.structure, chunk.leaves)
        return _together([samples.run(f, start, min(start + step, n), kwargs, out_axes) for start in range(0, n, step)])

    return of(f, mapped)


def checked_chunk(name: str, chunk_size: Any) -> int | None:
    """``chunk_size``, if it is ``None`` or a positive int.

    Raises:
        ShapeError: If it is not.
    """
    if chunk_size is None or (type(chunk_size) is int and chunk_size > 0):
        return chunk_size
    raise ShapeError(f"{name}: got chunk_size {chunk_size!r}; expected an int from 1 on, or None for all at once")


class _Samples:
    """The arguments of a mapped function.

    Attributes:
        leaves: Tensors where there are samples; what is passed on as it is, else.
        axes: Along which axis the samples are, or ``None``.
        size: How many samples there are.
    """

    __slots__ = ("axes", "leaves", "like", "size", "structure")

    def __init__(self, f: Callable[..., Any], in_axes: Axes, args: tuple[Any, ...], beside: Iterable[Any]) -> None:
        in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ShapeError(f"vmap: got in_axes {in_axes} for {len(args)} arguments; expected an entry for each, or one int for all")
        leaves, self.structure = slots(args)
        axes = [None if x is None else a for x, a in zip(leaves, spread("in_axes", in_axes, args), strict=True)]
        b = home(f, [*args, *beside])
        self.leaves = [x if a is None else as_leaf("vmap", x, b) for x, a in zip(leaves, axes, strict=True)]
        self.axes = [in_axis(x, a, partial(self._place, i)) for i, (x, a) in enumerate(zip(self.leaves, axes, strict=True))]
        mapped = [i for i, a in enumerate(self.axes) if a is not None]
        if not mapped:
            raise ShapeError(f"vmap: got in_axes {in_axes!r}, which maps no argument; expected an axis of at least one Tensor or array")
        first = mapped[0]
        self.like: Tensor = self.leaves[first]
        self.size = self._size(first)
        if other := next((i for i in mapped if self._size(i) != self.size), None):
            raise ShapeError(
                f"vmap: got {self.size} samples in {self._place(first)}, of shape {self.like.shape} along axis {self.axes[first]}, and "
                f"{self._size(other)} in {self._place(other)}, of shape {self.leaves[other].shape} along axis {self.axes[other]}; expected "
                "as many in all. Try in_axes=None for what is the same for all samples"
            )

    def run(self, f: Callable[..., Any], start: int, stop: int, kwargs: dict[str, Any], out_axes: Axes) -> "_Chunk":
        """The function on the samples from ``start`` to ``stop``."""
        n = stop - start
        parts = [x if a is None or n == self.size else _part(x, a, start, stop) for x, a in zip(self.leaves, self.axes, strict=True)]
        with Run("vmap", [x for x, a in zip(parts, self.axes, strict=True) if a is not None]) as tape:
            inputs = [x if a is None else dressed(x, a, tape) for x, a in zip(parts, self.axes, strict=True)]
            out = Outputs("vmap", f, unflatten(self.structure, inputs), kwargs, False, self.like)
            axes = _out_axes(out, out_axes)
            leaves = [_taken(x, axes[i], tape, n, partial(_named, out.structure, i)) for i, x in enumerate(out.leaves)]
        return _Chunk(out.structure, [outside(x) for x in leaves], axes)

    def _size(self, i: int) -> int:
        axis = self.axes[i]
        assert axis is not None
        size: int = self.leaves[i].shape[axis]
        return size

    def _place(self, i: int) -> str:
        accessor = optree.treespec_accessors(self.structure)[i]
        return f"argument {accessor[0].entry}{type(accessor)(accessor[1:]).codify('')}"


class _Chunk:
    """What a run returned for some of the samples: leaves, and along which axis they have them."""

    __slots__ = ("axes", "leaves", "structure")

    def __init__(self, structure: Structure, leaves: list[Tensor], axes: list[int | None]) -> None:
        self.structure, self.leaves, self.axes = structure, leaves, axes

    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the leaves, without the axis of the samples."""
        return [
            x.shape if a is None else (*x.shape[: a % x.ndim], *x.shape[a % x.ndim + 1 :])
            for x, a in zip(self.leaves, self.axes, strict=True)
        ]


def dressed(x: Tensor, axis: int, tape: Tape) -> Tensor:
    """A Tensor that holds the samples along an axis of ``x``."""
    value, marks = opened(x.value, x.marks)
    return make(x.b, batch(x.b, tape, value, axis), marks)


def undressed(name: str, x: Tensor, tape: Tape, n: int, axis: int) -> Tensor:
    """All samples of ``x``, along an axis."""
    inner = inside(name, x, tape)
    found = x if inner is None else inner
    return make(found.b, unbatch(found.b, found.value, tape, n, axis), found.marks)


def _part(x: Tensor, axis: int, start: int, stop: int) -> Tensor:
    return x[(*(slice(None),) * axis, slice(start, stop))]


def _out_axes(out: Outputs, out_axes: Axes) -> list[int | None]:
    tree = unflatten(out.structure, out.leaves)
    found = zip(slots(tree)[0], spread("out_axes", out_axes, tree), strict=True)
    return [a for x, a in found if x is not None]


def _taken(x: Tensor, axis: int | None, tape: Tape, n: int, place: Callable[[], str]) -> Tensor:
    """An output, out of the level."""
    if axis is not None:
        return undressed("vmap", x, tape, n, out_axis(x, axis, place))
    if inside("vmap", x, tape) is None:
        return x
    raise LevelError(
        f"vmap: got out_axes None for {place()}, which holds {n} samples; expected one that is the same for all. Try out_axes=0"
    )


def _together(chunks: list[_Chunk]) -> Any:
    """The outputs of all chunks. What has no axis is that of the first."""
    first = chunks[0]
    for other in chunks[1:]:
        same_outputs("vmap", (first.structure, first.shapes()), (other.structure, other.shapes()))
    leaves = [
        first.leaves[i] if axis is None else concat([c.leaves[i] for c in chunks], axis % first.leaves[i].ndim)
        for i, axis in enumerate(first.axes)
    ]
    return unflatten(first.structure, leaves)


def _named(structure: Structure, i: int) -> str:
    return f"the output{places(structure)[i]}"
