"""What a trace with levels refuses, because it cannot be told inside, or would not be the same at another call."""

from collections.abc import Callable, Sequence
from typing import Any

from nestgrad.errors import LevelError, TraceError
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.coats import within, worn
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.levels.traced.program import Compiler, Variable, behind
from nestgrad.levels.traced.recording import Recording
from nestgrad.levels.traced.standing import InsideTape, covered, seen_inside
from nestgrad.levels.traced.wire import Wire


class Strict(Recording):
    """A recording that knows what its inputs are outside.

    Attributes:
        opaque: Tapes of levels other than ``Autodiff`` that inputs wear outside. Inside they are not to be seen.
    """

    def __init__(self, base: Any, name: str, number: int = 0, compiler: Compiler | None = None) -> None:
        super().__init__(base, name, number, compiler, InsideTape(name, number, records=False))
        self.opaque: set[Tape] = set()
        self._outside: dict[Tape, Tape] = {}  # what stand-ins stand for
        self._origins: dict[Node, tuple[Node, list[Variable]]] = {}  # of leaves on stand-ins: the node outside, and the inputs
        self._histories: dict[Node, set[Node]] = {}
        self._worn: dict[Variable, set[Tape]] = {}  # of inputs: levels that do not record
        self._covered: dict[Variable, set[Tape]] = {}  # of inputs: levels that record, under a batch

    def holds(self, p: Any) -> bool:
        """Whether a value is inside."""
        return any(coat.tape.trace is self for coat in within(p))

    def outside(self, tape: Tape) -> Tape:
        """The tape that a stand-in stands for; any other tape is itself."""
        return self._outside.get(tape, tape)

    def _note(self, p: Any, variable: Variable | None) -> None:
        found = {coat.tape for coat in worn(p) if (coat.differentiates or coat.hidden) and not isinstance(coat, Tracked)}
        self.opaque |= found
        if variable is not None:
            self._worn[variable] = found
            self._covered[variable] = covered(p)

    def _reference(self, p: Any) -> Variable:
        variable = super()._reference(p)
        if isinstance(p, Coat) and not isinstance(p, Wire):
            self._note(p, variable)
        return variable

    def refuse_covered(self, values: Sequence[Any], marked: set[Tape]) -> None:
        """Refuse to decide whether what was taken out of a level meets what is on it: under a batch, ages are not to be seen here.

        Raises:
            LevelError: If there is such a level.
        """
        if not any(self._covered.values()) and not any(coat.hidden for p in values for coat in worn(p)):
            return
        for p in values:
            tapes = {tape for v in self._behind(p) for tape in self._covered.get(v, ())}
            if met := marked & (tapes if self.holds(p) else tapes | covered(p)):
                raise LevelError(
                    f"jit: got a value that was taken out of {met.pop()} beside samples of a batch over values on that level; expected the "
                    "samples to be on levels above the batch, because it cannot be told inside which of them came first. Try without jit"
                )

    def refuse_cut(self, p: Any, among: Callable[[Tape], bool]) -> None:
        """Refuse to take a value off levels outside that it wears there, and that are not to be seen inside.

        Args:
            p: The value.
            among: Whether a tape outside is one of those that it is to be taken off.

        Raises:
            TraceError: If there is such a level.
        """
        if any(map(among, self.opaque_under(p))):
            raise TraceError(
                "detach: inside jit, got level=... where arguments of the function live on levels outside that do not record "
                f"({', '.join(map(repr, self.opaque))}); expected detach() without a level. Try detach(), or detach by level outside"
            )

    def opaque_under(self, p: Any) -> set[Tape]:
        """Tapes of levels that do not record, worn outside by inputs that ``p`` depends on."""
        return {tape for v in self._behind(p) for tape in self._worn.get(v, ())}

    def _behind(self, p: Any) -> set[Variable]:
        """All that a value depends on."""
        wires = [coat for coat in within(p) if isinstance(coat, Wire)]
        return set[Variable]().union(*(behind(coat.variable, self._steps, self._links) for coat in wires))

    def check_history(self, node: Node, reaches: Callable[[Node], bool]) -> None:
        """Refuse a look-up by an argument where the root depends on another one whose history may hold it.

        Args:
            node: Of what is looked up.
            reaches: Whether the root depends on a node.

        Raises:
            LevelError: If there is such an argument.
        """
        found = self._origins.get(node)
        if found is None:
            return
        given = set(self._inputs)
        for other, (outer, variables) in self._origins.items():
            if other is node or outer.edges == () or outer.age < node.age or not reaches(other):
                continue
            closed_over = given.isdisjoint(variables)
            if closed_over and found[0] not in self._history(outer):
                continue
            raise LevelError(
                f"grad: inside jit, the result depends on {'what the function closes over' if closed_over else 'an argument'} that has a "
                f"history of its own outside (a {outer.name!r} of shape {outer.shape}) and may depend there on the tensor that is looked "
                "up; expected variables only, because the history stays outside. Try to compute it inside, of arguments; or detach() it"
            )

    def _history(self, node: Node) -> set[Node]:
        """What a node of a captured value was made of: always the same."""
        if node not in self._histories:
            seen, stack = {node}, [node]
            while stack:
                for parent, _, _ in stack.pop().edges or ():
                    if parent not in seen:
                        seen.add(parent)
                        stack.append(parent)
            self._histories[node] = seen
        return self._histories[node]

    @property
    def history(self) -> frozenset[Node]:
        """Nodes of which it was important whether an argument is one of them."""
        return frozenset().union(*self._histories.values())

    def refuse_outer(self, value: Any, tapes: Sequence[Tape]) -> None:
        """Refuse to look up an argument in what was made outside.

        Args:
            value: Of the argument.
            tapes: Those that the root was recorded on.

        Raises:
            LevelError: If the argument is on one of them outside.
        """
        for coat in seen_inside(value):
            if coat.node in self._origins and self.outside(coat.tape) in tapes:
                raise LevelError(
                    "grad: inside jit, got an argument of the function to look up in gradients of what was made outside; expected both "
                    "inside or both outside, because another call may have another argument. Try to pass the root as an argument, too, or "
                    "to compute it inside"
                )

    def refuse_opaque(self, name: str, tape: Tape) -> None:
        """Refuse to take apart what an argument wears outside for a level other than ``Autodiff``.

        Raises:
            TraceError: If ``tape`` is that level's, or its stand-in.
        """
        if self.outside(tape) in self.opaque:
            raise TraceError(
                f"{name}: inside jit, got a level ({tape}) that arguments of the function live on outside; expected it to be taken apart "
                "outside, because the program runs on values of any levels. Try to return the value, and take it apart there"
            )
