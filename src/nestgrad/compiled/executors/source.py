"""Straight-line Python for a program: one call a line, with everything that it calls or holds in a namespace of its own.

The text has names of ops and numbers of variables in it, and nothing else.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nestgrad.levels.traced.program import FIXED, ITEM, STOP, Function, Instruction, Program, Variable


class Source:
    """The text of a function that is being written, and what its names mean.

    Args:
        program: What it computes. Its base backend's ops are bound once.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.b = program.base.dressed.bare
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {f"v{v.number}": value for v, value in program.constants}
        self._names: dict[Any, str] = {}

    def method(self, step: Instruction) -> Callable[..., Any]:
        """The op as a function of its operands and parameters by position; of any number of operands, of these alone."""
        found = step.op.of(self.b)
        return partial(found, **dict(zip(step.op.params, step.params, strict=True))) if step.op.variadic else found

    def function(self, name: str, f: Callable[..., Any]) -> str:
        """The name of a function, which begins with ``name`` if it can. Equal functions have one."""
        try:
            key = name, f
            if key not in self._names:
                self._names[key] = self._bind(name if name.isascii() and name.isidentifier() else "op", f)
            return self._names[key]
        except TypeError:  # not hashable
            return self._bind(name if name.isascii() and name.isidentifier() else "op", f)

    def value(self, value: Any) -> str:
        """The text for an operand or a parameter."""
        return f"v{value.number}" if value.__class__ is Variable else self._bind("c", value)

    def call(self, step: Instruction) -> str:
        """The expression that an instruction is."""
        if step.op is STOP:
            return self.value(step.operands[0])
        if step.op is ITEM or step.op is FIXED:
            return f"{self.value(step.operands[0])}[{int(step.params[0])}]"
        given = step.operands if step.op.variadic else (*step.operands, *step.params)
        return f"{self.function(step.op.name, self.method(step))}({', '.join(map(self.value, given))})"

    def write(self, step: Instruction) -> None:
        """An instruction, after which what it reads for the last time is let go."""
        self.lines.append(f"v{step.out.number} = {self.call(step)}")

    def drop(self, numbers: Sequence[int]) -> None:
        """Let go of variables."""
        if numbers:
            self.lines.append("del " + ", ".join(f"v{k}" for k in numbers))

    def compiled(self, parameters: Sequence[str], results: Sequence[str]) -> Function:
        """The function that has been written.

        Args:
            parameters: Names of what it is given.
            results: Names of what it returns.
        """
        lines = [f"def run({', '.join(parameters)}):", *self.lines, f"return ({''.join(f'{name}, ' for name in results)})"]
        exec(compile("\n    ".join(lines), f"<{self.program!r}>", "exec"), self.namespace)
        found: Function = self.namespace.pop("run")
        return found

    def _bind(self, name: str, value: Any) -> str:
        """A new name that means ``value``."""
        name = f"{name}_{len(self.namespace)}"
        self.namespace[name] = value
        return name
