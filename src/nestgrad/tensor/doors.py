"""The doors of levels: how values get the coat of a forward, Taylor or batched level, and how they come out again."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from nestgrad.errors import DTypeError, LevelError
from nestgrad.levels.base import Coat, Tape, tracing
from nestgrad.levels.coats import bare, on, worn
from nestgrad.levels.marks import left, opened
from nestgrad.tensor.handle import Handle, make, meet

if TYPE_CHECKING:
    from nestgrad.tensor.tensor import Tensor


def enter(level: Any, name: str, xs: Sequence[Any], dress: Callable[..., Any], floating: bool = True) -> "Tensor":
    """``dress(b, tape, *values)`` of what may meet: Tensors over the level's base, or data.

    Raises:
        LevelError: A Tensor over another base backend, or one that was taken out of this level.
        DTypeError: If ``floating``, and one of them is not.
    """
    b = level.dressed
    tensors = [x if isinstance(x, Handle) else level.tensor(x) for x in xs]
    if strange := [x for x in tensors if x.b is not b and x.b.base != b.base]:
        raise LevelError(f"{name}: got a tensor over {strange[0].b.base!r} for {level!r}; expected one base backend for both")
    if floating and (whole := [x for x in tensors if not b.base.is_floating(bare(x.value))]):
        raise DTypeError(f"{name}: got dtype {b.dtype(whole[0].value)}; expected a floating one. Try x.astype('float64')")
    _, values, marks = meet(name, *tensors)
    if (trace := tracing.get()) is not None:
        values, marks = [trace.bring(p) for p in values], trace.moved(marks)
    tape: Tape = level.tapes[-1]
    if tape in marks:
        raise LevelError(
            f"{name}: got a value that was taken out of {tape} before ({marks[tape].story}), so what it depends on there would be lost. "
            "Try detach() on what is meant as a constant; or another level for the next derivative"
        )
    return make(b, dress(b, tape, *values), marks)


def leave(level: Any, name: str, y: Any, take: Callable[[Coat | None, Any], Sequence[Any]], whole: bool = True) -> "list[Tensor]":
    """``take(coat, value)``: what is under the level's coat, which is ``None`` where ``y`` does not wear it. Younger levels are taken off.

    Raises:
        LevelError: If ``y`` is none of the base's Tensors, or a younger level cannot be taken off; and, unless ``whole`` is false, if it
            was taken out of this level already: it does not wear the coat then, and what that held is not zero.
    """
    if not isinstance(y, Handle) or y.b.base != level.base:
        what = f"a Tensor over {y.b.base!r}" if isinstance(y, Handle) else f"a {type(y).__name__}"
        raise LevelError(f"{name}: got {what}; expected a Tensor over {level.base!r}")
    value, marks = opened(y.value, y.marks)
    tape: Tape = level.meant([coat.tape for coat in worn(value)])
    if (trace := tracing.get()) is not None:
        trace.refuse_opaque(name, tape)
    if on(value, tape) is None:
        if whole and tape in marks:
            raise LevelError(
                f"{name}: got a value that was taken out of {tape} ({marks[tape].story}), so what it was on that level is lost; expected a "
                "value that is still on it. Try detach() on what is meant as a constant; or another level for the next derivative"
            )
        return [make(y.b, part, marks) for part in take(None, value)]
    while value.tape is not tape:
        marks = left(value, [value.tape], marks, f"{name}() on a level further in")
        value = value.off()
    marks = left(value, [tape], marks, f"{name}()")
    return [make(y.b, part, marks) for part in take(value, value.value)]
