"""A level: a backend that wraps a backend, and names a tape."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from nestgrad.backends.factories import Factories
from nestgrad.errors import LevelError
from nestgrad.levels.base import Tape, running, running_now

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor


@cache
def _doors() -> Any:
    """The front's module. Imported late, since it looks down here."""
    from nestgrad.tensor import doors

    return doors


class Level(Factories):
    """A backend that wraps a backend. Ops act on values that wear coats of any level over the same base.

    Attributes:
        inner: The wrapped backend or level.
        level: Number: the inner one's plus 1; a base backend has 0.
        tape: Its own tape.
    """

    name: ClassVar[str]
    records: ClassVar[bool] = False
    """Whether variables can be put on it, for a backward pass."""

    def __init__(self, inner: Any) -> None:
        if not isinstance(inner, Factories):
            raise LevelError(f"{type(self).__name__}: expected a backend or a level to wrap, got {type(inner).__name__}")
        self.inner = inner
        self._base = inner.base
        self.level: int = inner.level + 1
        self.tape = Tape(type(self).__name__, self.level, self.records)
        self._tapes: tuple[Tape, ...] = (*(inner._tapes if isinstance(inner, Level) else ()), self.tape)
        self._dressing: tuple[Level, ...] = (*inner._dressing, *([self] if type(self).dress is not Level.dress else []))

    def enter(self, name: str, *xs: Any, dress: Callable[..., Any], floating: bool = True) -> "Tensor":
        """A Tensor with ``dress(b, tape, *values)`` of ``xs``, Tensors or data: the door in. ``name`` is for messages.

        Raises:
            LevelError: A Tensor over another base backend, or one that was taken out of this level.
            DTypeError: If ``floating``, and one of them is not.
        """
        made: Tensor = _doors().enter(self, name, xs, dress, floating)
        return made

    def leave(self, name: str, y: Any, take: Callable[..., Sequence[Any]], whole: bool = True) -> "list[Tensor]":
        """Tensors with what ``take(coat, inner value)`` finds in the coat of ``y`` (``None`` if it wears none): the door out.

        They are marked as taken out of this level, so nothing that they depend on is lost silently. Levels above it are taken off.

        Raises:
            LevelError: If ``y`` is no Tensor over this base, or a level above cannot be taken off. Unless ``whole`` is false, also if
                ``y`` was taken out of this level before.
        """
        made: list[Tensor] = _doors().leave(self, name, y, take, whole)
        return made

    @property
    def tapes(self) -> tuple[Tape, ...]:
        """Its tapes, innermost first. Inside a transform, the younger ones that stand in for those made before it."""
        outer, tapes = running.get(), self._tapes
        return tapes if outer is None or tapes[0].birth > outer.birth else outer.above(tapes)

    def meant(self, worn: list[Tape]) -> Tape:
        """Its tape as it is for a value that has to do with ``worn``: a stand-in for values of a running transform.

        Raises:
            LevelError: If the value has to do with the transform, and with this level or a younger one as they are outside it as well.
        """
        return self._meant(worn, running.get(), running_now())

    def _meant(self, worn: list[Tape], outer: Tape | None, transforms: list[Tape]) -> Tape:
        while outer is not None and outer.birth > self._tapes[0].birth:
            if (trace := outer.trace) is not None:  # a trace with levels: what is meant outside; for a value inside, what stands for it
                found = self._meant([trace.outside(tape) for tape in worn], outer.outer, transforms)
                inside: Tape = trace.stand_in(found) if any(tape.birth >= outer.birth for tape in worn) else found
                return inside
            if any(tape.birth >= outer.birth for tape in worn):
                if any(self.tape.birth <= tape.birth < outer.birth and tape not in transforms for tape in worn):
                    raise LevelError(
                        f"{self!r}: inside {outer} this level stands above it, but the value depends on the level as it is outside, too, "
                        "so there are two levels that could be meant. Try its number, or detach() without a level"
                    )
                return outer.above(self._tapes)[-1]
            outer = outer.outer
        return self.tape

    def dress(self, tape: Tape, value: Any) -> Any:
        """What a value becomes that ``tensor`` of the stack makes. A level that all values wear returns a coat of ``tape`` over it.

        Args:
            tape: The level's tape.
            value: An inner value: it wears coats of older tapes only.
        """
        return value

    @property
    def base(self) -> Any:
        """The backend at the bottom."""
        return self._base

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("inner", "tape", "level"):
            raise AttributeError(name)
        return getattr(self.dressed, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"
