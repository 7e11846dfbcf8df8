"""A program that keeps the memory of its values: what nobody reads any more is written over."""

from types import FunctionType
from typing import Any

from nestgrad.backends.memory import Layout, Memory
from nestgrad.compiled.executors.expanding import expanded
from nestgrad.compiled.executors.plan import Plan, planned
from nestgrad.compiled.executors.replay import replay
from nestgrad.compiled.executors.source import Source
from nestgrad.levels.traced.program import Function, Program, Variable


def buffers(program: Program) -> Function:
    """A function of raw arrays that runs the ops of a program one after the other, in memory that it keeps.

    The first call runs op by op, and shows how the backend lays out its arrays. The others write what they need on the way into places that
    were planned: elementwise ops and products, where a value is found in it no more. Results are new arrays, or what the ops made of
    inputs and constants; they share no memory with a later call. Calls may run at once, in threads or one within the other: each takes
    memory that nobody is using. What was used is kept for the next call until the function is dropped: as much as one run has in use at a
    time, for each of the calls that ran at once.

    Args:
        program: Over any base backend. Where ops cannot write into arrays (``Backend.memory`` is ``None``) the function is ``replay``'s.

    Returns:
        A function of an array for each input, of the shapes and dtypes of the program, to a tuple of the outputs. What the backend raises
        comes as it is.

    >>> import nestgrad as ng
    >>> program = ng.func.trace(lambda x: (x * 2.0).tanh().exp())(ng.zeros(100))
    >>> run = buffers(program)
    >>> [float(run(program.base.full((100,), x))[0].sum()) for x in (0.0, 0.0)]
    [100.0, 100.0]
    >>> run.nbytes
    1024
    """
    memory = program.base.memory
    return replay(program) if memory is None else Buffered(expanded(program, memory), memory)


class Buffered:
    """The function, see ``buffers``."""

    __slots__ = ("_count", "_free", "_memory", "_program", "_written")

    def __init__(self, program: Program, memory: Memory) -> None:
        self._program = program
        self._memory = memory
        self._count = len(program.inputs)
        self._written: Written | None = None
        self._free: list[Function] = []  # taking from it and giving back are one step each, whatever other threads do

    @property
    def nbytes(self) -> int:
        """How many bytes are kept for the next calls."""
        return 0 if self._written is None else len(self._free) * self._written.nbytes

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """The outputs."""
        if len(values) != self._count:
            raise TypeError(f"got {len(values)} arrays; expected {self._count}, one for each input of the program")
        try:
            run = self._free.pop()
        except IndexError:
            if self._written is None:
                return self._first(values)
            run = self._written.run()
        try:
            return run(*values)
        finally:
            self._free.append(run)

    def _first(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The outputs, op by op, after which it is known how arrays lie in memory."""
        program, b = self._program, self._program.base.dressed.bare
        found = {v.number: value for v, value in (*zip(program.inputs, values, strict=True), *program.constants)}
        layouts: dict[int, Layout | None] = {}
        for step in program.instructions:
            out = step.run(b, [found[a.number] if isinstance(a, Variable) else a for a in step.operands])
            found[step.out.number] = out
            layouts[step.out.number] = self._memory.layout(out)
            for number in step.last:
                del found[number]
        self._written = Written(program, self._memory, planned(program, self._memory, layouts))
        return tuple(found[v.number] for v in program.outputs)


class Written:
    """The text of a function that writes into arrays, of which it can be made again and again.

    Args:
        program: What it computes.
        memory: Where.
        plan: The places.
    """

    def __init__(self, program: Program, memory: Memory, plan: Plan) -> None:
        self.nbytes = plan.nbytes
        self._memory = memory
        self._starts = plan.starts
        self._places = [*dict.fromkeys(plan.places.values())]
        names = {place: f"a{k}" for k, place in enumerate(self._places)}
        source = Source(program)
        source.names |= {number: names[place] for number, place in plan.places.items()}
        for step in program.instructions:
            writer = plan.writers.get(step.out.number)
            if writer is None:
                source.step(step)
            else:
                source.line(source.call(step.op.name, writer.call, (*step.operands, *step.params), f"out={source.names[step.out.number]}"))
                source.drop(step.last)
        self._function = source.compiled(names.values())

    def run(self) -> Function:
        """The function, with arrays of its own."""
        room = self._memory.room(self.nbytes)
        arrays = tuple(self._memory.placed(room, self._starts[p.room], p.shape, p.dtype, p.layout) for p in self._places)
        made: Function = FunctionType(self._function.__code__, self._function.__globals__, "run", arrays)
        return made
