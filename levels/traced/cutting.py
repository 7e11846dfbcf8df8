"""``detach(level=...)`` inside a trace: a value that is a constant on some of the levels outside, and on others is not.

It is noted as an instruction, ``cut``, which no program holds in the end: the value is computed a second time, of *variants* of the inputs.
A variant is the input without those levels.
"""

from collections.abc import Iterable, Sequence

from nestgrad.levels.base import Tape
from nestgrad.levels.traced.program import STOP, Instruction, Variable
from nestgrad.ops.samples import Samples
from nestgrad.ops.table import Kind, Op

CUT = Op("cut", Kind.CONSTANT, ("x",), ("tapes",), (), (), None, False, Samples(()))

Variant = tuple[Variable, Variable, frozenset[Tape]]
"""The variable of an input that was added, the input that it is, and the tapes on which it is a constant."""


def uncut(
    steps: Sequence[Instruction], inputs: Iterable[Variable], links: dict[Variable, list[Variable]]
) -> tuple[list[Instruction], list[Variant], dict[Variable, Variable]]:
    """The instructions without ``cut``, the variants that they read, and what stands for what was cut.

    Args:
        steps: In their order.
        inputs: All variables that may be on levels outside.
        links: What variables depend on beside their operands; those of copies are added.
    """
    if not any(step.op is CUT for step in steps):
        return list(steps), [], {}
    copying = _Copying(steps, inputs, links)
    for step in steps:
        if step.op is CUT:
            copying.new[step.out, _NONE] = copying.copy(step.operands[0], step.params[0])
        else:
            operands = [copying.new.get((a, _NONE), a) if isinstance(a, Variable) else a for a in step.operands]
            copying.made.append(Instruction(step.op, tuple(operands), step.params, step.out))
    cut = {step.out: copying.new[step.out, _NONE] for step in steps if step.op is CUT}
    for v, roots in list(links.items()):
        links[v] = [cut.get(root, root) for root in roots]
        if v in cut:
            links.setdefault(cut[v], []).extend(links[v])
    return copying.made, copying.variants, cut


_NONE: frozenset[Tape] = frozenset()


class _Copying:
    """Values as constants on some tapes, each computed once.

    Attributes:
        made: The instructions so far.
        variants: The inputs that were added.
        new: What stands for a variable where it is constant on tapes.
    """

    def __init__(self, steps: Sequence[Instruction], inputs: Iterable[Variable], links: dict[Variable, list[Variable]]) -> None:
        self.made: list[Instruction] = []
        self.variants: list[Variant] = []
        self.new: dict[tuple[Variable, frozenset[Tape]], Variable] = {}
        self._inputs = frozenset(inputs)
        self._links = links
        self._places = {step.out: (k, step) for k, step in enumerate(steps)}

    def copy(self, v: Variable, tapes: frozenset[Tape]) -> Variable:
        """What stands for a variable. Nothing is defined later than here that it is made of."""
        wanted, stack = {(v, tapes)}, [(v, tapes)]
        while stack:
            for need in self._needs(*stack.pop()):
                if need not in wanted and need not in self.new:
                    wanted.add(need)
                    stack.append(need)
        for u, off in sorted(wanted, key=lambda need: self._places[need[0]][0] if need[0] in self._places else -1):
            if (u, off) not in self.new:
                self.new[u, off] = self._copy(u, off)
        return self.new[v, tapes]

    def _needs(self, v: Variable, tapes: frozenset[Tape]) -> list[tuple[Variable, frozenset[Tape]]]:
        if v not in self._places or self._places[v][1].op is STOP:
            return []
        step = self._places[v][1]
        more = tapes | step.params[0] if step.op is CUT else tapes
        return [(a, more) for a in step.operands if isinstance(a, Variable)]

    def _copy(self, v: Variable, tapes: frozenset[Tape]) -> Variable:
        if v in self._inputs:
            made = Variable(v.number, v.shape, v.dtype)
            self.variants.append((made, v, tapes))
            return made
        if v not in self._places or self._places[v][1].op is STOP:
            return v  # a constant anyway
        step = self._places[v][1]
        if step.op is CUT:
            return self.new[step.operands[0], tapes | step.params[0]]
        operands = tuple([self.new[a, tapes] if isinstance(a, Variable) else a for a in step.operands])
        if all(x is a for x, a in zip(operands, step.operands, strict=True)):
            return v
        out = Variable(v.number, v.shape, v.dtype)
        self.made.append(Instruction(step.op, operands, step.params, out))
        if v in self._links:
            self._links[out] = [self.copy(root, tapes) for root in self._links[v]]
        return out
