"""How each kind of op passes patterns on.

A flow is ``f(base, step, moving, known)``: the instruction, the patterns of the operands that move, and for each operand its value where
that is known. It gives a pattern for each result, or ``None`` where it does not apply.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from nestgrad.dependence import copies
from nestgrad.dependence.names import by_names, by_nonzeros
from nestgrad.dependence.pattern import HOST, Pattern, gathering, united
from nestgrad.levels.traced.program import Instruction, Variable
from nestgrad.ops.shapes import NUMBERS
from nestgrad.ops.table import TABLE, Kind, Op, Rule

Found = list[Pattern | None] | None
Moving = Mapping[int, Pattern]
Known = Sequence[Any]

# Entries of the table, not names: an op of a user's own may have any name.

_SCANS = frozenset(TABLE[name] for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "recur"))
"""Ops of which each entry depends on those before it along the axis, and on itself; in reverse on those after it."""

_ROWS, _TO_ROWS = TABLE["rows"], TABLE["to_rows"]
"""Ops that move rows to where positions say."""

_VALUES = frozenset({"out", "others", "xs"})
"""Words of rules that stand for numbers which are not known beforehand."""


def each(base: Any, step: Instruction, moving: Moving, known: Known) -> Found:
    """Entry by entry, broadcast. Of a product with an array that is known, nothing where that is zero."""
    op, shape = step.op, step.out.shape
    if op.kind is not Kind.ELEMENTWISE and not op.broadcasts:
        return None
    if op.kind is Kind.LINEAR and any(r is None for r in op.rules) and (found := copied(base, step, moving, known)) is not None:
        return found  # a choice by a mask that is known
    flows = [_broadcast(p, _shape(step.operands[i]), shape) for i, p in moving.items()]
    if op.kind is Kind.BILINEAR:
        for k, i in enumerate(moving):
            for j, other in enumerate(known):
                if j != i and other is not None and (mask := _nonzeros(base, other)) is not None:
                    places = HOST.where(HOST.broadcast_to(mask, shape).reshape(-1), HOST.arange(0, prod(shape)), -1)
                    flows[k] = flows[k].taken(places)
    return [united(flows)]


def multiplied(base: Any, step: Instruction, moving: Moving, known: Known) -> Found:
    """A sum of products. Of one with an array that is known, nothing where that is zero."""
    words = _words(step)
    if words is None:
        return None
    names, out = words
    shapes = [_shape(a) for a in step.operands]
    found = []
    for i, p in moving.items():
        other = known[1 - i] if len(names) == 2 else None
        mask = None if other is None else _nonzeros(base, other)
        wide = [] if mask is None else [(name, n) for name, n in zip(names[1 - i], shapes[1 - i], strict=True) if n != 1]
        if mask is None or not wide:
            found.append(by_names(p, names[i], shapes[i], out, step.out.shape))
        else:
            mask = mask.reshape(tuple(n for _, n in wide))
            found.append(by_nonzeros(p, names[i], shapes[i], mask, [name for name, _ in wide], out, step.out.shape))
    return [united(found)]


def scanned(base: Any, step: Instruction, moving: Moving, known: Known) -> Found:
    """Along an axis, of what comes before."""
    if step.op not in _SCANS:
        return None
    params = dict(zip(step.op.params, step.params, strict=True))
    shape = step.out.shape[0] if step.op.results else step.out.shape
    axis, n = params["axis"], shape[params["axis"]]
    steps = HOST.arange(0, n)
    mask = (steps[:, None] <= steps[None, :]) if params.get("reverse") else (steps[:, None] >= steps[None, :])
    inner: list[Any] = [*range(len(shape))]
    inner[axis] = "from"
    outer = [*inner]
    outer[axis] = "to"
    found = united([by_nonzeros(p, inner, shape, mask, ("to", "from"), outer, shape) for p in moving.values()])
    return [found, None] if step.op.results else [found]


def copied(base: Any, step: Instruction, moving: Moving, known: Known) -> Found:
    """A linear map with known coefficients that takes each entry of its answer from one place, or brings each entry to one."""
    op = step.op
    if op.kind is Kind.LINEAR:
        return _linear(base, step, moving, known)
    if op.kind is not Kind.SPECIAL or op.variadic or op.on is not None:
        return None
    b, found = base.dressed.bare, []
    args = [_stand_in(base, a) if x is None else x for a, x in zip(step.operands, known, strict=True)]
    for i, p in moving.items():
        rule = op.forward[i]
        if rule is None or not _readable(step, rule, known):
            return None
        call, saved = rule.call, op.saved(b, rule, i, args, None, step.params)

        def f(ts: list[Any], call: Any = call, saved: Any = saved) -> Sequence[Any]:
            out = call(b, ts[0], *saved)
            return [base.full(s, 0.0) if v is None else v for s, v in zip(step.out.shape, out, strict=True)] if op.results else [out]

        places = copies.sources(base, f, [_shape(step.operands[i])], [True])
        flows = [p.taken(each) for each in places] if places is not None else None if op.results else _back(base, step, i, p, known, args)
        if flows is None:
            return None
        found.append(flows)
    return [united(column) for column in zip(*found, strict=True)]


def _linear(base: Any, step: Instruction, moving: Moving, known: Known) -> Found:
    op = step.op
    rules = op.rules * len(step.operands) if op.variadic else op.rules
    follows = [rule is not None and a.__class__ not in NUMBERS for a, rule in zip(step.operands, rules, strict=True)]
    if any(not follow and x is None for follow, x in zip(follows, known, strict=True)):
        return None
    numbers = [i for i, follow in enumerate(follows) if follow]
    shapes = [_shape(step.operands[i]) for i in numbers]

    def f(ts: list[Any]) -> Sequence[Any]:
        along = dict(zip(numbers, ts, strict=True))
        # numbers among the arguments that are followed are constants, of which the linear part is zero
        fixed = [0.0 if rule is not None and i not in along else x for i, (x, rule) in enumerate(zip(known, rules, strict=True))]
        return [step.run(base, [along.get(i, x) for i, x in enumerate(fixed)])]

    places = copies.sources(base, f, shapes, [i in moving for i in numbers])
    if places is not None:
        return [_end_to_end(list(moving.values())).taken(places[0])]
    found: list[Pattern] = []
    args = [_stand_in(base, a) if x is None else x for a, x in zip(step.operands, known, strict=True)]
    for i, p in moving.items():
        alone = copies.sources(base, f, shapes, [i == k for k in numbers]) if len(moving) > 1 else None
        flows = _back(base, step, i, p, known, args) if alone is None else [p.taken(alone[0])]
        if flows is None:
            return None
        found += flows
    return [united(found)]


def _back(base: Any, step: Instruction, i: int, p: Pattern, known: Known, args: Sequence[Any]) -> list[Pattern] | None:
    """The pattern ``p`` of operand ``i`` carried on by the rule for its cotangent."""
    op = step.op
    rule = op.rules[0 if op.variadic else i]
    if rule is None or not _readable(step, rule, known):
        return None
    b = base.dressed.bare
    saved = op.saved(b, rule, i, args, None, step.params)
    places = copies.targets(base, lambda g: rule.call(b, g, *saved), _shape(step.operands[i]), step.out.shape)
    return None if places is None else [p.through(gathering(places, prod(step.out.shape)))]


def lined(base: Any, step: Instruction, moving: Moving, known: Known) -> Found:
    """Along its axes everything, and between other lines nothing: what ops with axes do. Positions go along the first axis."""
    op = step.op
    params = dict(zip(op.params, step.params, strict=True))
    rank = len(_shape(step.operands[0]))
    if op.native is not None or op.variadic or "shape" in params or any(len(_shape(step.operands[i])) != rank for i in moving):
        return None  # whose axes these are, is not known
    if op in (_ROWS, _TO_ROWS):
        axes: tuple[int, ...] = tuple(range(len(_shape(step.operands[1])) if op is _TO_ROWS else 1))
    elif isinstance(params.get("axis"), int):
        axes = (params["axis"],)
    elif isinstance(params.get("axes"), tuple):
        axes = params["axes"]
    else:
        return None
    outs = step.out.shape if op.results else (step.out.shape,)
    found: list[list[Pattern]] = [[] for _ in outs]
    for i, p in moving.items():
        shape = _shape(step.operands[i])
        lines = [k for k in range(len(shape)) if k not in axes]
        inner: list[Any] = [k if k in lines else ("in", k) for k in range(len(shape))]
        for place, out in zip(found, outs, strict=True):
            outer = _outer(lines, shape, out)
            if outer is None:
                return None
            place.append(by_names(p, inner, shape, outer, out))
    return [united(patterns) for patterns in found]


def _outer(lines: Sequence[int], shape: Sequence[int], out: Sequence[int]) -> list[Any] | None:
    """Names of the axes of an answer: those of the lines, where they were, or one after the other at the end."""
    if len(out) == len(shape) and all(out[k] == shape[k] for k in lines):
        return [k if k in lines else ("out", k) for k in range(len(out))]
    lead = len(out) - len(lines)
    if lead >= 0 and all(out[lead + j] == shape[k] for j, k in enumerate(lines)):
        return [*(("out", j) for j in range(lead)), *lines]
    return None


def all_of(base: Any, step: Instruction, moving: Moving, known: Known) -> list[Pattern | None]:
    """Each entry of the answer by all entries of the arguments."""
    outs = step.out.shape if step.op.results else (step.out.shape,)
    whole = [by_names(p, range(len(s)), s, (), ()) for i, p in moving.items() for s in [_shape(step.operands[i])]]
    total = united(whole)
    assert total is not None
    return [by_names(total, (), (), [("out", k) for k in range(len(out))], out) for out in outs]


Words = tuple[list[list[Any]], list[Any]]
"""Names of the axes of each operand, and of the answer."""


def _product(step: Instruction, *turned: bool) -> Words:
    names = []
    for a, flipped, last in zip(step.operands, turned, (["row", "sum"], ["sum", "column"]), strict=True):
        lead = len(_shape(a)) - 2
        names.append([*range(-lead, 0), *(last[::-1] if flipped else last)])
    return names, [*range(-(len(step.out.shape) - 2), 0), "row", "column"]


def _vecmat(step: Instruction, turned: bool) -> Words:
    return [["sum"], ["column", "sum"] if turned else ["sum", "column"]], ["column"]


def _vecdot(step: Instruction, axis: int) -> Words:
    axes = [*range(len(_shape(step.operands[0])))]
    return [axes, axes], [k for k in axes if k != axis]


def _einsum(step: Instruction, subscripts: str) -> Words | None:
    inputs, arrow, output = subscripts.partition("->")
    words = [[*word.strip()] for word in inputs.split(",")]
    plain = all(c.isalpha() for word in words for c in word) and all(len(set(word)) == len(word) for word in words)
    return (words, [*output.strip()]) if plain and arrow else None


_PRODUCTS: Mapping[Op, Callable[..., Words | None]] = {
    TABLE["matmul"]: lambda step: _product(step, False, False),
    TABLE["product"]: _product,
    TABLE["vecmat"]: _vecmat,
    TABLE["vecdot"]: _vecdot,
    TABLE["einsum"]: _einsum,
}
"""Ops that are sums of products: their axes, from an instruction and its parameters."""


def _words(step: Instruction) -> Words | None:
    """Names of the axes of a sum of products; ``None`` if it is none."""
    words = _PRODUCTS.get(step.op)
    return None if words is None else words(step, *step.params)


def _broadcast(p: Pattern, shape: tuple[int, ...], out: tuple[int, ...]) -> Pattern:
    if shape == out:
        return p
    names = [*range(-len(out), 0)]
    return by_names(p, names[len(out) - len(shape) :], shape, names, out)


def _end_to_end(patterns: Sequence[Pattern]) -> Pattern:
    """The rows of several patterns, one after the other."""
    return patterns[0] if len(patterns) == 1 else Pattern.stacked(patterns)


def _nonzeros(base: Any, value: Any) -> Any:
    """Where an array is not zero; ``None`` if at least half of it is not, which is not worth the pains."""
    if value.__class__ in NUMBERS or not prod(base.shape(value)):
        return None
    mask = HOST.asarray(base.to_numpy(value)) != 0
    return mask if int(mask.sum()) * 2 <= mask.size else None


def _readable(step: Instruction, rule: Rule, known: Known) -> bool:
    """Whether a rule reads nothing but what is known: parameters, shapes, dtypes, and values that are."""
    names = dict(zip(step.op.arguments, known, strict=False))
    return not any(w in _VALUES or w in step.op.results or (w in names and names[w] is None) for w in rule.reads)


def _stand_in(base: Any, operand: Any) -> Any:
    """An array of an operand's shape and dtype, of which the numbers are not read."""
    assert isinstance(operand, Variable)
    return base.full(operand.shape, 0, operand.dtype)


def _shape(operand: Any) -> tuple[int, ...]:
    return () if operand.__class__ in NUMBERS else tuple(operand.shape)
