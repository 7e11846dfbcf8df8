"""Memory that somebody else owns, as the innermost coat: checked each time it is read."""

from typing import Any

from nestgrad.errors import MutatedError
from nestgrad.levels.base import Coat, Tape
from nestgrad.ops.table import Op

_TAPE = Tape("shared", 0)
_TAPE.birth = 0  # older than every level, so always the innermost


class Shared(Coat):
    """A value whose memory is shared with its owner. ``token`` tells whether the owner has written into it since."""

    __slots__ = ("backend", "token")
    differentiates = False
    backend: Any
    token: Any

    def over(self, inner: Any) -> "Shared":
        """The same memory, seen differently."""
        return share(self.backend, inner, self.token)

    @property
    def oldest(self) -> float:
        """It depends on no variable."""
        return float("inf")

    def read(self) -> Any:
        """The raw value, if it is still what it was.

        Raises:
            MutatedError: If the owner has written into the memory.
        """
        if self.backend.changed(self.value, self.token):
            raise MutatedError(
                "memory shared by from_numpy/from_torch was written into after it was shared, and a graph still reads it; "
                "expected it unchanged, since values are read late. Try tensor(data), which copies, or share it anew after the write"
            )
        return self.value

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Run the op on the memory itself; an answer that is a view of it is shared as well."""
        raw = [a.read() if isinstance(a, Shared) else a for a in args]
        owners = [a for a in args if isinstance(a, Shared)]

        def watched(out: Any) -> Any:
            owner = next((a for a in owners if self.backend.overlaps(out, a.value)), None)
            return out if owner is None else owner.over(out)

        return op.each(watched, b.run(op, raw, params))


def share(backend: Any, value: Any, token: Any) -> Shared:
    """A value over memory that ``backend`` can watch by ``token``."""
    coat = Shared()
    coat.tape, coat.value, coat.backend, coat.token = _TAPE, value, backend, token
    return coat
