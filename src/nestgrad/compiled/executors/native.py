"""A program by the compiler of the array library: ``"torch.compile"`` to users, since that is what they know it by.

A traced program has no backward pass in it, so it is taken at any order of derivative.
"""

import warnings
from collections.abc import Iterable
from math import prod
from typing import Any

from nestgrad.compiled.executors.blocks import in_blocks
from nestgrad.compiled.executors.replay import replay
from nestgrad.compiled.executors.source import Source
from nestgrad.compiled.passes.rewriting import uniform
from nestgrad.errors import CompileWarning
from nestgrad.levels.traced.program import FIXED, ITEM, STOP, Function, Instruction, Program, Variable
from nestgrad.ops.table import TABLE


def unavailable(base: Any) -> str:
    """Why ``native`` is not offered for programs over a base backend; empty if it is."""
    return str(base.uncompilable())


def native(program: Program) -> Function:
    """A function of raw arrays that runs a program as its array library compiles it.

    A program that treats many rows alike runs block by block. Where the compiler fails, or is not there, the program runs op by op, and a
    warning says so, once for each program.

    It runs on as many threads as the library has when it is compiled. The sign of a zero may be another than op by op.

    Args:
        program: Over any base backend. Ops that are in no table, a user's own, stay single steps, called as they are.

    Returns:
        A function of an array for each input, to a tuple of the outputs. Where something is wrong with numbers, as with a position out of
        range, it raises what the op does.

    Warns:
        CompileWarning: The reason why the program runs op by op.
    """
    most = program.base.at_hand
    return (most and in_blocks(program, _whole, most)) or _whole(program)


def _whole(program: Program) -> Function:
    """``native``, for all rows at once."""
    plain = replay(program)
    if not program.instructions:
        return plain
    reason = unavailable(program.base)
    if reason:
        _warn(program, reason)
        return plain
    try:
        constants = {v: array for v, array in program.constants if _filled(program, v, array) is None}
        inputs = [(v.shape, v.dtype) for v in (*program.inputs, *constants)]
        compiled = program.base.compiled(lambda ops: _written(program, ops, constants), inputs)
    except Exception as error:  # a compiler may fail in any way
        _warn(program, error)
        return plain

    arrays = tuple(constants.values())

    def run(*xs: Any) -> tuple[Any, ...]:
        nonlocal compiled
        try:
            outs: tuple[Any, ...] | None = compiled(*xs, *arrays)
        except Exception as error:
            outs = plain(*xs)  # which raises what the op does
            compiled = lambda *given: None
            _warn(program, error)
        return plain(*xs) if outs is None else outs

    return run


def _warn(program: Program, reason: str | Exception) -> None:
    if isinstance(reason, Exception):
        lines = str(reason).strip().splitlines() or [""]
        reason = f"of {type(reason).__name__}: {lines[0]:.300}"
    warnings.warn(
        f"jit: {program!r} could not be compiled, and runs op by op; because {reason}. "
        'Try executor="replay", which does so without asking',
        CompileWarning,
        stacklevel=3,
    )


def _filled(program: Program, v: Variable, array: Any) -> Any:
    """The number that a constant is full of, if it is made where it is used, and not read from memory."""
    return uniform(program.base, v, array) if prod(v.shape) > 1 else None


def _written(program: Program, ops: Any, constants: Iterable[Variable]) -> Function:
    """The program in other ops, as a function of its inputs and of those ``constants``."""
    source = Source(program)
    source.b = ops.dressed.bare
    given = [f"v{v.number}" for v in constants]
    for name in given:
        del source.namespace[name]
    for v, array in program.constants:
        if (name := f"v{v.number}") in source.namespace:
            del source.namespace[name]
            source.line(f"{name} = {source.call('full', ops.full, (v.shape, _filled(program, v, array), v.dtype))}")
    for step in program.instructions:
        if step.op in (STOP, ITEM, FIXED) or TABLE.get(step.op.name) is step.op:
            source.step(step)
        else:
            _opaque(source, step, program.base, ops)
    return source.compiled(given)


def _opaque(source: Source, step: Instruction, base: Any, ops: Any) -> None:
    """An op of which nothing is known."""

    def f(*xs: Any) -> Any:
        return step.run(base.dressed.bare, xs)

    call = source.call(step.op.name, ops.opaque(f, step.out.shape, step.out.dtype), step.operands)
    source.line(f"v{step.out.number} = {call}")
    source.drop(step.last)
