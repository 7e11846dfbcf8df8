"""A level: a backend that wraps a backend, and names a tape."""

from typing import Any, ClassVar

from nestgrad.backends.factories import Factories
from nestgrad.errors import LevelError
from nestgrad.levels.base import Tape, running


class Level(Factories):
    """A backend that wraps a backend. Ops act on values that wear coats of any level over the same base.

    Attributes:
        inner: The wrapped backend or level.
        level: Number: the inner one's plus 1; a base backend has 0.
        tape: Its own tape.
    """

    name: ClassVar[str]

    def __init__(self, inner: Any) -> None:
        if not isinstance(inner, Factories):
            raise LevelError(f"{type(self).__name__}: expected a backend or a level to wrap, got {type(inner).__name__}")
        self.inner = inner
        self.level: int = inner.level + 1
        self.tape = Tape(type(self).__name__, self.level)
        self._tapes: tuple[Tape, ...] = (*(inner._tapes if isinstance(inner, Level) else ()), self.tape)

    @property
    def tapes(self) -> tuple[Tape, ...]:
        """Its tapes, innermost first. Inside a transform, the younger ones that stand in for those made before it."""
        outer, tapes = running.get(), self._tapes
        return tapes if outer is None or tapes[0].birth > outer.birth else outer.above(tapes)

    @property
    def base(self) -> Any:
        """The backend at the bottom."""
        return self.inner.base

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("inner", "tape", "level"):
            raise AttributeError(name)
        return getattr(self.dressed, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"
