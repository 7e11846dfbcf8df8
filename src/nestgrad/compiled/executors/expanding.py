"""Ops of single entries taken apart: into the ops that a backend's default makes them of. Bit-equal.

What comes between is then a value of the program like all others: it has a place in memory, and what two ops have in common is computed
once.

    v2 = tanh_vjp(v0, v1)        v2 = square(v1)
    v3 = tanh_vjp(v2, v1)   ->   v3 = sub(1, v2)
                                 v4 = mul(v0, v3)
                                 v5 = mul(v4, v3)
"""

from functools import cache, partial
from typing import Any

from nestgrad.backends.derived import Derived
from nestgrad.backends.memory import Memory
from nestgrad.compiled.passes.rewriting import Code, Rules, Walk, broadcast
from nestgrad.compiled.passes.sharing import key
from nestgrad.levels.traced.program import Instruction, Program, Variable
from nestgrad.ops.table import TABLE, Kind, Op


def expanded(program: Program, memory: Memory) -> Program:
    """The program with its ops taken apart.

    Args:
        program: For raw arrays.
        memory: Of its base backend, which tells which ops are what their defaults are.
    """
    rules = Rules()
    names = [name for name, op in TABLE.items() if _entrywise(op) and memory.expands(name)]
    rules.on(*names)(lambda walk, step: _parts(walk, step, memory))
    return Walk(Code.of(program), rules, key).run().program(program)


def _entrywise(op: Op) -> bool:
    """Whether each entry of the answer is made of one entry of each argument, as far as the table tells."""
    return not op.variadic and not op.results and (op.kind is Kind.ELEMENTWISE or op.broadcasts)


class _Opaque(Exception):
    """A default is not made of such ops alone."""


def _parts(walk: Walk, step: Instruction, memory: Memory) -> Variable | None:
    """What stands for an instruction, after the ops that it is made of have been added."""
    try:
        found = getattr(Derived, step.op.name)(_Emitter(walk, memory), *step.operands, *step.params)
    except _Opaque:
        return None
    fits = isinstance(found, Variable) and (found.shape, found.dtype) == (step.out.shape, step.out.dtype)
    return found if fits else None


class _Emitter:
    """A backend of variables: its ops are added to a walk."""

    def __init__(self, walk: Walk, memory: Memory) -> None:
        self._walk = walk
        self._memory = memory

    def __getattr__(self, name: str) -> Any:
        op = TABLE.get(name)
        if op is None:
            if name.startswith("_") and callable(found := getattr(Derived, name, None)):
                return partial(found, self)
            raise _Opaque
        writer = self._memory.writer(name)
        if not _entrywise(op) and (writer is None or writer.uniform):
            raise _Opaque
        return partial(self._emit, op)

    def _emit(self, op: Op, *given: Any, **named: Any) -> Variable:
        operands, params = given[: len(op.arguments)], op.bound(given[len(op.arguments) :], named)
        arrays = [a for a in operands if isinstance(a, Variable)]
        if not arrays:
            raise _Opaque  # of numbers alone
        dtype = _dtype(self._walk.base, op, tuple(a.dtype if isinstance(a, Variable) else (a,) for a in operands), params)
        out = Variable(-1, broadcast([a.shape for a in arrays]), dtype)
        return self._walk.place(Instruction(op, operands, params, out))


@cache
def _dtype(base: Any, op: Op, operands: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
    """The dtype of an op's answer for arrays of some dtypes and for numbers."""
    examples = [a[0] if isinstance(a, tuple) else base.full((1,), 1, a) for a in operands]
    return base.dtype(op.of(base)(*examples, *params))
