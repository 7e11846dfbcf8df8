"""``Traced``: recording a program as a backend decorator."""

from typing import TYPE_CHECKING, Any

from nestgrad.errors import TraceError
from nestgrad.levels.level import Level
from nestgrad.levels.traced.program import Program
from nestgrad.levels.traced.recording import Recording

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor


class Traced(Level):
    """Records what is computed with its inputs as a program, while it computes. One object records one program.

    It is under the levels that it wraps and under those that wrap it: they all bottom out in ops that it records, and none of them is left
    in the program. ``nestgrad.trace`` does the same for a function.

    Args:
        inner: A backend, or a level.

    >>> import nestgrad as ng
    >>> T = Traced(ng.NumpyBackend())
    >>> S = ng.Autodiff(T)
    >>> x = S.tensor(T.input(3.0), requires_grad=True)
    >>> print(T.program((2.0 * x).exp().wrt(x)))
    input v0: float64[]
    v1: float64[] = constant 1.0
    v2: float64[] = scale(v0, c=2.0)
    v3: float64[] = exp(v2)
    v4: float64[] = mul0(v1, v3)
    v5: float64[] = scale(v4, c=2.0)
    return v5
    """

    name = "traced"

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self._recording = Recording(self.base, type(self).__name__, self.level)
        self._count = 0
        self.tape = self._recording.tape
        under = inner._tapes if isinstance(inner, Level) else ()
        # Made anew, younger than the trace: levels that it wraps are above its wires like those that wrap it.
        self._tapes = (self.tape, *self.tape.above(under))

    def input(self, x: Any) -> "Tensor":
        """``x`` as the next input of the program: on no level, with an example's value.

        Args:
            x: A Tensor, whose levels stay outside, or data.

        Raises:
            TraceError: If the program is complete.
        """
        self._open("input")
        self._recording.begin()
        self._count += 1
        made: Tensor = self.enter("input", self.base.tensor(x).detach(), dress=self._dressed_input, floating=False)
        return made

    def program(self, outputs: Any) -> Program:
        """End the trace.

        Args:
            outputs: What the program is to return: a Tensor, or a nested structure of them.

        Returns:
            The program of its ``input`` Tensors, in their order. What is left of these raises ``TraceError`` from now on.

        Raises:
            TraceError: If the program is complete already.
        """
        from nestgrad.func.tracing import program_of

        self._open("program")
        return program_of(self._recording, self._count, outputs)

    def _open(self, name: str) -> None:
        if self._recording.ended:
            raise TraceError(
                f"{name}: {self!r} has recorded its program already; expected one that records, because each is for one program. "
                "Try a new Traced(...), or nestgrad.trace"
            )

    def _dressed_input(self, b: Any, tape: Any, value: Any) -> Any:
        return self._recording.input(value)
