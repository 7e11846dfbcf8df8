"""The handle itself: three slots, and how operands become values that may meet."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nestgrad.errors import DTypeError, LevelError, ShapeError
from nestgrad.levels.marks import NONE, Marks
from nestgrad.levels.mixing import settle

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor

Operand = Any
"""A Tensor, a Python number, or an array that the backend accepts."""


class Handle:
    """What a Tensor is made of. Immutable by convention: nothing in nestgrad assigns to a slot of an existing one.

    Attributes:
        b: The backend over dressed values.
        value: A raw array, or coats around one.
        marks: What the value depends on, unrecorded.
    """

    __slots__ = ("__weakref__", "b", "marks", "value")
    b: Any
    value: Any
    marks: Marks


class _Final:
    """Where the one concrete subclass is known, for the functions below."""

    cls: Any = None


def final(cls: type) -> type:
    """Register the concrete Tensor class."""
    _Final.cls = cls
    return cls


def make(b: Any, value: Any, marks: Marks) -> "Tensor":
    """A Tensor."""
    tensor: Tensor = _Final.cls()
    tensor.b = b
    tensor.value = value
    tensor.marks = marks
    return tensor


def default_backend(like: Any = None) -> Any:
    """The backend for data that comes without one: PyTorch's for its tensors, NumPy's for all else."""
    from nestgrad.backends import get_backend

    if type(like).__module__.partition(".")[0] == "torch":
        return get_backend("torch", device=like.device, dtype=like.dtype if like.dtype.is_floating_point else None)
    return get_backend("numpy")


def is_scalar(x: Any) -> bool:
    """Whether ``x`` is a weakly typed Python number (NumPy's float64 scalar is one)."""
    return isinstance(x, (bool, int, float))


def can_meet(b: Any, x: Any) -> bool:
    """Whether ``x`` may stand beside a Tensor over ``b``."""
    return isinstance(x, Handle) or is_scalar(x) or bool(b.base.accepts(x))


def meet(name: str, *xs: Operand) -> tuple[Any, list[Any], Marks]:
    """The backend, values and marks with which operands may meet (design rule 2).

    Raises:
        LevelError: Tensors over different base backends.
        DTypeError: An operand that is no Tensor, number or array.
    """
    first = next((x for x in xs if isinstance(x, Handle)), None)
    b = first.b if first is not None else default_backend(next((x for x in xs if not is_scalar(x)), None)).dressed
    values: list[Any] = []
    marks: list[Marks] = []
    for x in xs:
        if isinstance(x, Handle):
            if x.b is not b and x.b.base != b.base:
                raise LevelError(
                    f"{name}: got tensors over different base backends, {b.base!r} and {x.b.base!r}; they cannot meet. "
                    "Try one backend for both: stack.tensor(x.numpy()) makes a constant of x"
                )
            values.append(x.value)
            marks.append(x.marks)
        else:
            values.append(constant(b, x, name))
    if not marks or all(m is marks[0] for m in marks):
        return b, values, marks[0] if marks else NONE
    tensors = [k for k, x in enumerate(xs) if isinstance(x, Handle)]
    settled, union = settle([values[k] for k in tensors], marks)
    for k, value in zip(tensors, settled, strict=True):
        values[k] = value
    return b, values, union


def constant(b: Any, x: Any, name: str) -> Any:
    """A number or an array as a value. Arrays are copied, since values are read late."""
    if is_scalar(x):
        return x if type(x) in (bool, int, float) else float(x)
    if b.base.accepts(x):
        return b.base.asarray(x)
    raise DTypeError(f"{name}: got a {type(x).__name__}; expected a Tensor, a number or an array. Try tensor(...) to make one")


def apply(name: str, *xs: Operand, **params: Any) -> "Tensor":
    """An op of the table on operands of any kind: the general way."""
    b, values, marks = meet(name, *xs)
    if all(is_scalar(v) for v in values):
        values[0] = b.base.asarray(values[0])
    return make(b, getattr(b, name)(*values, **params), marks)


def test(name: str, *xs: Operand, **params: Any) -> "Tensor":
    """An op without derivatives: its result carries no marks."""
    b, values, _ = meet(name, *xs)
    if all(is_scalar(v) for v in values):
        values[0] = b.base.asarray(values[0])
    return make(b, getattr(b, name)(*values, **params), NONE)


def as_tensor(x: Operand) -> "Tensor":
    """A Tensor as it is, anything else as a constant."""
    if isinstance(x, Handle):
        return x  # type: ignore[return-value]
    b = default_backend(x).dressed
    return make(b, b.base.asarray(constant(b, x, "tensor")), NONE)


def axes_of(rank: int, axis: int | Sequence[int] | None, name: str) -> tuple[int, ...]:
    """``axis`` as a tuple of distinct non-negative ints; ``None`` means all of them.

    Raises:
        ShapeError: An axis out of range, or named twice.
    """
    if axis is None:
        return tuple(range(rank))
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    for k in given:
        if not isinstance(k, int) or not -rank <= k < rank:
            raise ShapeError(f"{name}: got axis {k!r} of an array with {rank} axes; expected an int from {-rank} to {rank - 1}")
    axes = tuple(k % rank for k in given)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: got axis {axis!r}; expected each axis once")
    return axes


def shape_of(shape: int | Sequence[int] | Any, *more: int) -> tuple[int, ...]:
    """``f((2, 3))`` and ``f(2, 3)`` alike."""
    if isinstance(shape, int):
        return (shape, *more)
    return tuple(int(n) for n in shape)
