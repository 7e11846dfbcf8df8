"""``Inside``: the recording of a function whose arguments keep their levels.

A plain trace takes arguments off their levels. Here each tape that an argument wears has a *stand-in*, a tape of the same place in the
order of ages, younger than the trace; and each of its nodes a leaf on it, of the same age. So what looks up derivatives by an argument
finds it, what it records is above the wires and leaves nothing in the program, and the rules about marks and ages decide as they would
outside. What was made outside and is closed over is *brought in* when it first meets something inside: it becomes a captured input, and
wears stand-ins, too.

The history of an argument stays outside. It is told apart from a variable, since a derivative by another argument may go through it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from nestgrad.errors import LevelError, TraceError
from nestgrad.levels.base import Coat, Tape, now
from nestgrad.levels.coats import constant, within, worn
from nestgrad.levels.marks import NONE, Marks
from nestgrad.levels.reverse.node import Node, Tracked, tracked
from nestgrad.levels.traced.cutting import CUT, Variant, uncut
from nestgrad.levels.traced.program import Compiler, Program, Variable, behind
from nestgrad.levels.traced.recording import Recording
from nestgrad.levels.traced.standing import InsideTape, covered, seen_inside
from nestgrad.levels.traced.wire import Wire, identity_of, wire


@dataclass(frozen=True, slots=True)
class Left:
    """How an output of the function lived inside.

    Attributes:
        value: What is under the coats of stand-ins.
        reached: For each tape outside whose stand-in it wore, the inputs that it depends on there, by their variables.
        marks: By tapes outside.
        sources: For each of these, the inputs whose own age is the moment of the mark.
    """

    value: Any
    reached: dict[Tape, frozenset[Variable]]
    marks: Marks
    sources: dict[Tape, frozenset[Variable]]


class Inside(Recording):
    """The one run of a trace with levels.

    Attributes:
        started: The clock when it began: what is marked later was marked by the function.
        opaque: Tapes of levels other than ``Autodiff`` that arguments wear outside. Inside they are not to be seen.
        asked: The stacks that the function has used: their tapes, and what these are where the function is called.
        noted: Marks that came in, by identity.
        variants: Inputs that were added in the end: what they are, the input that they are, and the stand-ins on which they are constant.
    """

    def __init__(self, base: Any, name: str, number: int = 0, compiler: Compiler | None = None) -> None:
        super().__init__(base, name, number, compiler, InsideTape(name, number, records=False))
        assert isinstance(self.tape, InsideTape)
        self.tape.inside = self.tape.trace = self
        self.started = now()
        self.opaque: set[Tape] = set()
        self.asked: dict[tuple[Tape, ...], tuple[Tape, ...]] = {}
        self.noted: dict[int, Marks] = {}
        self._outside: dict[Tape, Tape] = {}
        self._nodes: dict[tuple[Tape, Node], Node] = {}
        self._origins: dict[Node, tuple[Node, list[Variable]]] = {}
        self._brought: dict[Any, tuple[Any, Any]] = {}
        self._histories: dict[Node, set[Node]] = {}
        self._worn: dict[Variable, set[Tape]] = {}
        self._covered: dict[Variable, set[Tape]] = {}
        self.variants: list[Variant] = []

    # coming in

    def argument(self, p: Any) -> Any:
        """A value as the next input, with stand-ins for the tapes of ``Autodiff`` that it wears."""
        inner = self.input(p)
        if tapes := covered(p):
            self._covered[inner.variable] = tapes
        return self._dressed(p, inner)

    def bring(self, p: Any) -> Any:
        """A value as it is inside: what differentiates it outside is replaced by stand-ins. What is inside already stays as it is."""
        if not isinstance(p, Coat) or p.tape.trace is self:
            return p
        if p.tape.birth > self.tape.birth:
            return p.mapped(self.bring)
        if not seen_inside(p):
            self._note(p, None)
            return p  # captured as it is, where it meets a wire
        key = identity_of(p)
        if key not in self._brought:
            inner = wire(self, constant(p), self._reference(p))
            self._brought[key] = self._dressed(p, inner), p  # with p, so that no other value gets its identity
        return self._brought[key][0]

    def brought(self, values: Sequence[Any], marks: Sequence[Marks]) -> tuple[Sequence[Any], Sequence[Marks]]:
        """Values that are to meet, and their marks, as they are inside, if one of them is inside."""
        if not any(map(self.holds, values)) and not any(tape.trace is self for m in marks for tape in m):
            return values, marks
        if self._covered or any(coat.hidden for p in values for coat in worn(p)):
            self._refuse_covered(values, {self.outside(tape) for m in marks for tape in m})
        return [self.bring(p) for p in values], [self.moved(m) for m in marks]

    def _refuse_covered(self, values: Sequence[Any], marked: set[Tape]) -> None:
        """Refuse to decide whether what was taken out of a level meets what is on it: under a batch, ages are not to be seen here.

        Raises:
            LevelError: If there is such a level.
        """
        for p in values:
            tapes = {tape for v in self._behind(p) for tape in self._covered.get(v, ())}
            if met := marked & (tapes if self.holds(p) else tapes | covered(p)):
                raise LevelError(
                    f"jit: got a value that was taken out of {met.pop()} beside samples of a batch over values on that level; expected the "
                    "samples to be on levels above the batch, because it cannot be told inside which of them came first. Try without jit"
                )

    @property
    def context(self) -> list[Any]:
        """All values that were brought in or captured: what the function closes over, and looks up by."""
        brought = [p for _, p in self._brought.values()]
        return [*brought, *(p for key, (_, p) in self._captured.items() if key not in self._brought)]

    def holds(self, p: Any) -> bool:
        """Whether a value is inside."""
        return any(coat.tape.trace is self for coat in within(p))

    def moved(self, marks: Marks) -> Marks:
        """Marks by stand-ins."""
        if not any(tape.birth < self.tape.birth for tape in marks):
            return marks
        self.noted[id(marks)] = marks
        return {self._stand_in(tape) if tape.birth < self.tape.birth else tape: moment for tape, moment in marks.items()} or NONE

    def stand_in(self, tape: Tape) -> Tape:
        """The tape that is inside what ``tape`` is outside."""
        return self._stand_in(tape) if tape.birth < self.tape.birth else tape

    def _dressed(self, p: Any, inner: Wire) -> Any:
        self._note(p, inner.variable)
        made: Any = inner
        for coat in reversed(seen_inside(p)):
            made = tracked(self._stand_in(coat.tape), made, self._leaf(coat, inner.variable))
        return made

    def _note(self, p: Any, variable: Variable | None) -> None:
        found = {coat.tape for coat in worn(p) if (coat.differentiates or coat.hidden) and not isinstance(coat, Tracked)}
        self.opaque |= found
        if variable is not None:
            self._worn[variable] = found

    def _reference(self, p: Any) -> Variable:
        variable = super()._reference(p)
        if isinstance(p, Coat) and not isinstance(p, Wire) and (tapes := covered(p)):
            self._covered[variable] = tapes
        return variable

    def _leaf(self, coat: Tracked, variable: Variable) -> Node:
        key = coat.tape, coat.node
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node()
            node.age, node.lo, node.op = coat.node.age, coat.node.lo, "argument"
            node.shape, node.raw, node.edges = variable.shape, False, ()
            self._origins[node] = coat.node, []
        self._origins[node][1].append(variable)
        return node

    def _stand_in(self, tape: Tape) -> Tape:
        assert isinstance(self.tape, InsideTape)
        made = self.tape.stand_in(tape)
        self._outside[made] = tape
        return made

    # inside

    def apply(self, b: Any, op: Any, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Run an op on what is under the wires, and write it down; on the levels of what is brought in."""
        inside = [self.bring(a) for a in args]
        if any(x is not a for x, a in zip(inside, args, strict=True)):
            return b.run(op, inside, params)
        return super().apply(b, op, args, params)

    def cut(self, p: Any, tapes: frozenset[Tape]) -> Any:
        """``p`` as a constant on ``tapes``, stand-ins that it does not wear any more, for levels outside, too.

        Raises:
            TraceError: If arguments wear levels outside that cannot be told to leave.
        """
        first = min((self.outside(tape).birth for tape in tapes), default=inf)
        self.refuse_cut(p, lambda tape: tape.birth >= first)
        if isinstance(p, Wire):
            return self._write(CUT, (p,), (tapes,), p.value)
        return p.mapped(lambda part: self.cut(part, tapes)) if isinstance(p, Coat) else p

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

    def program(self, outputs: Sequence[tuple[Any, Marks]], *args: Any, **kwargs: Any) -> Program:
        """End the trace: what was cut is computed anew, of inputs that are constants there."""
        inputs = [*self._inputs, *(v for v, _ in self._captured.values())]
        self._steps, self.variants, cut = uncut(self._steps, inputs, self._links)
        outputs = [(wire(self, p.value, cut[p.variable]) if isinstance(p, Wire) and p.variable in cut else p, m) for p, m in outputs]
        self._inputs += [v for v, _, _ in self.variants]
        self.kept.update(v for _, v, _ in self.variants)
        return super().program(outputs, *args, **kwargs)

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

    # going out

    def outside(self, tape: Tape) -> Tape:
        """The tape that a stand-in stands for; any other tape is itself."""
        return self._outside.get(tape, tape)

    def leave(self, p: Any, marks: Marks) -> Left:
        """An output without the levels that it wears inside.

        Raises:
            LevelError: If it lives on a level that was made inside, or depends on a variable that was.
        """
        for coat in worn(p):
            if isinstance(coat, Wire):
                coat.recording.check("jit")
        p = self.bring(p)
        reached: dict[Tape, frozenset[Variable]] = {}
        while isinstance(p, Coat) and not isinstance(p, Wire) and p.tape.birth > self.tape.birth:
            if p.tape.trace is not self or not isinstance(p, Tracked):
                raise _escapes(f"lives on {p.tape}, which was made inside")
            reached[self._outside[p.tape]] = self._reached(p.node)
            p = p.value
        kept = {self.outside(t): m for t, m in self.moved(marks).items() if t.trace is self and t is not self.tape}
        return Left(p, reached, kept or NONE, {tape: self._of_age(tape, moment) for tape, moment in kept.items()})

    def _of_age(self, tape: Tape, moment: float) -> frozenset[Variable]:
        found = (self._origins[node][1] for (other, outer), node in self._nodes.items() if other is tape and outer.age == moment)
        return frozenset(variable for variables in found for variable in variables)

    def _reached(self, node: Node) -> frozenset[Variable]:
        seen, stack, found = {node}, [node], set[Variable]()
        while stack:
            n = stack.pop()
            if n in self._origins:
                found.update(self._origins[n][1])
                continue
            if n.edges is None:
                raise _escapes("was recorded on nodes that were freed")
            if not n.edges:
                raise _escapes("depends on a variable that was made inside")
            for parent, _, _ in n.edges:
                if parent not in seen:
                    seen.add(parent)
                    stack.append(parent)
        return frozenset(found)


def _escapes(what: str) -> LevelError:
    return LevelError(
        f"jit: the function returned a value that {what}; expected results on levels of its arguments, since nobody outside could "
        "differentiate by what was made inside. Try to return a derivative, or the value with detach()"
    )
