"""Which executor runs the programs over a base backend."""

from collections.abc import Callable
from typing import Any

from nestgrad.compiled.executors import buffers, native, replay, unavailable
from nestgrad.compiled.passes import rearranged
from nestgrad.compiled.witness import witnessed
from nestgrad.errors import BackendError
from nestgrad.levels.traced.program import Compiler, Function, Program
from nestgrad.levels.watching import here

EXECUTORS: dict[str, Compiler] = {"replay": replay, "numpy": buffers, "torch.compile": native}
"""By the names that users know."""

NAMES = ("auto", *EXECUTORS)


def known(name: str) -> str:
    """The name of an executor.

    Raises:
        BackendError: If there is none of that name.
    """
    if name not in NAMES:
        raise BackendError(f"jit: got executor={name!r}; expected one of {', '.join(map(repr, NAMES))}")
    return name


def chosen(name: str, base: Any) -> str:
    """The executor that ``name`` means for a base backend: itself, unless it is ``"auto"``.

    Raises:
        BackendError: If the backend does not offer it.
    """
    offered = ["replay"] if base.memory is None else ["numpy", "replay"]
    if name == "auto":
        return offered[0]
    if name == "torch.compile":
        if reason := unavailable(base):
            raise BackendError(f"jit: got executor={name!r} for {base!r}; expected one that this backend offers, because {reason}. "
                               'Try executor="auto"')  # fmt: skip
        return name
    if name not in offered:
        raise BackendError(
            f"jit: got executor={name!r} for {base!r}; expected one that this backend offers: {', '.join(map(repr, offered))}. "
            'Try executor="auto"'
        )
    return name


def compiler(name: str, seen: Callable[[Program], None] | None = None) -> Compiler:
    """The optimiser, followed by the executor of that name; op by op where somebody watches ops.

    Args:
        name: The executor's.
        seen: Is called with each optimised program.
    """
    executor: Callable[[Program], Function] = EXECUTORS[name]

    def compile_(program: Program) -> Function:
        made, plain = rearranged(program)
        if seen is not None:
            seen(made)
        if here():
            return lambda *values: made.run(made.base.dressed, values)
        return executor(made) if plain is None else witnessed(made, plain, executor)

    return compile_
