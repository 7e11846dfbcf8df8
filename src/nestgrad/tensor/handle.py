"""The handle itself: three slots, and how operands become values that may meet."""

import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from nestgrad.errors import ConversionError, DTypeError, LevelError, NestgradError
from nestgrad.levels.coats import bare
from nestgrad.levels.marks import NONE, Marks
from nestgrad.levels.mixing import settle
from nestgrad.levels.reverse.node import Tracked
from nestgrad.ops.shapes import NUMBERS

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor

_T = TypeVar("_T")

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


def final(cls: type[_T]) -> type[_T]:
    """Register the concrete Tensor class."""
    _Final.cls = cls
    return cls


_new: Any = object.__new__


def make(b: Any, value: Any, marks: Marks) -> "Tensor":
    """A Tensor."""
    tensor: Tensor = _new(_Final.cls)
    tensor.b = b
    tensor.value = value
    tensor.marks = marks
    return tensor


def default_backend(like: Any = None) -> Any:
    """The backend for data that comes without one: PyTorch's for its tensors, NumPy's for all else."""
    theirs: Any = getattr(sys.modules.get("torch"), "Tensor", None)  # if there is a tensor of it, it is there
    if theirs is not None and isinstance(like, theirs):
        return _backend("torch", str(like.device), like.dtype if like.dtype.is_floating_point else None)
    return _backend("numpy")


@cache
def _backend(name: str, device: str | None = None, dtype: Any = None) -> Any:
    """One object for each, so that its tensors meet on the quick path. A backend has no state."""
    from nestgrad.backends import get_backend

    return get_backend(name) if device is None else get_backend(name, device=device, dtype=dtype)


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
                    "Try one backend for both; constants may be plain arrays, which join either: np.eye(3) for ng.eye(3), x.numpy() for x"
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
    """A number or an array as a value. Arrays are copied, since values are read late.

    Raises:
        DTypeError: Complex numbers, and what is neither number nor array.
        ConversionError: A torch tensor that torch itself tracks.
    """
    if is_scalar(x):
        return x if x.__class__ in NUMBERS else float(x)
    real_only(name, x)
    if not b.base.accepts(x):
        raise DTypeError(f"{name}: got {named(x)}; expected a Tensor, a number or an array of {b.base!r}. Try {_instead(x)}")
    untracked_only(name, x)
    return b.base.asarray(x)


def untracked_only(name: str, x: Any) -> None:
    """Refuse what another library's autograd tracks.

    Raises:
        ConversionError: If ``x`` is a torch tensor that requires gradients.
    """
    if getattr(x, "requires_grad", False):
        raise ConversionError(
            f"{name}: got a torch tensor that requires_grad, and torch's autograd would lose track of it here. "
            "Try x.detach() for its values"
        )


def named(x: Any) -> str:
    """What ``x`` is, with the library that it is from."""
    room = type(x).__module__.partition(".")[0]
    return f"a {type(x).__name__}" if room == "builtins" else f"a {room}.{type(x).__name__}"


def _instead(x: Any) -> str:
    """What to give instead of ``x``."""
    if isinstance(x, (list, tuple)):
        return "tensor([...]) for numbers, ng.stack([...]) for Tensors"
    return "np.asarray(x), a constant, for an array of another library" if hasattr(x, "__array__") else "tensor(...) to make one"


def real_only(name: str, x: Any) -> None:
    """Refuse complex numbers.

    Raises:
        DTypeError: If ``x`` is one, or an array of such.
    """
    if isinstance(x, complex) or "complex" in str(getattr(x, "dtype", "")):
        raise DTypeError(
            f"{name}: got complex numbers; expected real ones. Try real and imaginary parts as two tensors, as functions of (re, im)"
        )


def is_floating(x: Handle) -> bool:
    """Whether it holds floating-point numbers. What an ``Autodiff`` level tracks always does."""
    return x.value.__class__ is Tracked or bool(x.b.base.is_floating(bare(x.value)))


def real(x: Handle) -> Any:
    """The value for a function of the reals: integers and booleans become the backend's default floating dtype."""
    if x.value.__class__ is Tracked or x.b.base.is_floating(bare(x.value)):
        return x.value
    return x.b.cast(x.value, x.b.base.default_dtype)


def reals(b: Any, values: list[Any]) -> list[Any]:
    """Values for a function of the reals, and Python numbers as they are."""
    return [v if is_scalar(v) or b.base.is_floating(bare(v)) else b.cast(v, b.base.default_dtype) for v in values]


def floating(x: Operand) -> "Tensor":
    """``x`` as a Tensor of floating-point numbers; see ``real``."""
    x = as_tensor(x)
    return x if is_floating(x) else make(x.b, real(x), x.marks)


def arrays(name: str, *xs: Operand) -> tuple[Any, list[Any], Marks]:
    """What ``meet`` gives, with numbers as arrays without axes."""
    b, values, marks = meet(name, *xs)
    return b, [b.base.asarray(v) if is_scalar(v) else v for v in values], marks


def apply(name: str, *xs: Operand, **params: Any) -> "Tensor":
    """An op of the table on operands of any kind: the general way."""
    b, values, marks = meet(name, *xs)
    return make(b, getattr(b, name)(*weak(b, values, xs), **params), marks)


def results(name: str, *xs: Operand, **params: Any) -> "tuple[Tensor, ...]":
    """An op of the table with several results; those without derivatives carry no marks."""
    b, values, marks = meet(name, *xs)
    op = b.table[name]
    out = getattr(b, name)(*weak(b, values, xs), **params)
    return tuple(make(b, v, NONE if result in op.fixed else marks) for result, v in zip(op.results, out, strict=True))


def test(name: str, *xs: Operand, **params: Any) -> "Tensor":
    """An op without derivatives: its result carries no marks."""
    b, values, _ = meet(name, *xs)
    return make(b, getattr(b, name)(*weak(b, values, xs), **params), NONE)


def weak(b: Any, values: list[Any], xs: Sequence[Operand]) -> list[Any]:
    """The values of operands ``xs`` that are to be of one dtype, where some may be Python numbers.

    Beside a Python float, integers and booleans get the backend's default floating dtype; array libraries take one of their own. Of
    numbers alone, the first becomes an array.
    """
    if any(isinstance(x, float) for x in xs):
        values = reals(b, values)
    return [b.base.asarray(values[0]), *values[1:]] if all(is_scalar(v) for v in values) else values


def as_tensor(x: Operand, b: Any = None) -> "Tensor":
    """A Tensor as it is, anything else as a constant: over ``b`` if that is given."""
    if isinstance(x, Handle):
        return x  # type: ignore[return-value]
    b = default_backend(x).dressed if b is None else b
    try:
        value = constant(b, x, "tensor")
    except NestgradError:
        value = constant(b, x, called())  # the same error, in the name of the function
    return make(b, b.base.asarray(value) if is_scalar(value) else value, NONE)


def called() -> str:
    """The function that a user called, for messages: the outermost one on the stack that is a public function of the library."""
    name, frame = "tensor", sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("nestgrad."):
        if frame.f_code.co_name in frame.f_globals.get("__all__", ()):
            name = frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return name


def first_beside(x: Operand, *others: Operand) -> "Tensor":
    """``x`` as a Tensor, over the backend of the others if one of them is a Tensor."""
    like = next((v for v in others if isinstance(v, Handle)), None)
    return as_tensor(x, like.b if like is not None else None)


def constant_of(x: Operand, b: Any) -> "Tensor":
    """A Tensor as it is; a number, an array or nested lists of numbers as a constant over ``b``."""
    return as_tensor(b.base.asarray(x) if isinstance(x, (list, tuple)) else x, b)
