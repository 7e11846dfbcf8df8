"""``Recording``: one run of a trace, which writes down what is done with its wires."""

import weakref
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from nestgrad.errors import TraceError
from nestgrad.levels.base import Coat, Tape
from nestgrad.levels.coats import constant, within, without, worn
from nestgrad.levels.marks import NONE, Marks, left, opened
from nestgrad.levels.recipe import Remade
from nestgrad.levels.shared import Shared
from nestgrad.levels.traced.program import FIXED, ITEM, STOP, Compiler, Instruction, Program, Variable, behind, ending, needed
from nestgrad.levels.traced.wire import Wire, identity_of, wire
from nestgrad.ops.shapes import NUMBERS
from nestgrad.ops.table import Op

_begun: ContextVar[tuple["weakref.ref[Recording]", ...]] = ContextVar("begun", default=())


def recording_now() -> bool:
    """Whether a trace that this context has begun is still recording."""
    begun = _begun.get()
    if not begun:
        return False
    if any((found := ref()) is not None and not found.ended for ref in begun):
        return True
    _begun.set(())  # all have ended, and need not be asked again
    return False


class Recording:
    """The one run of a trace: what has been recorded so far.

    Attributes:
        tape: Its identity, which the wires wear. While a function is traced, it is the running transform's.
        ended: Whether the program is complete. What is left of the wires raises from then on.
        kept: Captured values that are inputs in any case.
        order: Then, the variables of the inputs, captured ones too, in the order of the program's.
    """

    def __init__(
        self, base: Any, name: str, number: int = 0, compiler: Compiler | None = None, tape: "TraceTape | None" = None
    ) -> None:
        self.base = base
        self.compiler = compiler
        self.tape = TraceTape(name, number, records=False) if tape is None else tape
        self.ended = False
        self._inputs: list[Variable] = []
        self._captured: dict[Any, tuple[Variable, Any]] = {}
        self._constants: dict[int, tuple[Variable, Any, Any]] = {}
        self._steps: list[Instruction] = []
        self._links: dict[Variable, list[Variable]] = {}
        self._count = 0
        self.order: tuple[Variable, ...] = ()
        self.kept: set[Variable] = set()

    def begin(self) -> None:
        """From now on, until it ends, what the program must not depend on silently is refused in this context."""
        _begun.set((*(ref for ref in _begun.get() if (found := ref()) is not None and not found.ended), weakref.ref(self)))

    def abandon(self) -> None:
        """End the trace if it has not ended, as when the function raised."""
        self.ended = True
        self.tape.close()

    def input(self, p: Any) -> "Wire":
        """A value as the next input. What differentiates is taken off it: the program is the same function on every level."""
        p = constant(p)
        variable = self._variable(p)
        self._inputs.append(variable)
        return wire(self, p, variable)

    def apply(self, b: Any, op: Op, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        """Run an op on what is under the wires, and write it down."""
        self.check(op.name)
        inner = [a.value if isinstance(a, Wire) and a.tape is self.tape else constant(a) for a in args]
        out = b.run(op, inner, params)
        return self._write(op, args, params, out)

    def stop(self, p: "Wire", inner: Any) -> "Wire":
        """What ``detach`` makes of a value."""
        self.check("detach")
        stopped: Wire = self._write(STOP, (p,), (), inner)
        return stopped

    def link(self, root: "Wire", g: Any) -> Any:
        """``g``, an inner value or a wire, with a note that it depends on ``root``, if only with zero derivative."""
        if not self.ended:
            p = g if isinstance(g, Wire) and g.recording is self else wire(self, g, self._reference(g))
            self._links.setdefault(p.variable, []).append(root.variable)
            return p
        return g

    def check(self, name: str) -> None:
        """Refuse what was left over.

        Raises:
            TraceError: If the trace has ended.
        """
        if self.ended:
            raise TraceError(
                f"{name}: got a value that leaked from a trace ({self.tape.name}), which has ended; expected it to be used inside only, "
                "because outside it stands for no numbers. Try to return it from the traced function, and call the program"
            )

    def program(
        self,
        outputs: Sequence[tuple[Any, Marks]],
        tensor: Callable[[Any], Any] = lambda p: p,
        arguments: tuple[Any, ...] = (),
        structure: Any = None,
        reached: Sequence[Iterable[Variable]] = (),
    ) -> Program:
        """End the trace.

        Args:
            outputs: Values and their marks.
            tensor: What the captured values are to become.
            arguments, structure: The nested structures of what comes in and out.
            reached: For each output, inputs that it depends on, if only with zero derivative, beside those that the trace knows.
        """
        self.check("program")
        self.tape.close()
        left_here = [self._left(p, marks) for p, marks in outputs]
        found = [self._reference(p) for p, _ in left_here]
        self.ended = True
        steps, alive = needed(self._steps, found)
        sources = [behind(v, self._steps, self._links) for v in found]
        for source, more in zip(sources, reached, strict=False):
            source.update(more)
        captured = [(v, p) for v, p in self._captured.values() if v in alive.union(self.kept, *sources)]
        constants = [(v, array) for v, array, _ in self._constants.values() if v in alive]
        inputs = [*self._inputs, *(v for v, _ in captured)]
        self.order = tuple(inputs)
        order = [*inputs, *(v for v, _ in constants), *(step.out for step in steps)]
        new = {v: Variable(k, v.shape, v.dtype) for k, v in enumerate(order)}
        instructions = [step.renamed(new) for step in steps]
        return Program(
            self.base,
            tuple(new[v] for v in inputs),
            tuple(tensor(p) for _, p in captured),
            tuple((new[v], array) for v, array in constants),
            ending(instructions, [new[v] for v in found]),
            tuple(new[v] for v in found),
            tuple(
                frozenset(new[v].number for v in inputs if v in source) - {v.number for v in behind(new[out], instructions)}
                for out, source in zip(found, sources, strict=True)
            ),
            tuple(marks for _, marks in left_here),
            arguments,
            structure,
            self.compiler,
        )

    def _left(self, p: Any, marks: Marks) -> tuple[Any, Marks]:
        """An output without the levels that were made while the trace ran, marked as taken out of those that live on."""
        p, marks = opened(p, marks)
        young = {coat.tape for coat in within(p) if coat.tape.birth > self.tape.birth}
        return without(p, young), left(p, young, marks, "the output of a program, which has no levels in it")

    def _write(self, op: Op, args: Iterable[Any], params: tuple[Any, ...], out: Any) -> Any:
        operands = tuple(a if a.__class__ in NUMBERS else self._reference(a) for a in args)
        variable = self._variable(out)
        self._steps.append(Instruction(op, operands, params, variable))
        if not op.results:
            return wire(self, out, variable)
        items = []
        for k, (name, value) in enumerate(zip(op.results, out, strict=True)):
            item = self._variable(value)
            self._steps.append(Instruction(FIXED if name in op.fixed else ITEM, (variable,), (k,), item))
            items.append(wire(self, value, item))
        return tuple(items)

    def _reference(self, p: Any) -> Variable:
        """The variable of a value: of a wire its own, of another level's value a captured one, of an array a constant."""
        if isinstance(p, Wire) and p.tape is self.tape:
            return p.variable
        if all(isinstance(coat, (Remade, Shared)) for coat in worn(p)):  # on no level
            if id(p) not in self._constants:
                array = self.base.asarray(self.base.dressed.read(p)) if isinstance(p, Coat) else p  # others may write into shared memory
                self._constants[id(p)] = self._variable(p), array, p  # with p, so that no other value gets its id
            return self._constants[id(p)][0]
        key = identity_of(p)
        if key not in self._captured:
            self._captured[key] = self._variable(p), p
        return self._captured[key][0]

    def _variable(self, p: Any) -> Variable:
        b = self.base.dressed
        self._count += 1
        if isinstance(p, tuple):
            return Variable(self._count - 1, tuple(tuple(b.shape(v)) for v in p), tuple(b.dtype(v) for v in p))
        return Variable(self._count - 1, tuple(b.shape(p)), b.dtype(p))


class TraceTape(Tape):
    """The tape of a trace. It is never closed, since what is left of its wires does not count as what is inside them."""

    __slots__ = ()

    def close(self) -> None:
        """End the levels that stood in for older ones."""
        for tape in self.stand_ins.values():
            tape.close()
        self.stand_ins.clear()


def recorded(
    base: Any, name: str, examples: Iterable[Any], f: Callable[[list[Any]], Sequence[Any]], compiler: Compiler | None = None
) -> Program:
    """The program of a function of values.

    Args:
        base: The base backend.
        name: What the function is, for messages.
        examples: Arguments. They must be such as the function can be run on: what is an index must be one.
        f: From values to values. It closes over nothing that lives on levels.
        compiler: The program's.
    """
    recording = Recording(base, name, compiler=compiler)
    wires = [recording.input(p) for p in examples]
    return recording.program([(p, NONE) for p in f(wires)])
