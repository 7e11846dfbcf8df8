"""Straight-line Python for a program: one call a line, with everything that it calls or holds in a namespace of its own.

The text has names of ops and numbers of variables in it, and nothing else.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from nestgrad.levels.traced.program import FIXED, ITEM, STOP, Function, Instruction, Program, Variable


class Source:
    """The text of a function that is being written, and what its names mean.

    Args:
        program: What it computes. Its base backend's ops are bound once.

    Attributes:
        b: The backend for raw arrays.
        names: What variables are called; those that are not among them by their numbers.
        namespace: Constants, functions and parameters by their names.
    """

    def __init__(self, program: Program) -> None:
        self.b = program.base.dressed.bare
        self.names: dict[int, str] = {}
        self.namespace: dict[str, Any] = {f"v{v.number}": value for v, value in program.constants}
        self._inputs = [f"v{v.number}" for v in program.inputs]
        self._kept = {v.number for v in program.inputs} | {v.number for v, _ in program.constants}
        self._outputs = program.outputs
        self._lines: list[str] = []
        self._functions: dict[tuple[str, int], str] = {}

    def step(self, step: Instruction) -> None:
        """Write an instruction, after which what it reads for the last time is let go."""
        if step.op is STOP:
            expression = self._name(step.operands[0])
        elif step.op is ITEM or step.op is FIXED:
            expression = f"{self._name(step.operands[0])}[{int(step.params[0])}]"
        else:
            f = step.op.of(self.b)
            if step.op.variadic:  # by keyword, since there may be any number before
                f = partial(f, **dict(zip(step.op.params, step.params, strict=True)))
            expression = self.call(step.op.name, f, step.operands if step.op.variadic else (*step.operands, *step.params))
        self._lines.append(f"v{step.out.number} = {expression}")
        self.drop(step.last)

    def line(self, text: str) -> None:
        """Write a line."""
        self._lines.append(text)

    def call(self, name: str, f: Callable[..., Any], given: Iterable[Any], *more: str) -> str:
        """The text of a call of ``f``, which is named after an op, with variables and values, and with what is text already."""
        key = name, id(f)
        if key not in self._functions:
            self._functions[key] = self._bind(name if name.isascii() and name.isidentifier() else "op", f)
        return f"{self._functions[key]}({', '.join([*map(self._name, given), *more])})"

    def drop(self, numbers: Sequence[int]) -> None:
        """Let go of those variables that nothing else holds."""
        own = [f"v{k}" for k in numbers if k not in self._kept and k not in self.names]
        if own:
            self._lines.append(f"del {', '.join(own)}")

    def compiled(self, more: Iterable[str] = ()) -> Function:
        """The function that has been written, of the inputs and of ``more``."""
        lines = [f"def run({', '.join([*self._inputs, *more])}):", *self._lines]
        lines.append(f"return ({''.join(f'{self._name(v)}, ' for v in self._outputs)})")
        exec(compile("\n    ".join(lines), "<a program>", "exec"), self.namespace)
        found: Function = self.namespace.pop("run")
        return found

    def _name(self, value: Any) -> str:
        """The text for a variable, or for a value, which the namespace then holds."""
        return self.names.get(value.number, f"v{value.number}") if value.__class__ is Variable else self._bind("c", value)

    def _bind(self, name: str, value: Any) -> str:
        name = f"{name}_{len(self.namespace)}"
        self.namespace[name] = value
        return name
