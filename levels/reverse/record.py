"""Unrolled recorders: for each op of the table a function, written out from the entry's own names.

``recorder(op)`` makes the source of the function that the op is on dressed values, and compiles it once. What it does for one op and
one level is what ``Tracked.apply`` does in general: find the youngest tape, run the op on the inner values, keep what the rules read.
It is generated so that nothing is looked up, looped over or packed per op (0.4 of the time of the general way). Its own names begin
with an underscore, which no parameter of an op does.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from nestgrad.levels.base import Coat, now
from nestgrad.levels.explain import NATIVE, explained
from nestgrad.levels.reverse.node import Node, Tracked
from nestgrad.ops.table import Kind, Op


@cache
def recorder(op: Op) -> Callable[..., Callable[..., Any]]:
    """``make(base, mixed, shape_of, dtype_of)`` for an op: it returns the op on dressed values.

    ``base`` is the base backend's method, ``mixed(op, args, params)`` runs what wears other coats, ``shape_of`` and ``dtype_of`` ask a
    value.
    """
    source = _source(op)
    names: dict[str, Any] = {"_Tracked": Tracked, "_Node": Node, "_Coat": Coat, "_now": now, "_OP": op}
    names |= {"_errors": NATIVE, "_explained": explained}
    for i, rule in enumerate(op.rules):
        names[f"_rule{i}"] = rule.call if rule is not None else None
    for k, value in enumerate(op.defaults):
        names[f"_default{k}"] = value
    exec(compile(source, f"<recorder of {op.signature}>", "exec"), names)  # only names of the op table are in it
    make: Callable[..., Callable[..., Any]] = names["make"]
    return make


def _source(op: Op) -> str:
    args = op.arguments
    first = len(op.params) - len(op.defaults)
    header = [*args, *(p if k < first else f"{p}=_default{k - first}" for k, p in enumerate(op.params))]
    lines = ["def make(_base, _mixed, _shape_of, _dtype_of):", "  _raw_shape = _shape_of.raw", f"  def {op.name}({', '.join(header)}):"]
    if op.kind is Kind.CONSTANT:
        lines += [f"    while {a}.__class__ is _Tracked: {a} = {a}.value" for a in args]
    elif len(args) == 1:
        lines += ["    if x.__class__ is _Tracked:", "      _tape = x.tape", *_record(op, ("x",), "      ")]
    elif len(args) == 2:
        lines += _pair(op)
    else:
        lines += _several(op)
    coats = " or ".join(f"isinstance({a}, _Coat)" for a in args)
    lines += [f"    if {coats}: return {_mixed(op)}"]
    return "\n".join([*lines, *_raw(op, args, "    ", "return"), f"  return {op.name}"])


def _raw(op: Op, values: tuple[str, ...], pad: str, then: str) -> list[str]:
    """The base's own function, on values that wear no coats."""
    told = f"_explained(_error, _OP, ({''.join(v + ', ' for v in values)}), ({''.join(p + ', ' for p in op.params)}), _shape_of)"
    return [f"{pad}try: {then} _base({_call(op, values)})", f"{pad}except _errors as _error: raise {told} from _error"]


def _inside(op: Op, values: tuple[str, ...], pad: str) -> list[str]:
    """The op on what is under the coat: ``out``, its shape, and whether no value wears another coat."""
    return [
        f"{pad}if {' or '.join(f'isinstance({v}, _Coat)' for v in values)}:",
        f"{pad}  out = {op.name}({_call(op, values)})",
        f"{pad}  _bare = False",
        f"{pad}  _shape = out.node.shape if out.__class__ is _Tracked else _shape_of(out)",
        f"{pad}else:",
        *_raw(op, values, f"{pad}  ", "out ="),
        f"{pad}  _bare = True",
        f"{pad}  _shape = _raw_shape(out)",
    ]


def _mixed(op: Op) -> str:
    """The call of the way for all kinds of coats."""
    return f"_mixed(_OP, ({''.join(a + ', ' for a in op.arguments)}), ({''.join(p + ', ' for p in op.params)}))"


def _call(op: Op, values: tuple[str, ...]) -> str:
    return ", ".join((*values, *op.params))


def _pair(op: Op) -> list[str]:
    """Two arguments: the three cases of who wears the youngest tape, each written out."""
    both, only_x, only_y = (_record(op, who, " " * depth) for who, depth in ((("x", "y"), 10), (("x",), 8), (("y",), 8)))
    return [
        "    if x.__class__ is _Tracked:",
        "      _tape = x.tape",
        "      if y.__class__ is _Tracked:",
        "        if y.tape is _tape:",
        *both,
        f"        if _tape.trace is not None or y.tape.trace is not None: return {_mixed(op)}",
        "        if y.tape.birth > _tape.birth:",
        "          _tape = y.tape",
        *("  " + line for line in only_y),
        *only_x,
        "      if not isinstance(y, _Coat):",
        *only_x,
        "    elif y.__class__ is _Tracked and not isinstance(x, _Coat):",
        "        _tape = y.tape",
        *only_y,
    ]


def _several(op: Op) -> list[str]:
    """Three arguments: the case that all wear the same tape, written out; else find the youngest tape, and record by argument."""
    ruled = tuple(a for a, rule in zip(op.arguments, op.rules, strict=True) if rule is not None)
    plain = [f"not isinstance({a}, _Coat)" for a in op.arguments if a not in ruled]
    alike = [f"{a}.tape is {ruled[0]}.tape" for a in ruled[1:]]
    lines = [
        f"    if {' and '.join([f'{a}.__class__ is _Tracked' for a in ruled] + alike + plain)}:",
        f"      _tape = {ruled[0]}.tape",
        *_record(op, ruled, "      "),
        "    _tape = None",
    ]
    for a in op.arguments:
        lines += [
            f"    if {a}.__class__ is _Tracked:",
            f"      if _tape is None or {a}.tape.birth > _tape.birth: _tape = {a}.tape",
            f"    elif isinstance({a}, _Coat): return {_mixed(op)}",
        ]
    lines += ["    if _tape is not None:", f"      if _tape.trace is not None: return {_mixed(op)}"]
    lines += ["      _edges = ()", "      _lo = 1 << 63"]
    for i, a in enumerate(op.arguments):
        lines += [
            f"      if {a}.__class__ is _Tracked and {a}.tape is _tape:",
            f"        _n{i} = {a}.node; _v{i} = {a}.value",
            *([f"        if _n{i}.lo < _lo: _lo = _n{i}.lo"] if op.rules[i] is not None else []),
            f"      else: _n{i} = None; _v{i} = {a}",
        ]
    lines += _inside(op, tuple(f"_v{i}" for i in range(len(op.arguments))), "      ")
    for i, rule in enumerate(op.rules):
        if rule is not None:
            saved = "".join(_saved(op, word, None) + ", " for word in rule.reads)
            lines += [f"      if _n{i} is not None: _edges += ((_n{i}, _rule{i}, ({saved})),)"]
    return [*lines, "      if not _edges: return out", *_dress(op, "      ", "_edges")]


def _record(op: Op, who: tuple[str, ...], pad: str) -> list[str]:
    """Record the op where the arguments ``who`` wear the coat of ``tape``, and return the dressed answer."""
    index = {a: i for i, a in enumerate(op.arguments)}
    values = tuple(f"_v{i}" if a in who else a for a, i in index.items())
    lines = [f"{pad}_n{index[a]} = {a}.node; _v{index[a]} = {a}.value" for a in who]
    lines += _inside(op, values, pad)
    edges = ""
    for a in who:
        rule = op.rules[index[a]]
        if rule is not None:
            saved = "".join(_saved(op, word, who) + ", " for word in rule.reads)
            edges += f"(_n{index[a]}, _rule{index[a]}, ({saved})), "
    if not edges:
        return [*lines, f"{pad}return out"]
    first, *others = [index[a] for a in who if op.rules[index[a]] is not None]
    lines += [f"{pad}_lo = _n{first}.lo", *(f"{pad}if _n{i}.lo < _lo: _lo = _n{i}.lo" for i in others)]
    return [*lines, *_dress(op, pad, f"({edges})")]


def _saved(op: Op, word: str, who: tuple[str, ...] | None) -> str:
    """The expression for what a rule reads. ``who`` wear the coat; where that is not known (``None``), all are called v0, v1, v2."""
    if word == "out" or word in op.params:
        return word
    argument, _, what = word.partition("_")
    i = op.arguments.index(argument)
    value = f"_v{i}" if who is None or argument in who else argument
    if what == "shape":
        return f"_n{i}.shape" if who is not None and argument in who else f"_shape_of({value})"
    return f"_dtype_of({value})" if what == "dtype" else value


def _dress(op: Op, pad: str, edges: str) -> list[str]:
    return [
        f"{pad}_node = _Node()",
        f"{pad}_node.age = _now()",
        f"{pad}_node.lo = _lo",
        f"{pad}_node.op = _OP",
        f"{pad}_node.shape = _shape",
        f"{pad}_node.raw = _bare",
        f"{pad}_node.edges = {edges}",
        f"{pad}_node.params = ({''.join(p + ', ' for p in op.params)})",
        f"{pad}_coat = _Tracked()",
        f"{pad}_coat.tape = _tape",
        f"{pad}_coat.value = out",
        f"{pad}_coat.node = _node",
        f"{pad}return _coat",
    ]
