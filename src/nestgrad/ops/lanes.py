"""Lanes: the axes along which an op goes entry by entry, so that it could be batched over them.

A way is ``f(shapes, out, *params)``: of the shapes of the operands (``()`` for a Python number) and of the answer, of several results the
first, to lanes. An axis of more than one entry that is in no lane is mixed: entries along it meet in a way that nothing is known of.
Operands of which an axis has size 1, or is missing, are shared by all entries.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from nestgrad.ops.shapes import Shape
from nestgrad.ops.table import CONSTANT, ELEMENTWISE, TABLE, Op

Index = tuple[Any, ...]


class Lane(NamedTuple):
    """One lane through an op.

    Attributes:
        out: The axis of the answer along which it comes out. ``None``: the answer is the sum of what the entries contribute.
        places: Numbers of operands, each with the axis along which it comes in. Without any, the answer repeats what it is made of.
    """

    out: int | None
    places: tuple[tuple[int, int], ...]


Way = Callable[..., Iterable[Lane]]


def of(op: Op) -> Way | None:
    """The way of an op: what its entry states, or what its kind and the names of its parameters tell. ``None``: nothing is known."""
    if op.lanes or op.kind is ELEMENTWISE:
        return op.lanes or each
    return _told(op) if TABLE.get(op.name) is op else None


@cache  # the table stays; other ops come and go
def _told(op: Op) -> Way | None:
    if op.broadcasts or (op.kind is CONSTANT and len(op.arguments) > 1 and op.batched is None):
        return each
    if "shape" in op.params or op.variadic:
        return None
    for name, way in (("axis", _axis), ("axes", along), ("widths", _widths)):
        if name in op.params:
            return partial(_named, way, op.params.index(name))
    return None


def _named(way: Way, place: int, shapes: Sequence[Shape], out: Shape, *params: Any) -> Iterable[Lane]:
    return way(shapes, out, params[place])


# by entries


def each(shapes: Sequence[Shape], out: Shape, *params: Any) -> Iterator[Lane]:
    """All axes, aligned at the last."""
    rank = len(out)
    for j, n in enumerate(out):
        yield Lane(j, tuple([(i, j - rank + len(s)) for i, s in enumerate(shapes) if rank - j <= len(s) and s[j - rank] == n]))


def along(shapes: Sequence[Shape], out: Shape, axes: Sequence[int], *params: Any) -> Iterator[Lane]:
    """All axes but ``axes``, which stay where they are or go. Operands have as many axes, or none."""
    rank = max(map(len, shapes))
    if any(len(s) not in (0, rank) for s in shapes) or len(out) not in (rank, rank - len(axes)):
        return
    rest = [k for k in range(rank) if k not in axes]
    for j, k in enumerate(rest):
        yield Lane(k if len(out) == rank else j, tuple([(i, k) for i, s in enumerate(shapes) if s and s[k] != 1]))


def _axis(shapes: Sequence[Shape], out: Shape, axis: int, *params: Any) -> Iterator[Lane]:
    return along(shapes, out, (axis,))


def _widths(shapes: Sequence[Shape], out: Shape, widths: Sequence[tuple[int, int]]) -> Iterator[Lane]:
    """Axes of which nothing is added at the ends."""
    return along(shapes, out, [k for k, (before, after) in enumerate(widths) if before or after])


def last_param(shapes: Sequence[Shape], out: Shape, *params: Any) -> Iterator[Lane]:
    """All axes but the one that the last parameter names."""
    return along(shapes, out, (params[-1],))


def before_last(count: int | str, shapes: Sequence[Shape], out: Shape, *params: Any) -> Iterator[Lane]:
    """All axes but the last ``count`` of the only operand: they are the first ones of the answer, too."""
    for k in range(min(len(shapes[0]) - int(count), len(out))):
        yield Lane(k, ((0, k),))


matrices: Way = partial(before_last, 2)
"""Of each matrix by itself."""


def before_spaces(shapes: Sequence[Shape], out: Shape, sizes: Sequence[int], *params: Any) -> Iterator[Lane]:
    """All axes before the last ones, of which there are as many as ``sizes``."""
    return before_last(len(sizes), shapes, out)


def from_windows(shapes: Sequence[Shape], out: Shape, spaces: Sequence[int], *params: Any) -> Iterator[Lane]:
    """All axes before those that count windows and entries in them."""
    return before_last(2 * len(spaces), shapes, out)


# sums


def total(shapes: Sequence[Shape], out: Shape, axes: Sequence[int], *params: Any) -> Iterator[Lane]:
    """A sum over ``axes``."""
    yield from along(shapes, out, axes)
    for k in axes:
        yield Lane(None, tuple([(i, k) for i in range(len(shapes))]))


def mean(shapes: Sequence[Shape], out: Shape, axes: Sequence[int], *params: Any) -> Iterator[Lane]:
    """A sum over ``axes``, divided by the number of entries: of fewer of them, it is another."""
    return total(shapes, out, axes)


def vecdot(shapes: Sequence[Shape], out: Shape, axis: int) -> Iterator[Lane]:
    """A sum along one axis."""
    return total(shapes, out, (axis,))


def product(shapes: Sequence[Shape], out: Shape, tx: bool = False, ty: bool = False) -> Iterator[Lane]:
    """Rows of the first matrices, columns of the second, a sum between them; stacks are aligned at the last axis."""
    x, y = shapes
    if len(x) < 2 or len(y) < 2:
        return
    yield from each((x[:-2], y[:-2]), out[:-2])
    yield Lane(len(out) - 2, ((0, len(x) - (1 if tx else 2)),))
    yield Lane(len(out) - 1, ((1, len(y) - (2 if ty else 1)),))
    yield Lane(None, ((0, len(x) - (2 if tx else 1)), (1, len(y) - (1 if ty else 2))))


def vecmat(shapes: Sequence[Shape], out: Shape, ty: bool) -> Iterator[Lane]:
    """Columns, and the sum over rows."""
    yield Lane(0, ((1, 0 if ty else 1),))
    yield Lane(None, ((0, 0), (1, 1 if ty else 0)))


def linear(shapes: Sequence[Shape], out: Shape) -> Iterator[Lane]:
    """A product, and an array that broadcasts to it."""
    *two, z = shapes
    for lane in product(two, out):
        k = -1 if lane.out is None else lane.out - len(out) + len(z)
        yield Lane(lane.out, (*lane.places, (2, k))) if k >= 0 and z[k] != 1 else lane


def einsum(shapes: Sequence[Shape], out: Shape, subscripts: str) -> Iterator[Lane]:
    """Letters that come out, and letters that are summed over."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    words = inputs.split(",")
    if not arrow or not all(c.isalpha() for word in words for c in word):
        return
    for c in dict.fromkeys("".join(words)):
        places = [(i, k) for i, word in enumerate(words) for k, other in enumerate(word) if c == other and shapes[i][k] != 1]
        yield Lane(output.index(c) if c in output else None, tuple(places))


def conv(shapes: Sequence[Shape], out: Shape, *params: Any) -> Iterator[Lane]:
    """Samples; and where there is one group, channels out, and a sum over channels in."""
    yield Lane(0, ((0, 0),))
    if params[-1] == 1:
        yield Lane(1, ((1, 0),))
        yield Lane(None, ((0, 1), (1, 1)))


def conv_input(shapes: Sequence[Shape], out: Shape, *params: Any) -> Iterator[Lane]:
    """The transpose of ``conv`` by its first argument."""
    yield Lane(0, ((0, 0),))
    if params[-1] == 1:
        yield Lane(1, ((1, 1),))
        yield Lane(None, ((0, 1), (1, 0)))


def conv_weight(shapes: Sequence[Shape], out: Shape, *params: Any) -> Iterator[Lane]:
    """The transpose of ``conv`` by its second argument."""
    yield Lane(None, ((0, 0), (1, 0)))
    if params[-1] == 1:
        yield Lane(0, ((1, 1),))
        yield Lane(1, ((0, 1),))


# shapes


def permute(shapes: Sequence[Shape], out: Shape, axes: Shape) -> Iterator[Lane]:
    """All axes, at their new places."""
    for j, k in enumerate(axes):
        yield Lane(j, ((0, k),))


def stack(shapes: Sequence[Shape], out: Shape, axis: int) -> Iterator[Lane]:
    """All axes but the new one."""
    for k in range(len(out) - 1):
        yield Lane(k + (k >= axis), tuple([(i, k) for i in range(len(shapes))]))


def concat(shapes: Sequence[Shape], out: Shape, axis: int) -> Iterator[Lane]:
    """All axes but the one that grows."""
    return along(shapes, out, (axis,))


def diagonal(shapes: Sequence[Shape], out: Shape, offset: int, axes: Shape) -> Iterator[Lane]:
    """All axes but the two that become the last one."""
    for j, k in enumerate(k for k in range(len(shapes[0])) if k not in axes):
        yield Lane(j, ((0, k),))


def from_diagonal(shapes: Sequence[Shape], out: Shape, offset: int, axes: Shape, *params: Any) -> Iterator[Lane]:
    """All axes but the two that were the last one."""
    for k, j in enumerate(j for j in range(len(out)) if j not in axes):
        yield Lane(j, ((0, k),))


def _kept(index: Index, shape: Shape) -> list[tuple[int, int]]:
    """Axes of an array that an index takes as they are, and where they are in what it finds."""
    if any(not isinstance(item, (int, slice)) and (not hasattr(item, "shape") or "bool" in str(item.dtype)) for item in index):
        return []
    arrays = [len(item.shape) for item in index if not isinstance(item, (int, slice))]
    places = [k for k, item in enumerate(index) if not isinstance(item, slice)]  # a number beside arrays counts as one
    rank = max(arrays, default=0)
    apart = bool(arrays) and places[-1] - places[0] >= len(places)
    found, j = [], rank if apart else 0
    for k, n in enumerate(shape):
        if k < len(index) and not isinstance(index[k], slice):
            j += rank if not apart and k == places[0] else 0
            continue
        if k >= len(index) or index[k].indices(n) == (0, n, 1):
            found.append((k, j))
        j += 1
    return found


def getitem(shapes: Sequence[Shape], out: Shape, index: Index) -> Iterator[Lane]:
    """Axes that are taken as they are."""
    for k, j in _kept(index, shapes[0]):
        yield Lane(j, ((0, k),))


def put(shapes: Sequence[Shape], out: Shape, index: Index, shape: Shape) -> Iterator[Lane]:
    """The transpose of ``getitem``."""
    for k, j in _kept(index, shape):
        yield Lane(k, ((0, j),))


def change(shapes: Sequence[Shape], out: Shape, index: Index) -> Iterator[Lane]:
    """Entries that are changed: the second operand broadcasts to them."""
    x, y = shapes
    kept = _kept(index, x)
    arrays = [len(item.shape) for item in index if not isinstance(item, (int, slice))] if kept else []
    rank = len(x) - sum(not isinstance(item, slice) for item in index) + max(arrays, default=0)  # of what the index finds
    for k, j in kept:
        at = j - rank + len(y)
        yield Lane(k, ((0, k), (1, at)) if at >= 0 and y[at] != 1 else ((0, k),))


# positions


def rows(shapes: Sequence[Shape], out: Shape) -> Iterator[Lane]:
    """Axes of the positions, and those of a row."""
    x, y = shapes
    for k in range(len(y)):
        yield Lane(k, ((1, k),))
    for k in range(1, len(x)):
        yield Lane(len(y) + k - 1, ((0, k),))


def to_rows(shapes: Sequence[Shape], out: Shape, count: int) -> Iterator[Lane]:
    """A sum over the positions, and the axes of a row."""
    x, y = shapes
    for k in range(len(y)):
        yield Lane(None, ((0, k), (1, k)))
    for k in range(len(y), len(x)):
        yield Lane(k - len(y) + 1, ((0, k),))


def take_along(shapes: Sequence[Shape], out: Shape, axis: int) -> Iterator[Lane]:
    """What is taken is so place by place."""
    yield from along(shapes, out, (axis,))
    yield Lane(axis, ((1, axis),))


def add_along(shapes: Sequence[Shape], out: Shape, axis: int, n: int) -> Iterator[Lane]:
    """The transpose of ``take_along``: a sum over the places."""
    yield from along(shapes, out, (axis,))
    yield Lane(None, ((0, axis), (1, axis)))


# matrices and norms


def solve(shapes: Sequence[Shape], out: Shape) -> Iterator[Lane]:
    """Stacks of matrices, and columns of right sides."""
    x, y = shapes
    yield from each((x[:-2], y[:-2]), out[:-2])
    yield Lane(len(out) - 1, ((1, len(y) - 1),))


def standardised(shapes: Sequence[Shape], out: Shape, axes: Shape, eps: float) -> Iterator[Lane]:
    """All axes but ``axes``; scale and shift broadcast."""
    return (lane for lane in each(shapes, out) if lane.out not in axes)


def quantile(shapes: Sequence[Shape], out: Shape, q: tuple[float, ...], axes: Shape, *params: Any) -> Iterator[Lane]:
    """All axes but ``axes``, after the axis of the quantiles."""
    return (Lane(1 + (lane.out or 0), lane.places) for lane in along(shapes, out[1:], axes))
