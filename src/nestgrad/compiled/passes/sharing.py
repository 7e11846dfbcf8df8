"""Common subexpressions: what is computed twice is computed once. Bit-equal.

Two instructions are the same if op, operands and parameters are. The factors of a product and the terms of a sum may be swapped, which
changes no bit. Constants that hold the same numbers become one: the ones that seed a backward pass are many. Of ops that are not in the
table, as a user's own, nothing is known: they run as often as they stand there.

    v1 = tanh(v0)                v1 = tanh(v0)
    v2 = tanh(v0)         ->
    v3 = mul(v1, v2)             v3 = mul(v1, v1)
"""

from math import copysign, prod
from typing import Any

from nestgrad.compiled.passes.rewriting import Code, Rules, Walk, uniform
from nestgrad.levels.base import Coat
from nestgrad.levels.traced.program import ITEM, Instruction, Variable
from nestgrad.ops.table import TABLE

_SWAPPED = frozenset(TABLE[name] for name in ("add", "mul", "eq", "ne", "logical_and", "logical_or"))
"""Ops of two arguments whose answer has the same bits if they are swapped. Not maximum: it may tell 0.0 from -0.0."""

_SMALL = 1 << 12
"""How many numbers of a constant are compared with those of others, unless they are all the same."""


def shared(code: Code) -> Code:
    """The code with each thing computed once."""
    merge_constants(code)
    return Walk(code, Rules(), key).run()


def key(step: Instruction) -> Any:
    """What the same instructions have in common; ``None`` of those that are to be left alone."""
    op = step.op
    if op is not ITEM and TABLE.get(op.name) is not op:
        return None
    operands = tuple([a if a.__class__ is Variable else _key(a) for a in step.operands])
    if op in _SWAPPED and id(operands[0]) > id(operands[1]):
        operands = operands[::-1]
    return (op, operands, _key(step.params)) if step.params else (op, operands)


def _key(value: Any) -> Any:
    """A parameter or a number, so that two are equal only if they are the same: 1 is not 1.0, and 0.0 not -0.0."""
    kind = value.__class__
    if kind is tuple:
        return tuple([_key(part) for part in value])
    if kind is int or kind is str or kind is bool or value is None:
        return kind, value
    if kind is float:
        return kind, value, copysign(1.0, value)
    if kind is slice:
        return kind, _key((value.start, value.stop, value.step))
    if hasattr(value, "tolist") and hasattr(value, "shape") and 0 < prod(value.shape) <= _SMALL:  # positions
        return tuple(value.shape), str(value.dtype), str(value.tolist())
    return kind, id(value)


def merge_constants(code: Code) -> None:
    """Let instructions read one of the constants that hold the same numbers."""
    seen: dict[Any, Variable] = {}
    same: dict[Variable, Variable] = {}
    for v, array in code.constants.items():
        found = seen.setdefault(_content(code.base, v, array), v)
        if found is not v:
            same[v] = found
    if same:
        code.steps = [
            Instruction(s.op, tuple([same.get(a, a) if a.__class__ is Variable else a for a in s.operands]), s.params, s.out)
            if any(a in same for a in s.operands if a.__class__ is Variable) else s for s in code.steps
        ]  # fmt: skip
        code.outputs = [same.get(v, v) for v in code.outputs]
        for v in same:
            del code.constants[v]


def _content(base: Any, v: Variable, array: Any) -> Any:
    """What constants of the same numbers have in common: as Python numbers, where these are all that the array holds."""
    if isinstance(array, Coat):
        return v
    device = base.device(array)
    number = uniform(base, v, array)
    if number is not None:
        return device, v.shape, v.dtype, number, copysign(1.0, number)
    if prod(v.shape) > _SMALL or device != base.device(base.asarray(0)):
        return v
    numbers = base.to_numpy(array)
    if not base.to_numpy(base.eq(array, base.asarray(numbers, v.dtype))).all():
        return v  # NaN, or an array of more digits than NumPy has
    return device, v.shape, v.dtype, numbers.dtype, numbers.tobytes()
