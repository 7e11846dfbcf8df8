"""``Wire``: the coat of a value in a trace.

Coats are ordered by age here as everywhere. What was made before a trace began is under its wires: a batch, or the wire of an outer trace.
What is made while it runs is above them, and bottoms out in ops on wires, so nothing of it is left in the program. Levels that are older
than the trace and differentiate are not under a wire: an argument comes in without them, and a tensor that wears them is captured.
"""

from math import inf
from typing import TYPE_CHECKING, Any

from nestgrad.errors import TraceError
from nestgrad.levels.base import Coat
from nestgrad.levels.coats import bare, worn
from nestgrad.levels.reverse.node import Tracked
from nestgrad.levels.traced.program import Variable
from nestgrad.ops.table import Op

if TYPE_CHECKING:
    from nestgrad.levels.traced.recording import Recording


class Wire(Coat):
    """A value in a trace: its place in the program."""

    __slots__ = ("recording", "variable")
    differentiates = False
    recording: "Recording"
    variable: Variable

    def over(self, inner: Any) -> "Wire":
        """The same place over another inner value."""
        return wire(self.recording, inner, self.variable)

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Record the op."""
        return self.recording.apply(b, op, args, params)

    def detached(self, inner: Any) -> "Wire":
        """The value as a constant: an op of the program, since levels outside will differentiate it."""
        return self.recording.stop(self, inner)

    def off(self) -> Any:
        """Refused: under the wire there is an example, not the value.

        Raises:
            TraceError: Always.
        """
        self.recording.check("taking a value out of a trace")
        raise TraceError(f"got a value of {self.tape}, which cannot leave it; expected it to be used, or returned, as it is")

    def linked(self, g: Any) -> Any:
        """``g`` as a value that the program connects to this one."""
        return self.recording.link(self, g)

    def read(self) -> Any:
        """Refused: what Python does with the numbers is not recorded.

        Raises:
            TraceError: Always.
        """
        self.recording.check("leaving to plain numbers")
        typed = self.variable.typed.partition(": ")[2]
        if typed.startswith(("bool[", "int")) and self.variable.shape:
            raise TraceError(
                f"trace: got a traced {typed} whose entries must be known here, as a mask, x[mask], in x.at[...], or by .numpy(); expected "
                "shapes and places that do not depend on traced values, because the program would hold those of this run. "
                "Try ng.where(mask, x, 0.0) instead of x[mask], or an index that is made outside and closed over"
            )
        raise TraceError(
            f"trace: got a traced {typed} whose numbers must be known here, by bool(x) as in `if x:`, float(x), .item(), .numpy() or in a "
            "slice; expected nothing but functions of Tensors, because what Python does with the numbers of this run is not recorded. "
            "Try ng.where(cond, a, b) instead of `if`, or compute it outside and close over it; in jit, an argument that is named in "
            "static_argnames is a plain value"
        )

    def refuse_captured(self, x: Any) -> None:
        """Refuse to differentiate by what was captured: how this value depends on it is in the program, and recorded on no level.

        Raises:
            TraceError: If ``x`` is a variable of a level outside.
        """
        if any(coat.tape.birth < self.tape.birth and coat.differentiates and not coat.tape.closed for coat in worn(x)):
            raise TraceError(
                f"grad: got a tensor that is a variable outside of the trace ({self.tape.name}), inside of it; expected one made inside, "
                "because what is captured is an input of the program, and its levels are outside. Try to make it an argument, and a "
                "variable by S.tensor(w, requires_grad=True) in the traced function; or differentiate the call of the program"
            )

    @property
    def whole(self) -> bool:
        """Whether it holds integers, which can be positions."""
        return bool(self.recording.base.kind(bare(self.value)) == "int")

    @property
    def oldest(self) -> float:
        """It depends on no variable of the tape."""
        return inf


def wire(recording: "Recording", value: Any, variable: Variable) -> Wire:
    """A coat."""
    coat = Wire()
    coat.tape, coat.value, coat.recording, coat.variable = recording.tape, value, recording, variable
    return coat


def identity_of(p: Any) -> Any:
    """What two handles of one value have in common, as long as one of them lives."""
    return tuple((coat.tape, coat.node if isinstance(coat, Tracked) else id(coat)) for coat in worn(p))
