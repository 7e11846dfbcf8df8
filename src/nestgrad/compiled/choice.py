"""Which executor runs the programs over a base backend."""

from collections.abc import Callable
from typing import Any

from nestgrad.compiled.executors import replay
from nestgrad.compiled.passes import optimized
from nestgrad.errors import BackendError
from nestgrad.levels.traced.program import Compiler, Function, Program
from nestgrad.levels.watching import here

EXECUTORS: dict[str, Compiler] = {"replay": replay}
"""By the names that users know."""


def chosen(name: str, base: Any) -> str:
    """The executor that ``name`` means for a base backend: itself, unless it is ``"auto"``."""
    if name == "auto":
        return "replay"
    if name not in EXECUTORS:
        raise BackendError(f"jit: got executor={name!r}; expected one of {', '.join(map(repr, ('auto', *EXECUTORS)))}")
    return name


def compiler(name: str) -> Compiler:
    """The optimiser, followed by the executor of that name; by none where somebody watches ops."""
    executor: Callable[[Program], Function] = EXECUTORS[name]

    def compile_(program: Program) -> Function:
        made = optimized(program)
        return executor(made) if not here() else lambda *values: made.run(made.base.dressed, values)

    return compile_
