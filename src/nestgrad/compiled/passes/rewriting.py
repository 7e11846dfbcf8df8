"""One walk over a program that rewrites it by local rules: what the passes have in common.

A rule looks at one instruction, whose operands have been rewritten before, and either names the variable that stands for it from now on or
gives ``None``. What a rule emits goes through the rules, too; so one walk leaves nothing that a rule would still change, except by looking
forward. A walk takes time in proportion to the number of instructions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import copysign, isnan, prod
from typing import Any

from nestgrad.levels.base import Coat
from nestgrad.levels.traced.program import Instruction, Program, Variable
from nestgrad.ops.shapes import NUMBERS
from nestgrad.ops.table import TABLE, Op

Rule = Callable[["Walk", Instruction], Any]
"""From an instruction to the variable that stands for its result, or ``None``."""

MOST = 1 << 20
"""How many numbers of a constant are looked at to find out whether they are all the same."""


@dataclass(slots=True)
class Code:
    """A program in the making.

    Attributes:
        base: The base backend of the program.
        inputs: Its inputs.
        constants: Arrays by their variables.
        steps: Instructions in an order in which everything is defined before it is read.
        outputs: What it returns.
    """

    base: Any
    inputs: tuple[Variable, ...]
    constants: dict[Variable, Any]
    steps: list[Instruction]
    outputs: list[Variable]

    @classmethod
    def of(cls, program: Program) -> "Code":
        """The code of a program."""
        return cls(program.base, program.inputs, dict(program.constants), list(program.instructions), list(program.outputs))

    def program(self, program: Program) -> Program:
        """The code as a program of the same inputs."""
        made = program.rewritten(self.steps, self.outputs, self.constants.items())
        return replace(made, ties=(frozenset(),) * len(made.outputs))  # which are for levels

    def reads(self) -> dict[Variable, int]:
        """How often each variable is read, by instructions and as an output."""
        count = dict.fromkeys(self.outputs, 0)
        for v in self.outputs:
            count[v] += 1
        for step in self.steps:
            for a in step.operands:
                if a.__class__ is Variable:
                    count[a] = count.get(a, 0) + 1
        return count


class Rules:
    """Rules by the ops that they look at.

    >>> rules = Rules()
    >>> @rules.on("neg")
    ... def twice(w, step):
    ...     inner = w.source(step.operands[0], "neg")
    ...     return inner and inner.operands[0]
    >>> [op.name for op in rules.table]
    ['neg']
    """

    def __init__(self) -> None:
        self.table: dict[Op, tuple[Rule, ...]] = {}

    def on(self, *names: str) -> Callable[[Rule], Rule]:
        """A decorator: the function is a rule for these ops of the table."""

        def add(rule: Rule) -> Rule:
            for name in names:
                op = TABLE[name]
                self.table[op] = (*self.table.get(op, ()), rule)
            return rule

        return add

    @classmethod
    def joined(cls, *several: "Rules") -> "Rules":
        """The rules of all, in their order."""
        made = cls()
        for rules in several:
            for op, found in rules.table.items():
                made.table[op] = (*made.table.get(op, ()), *found)
        return made


class Walk:
    """One walk: what has been rewritten so far.

    Args:
        code: What to rewrite.
        rules: By which rules.
        shared: What instructions that compute the same have in common, or ``None`` for one that is to be left alone.
        counted: Whether to count in ``reads`` how often each variable is read, for rules that ask ``only``.
    """

    def __init__(self, code: Code, rules: Rules, shared: Callable[[Instruction], Any] | None = None, counted: bool = False) -> None:
        self.code = code
        self.base = code.base
        self.steps: list[Instruction] = []
        self.made: dict[Variable, Instruction] = {}
        self.new: dict[Variable, Variable] = {}
        self.reads = code.reads() if counted else {}
        self._rules = rules.table
        self._shared = shared
        self._seen: dict[Any, Variable] = {}
        self._uniform: dict[Variable, Any] = {}
        self._floating: dict[Any, bool] = {}

    def run(self) -> Code:
        """The code, rewritten."""
        new, place = self.new, self.place
        for step in self.code.steps:
            operands = step.operands
            for a in operands:
                if a in new:
                    operands = tuple([new.get(a, a) if a.__class__ is Variable else a for a in operands])
                    step = Instruction(step.op, operands, step.params, step.out)
                    break
            found = place(step)
            if found is not step.out:
                new[step.out] = found
        outputs = [new.get(v, v) for v in self.code.outputs]
        return swept(Code(self.base, self.code.inputs, self.code.constants, self.steps, outputs))

    def place(self, step: Instruction) -> Variable:
        """The variable that stands for an instruction from now on; the instruction is added if there is none yet."""
        for rule in self._rules.get(step.op, ()):
            found = rule(self, step)
            if found is not None:
                assert found.shape == step.out.shape and found.dtype == step.out.dtype, (rule, step, found)
                return found  # type: ignore[no-any-return]
        if self._shared is not None:
            key = self._shared(step)
            if key is not None:
                found = self._seen.setdefault(key, step.out)
                if found is not step.out:
                    return found
        self.steps.append(step)
        self.made[step.out] = step
        return step.out

    # what rules ask

    def source(self, v: Any, *names: str) -> Instruction | None:
        """The instruction that defines ``v``, if it is one of these ops of the table."""
        step = self.made.get(v) if v.__class__ is Variable else None
        return step if step is not None and step.op.name in names and TABLE.get(step.op.name) is step.op else None

    def uniform(self, v: Any) -> Any:
        """The one number that a constant is full of, or that ``v`` is; ``None`` if there is none."""
        if v.__class__ is not Variable:
            return v
        if v not in self.code.constants:
            return None
        if v not in self._uniform:
            self._uniform[v] = uniform(self.base, v, self.code.constants[v])
        return self._uniform[v]

    def plain(self, step: Instruction) -> bool:
        """Whether all arrays of an instruction are of one floating dtype, so that numbers and the order of operands cannot change it."""
        dtype = step.out.dtype
        known = self._floating.get(dtype)
        if known is None:
            known = self._floating[dtype] = floating(self.base, dtype)
        if known:
            for a in step.operands:
                if a.__class__ is Variable and a.dtype is not dtype and a.dtype != dtype:
                    return False
        return known

    # what rules say

    def emit(self, name: str, operands: Sequence[Any], params: Sequence[Any], like: Variable, shape: tuple[int, ...] | None = None) -> Any:
        """One more instruction, with the dtype of ``like``, and its shape unless another is given."""
        out = Variable(-1, like.shape if shape is None else shape, like.dtype)
        return self.place(Instruction(TABLE[name], tuple(operands), tuple(params), out))

    def each(self, name: str, operands: Sequence[Any], params: Sequence[Any], like: Variable) -> Any:
        """One more elementwise instruction, with the dtype of ``like`` and the shape to which its operands broadcast."""
        return self.emit(name, operands, params, like, broadcast([a.shape for a in operands if a.__class__ is Variable]))

    def instead(self, step: Instruction, name: str, operands: Sequence[Any], params: Sequence[Any] = ()) -> Any:
        """Another instruction with the shape and dtype of this one."""
        return self.emit(name, operands, params, step.out)


def only(w: Walk, v: Any, *names: str) -> Instruction | None:
    """The instruction that defines ``v``, if it is one of these ops on arrays of one dtype, and nobody else reads ``v``."""
    step = w.source(v, *names)
    return step if step is not None and w.reads.get(v) == 1 and w.plain(step) else None


def swept(code: Code) -> Code:
    """Without the instructions and constants that the outputs do not need."""
    alive = set(code.outputs)
    kept = []
    for step in reversed(code.steps):
        if step.out in alive:
            kept.append(step)
            alive.update([a for a in step.operands if a.__class__ is Variable])
    kept.reverse()
    constants = {v: array for v, array in code.constants.items() if v in alive}
    return Code(code.base, code.inputs, constants, kept, code.outputs)


def broadcast(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape to which shapes broadcast that fit."""
    out: tuple[int, ...] = ()
    for shape in shapes:
        if shape == out:
            continue
        if len(shape) > len(out):
            shape, out = out, shape
        before = len(out) - len(shape)
        out = (*out[:before], *(m if n == 1 else n for n, m in zip(out[before:], shape, strict=True)))
    return out


def floating(base: Any, dtype: Any) -> bool:
    """Whether a dtype of a backend is floating."""
    return not isinstance(dtype, tuple) and bool(base.is_floating(base.full((), 0, dtype)))


def uniform(base: Any, v: Variable, array: Any) -> Any:
    """The one Python float that a floating constant is full of; ``None`` if it is not, or is NaN, or is too big to be looked at."""
    if isinstance(array, Coat) or not floating(base, v.dtype) or not 0 < prod(v.shape) <= MOST:
        return None
    first = base.getitem(array, (0,) * len(v.shape)) if v.shape else array
    number = float(base.to_numpy(first))
    if isnan(number) or not base.to_numpy(base.eq(array, number)).all():  # by its own arithmetic, which may have more digits than a float
        return None
    if number == 0.0 and len({copysign(1.0, float(x)) for x in base.to_numpy(array).ravel().tolist()}) > 1:
        return None  # of both signs
    return number


def number(value: Any) -> bool:
    """Whether an operand is a Python number."""
    return value.__class__ in NUMBERS
