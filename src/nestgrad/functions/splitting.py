"""Arrays cut into parts along an axis. Backwards that is one concatenation, whatever the number of parts."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.ops.splitting import MOST, splitting, unstacking
from nestgrad.tensor.axes import one_axis, with_axes
from nestgrad.tensor.handle import Operand, as_tensor, make
from nestgrad.tensor.places import integers

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["split", "array_split", "chunk", "unbind", "unstack", "hsplit", "vsplit", "dsplit"]


def split(x: Operand, sections: int | Sequence[int], axis: int = 0) -> "tuple[Tensor, ...]":
    """Parts along an axis, as ``np.split``.

    Args:
        x: At least one axis.
        sections: How many parts of one size; or the positions where a new part begins, such as ``[2, 5]`` for ``x[:2], x[2:5], x[5:]``.
            What torch calls ``x.split(size)`` is ``split(x, range(size, n, size))``.
        axis: Which axis.

    Raises:
        ShapeError: A number of parts that does not divide the axis.
        ArgumentError: See ``array_split``.

    >>> from nestgrad import arange
    >>> [part.tolist() for part in split(arange(6), 3)]
    [[0, 1], [2, 3], [4, 5]]
    """
    x = as_tensor(x)
    n = x.shape[one_axis(x, axis, "split")]
    if isinstance(sections, int) and sections > 0 and n % sections:
        raise ShapeError(f"split: got {sections} sections of axis {axis} of shape {x.shape}; expected a divisor of {n}. Try array_split")
    return array_split(x, sections, axis)


def array_split(x: Operand, sections: int | Sequence[int], axis: int = 0) -> "tuple[Tensor, ...]":
    """Like ``split``, where the number of parts need not divide the axis: the first ones are then longer by one.

    Raises:
        ArgumentError: Fewer than one part, or more than a million of fewer entries.

    >>> from nestgrad import arange
    >>> [part.tolist() for part in array_split(arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    """
    x = as_tensor(x)
    k = one_axis(x, axis, "split")
    n = x.shape[k]
    if isinstance(sections, int):
        if not 1 <= sections <= max(n, 1 << 20):
            raise ArgumentError(f"split: got {sections} sections of {n} entries; expected at least one, and not so many empty ones")
        return _parts(x, [n // sections + (i < n % sections) for i in range(sections)], k)
    cuts = integers("split", x.b, sections)
    bounds = [0, *(min(max(c + n if c < 0 else c, 0), n) for c in cuts), n]
    if sorted(bounds) == bounds:
        return _parts(x, [end - start for start, end in pairwise(bounds)], k)
    before = (slice(None),) * k  # NumPy's parts overlap then, or are empty
    return tuple(x[(*before, slice(start, end))] for start, end in pairwise(bounds))


def chunk(x: Operand, chunks: int, axis: int = 0) -> "tuple[Tensor, ...]":
    """At most so many parts of one size, as ``torch.chunk``: all but the last have the size of the first.

    Raises:
        ArgumentError: Fewer than one part.

    >>> from nestgrad import arange
    >>> [part.tolist() for part in chunk(arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    """
    x = as_tensor(x)
    k = one_axis(x, axis, "chunk")
    if not isinstance(chunks, int) or chunks < 1:
        raise ArgumentError(f"chunk: got {chunks!r} chunks; expected at least one")
    n = x.shape[k]
    size = -(-n // chunks)
    return _parts(x, [min(size, n - start) for start in range(0, n, size)] if n else [0] * chunks, k)


def unstack(x: Operand, axis: int = 0) -> "tuple[Tensor, ...]":
    """The slices along an axis, without it: the inverse of ``stack``. Cheaper than indexing in a loop, which has a node for each slice.

    Raises:
        ShapeError: Of a number.

    >>> from nestgrad import tensor
    >>> [row.tolist() for row in unstack(tensor([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    x = as_tensor(x)
    k = one_axis(x, axis, "unstack")
    return _slices(x, k)


unbind = unstack


def hsplit(x: Operand, sections: int | Sequence[int]) -> "tuple[Tensor, ...]":
    """``split`` along the second axis, or along the only one."""
    x = with_axes("hsplit", x, 1)
    return split(x, sections, 1 if x.ndim > 1 else 0)


def vsplit(x: Operand, sections: int | Sequence[int]) -> "tuple[Tensor, ...]":
    """``split`` along the first of at least two axes."""
    return split(with_axes("vsplit", x, 2), sections, 0)


def dsplit(x: Operand, sections: int | Sequence[int]) -> "tuple[Tensor, ...]":
    """``split`` along the third axis."""
    return split(with_axes("dsplit", x, 3), sections, 2)


def _parts(x: "Tensor", sizes: Sequence[int], axis: int) -> "tuple[Tensor, ...]":
    """Parts of these sizes, which make up the axis. Many of them are made of parts of parts."""
    count = len(sizes)
    if count < 2:
        return (x,) * count
    if count <= MOST:
        return tuple(make(x.b, part, x.marks) for part in x.b.own(splitting(count))(x.value, tuple(sizes), axis))
    groups = [sizes[k : k + _group(count)] for k in range(0, count, _group(count))]
    coarse = _parts(x, [sum(g) for g in groups], axis)
    return tuple(part for whole, g in zip(coarse, groups, strict=True) for part in _parts(whole, g, axis))


def _slices(x: "Tensor", axis: int) -> "tuple[Tensor, ...]":
    """The slices along an axis, without it."""
    count = x.shape[axis]
    if count < 2:
        return (x.squeeze(axis),) if count else ()
    if count <= MOST:
        return tuple(make(x.b, part, x.marks) for part in x.b.own(unstacking(count))(x.value, axis))
    size = _group(count)
    return tuple(part for whole in _parts(x, [min(size, count - k) for k in range(0, count, size)], axis) for part in _slices(whole, axis))


def _group(count: int) -> int:
    """How many parts go together where there are too many for one op: the smallest power that leaves few enough groups."""
    group = MOST
    while group * MOST < count:
        group *= MOST
    return group
