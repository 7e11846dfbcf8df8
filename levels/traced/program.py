"""A program: what a trace has recorded. Ops of the table in their order, and nothing of the levels that asked for them.

Beside the table's ops there is ``stop``, which ``detach`` leaves behind: the value as a constant on every level that differentiates;
and ``item``, which takes one result of an op that has several.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nestgrad.errors import TraceError
from nestgrad.levels.coats import constant, tied
from nestgrad.levels.explain import NATIVE
from nestgrad.levels.marks import Marks
from nestgrad.levels.traced.printing import array, shown, typed
from nestgrad.levels.watching import here
from nestgrad.ops.samples import Samples
from nestgrad.ops.table import Kind, Op, Rule

STOP = Op("stop", Kind.CONSTANT, ("x",), (), (), (), None, False, Samples(()))
ITEM = Op("item", Kind.SPECIAL, ("x",), ("k",), (), (Rule(lambda b, g, k: g, ("k",)),), None, False, Samples(()))
FIXED = Op("item", Kind.CONSTANT, ("x",), ("k",), (), (), None, False, Samples(()))
"""The operations that are not in the table. The last two take one of several results: that has a derivative, and that has none."""


Function = Callable[..., tuple[Any, ...]]
"""Of raw arrays, one for each input, to one for each output."""

Compiler = Callable[["Program"], Function]


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A place in a program, with the shape and the dtype of every value that comes to stand there; of several results tuples of these.

    Attributes:
        number: Its position among the variables; ``v3`` in print.
        shape: Sizes of the axes.
        dtype: The base backend's own.
    """

    number: int
    shape: tuple[Any, ...]
    dtype: Any

    def __str__(self) -> str:
        return f"v{self.number}"

    @property
    def typed(self) -> str:
        """``"v3: float64[2, 3]"``."""
        if isinstance(self.dtype, tuple):
            return f"{self}: ({', '.join(map(typed, self.dtype, self.shape))})"
        return f"{self}: {typed(self.dtype, self.shape)}"


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One op of a program.

    Attributes:
        op: The entry of the table, or ``stop``.
        operands: Variables, and Python numbers.
        params: The op's parameters, in its order.
        out: What it defines.
        last: Numbers of the variables that are read here for the last time.
    """

    op: Op
    operands: tuple[Any, ...]
    params: tuple[Any, ...]
    out: Variable
    last: tuple[int, ...] = ()

    def __str__(self) -> str:
        params = (f"{name}={shown(value)}" for name, value in zip(self.op.params, self.params, strict=True))
        return f"{self.out.typed} = {self.op.name}({', '.join([*map(str, self.operands), *params])})"

    def renamed(self, new: Mapping[Variable, Variable]) -> "Instruction":
        """The same op of other variables."""
        return Instruction(self.op, tuple([new[a] if isinstance(a, Variable) else a for a in self.operands]), self.params, new[self.out])

    @property
    def followed(self) -> Iterator[Variable]:
        """The operands by which the op has a derivative."""
        rules = self.op.rules * len(self.operands) if self.op.variadic else self.op.rules
        return (a for a, rule in zip(self.operands, rules, strict=False) if rule is not None and isinstance(a, Variable))

    def run(self, b: Any, args: Sequence[Any]) -> Any:
        """The op of ``b`` on values of the operands."""
        if self.op is STOP:
            return constant(args[0])
        if self.op is ITEM or self.op is FIXED:
            return args[0][self.params[0]]
        method = self.op.of(b)
        # by position: what a base backend calls its parameters is its own affair
        return method(*args, **dict(zip(self.op.params, self.params, strict=True))) if self.op.variadic else method(*args, *self.params)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Ops with the shape and dtype of every variable; see ``nestgrad.trace``.

    ``print(program)`` writes it down, one op a line. What its outputs do not need is not in it.

    Attributes:
        base: The base backend over which it was recorded.
        inputs: One variable for each leaf of the arguments, then one for each of ``captured``.
        captured: Tensors that live on levels outside the function and that it closes over: inputs that are always these.
        constants: Variables with their arrays: what the function used and that lives on no level.
        instructions: The ops.
        outputs: What it returns; variables, inputs and constants too.
        ties: For each output, numbers of the inputs that it depends on with zero derivative only: a derivative is tied to what its root
            was made of, so that the curvature of a linear function is zero, and not missing.
        marks: For each output, what it depends on besides, unrecorded.
        arguments: The nested structure of each argument, of which the inputs are the leaves.
        structure: The nested structure that the function returned.
    """

    base: Any
    inputs: tuple[Variable, ...]
    captured: tuple[Any, ...]
    constants: tuple[tuple[Variable, Any], ...]
    instructions: tuple[Instruction, ...]
    outputs: tuple[Variable, ...]
    ties: tuple[frozenset[int], ...]
    marks: tuple[Marks, ...] = ()
    arguments: tuple[Any, ...] = ()
    structure: Any = None
    compiler: "Compiler | None" = None
    """What makes a function of raw arrays of this program and of its derivatives; ``None``: they run op by op."""
    derived: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Programs that were made of this one: its derivatives."""

    def __str__(self) -> str:
        return self.pretty()

    def __repr__(self) -> str:
        given = len(self.inputs) - len(self.captured)
        return f"<program of {given} inputs, {len(self.captured)} captured, {len(self.instructions)} ops, {len(self.outputs)} outputs>"

    def pretty(self) -> str:
        """The program as text: inputs, captured tensors, constants, one line for each op, outputs.

        >>> import nestgrad as ng
        >>> print(ng.func.trace(lambda x: (x * 2.0).tanh())(ng.zeros(3)).pretty())
        input v0: float64[3]
        v1: float64[3] = scale(v0, c=2.0)
        v2: float64[3] = tanh(v1)
        return v2
        """
        given = len(self.inputs) - len(self.captured)
        lines = [f"{'input' if k < given else 'captured'} {v.typed}" for k, v in enumerate(self.inputs)]
        lines += [f"{v.typed} = {array(self.base, value)}" for v, value in self.constants]
        lines += [str(instruction) for instruction in self.instructions]
        return "\n".join([*lines, f"return {', '.join(map(str, self.outputs))}"])

    def replay(self, b: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs for other inputs, op by op.

        Args:
            b: A base backend for raw arrays; for values in coats of any levels the backend over them, ``base.dressed``.
            inputs: A value for each leaf of the arguments. The captured tensors are added.

        Returns:
            A value for each output.

        Raises:
            TraceError: Not as many inputs as the arguments had leaves.
        """
        given = len(self.inputs) - len(self.captured)
        if len(inputs) != given:
            raise TraceError(f"replay: got {len(inputs)} inputs; expected {given}, one for each Tensor in the arguments of the function")
        return self.run(b, [*inputs, *(tensor.value for tensor in self.captured)])

    def run(self, b: Any, values: Iterable[Any]) -> tuple[Any, ...]:
        """The outputs for values of all inputs, the captured ones too."""
        found: dict[int, Any] = {v.number: value for v, value in zip(self.inputs, values, strict=True)}
        found |= {v.number: value for v, value in self.constants}
        given = {i: found[i] for i in frozenset[int]().union(*self.ties)}
        for step in self.instructions:
            out = step.run(b, [found[a.number] if a.__class__ is Variable else a for a in step.operands])
            for number in step.last:
                del found[number]
            found[step.out.number] = out
        outs = [found[v.number] for v in self.outputs]
        for j, numbers in enumerate(self.ties):
            for i in numbers:
                outs[j] = tied(outs[j], given[i], self.outputs[j].shape)
        return tuple(outs)

    def evaluate(self, b: Any, values: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs for raw arrays as all inputs, the captured ones too, by the function that the compiler makes, if there is one."""
        if self.compiler is None:
            return self.run(b, values)
        key = "watched" if here() else "function"  # compilers may make another one where ops have to be seen
        function: Function = self.derive(key, lambda: self.compiler and self.compiler(self))
        try:
            return function(*values)
        except NATIVE:
            return self.run(b, values)  # op by op, which tells what the matter is

    def rewritten(
        self,
        instructions: Sequence[Instruction],
        outputs: Sequence[Variable],
        constants: Iterable[tuple[Variable, Any]] | None = None,
    ) -> "Program":
        """A program of the same inputs, with other instructions.

        What the outputs do not need is left out, variables are numbered anew (inputs keep their numbers), and the last reads are found.

        Args:
            instructions: In an order in which everything is defined before it is read. Variables are told apart as objects, whatever
                their numbers are, and their ``last`` is not read.
            outputs: As many as before.
            constants: Variables with their arrays; those of this program if it is ``None``.
        """
        steps, alive = needed(instructions, outputs)
        kept = [(v, array) for v, array in (self.constants if constants is None else constants) if v in alive]
        order = [*self.inputs, *(v for v, _ in kept), *(step.out for step in steps)]
        new = {v: Variable(k, v.shape, v.dtype) for k, v in enumerate(order)}
        made = [step.renamed(new) for step in steps]
        found = tuple(new[v] for v in outputs)
        return replace(
            self,
            inputs=tuple(new[v] for v in self.inputs),
            constants=tuple((new[v], array) for v, array in kept),
            instructions=ending(made, found),
            outputs=found,
            derived={},
        )

    @property
    def connected(self) -> tuple[frozenset[int], ...]:
        """For each output, numbers of the inputs that it depends on."""
        found: tuple[frozenset[int], ...] = self.derive("connected", self._connected)
        return found

    def _connected(self) -> tuple[frozenset[int], ...]:
        count = len(self.inputs)
        reached = (behind(v, self.instructions) for v in self.outputs)
        return tuple(frozenset(v.number for v in found if v.number < count) | ties for found, ties in zip(reached, self.ties, strict=True))

    def floating(self, variable: Variable) -> bool:
        """Whether a variable is of a floating dtype."""
        return bool(self.base.is_floating(self.base.full((), 0, variable.dtype)))

    def derive(self, key: Any, make: Callable[[], Any]) -> Any:
        """What ``make`` makes of this program; made once for each ``key``."""
        found = self.derived.get(key)
        if found is None:
            found = self.derived.setdefault(key, make())  # threads may ask at once
        return found


def needed(instructions: Sequence[Instruction], outputs: Iterable[Variable]) -> tuple[list[Instruction], set[Variable]]:
    """The instructions that lead to ``outputs``, and the variables that these and the outputs read."""
    alive = set(outputs)
    kept = []
    for step in reversed(instructions):
        if step.out in alive:
            kept.append(step)
            alive.update(a for a in step.operands if isinstance(a, Variable))
    return kept[::-1], alive


def ending(instructions: Sequence[Instruction], outputs: Iterable[Variable]) -> tuple[Instruction, ...]:
    """The instructions, each with a note of what is not read after it."""
    alive = {v.number for v in outputs}
    made = []
    for step in reversed(instructions):
        read = {a.number for a in step.operands if isinstance(a, Variable)}
        made.append(Instruction(step.op, step.operands, step.params, step.out, tuple(sorted(read - alive))))
        alive |= read
    return tuple(reversed(made))


def behind(
    variable: Variable, instructions: Iterable[Instruction], links: Mapping[Variable, Iterable[Variable]] | None = None
) -> set[Variable]:
    """What a variable depends on by ops that have a derivative, and by ``links``; itself, too."""
    steps = {step.out: step for step in instructions}
    found, stack = {variable}, [variable]
    while stack:
        v = stack.pop()
        parents = [*(steps[v].followed if v in steps else ()), *((links or {}).get(v, ()))]
        stack += [p for p in parents if p not in found]
        found.update(parents)
    return found
