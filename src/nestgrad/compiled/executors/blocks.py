"""Many rows in blocks: a program that treats each row alike runs on some of them at a time, so that what it computes stays near at hand.

What is found out of each variable, from the inputs on: whether it has a row for each of the ``n`` rows of the inputs, on axis 0, and
depends on the rows there alone; whether it is a sum over rows; or whether it has nothing to do with them. Sums may be added and scaled,
and come out as the sums of what the blocks give. A program in which anything else happens across rows is left as it is.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from nestgrad.compiled.passes.rewriting import MOST
from nestgrad.compiled.passes.shaping import EACH, TOGETHER
from nestgrad.levels.base import Coat
from nestgrad.levels.traced.program import Function, Instruction, Program, Variable
from nestgrad.ops.table import TABLE

_ROWS, _SUM, _NONE = "rows", "sum", "none"

_COMPARED = "eq ne lt le gt ge sign floor ceil round isfinite isnan logical_not logical_and logical_or trunc".split()
_BY_ENTRY = frozenset(TABLE[name] for name in (*EACH, *TOGETHER, *_COMPARED))
_OF_SUMS = frozenset(TABLE[name] for name in "neg scale per add sub put getitem reshape permute concat".split())
_CHEAP = _BY_ENTRY | {TABLE[name] for name in "put getitem reshape permute concat broadcast_to".split()}
_ALONG = frozenset(TABLE[name] for name in "sum mean amax amin logsumexp".split())
_ON_AXIS = frozenset(TABLE[name] for name in "softmax log_softmax".split())
_PRODUCT, _MATMUL, _LINEAR, _CONCAT = TABLE["product"], TABLE["matmul"], TABLE["linear"], TABLE["concat"]
_RESHAPE, _SPREAD = TABLE["reshape"], TABLE["broadcast_to"]
_GET, _PUT, _PAD = TABLE["getitem"], TABLE["put"], TABLE["pad"]


def in_blocks(program: Program, executor: Callable[[Program], Function], most: int) -> Function | None:
    """A function that runs a program block by block.

    Args:
        program: Any.
        executor: What makes a function of the program of one block.
        most: How many numbers the widest array of a block may hold, about.

    Returns:
        ``None`` if the program is to run as a whole: it does not treat all rows alike, or is small, or no block fits in evenly.
    """
    n = max((v.shape[0] for v in program.inputs if v.shape), default=0)
    widest = max((prod(s.out.shape[1:]) for s in program.instructions if _leads(s.out, n)), default=1)
    size = max((d for d in _divisors(n) if d * widest <= most and d < n), default=0)
    if not size or n * widest <= most or size * widest * 4 < most:  # so small a block costs more than it saves
        return None
    made = _of_block(program, n, size)
    if made is None:
        return None
    block, kinds = made
    run, base = executor(block), program.base
    rows = [_leads(v, n) for v in program.inputs]
    parts = [(slice(k, k + size),) for k in range(0, n, size)]

    def function(*xs: Any) -> tuple[Any, ...]:
        found = [run(*[base.getitem(x, part) if cut else x for x, cut in zip(xs, rows, strict=True)]) for part in parts]
        return tuple([_joined(base, kind, outs) for kind, outs in zip(kinds, zip(*found, strict=True), strict=True)])

    return function


def _joined(base: Any, kind: str, outs: Sequence[Any]) -> Any:
    if kind is _ROWS:
        return base.concat(*outs, axis=0)
    total = outs[0]
    if kind is _SUM:
        for out in outs[1:]:
            total = base.add(total, out)
    return total


def _of_block(program: Program, n: int, size: int) -> tuple[Program, list[str]] | None:
    """The program for ``size`` of ``n`` rows, and what its outputs are."""
    kinds: dict[Variable, str] = {v: _ROWS if _leads(v, n) else _NONE for v in program.inputs}
    new: dict[Variable, Variable] = {v: _cut(v, kinds[v], size) for v in program.inputs}
    constants = []
    for v, array in program.constants:
        if not _leads(v, n):
            kinds[v], new[v] = _NONE, v
            constants.append((v, array))
            continue
        if isinstance(array, Coat) or not _alike(program.base, v, array):
            return None
        kinds[v], new[v] = _ROWS, _cut(v, _ROWS, size)
        constants.append((new[v], program.base.getitem(array, (slice(0, size),))))
    steps = []
    for step in program.instructions:
        kind = _kind(step, [kinds[a] if a.__class__ is Variable else _NONE for a in step.operands], n)
        if kind is None:
            return None
        kinds[step.out], new[step.out] = kind, _cut(step.out, kind, size)
        params = step.params
        if kind is _ROWS and step.op in (_RESHAPE, _SPREAD, _PUT):  # the shape comes last
            params = (*params[:-1], (size, *params[-1][1:]))
        operands = tuple([new[a] if a.__class__ is Variable else a for a in step.operands])
        steps.append(Instruction(step.op, operands, params, new[step.out]))
    made = Program(
        program.base, tuple(new[v] for v in program.inputs), (), tuple(constants), tuple(steps), tuple(new[v] for v in program.outputs),
        tuple(frozenset[int]() for _ in program.outputs),
    )  # fmt: skip
    return made.rewritten(made.instructions, made.outputs), [kinds[v] for v in program.outputs]


def _kind(step: Instruction, kinds: Sequence[str], n: int) -> str | None:
    """What the answer of an instruction is; ``None`` if it goes across rows in another way than by a sum."""
    op, operands = step.op, step.operands
    if TABLE.get(op.name) is not op or isinstance(step.out.dtype, tuple):
        return None
    if all(kind is _NONE for kind in kinds):  # computed anew for each block, which must not cost much
        return _NONE if op in _CHEAP and not _leads(step.out, n) else None
    if _SUM in kinds:
        return _SUM if op in _OF_SUMS and all(kind is _SUM for kind in kinds) else None
    first = operands[0]
    if op in _BY_ENTRY:
        arrays = [(a.shape, kind) for a, kind in zip(operands, kinds, strict=True) if a.__class__ is Variable and a.shape]
        rank = len(step.out.shape)
        aligned = [
            len(shape) == rank and shape[0] == n if kind is _ROWS else len(shape) < rank or shape[0] == 1 for shape, kind in arrays
        ]
        return _ROWS if _leads(step.out, n) and all(aligned) else None
    if op is _LINEAR or op is _MATMUL or (op is _PRODUCT and not step.params[0]):
        flat = all(len(a.shape) == 2 for a in operands[:2])
        return _ROWS if flat and kinds[0] is _ROWS and all(kind is _NONE for kind in kinds[1:]) else None
    if op is _PRODUCT:
        flat = all(len(a.shape) == 2 for a in operands)
        return _SUM if flat and not step.params[1] and all(kind is _ROWS for kind in kinds) else None
    if op in _ALONG and kinds[0] is _ROWS:
        if 0 not in step.params[0]:
            return _ROWS
        return _SUM if op.name == "sum" else None
    if op in _ON_AXIS:
        return _ROWS if step.params[0] != 0 else None
    if op is _CONCAT:
        return _ROWS if step.params[0] != 0 and all(kind is _ROWS for kind in kinds) else None
    if op is _GET or op is _PUT:
        index = step.params[0]
        every = bool(index) and isinstance(index[0], slice) and index[0].indices(n) == (0, n, 1)
        return _ROWS if every and all(isinstance(part, (slice, int)) for part in index) and _leads(step.out, n) else None
    if op is _PAD:
        return _ROWS if tuple(step.params[0][0]) == (0, 0) else None
    if op is _RESHAPE or op is _SPREAD:
        same = _leads(step.out, n) and first.shape[0] == n and (op is _RESHAPE or len(first.shape) == len(step.out.shape))
        return _ROWS if same else None
    return None


def _alike(base: Any, v: Variable, array: Any) -> bool:
    """Whether all rows of a constant are the same."""
    return prod(v.shape) <= MOST and bool(base.to_numpy(base.eq(array, base.getitem(array, (slice(0, 1),)))).all())


def _leads(v: Variable, n: int) -> bool:
    return not isinstance(v.dtype, tuple) and bool(v.shape) and v.shape[0] == n


def _cut(v: Variable, kind: str, size: int) -> Variable:
    return Variable(v.number, (size, *v.shape[1:]), v.dtype) if kind is _ROWS else v


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, min(n, 1 << 16) + 1) if n % d == 0] if n else []
