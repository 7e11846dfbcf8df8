"""Entries taken, replaced and added to by whole numbers or masks.

Arrays of positions may differ by the sample of a batch, and be traced, except where it says that shapes depend on them. Those out of range
raise ``IndexRangeError``, floats and booleans ``DTypeError``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ShapeError
from nestgrad.functions.along import scatter, scatter_add
from nestgrad.functions.choose import where
from nestgrad.functions.joining import broadcast_arrays
from nestgrad.levels.base import Coat
from nestgrad.levels.marks import NONE
from nestgrad.tensor.axes import one_axis
from nestgrad.tensor.handle import Operand, as_tensor, first_beside, is_scalar, make
from nestgrad.tensor.picking import where_true
from nestgrad.tensor.places import inside, whole

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = [
    "take", "put", "index_select", "index_add", "index_copy", "index_fill", "masked_fill", "masked_select", "select", "compress",
    "extract",
]  # fmt: skip


def take(x: Operand, indices: Operand, axis: int | None = None, mode: str = "raise") -> "Tensor":
    """Entries, or slices along an axis, by whole numbers of any shape, as ``np.take``.

    Args:
        x: Any shape.
        indices: Positions; negative ones count from the end. They may name one several times.
        axis: Which axis; ``None``: the flattened array.
        mode: What is done with those out of range: ``"raise"``; ``"wrap"``: counted round and round; ``"clip"``: the nearest, negative ones
            too.

    Returns:
        The axes of ``indices`` in the place of ``axis``.

    Raises:
        ArgumentError: Another ``mode``.

    >>> from nestgrad import tensor
    >>> take(tensor([1.0, 2.0, 3.0]), tensor([[0, 2], [-1, 0]])).tolist()
    [[1.0, 3.0], [3.0, 1.0]]
    """
    return first_beside(x, indices).take(indices, axis, mode)


def put(x: Operand, indices: Operand, values: Operand, mode: str = "raise") -> "Tensor":
    """A new Tensor with entries of the flattened array replaced; as ``np.put``, which writes into its array.

    Args:
        x: Any shape.
        indices: Positions in the flattened array, each named once; the same for all samples of a batch.
        values: As many, or fewer, which are repeated; differentiable.
        mode: See ``take``.

    Raises:
        ShapeError: An entry that is named twice: which value stays would be undefined.
    """
    return first_beside(x, indices, values).put(indices, values, mode)


def index_select(x: Operand, axis: int, index: Operand) -> "Tensor":
    """Slices along an axis, as ``torch.index_select``: ``take`` with a vector of positions."""
    v = first_beside(x, index)
    return v.take(_vector("index_select", v, index), one_axis(v, axis, "index_select"))


def index_add(x: Operand, axis: int, index: Operand, source: Operand) -> "Tensor":
    """A new Tensor with slices added along an axis, as ``torch.index_add``; one that is named twice gets both.

    Args:
        x: At least one axis.
        axis: Which axis.
        index: A vector of positions.
        source: A number, or an array that broadcasts to the slices ``take(x, index, axis)``. Differentiable.

    >>> from nestgrad import tensor, zeros
    >>> index_add(zeros(3), 0, tensor([2, 0, 2]), tensor([1.0, 2.0, 3.0])).tolist()
    [2.0, 0.0, 4.0]
    """
    x = first_beside(x, index, source)
    return _changed("index_add", x, axis, index, source)


def index_copy(x: Operand, axis: int, index: Operand, source: Operand) -> "Tensor":
    """A new Tensor with slices replaced along an axis, as ``torch.index_copy``. Takes what ``index_add`` does, but each position once.

    Raises:
        ShapeError: A position that is named twice: which value stays would be undefined.
    """
    x = first_beside(x, index, source)
    return _changed("index_copy", x, axis, index, source)


def index_fill(x: Operand, axis: int, index: Operand, value: Operand) -> "Tensor":
    """A new Tensor with one number in all entries of the slices at positions along an axis, as ``torch.index_fill``."""
    x = first_beside(x, index, value)
    k, places = one_axis(x, axis, "index_fill"), _vector("index_fill", x, index)
    n = x.shape[k]
    at = inside("index_fill", x.b, places.value, n)
    ones = x.b.add(x.b.mul(at, 0), 1)
    named = x.b.ne(x.b.to_rows(ones, at, n), 0)
    tail = (1,) * (x.ndim - k - 1)
    return where(make(x.b, x.b.reshape(named, (n, *tail)), NONE), value, x)


def masked_fill(x: Operand, mask: Operand, value: Operand) -> "Tensor":
    """``value`` where the mask holds, ``x`` elsewhere, as ``torch.masked_fill``; all three broadcast.

    >>> from nestgrad import tensor
    >>> masked_fill(tensor([1.0, 2.0]), tensor([True, False]), 0.0).tolist()
    [0.0, 2.0]
    """
    return where(mask, value, x)


def masked_select(x: Operand, mask: Operand) -> "Tensor":
    """The entries where the mask holds, in one vector, as ``torch.masked_select``; both broadcast.

    The shape depends on the mask, so it must be the same for all samples of a batch, and known in a trace.
    """
    v, c = broadcast_arrays(x, mask)
    chosen = where_true(c.ravel(), "masked_select")[0]
    return v.ravel()[chosen]


def extract(condition: Operand, x: Operand) -> "Tensor":
    """The entries of the flattened ``x`` where ``condition`` is not 0, as ``np.extract``. See ``masked_select``."""
    v = first_beside(x, condition)
    return compress(as_tensor(condition, v.b).ravel(), v.ravel())


def compress(condition: Operand, x: Operand, axis: int | None = None) -> "Tensor":
    """The slices along an axis where ``condition``, a vector, is not 0, as ``np.compress``. It may be shorter than the axis.

    The shape depends on the condition, so it must be the same for all samples of a batch, and known in a trace.

    Raises:
        ShapeError: A condition that is no vector.

    >>> from nestgrad import tensor
    >>> compress(tensor([0, 1]), tensor([[1, 2], [3, 4]]), axis=0).tolist()
    [[3, 4]]
    """
    v = first_beside(x, condition)
    c = as_tensor(condition, v.b)
    if c.ndim != 1:
        raise ShapeError(f"compress: got a condition of shape {c.shape}; expected a vector")
    return v.take(where_true(c, "compress")[0], axis)


def select(conditions: Sequence[Operand], choices: Sequence[Operand], default: Operand = 0) -> "Tensor":
    """Entries of the choice whose condition holds first, or ``default``, as ``np.select``. All broadcast.

    Raises:
        ShapeError: Not as many choices as conditions, or none.

    >>> from nestgrad import tensor
    >>> x = tensor([-1.0, 0.5, 3.0])
    >>> select([x < 0, x > 1], [-x, x * x], 0.0).tolist()
    [1.0, 0.0, 9.0]
    """
    if not conditions or len(conditions) != len(choices):
        raise ShapeError(f"select: got {len(conditions)} conditions and {len(choices)} choices; expected as many of each, and at least one")
    out: Any = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        out = where(condition, choice, out)
    return out  # type: ignore[no-any-return]


def _vector(name: str, x: "Tensor", index: Operand) -> "Tensor":
    """Whole numbers as a Tensor with one axis, over the backend of ``x``."""
    places = make(x.b, whole(name, x.b, index), NONE)
    if places.ndim > 1:
        raise ShapeError(f"{name}: got positions of shape {places.shape}; expected a vector")
    return places if places.ndim else places.reshape(1)


def _changed(name: str, x: "Tensor", axis: int, index: Operand, source: Operand) -> "Tensor":
    """``x`` with slices added to, or replaced; by an op for entries where positions are on levels."""
    k, places = one_axis(x, axis, name), _vector(name, x, index)
    if not isinstance(places.value, Coat):
        inside(name, x.b, places.value, x.shape[k])
        source = source if is_scalar(source) else as_tensor(source, x.b)
        here = x.at[(slice(None),) * k + (places,)]
        return here.add(source) if name == "index_add" else here.set(source)
    shape = (*x.shape[:k], places.size, *x.shape[k + 1 :])
    wide = places.reshape([places.size if i == k else 1 for i in range(x.ndim)]).broadcast_to(shape)
    given = source if is_scalar(source) else as_tensor(source, x.b).broadcast_to(shape)
    return scatter_add(x, k, wide, given) if name == "index_add" else scatter(x, k, wide, given)
