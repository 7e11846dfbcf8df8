"""Entries along an axis by arrays of positions of the shape of the result: taken, put, added, compared.

Positions may name any entry from either end: negative ones count from the end of the axis, as in NumPy; torch refuses them. They may differ
by the sample of a batch, and be traced. Those out of range raise ``IndexRangeError``, floats and booleans ``DTypeError``.
"""

from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError, DTypeError, ShapeError
from nestgrad.levels.marks import NONE
from nestgrad.tensor.axes import one_axis
from nestgrad.tensor.handle import Operand, arrays, as_tensor, first_beside, is_scalar, make
from nestgrad.tensor.indexing import holds
from nestgrad.tensor.places import inside, whole

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["take_along_axis", "put_along_axis", "gather", "scatter", "scatter_add", "scatter_reduce"]

REDUCTIONS = ("sum", "amax", "amin")


def take_along_axis(x: Operand, indices: Operand, axis: int | None = -1) -> "Tensor":
    """The entries at positions along an axis, as ``np.take_along_axis``; what ``argsort`` and ``argmax`` with ``keepdims`` give.

    Args:
        x: At least one axis.
        indices: Whole numbers, with as many axes as ``x``. But for ``axis``, sizes are equal or broadcast.
        axis: Which axis; ``None``: of the flattened array, with a vector of positions.

    Returns:
        The shape of ``indices``.

    Raises:
        ShapeError: If the shapes do not fit.
        IndexRangeError: A position out of range.
        DTypeError: Positions that are no whole numbers.

    >>> from nestgrad import tensor
    >>> take_along_axis(tensor([[3.0, 1.0], [2.0, 4.0]]), tensor([[1], [0]]), axis=1).tolist()
    [[1.0], [2.0]]
    """
    x = first_beside(x, indices)
    if axis is None:
        return take_along_axis(x.ravel(), indices, 0)
    k, places = _named("take_along_axis", x, axis, indices)
    p, places = _broadcast("take_along_axis", x, places, k)
    return make(x.b, x.b.take_along(p, places, k), x.marks)


def gather(x: Operand, axis: int, index: Operand) -> "Tensor":
    """The entries at positions along an axis, as ``torch.gather``.

    Args:
        x: At least one axis.
        axis: Which axis.
        index: Whole numbers, with as many axes as ``x``; on the other axes no larger than ``x``, of which the first entries are taken.

    Returns:
        The shape of ``index``.

    Raises:
        ShapeError: If the shapes do not fit.
        IndexRangeError: A position out of range.
        DTypeError: Positions that are no whole numbers.

    >>> from nestgrad import tensor
    >>> gather(tensor([[3.0, 1.0], [2.0, 4.0]]), 1, tensor([[1, 1, 0]])).tolist()
    [[1.0, 1.0, 3.0]]
    """
    x = first_beside(x, index)
    k, places = _placed("gather", x, axis, index)
    part = _corner(x.b, x.value, k, tuple(x.b.shape(places)))
    return make(x.b, x.b.take_along(part, places, k), x.marks)


def put_along_axis(x: Operand, indices: Operand, values: Operand, axis: int | None = -1) -> "Tensor":
    """A new Tensor with entries at positions along an axis replaced; ``np.put_along_axis`` writes into its array.

    Args:
        x: At least one axis.
        indices: Whole numbers, with as many axes as ``x``. But for ``axis``, sizes are equal or broadcast. Each position once.
        values: Broadcasts to the shape of ``indices``; differentiable.
        axis: Which axis; ``None``: of the flattened array, with a vector of positions. The result has the shape of ``x``.

    Raises:
        ShapeError: If shapes do not fit, or a position is named twice: which value stays would be undefined.
        IndexRangeError: A position out of range.
        DTypeError: Positions that are no whole numbers; floats into integers.
    """
    x = first_beside(x, indices, values)
    if axis is None:
        return put_along_axis(x.ravel(), indices, values, 0).reshape(x.shape)
    k, places = _named("put_along_axis", x, axis, indices)
    p, places = _broadcast("put_along_axis", x, places, k)
    if tuple(x.b.shape(p)) != x.shape:
        raise ShapeError(f"put_along_axis: got positions of shape {tuple(x.b.shape(places))} for shape {x.shape}; expected no larger axes")
    return _into("put_along_axis", x, k, places, values, "set")


def scatter(x: Operand, axis: int, index: Operand, src: Operand) -> "Tensor":
    """A new Tensor with ``src`` at positions along an axis, as ``torch.scatter``, which has no rule for positions that are named twice.

    Args:
        x: At least one axis.
        axis: Which axis.
        index: Whole numbers, with as many axes as ``x``; on the other axes no larger. Each position once along the axis.
        src: A number; or an array that is no smaller than ``index``, of which the first entries are used. Differentiable.

    Returns:
        The shape and dtype of ``x``.

    Raises:
        ShapeError: If shapes do not fit, or a position is named twice. ``scatter_add`` and ``scatter_reduce`` take such.
        IndexRangeError: A position out of range.
        DTypeError: Positions that are no whole numbers; floats into integers.

    >>> from nestgrad import tensor, zeros
    >>> scatter(zeros(4), 0, tensor([2, 0]), tensor([5.0, 6.0])).tolist()
    [6.0, 0.0, 5.0, 0.0]
    """
    return _scattered("scatter", x, axis, index, src, "set")


def scatter_add(x: Operand, axis: int, index: Operand, src: Operand) -> "Tensor":
    """A new Tensor with ``src`` added at positions along an axis, as ``torch.scatter_add``. One that is named twice gets both.

    Takes and raises what ``scatter`` does.

    >>> from nestgrad import tensor, zeros
    >>> scatter_add(zeros(3), 0, tensor([2, 0, 2]), tensor([1.0, 2.0, 3.0])).tolist()
    [2.0, 0.0, 4.0]
    """
    return _scattered("scatter_add", x, axis, index, src, "sum")


def scatter_reduce(x: Operand, axis: int, index: Operand, src: Operand, reduce: str) -> "Tensor":
    """A new Tensor with the sum or the extremum of each entry of ``x`` and what of ``src`` is put there, as ``torch.scatter_reduce``.

    Takes and raises what ``scatter`` does, but for positions, which may be named several times. Equal extrema share the derivative evenly,
    the entry of ``x`` among them.

    Args:
        x, axis, index, src: See ``scatter``.
        reduce: ``"sum"``, ``"amax"`` or ``"amin"``; another word is an ``ArgumentError``.

    >>> from nestgrad import tensor, zeros
    >>> scatter_reduce(zeros(3), 0, tensor([2, 0, 2]), tensor([1.0, -2.0, 3.0]), "amax").tolist()
    [0.0, 0.0, 3.0]
    """
    if reduce not in REDUCTIONS:
        raise ArgumentError(f"scatter_reduce: got reduce={reduce!r}; expected one of {REDUCTIONS}. Try scatter to replace entries")
    return _scattered("scatter_reduce", x, axis, index, src, reduce)


def _named(name: str, x: "Tensor", axis: int, given: Operand) -> tuple[int, Any]:
    """The axis, and positions along it, from 0 on."""
    k = one_axis(x, axis, name)
    return k, inside(name, x.b, whole(name, x.b, given), x.shape[k])


def _placed(name: str, x: "Tensor", axis: int, index: Operand) -> tuple[int, Any]:
    """The axis, and positions that are no larger than ``x`` on the others."""
    k, places = _named(name, x, axis, index)
    shape = tuple(x.b.shape(places))
    if len(shape) != x.ndim or any(n > m for i, (n, m) in enumerate(zip(shape, x.shape, strict=True)) if i != k):
        raise ShapeError(
            f"{name}: got positions of shape {shape} for shape {x.shape}; expected as many axes, and no larger ones but for axis {k}"
        )
    return k, places


def _broadcast(name: str, x: "Tensor", places: Any, axis: int) -> tuple[Any, Any]:
    """The value of ``x`` and positions with equal sizes on all axes but one."""
    b, have, named = x.b, x.shape, tuple(x.b.shape(places))
    if len(named) != len(have) or any(n != m and 1 not in (n, m) for k, (n, m) in enumerate(zip(have, named, strict=True)) if k != axis):
        raise ShapeError(
            f"{name}: got positions of shape {named} for shape {have}; expected as many axes, and sizes that broadcast but for axis {axis}"
        )
    full = tuple(m if n == 1 else n for n, m in zip(have, named, strict=True))
    mine, theirs = ((*full[:axis], s[axis], *full[axis + 1 :]) for s in (have, named))
    p = x.value if mine == have else b.broadcast_to(x.value, mine)
    return p, places if theirs == named else b.broadcast_to(places, theirs)


def _corner(b: Any, p: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """The first entries of ``p`` on all axes but one, as many as ``shape`` has."""
    have = tuple(b.shape(p))
    if all(n == m for k, (n, m) in enumerate(zip(have, shape, strict=True)) if k != axis):
        return p
    return b.getitem(p, tuple(slice(None) if k == axis else slice(0, n) for k, n in enumerate(shape)))


def _scattered(name: str, x: Operand, axis: int, index: Operand, src: Operand, how: str) -> "Tensor":
    x = first_beside(x, index, src)
    k, places = _placed(name, x, axis, index)
    wanted = tuple(x.b.shape(places))
    if not is_scalar(src):
        src = as_tensor(src, x.b)
        if src.ndim != len(wanted) or any(n < m for n, m in zip(src.shape, wanted, strict=True)):
            raise ShapeError(
                f"{name}: got src of shape {src.shape} for positions of shape {wanted}; expected as many axes, and no smaller ones"
            )
        if src.shape != wanted:
            src = src[tuple(slice(0, n) for n in wanted)]
    return _into(name, x, k, places, src, how)


def _into(name: str, x: "Tensor", axis: int, places: Any, values: Operand, how: str) -> "Tensor":
    """``x`` with ``values`` at positions that are no larger than ``x`` on the other axes."""
    b, (p, q), marks = arrays(name, x, values)
    shape = tuple(b.shape(places))
    if not holds(b, p, q):
        raise DTypeError(f"{name}: got values of dtype {b.dtype(q)} for entries of dtype {b.dtype(p)}, which cannot hold them. "
                         "Try x.astype('float64')")  # fmt: skip
    q = b.cast(q, b.dtype(p)) if b.dtype(q) != b.dtype(p) else q
    if tuple(b.shape(q)) != shape:
        q = make(b, q, NONE).broadcast_to(shape).value
    if how == "sum":
        added = b.add_along(q, places, axis, x.shape[axis])
        lacking = tuple((0, n - m) for n, m in zip(x.shape, b.shape(added), strict=True))
        return make(b, b.add(p, b.pad(added, lacking) if any(n for _, n in lacking) else added), marks)
    part = _corner(b, p, axis, shape)
    if how == "set":
        out = b.set_along(part, places, q, axis, True)
    else:
        out = (b.max_along if how == "amax" else b.min_along)(part, places, q, axis)
    if part is not p:
        out = b.index_set(p, out, tuple(slice(0, n) for n in b.shape(out)))
    return make(b, out, marks)
