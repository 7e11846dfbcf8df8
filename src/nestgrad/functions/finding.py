"""Where entries are: constants, since positions and counts have no derivative.

Where the shape of the result depends on entries, these must be the same for all samples of a batch (``LevelError``), and known in a trace
(``TraceError``).
"""

from typing import TYPE_CHECKING

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.levels.coats import bare
from nestgrad.levels.marks import NONE
from nestgrad.tensor.handle import Operand, arrays, as_tensor, first_beside, make
from nestgrad.tensor.picking import where_true
from nestgrad.tensor.reductions import Axis

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["nonzero", "argwhere", "flatnonzero", "count_nonzero", "searchsorted", "bucketize", "digitize"]


def nonzero(x: Operand) -> "tuple[Tensor, ...]":
    """Where entries are not 0: an array of int64 for each axis, last axis fastest. The shape depends on the entries.

    >>> from nestgrad import tensor
    >>> [k.tolist() for k in nonzero(tensor([[0, 1], [2, 0]]))]
    [[0, 1], [1, 0]]
    """
    return as_tensor(x).nonzero()


def argwhere(x: Operand) -> "Tensor":
    """Where entries are not 0: a row of positions for each. Shape ``(number of them, number of axes)``, which depends on the entries.

    >>> from nestgrad import tensor
    >>> argwhere(tensor([[0, 1], [2, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    x = as_tensor(x)
    if not x.ndim:
        count = where_true(x.reshape(1), "argwhere")[0]
        return make(x.b, x.b.reshape(count, (x.b.shape(count)[0], 1)), NONE)[:, :0]
    lines = [x.b.reshape(line, (*x.b.shape(line), 1)) for line in where_true(x, "argwhere")]
    return make(x.b, x.b.concat(*lines, axis=1), NONE)


def flatnonzero(x: Operand) -> "Tensor":
    """Where entries of the flattened array are not 0. The shape depends on the entries."""
    return as_tensor(x).ravel().nonzero()[0]


def count_nonzero(x: Operand, axis: Axis = None, keepdims: bool = False) -> "Tensor":
    """How many entries are not 0, over the axes; ``None``: over all. Of any values, on any level."""
    x = as_tensor(x)
    return make(x.b, x.b.ne(x.value, 0), NONE).sum(axis, keepdims)


def searchsorted(sequence: Operand, values: Operand, side: str = "left", right: bool | None = None) -> "Tensor":
    """Where values would have to be put into a sorted sequence: how many of its numbers come before each.

    Args:
        sequence: Sorted along its last axis, which is not checked. A vector; or as many as ``values`` has leading axes, one for each.
        values: Any shape, a number too.
        side: ``"left"``: before equal numbers. ``"right"``: after them.
        right: The same, as torch spells it.

    Returns:
        int64 of the shape of ``values``; a constant. Costs a binary search for each. NaN counts as greater than every number.

    Raises:
        ShapeError: A number for a sequence, or leading axes that differ.
        ArgumentError: Another word for ``side``.

    >>> from nestgrad import tensor
    >>> searchsorted(tensor([1.0, 2.0, 2.0, 5.0]), tensor([2.0, 6.0])).tolist()
    [1, 4]
    """
    if side not in ("left", "right") or (right is not None and side != "left" and not right):
        raise ArgumentError(f"searchsorted: got side={side!r} and right={right!r}; expected 'left' or 'right', or right alone")
    after = side == "right" if right is None else bool(right)
    b, (p, q), _ = arrays("searchsorted", sequence, values)
    lists, wanted = tuple(b.shape(p)), tuple(b.shape(q))
    if not lists or (len(lists) > 1 and (len(wanted) != len(lists) or lists[:-1] != wanted[:-1])):
        raise ShapeError(
            f"searchsorted: got a sequence of shape {lists} for values of shape {wanted}; expected a vector, or equal leading axes"
        )
    return make(b, b.searchsorted(p, q, after), NONE)


def bucketize(values: Operand, boundaries: Operand, right: bool = False) -> "Tensor":
    """Between which boundaries values are, as ``torch.bucketize``: ``k`` where ``boundaries[k-1] < value <= boundaries[k]``.

    Args:
        values: Any shape.
        boundaries: A sorted vector.
        right: Whether a value that is equal to a boundary is after it: ``boundaries[k-1] <= value < boundaries[k]``.

    >>> from nestgrad import tensor
    >>> bucketize(tensor([0.5, 1.0, 3.0]), tensor([1.0, 2.0])).tolist()
    [0, 0, 2]
    """
    return searchsorted(_vector("bucketize", boundaries), values, "right" if right else "left")


def digitize(values: Operand, bins: Operand, right: bool = False) -> "Tensor":
    """Between which bins values are, as ``np.digitize``: ``k`` where ``bins[k-1] <= value < bins[k]``.

    Which of the two bounds belongs to a bin is the other way round in ``bucketize``.

    Args:
        values: Any shape.
        bins: A vector in increasing order, which is checked here, by one pass over them.
        right: Whether a value that is equal to a bound is before it: ``bins[k-1] < value <= bins[k]``.

    Raises:
        ShapeError: Bins that are no vector.
        ArgumentError: Bins that do not increase; those in decreasing order NumPy takes.
    """
    edges = first_beside(_vector("digitize", bins), values)
    base, raw = edges.b.base, bare(edges.value)
    lead = (slice(None),) * (len(base.shape(raw)) - 1)  # of samples
    after, before = base.getitem(raw, (*lead, slice(1, None))), base.getitem(raw, (*lead, slice(0, max(edges.size - 1, 0))))
    if base.to_numpy(base.lt(after, before)).any():
        raise ArgumentError(f"digitize: got bins {base.to_numpy(raw).tolist()!r:.80}; expected them in increasing order. Try ng.sort(bins)")
    return searchsorted(edges, values, "left" if right else "right")


def _vector(name: str, x: Operand) -> Operand:
    if len(getattr(x, "shape", ())) != 1:
        raise ShapeError(f"{name}: got boundaries of shape {tuple(getattr(x, 'shape', ()))}; expected a vector")
    return x
