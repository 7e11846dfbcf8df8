"""What is checked each time that a function or a rule of a user runs, since a wrong shape could end as a wrong number."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from nestgrad.errors import DTypeError, MissingOp, RuleError, ShapeError
from nestgrad.ops.table import Kind, Op, Rule

Shape = tuple[int, ...]


def native(op: Op, b: Any, value: Callable[..., Any] | None, kernels: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """The function of raw arrays that an op brings along, with its answers checked.

    Args:
        op: The entry.
        b: The ops of raw arrays.
        value: In ops of ``b``.
        kernels: Functions of raw arrays by the name of the backend.

    Raises:
        MissingOp: If there is none for the backend.
    """
    base = b.base
    if base.name in kernels:
        function = kernels[base.name]
    elif value is not None:
        function = partial(_known, op, "its function", value, b)
    else:
        raise MissingOp(
            f"{op.name}: there is no function for the backend {base!r}; expected kernels[{base.name!r}]. "
            f"Try define({op.signature!r}, ..., value=...), in ops of b, which serves every backend"
        )

    def run(*args: Any, **params: Any) -> Any:
        return _answer(op, b, function(*args, **params), args)

    return run


def _answer(op: Op, b: Any, out: Any, args: Sequence[Any]) -> Any:
    """What the function of an op returned, as a raw array.

    Raises:
        DTypeError: If it is no array, or holds no floating numbers where the arguments do.
        ShapeError: If an elementwise op has another shape than its arguments broadcast to.
    """
    base = b.base
    if out.__class__ in (bool, int, float):
        out = base.asarray(out)
    try:
        shape = tuple(b.shape(out))
    except Exception as error:  # what is no array may fail in any way
        raise DTypeError(f"{op.name}: its function returned a {type(out).__name__}; expected an array of {base!r}") from error
    if op.kind is Kind.ELEMENTWISE and shape != (want := spread([tuple(b.shape(a)) for a in args])):
        raise ShapeError(
            f"{op.name}: its function returned shape {shape}; expected {want}, since it is elementwise. "
            "Try kind 'special' if an entry of the answer depends on several entries of an argument"
        )
    if op.kind is not Kind.CONSTANT and not base.is_floating(out) and any(_floating(base, a) for a in args):
        raise DTypeError(
            f"{op.name}: its function returned dtype {base.dtype(out)} for floating arguments; expected floating numbers. "
            "Try kind 'constant' for what has no derivative"
        )
    return out


def _floating(base: Any, a: Any) -> bool:
    return isinstance(a, float) or (not isinstance(a, (bool, int)) and bool(base.is_floating(a)))


def spread(shapes: Sequence[Shape]) -> Shape:
    """The shape that arrays broadcast to, if they do."""
    rank = max(map(len, shapes))
    sizes = [{s[len(s) - rank + k] for s in shapes if len(s) - rank + k >= 0} - {1} or {1} for k in range(rank)]
    return tuple(max(s) if 0 not in s else 0 for s in sizes)


def checked(op: Op) -> Op:
    """The op with its rules checked whenever they run."""
    last = {a: f"{a}_shape" for a in op.arguments}
    if op.variadic:
        rules = tuple(_reverse(op, "xs", r, ("shapes", "i")) for r in op.rules)
    elif op.kind is Kind.ELEMENTWISE:
        rules = tuple(_entrywise(op, a, r) for a, r in zip(op.arguments, op.rules, strict=True))
    else:
        rules = tuple(_reverse(op, a, r, (last[a],)) for a, r in zip(op.arguments, op.rules, strict=False))
    forward = tuple(_forward(op, a, r) for a, r in zip(op.arguments, op.forward, strict=False))
    return replace(op, rules=rules, forward=forward)


def _entrywise(op: Op, argument: str, rule: Rule | None) -> Rule | None:
    """Whatever it reads, an entry of what an elementwise rule gives belongs to an entry of the cotangent, or of the tangent."""
    if rule is None:
        return None

    def call(b: Any, g: Any, *saved: Any) -> Any:
        out = _ran(op, f"the rule of argument {argument}", rule.call, b, g, *saved)
        have, shape = tuple(b.shape(out)), tuple(b.shape(g))
        if have != shape:
            arrays = [tuple(b.shape(s)) for word, s in zip(rule.reads, saved, strict=True) if word in (*op.arguments, "out")]
            if have != spread([shape, have]) or spread([shape, *arrays]) != spread([shape, *arrays, have]):
                raise ShapeError(
                    f"{op.name}: the rule of argument {argument} gave shape {have} for a cotangent of shape {shape}; expected that shape, "
                    "since the op is elementwise. Broadcasting is undone afterwards"
                )
        return out

    return replace(rule, call=call)


def _reverse(op: Op, argument: str, rule: Rule | None, more: tuple[str, ...]) -> Rule | None:
    """A cotangent has the shape of its argument."""
    if rule is None:
        return None
    count = len(rule.reads)

    def call(b: Any, g: Any, *saved: Any) -> Any:
        out = _ran(op, f"the rule of argument {argument}", rule.call, b, g, *saved[:count])
        want = tuple(saved[count] if len(more) == 1 else saved[count][saved[count + 1]])
        if tuple(b.shape(out)) != want:
            which = argument if len(more) == 1 else f"number {saved[count + 1]}"
            raise ShapeError(
                f"{op.name}: the rule of argument {which} gave shape {tuple(b.shape(out))}; expected the argument's, {want}. "
                "Does it undo what the op does to shapes?"
            )
        return out

    return Rule(call, (*rule.reads, *more))


def _forward(op: Op, argument: str, rule: Rule | None) -> Rule | None:
    """A share of the tangent has the shape of the answer."""
    if rule is None:
        return None
    count = len(rule.reads)

    def call(b: Any, t: Any, *saved: Any) -> Any:
        out = _ran(op, f"the forward rule of argument {argument}", rule.call, b, t, *saved[:count])
        want = tuple(b.shape(saved[count]))
        if tuple(b.shape(out)) != want:
            raise ShapeError(
                f"{op.name}: the forward rule of argument {argument} gave shape {tuple(b.shape(out))}; expected the answer's, {want}"
            )
        return out

    return Rule(call, (*rule.reads, "out"))


def _ran(op: Op, what: str, rule: Callable[..., Any], b: Any, *args: Any) -> Any:
    """What a rule gives.

    Raises:
        RuleError: If that is nothing, or the rule asks ``b`` for an op that there is not.
    """
    out = _known(op, what, rule, b, *args)
    if out is None:
        raise RuleError(
            f"{op.name}: {what} returned None; expected a value. Try None in the place of the rule if the op is constant in this argument"
        )
    return out


def _known(op: Op, what: str, function: Callable[..., Any], b: Any, *args: Any, **params: Any) -> Any:
    """Run what a user wrote in ops of ``b``."""
    try:
        return function(b, *args, **params)
    except AttributeError as error:
        if error.obj is b.base and error.name not in dir(b.base):
            raise RuleError(
                f"{op.name}: {what} asks for b.{error.name}; expected ops of the table, which are methods of backends, and other ops that "
                f"define made, as f.on(b, x). Try one of nestgrad.ops.TABLE{_near(error.name, b)}"
            ) from error
        raise


def _near(name: Any, b: Any) -> str:
    found = get_close_matches(str(name), b.table)
    return f", such as {', '.join(found)}" if found else ""
