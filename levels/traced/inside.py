"""``Inside``: the recording of a function whose arguments keep their levels.

A plain trace takes arguments off their levels. Here each tape that an argument wears has a *stand-in*, a tape of the same place in the
order of ages, younger than the trace; and each of its nodes a leaf on it, of the same age. So what looks up derivatives by an argument
finds it, what it records is above the wires and leaves nothing in the program, and the rules about marks and ages decide as they would
outside. What was made outside and is closed over is *brought in* when it first meets something inside: it becomes a captured input, and
wears stand-ins, too.

The history of an argument stays outside. It is told apart from a variable, since a derivative by another argument may go through it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from nestgrad.errors import LevelError
from nestgrad.levels.base import Coat, Tape, now
from nestgrad.levels.coats import constant, worn
from nestgrad.levels.marks import NONE, Marks
from nestgrad.levels.reverse.node import Node, Tracked, tracked
from nestgrad.levels.traced.cutting import CUT, Variant, uncut
from nestgrad.levels.traced.program import Compiler, Program, Variable
from nestgrad.levels.traced.standing import InsideTape, seen_inside
from nestgrad.levels.traced.strict import Strict
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


class Inside(Strict):
    """The one run of a trace with levels.

    Attributes:
        started: The clock when it began: what is marked later was marked by the function.
        asked: The stacks that the function has used: their tapes, and what these are where the function is called.
        noted: Marks that came in, by identity.
        variants: Inputs that were added in the end: what they are, the input that they are, and the stand-ins on which they are constant.
    """

    def __init__(self, base: Any, name: str, number: int = 0, compiler: Compiler | None = None) -> None:
        super().__init__(base, name, number, compiler)
        assert isinstance(self.tape, InsideTape)
        self.tape.trace = self
        self.started = now()
        self.asked: dict[tuple[Tape, ...], tuple[Tape, ...]] = {}
        self.noted: dict[int, Marks] = {}
        self._nodes: dict[tuple[Tape, Node], Node] = {}
        self._brought: dict[Any, tuple[Any, Any]] = {}
        self.variants: list[Variant] = []

    def abandon(self) -> None:
        """End the trace, and let go of it: what it held is freed at once, and not by a collection of cycles."""
        super().abandon()
        self._brought.clear()
        for tape in (self.tape, *self._outside):
            tape.trace = None

    # coming in

    def argument(self, p: Any, marks: Marks) -> tuple[Any, Marks]:
        """A value as the next input, with stand-ins for the tapes of ``Autodiff`` that it wears; and its marks."""
        return self._dressed(p, self.input(p)), self._by_stand_ins(marks)

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
        self.refuse_covered(values, {self.outside(tape) for m in marks for tape in m})
        return [self.bring(p) for p in values], [self.moved(m) for m in marks]

    @property
    def context(self) -> list[Any]:
        """All values that were brought in or captured: what the function closes over, and looks up by."""
        brought = [p for _, p in self._brought.values()]
        return [*brought, *(p for key, (_, p) in self._captured.items() if key not in self._brought)]

    def moved(self, marks: Marks) -> Marks:
        """Marks by stand-ins."""
        if not any(tape.birth < self.tape.birth for tape in marks):
            return marks
        self.noted[id(marks)] = marks
        return self._by_stand_ins(marks)

    def _by_stand_ins(self, marks: Marks) -> Marks:
        return {self.stand_in(tape): moment for tape, moment in marks.items()} if marks else NONE

    def stand_in(self, tape: Tape) -> Tape:
        """The tape that is inside what ``tape`` is outside."""
        return self._stand_in(tape) if tape.birth < self.tape.birth else tape

    def _dressed(self, p: Any, inner: Wire) -> Any:
        self._note(p, inner.variable)
        made: Any = inner
        for coat in reversed(seen_inside(p)):
            made = tracked(self._stand_in(coat.tape), made, self._leaf(coat, inner.variable))
        return made

    def _leaf(self, coat: Tracked, variable: Variable) -> Node:
        key = coat.tape, coat.node
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node()
            node.age, node.lo, node.op = coat.node.age, coat.node.lo, "argument"
            node.shape, node.raw, node.edges, node.params = variable.shape, False, (), ()
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

    def program(self, outputs: Sequence[tuple[Any, Marks]], *args: Any, **kwargs: Any) -> Program:
        """End the trace: what was cut is computed anew, of inputs that are constants there."""
        inputs = [*self._inputs, *(v for v, _ in self._captured.values())]
        self._steps, self.variants, cut = uncut(self._steps, inputs, self._links)
        outputs = [(wire(self, p.value, cut[p.variable]) if isinstance(p, Wire) and p.variable in cut else p, m) for p, m in outputs]
        self._inputs += [v for v, _, _ in self.variants]
        self.kept.update(v for _, v, _ in self.variants)
        return super().program(outputs, *args, **kwargs)

    # going out

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
