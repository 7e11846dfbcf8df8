"""The text of anomalies: what was got and where, what began it, the user's lines, and the way out."""

from collections.abc import Iterator, Sequence
from typing import Any

from nestgrad.diagnostics.entries import NAN, Entries, at, first, kinds, plain
from nestgrad.diagnostics.places import UNKNOWN, Origin, place
from nestgrad.errors import AnomalyError
from nestgrad.levels.base import Coat, Tape
from nestgrad.ops.table import Kind, Op


class Scope:
    """What runs as a whole: an op that a user calls, or a step of a backward pass.

    Attributes:
        asked: The user's line.
        found: For each kind, what is known of the first answer on raw arrays that has it where no operand has: a sentence.
        depth: How deep in methods of the base backend.
    """

    __slots__ = ("asked", "depth", "found")

    def __init__(self) -> None:
        self.asked = place()
        self.found: dict[str, str] = {}
        self.depth = 0


def began(base: Any, op: Op, args: Sequence[Any], entries: Entries, scope: Scope) -> str:
    """What is known of an op on raw arrays that gave what it was not given."""
    line = place()
    inside = f", at {line}" if line is not None and line != scope.asked else ""  # of a rule that the user wrote
    return f"it began with {op.name}, in {entries}{_values(base, op, op.arguments, args, entries.index)}{inside}"


def in_forward(base: Any, op: Op, args: Sequence[Any], of: Tape | None, entries: Entries, scope: Scope) -> AnomalyError:
    """The error for an answer."""
    tapes = [a.tape for a in args if isinstance(a, Coat)]
    on = f" on {max(tapes, key=lambda tape: tape.birth)!r}" if tapes else ", on no level"
    what = f"what {of!r} adds to its answer" if of is not None else "its answer"
    known = "" if of is not None else _values(base, op, op.arguments, [plain(a) for a in args], entries.index)
    lines = [f"{op.name}: gave {entries.kind} in the forward run{on}: in {what}, {entries}{known}; its operands held none"]
    if (inner := scope.found.get(entries.kind)) and not inner.startswith(f"it began with {op.name},"):
        lines.append(inner)
    lines += [
        f"{op.name} was {Origin(op.name, scope.asked)}",
        f"expected finite numbers, because what is made of {entries.kind} may be {NAN}, and so may its derivatives",
        "Try other operands there; safe_where, if another branch is taken there; or forward=False, if the entry is taken away later on",
    ]
    return AnomalyError("\n  ".join(lines))


def in_backward(
    base: Any, tape: Tape, node: Any, parent: Any, g: Any, c: Any, kind: str, scope: Scope, origin: Origin | None
) -> AnomalyError:
    """The error for what a step of a backward pass has passed on."""
    of, entries = first(base, kind, c)
    op: Op | None = node.op if isinstance(node.op, Op) else None
    mine = [(rule, saved) for to, rule, saved in node.edges or () if to is parent and rule is not None]
    names = dict.fromkeys(filter(None, (_argument(op, rule) for rule, _ in mine)))
    to = f"of its {' and '.join(names)}" if names else "of an operand"
    what = f"in what {of!r} adds to the cotangent" if of is not None else "in the cotangent"
    known = ""
    if op is not None and op.kind is Kind.ELEMENTWISE and of is None:
        reads = next((r.reads for r in op.rules if r is not None and mine and r.call is mine[0][0]), ())
        values = [g, *(mine[0][1] if reads else ())]
        known = _values(base, op, ("g", *reads), [plain(v) for v in values], entries.index)
    lines = [
        f"{node.name}: gave {kind} in the backward pass of {tape!r}: {what} {to}, {entries}{known}; the cotangent g that arrived held none"
    ]
    if kind in scope.found:
        lines.append(scope.found[kind])
    if held := [word for word, v in _saved(op, mine) if kind in kinds(base, v, (kind,))]:
        lines.append(f"{kind} was in what it read of the forward run, already: in {', '.join(held)}")
    lines += [
        f"{node.name} was {origin or UNKNOWN}",
        f"the pass was asked for at {scope.asked or 'a line that is not known'}",
        f"expected finite numbers, because {kind} or {NAN} is what all becomes that the pass comes to from there",
        "Try a function that has a derivative at that point; or safe_where, if another branch is taken there",
    ]
    return AnomalyError("\n  ".join(lines))


def late(base: Any, tape: Tape, node: Any, g: Any, kind: str, scope: Scope, origin: Origin | None) -> AnomalyError:
    """The error for a cotangent that was noted when it came to a node, and has been computed since, as checkpointing does."""
    entries = first(base, kind, g)[1]
    what = f"what arrived at it, {entries}, from an op that was made of its answer in the same checkpointed function"
    lines = [
        f"{node.name}: got {kind} in the backward pass of {tape!r}: {what}",
        f"{node.name} was {origin or UNKNOWN}",
        f"the pass was asked for at {scope.asked or 'a line that is not known'}",
        "expected finite numbers. Try it without checkpointing, which tells the op",
    ]
    return AnomalyError("\n  ".join(lines))


def _argument(op: Op | None, call: Any) -> str | None:
    """Which argument of an op a rule is for."""
    if op is None or op.variadic:
        return None
    return next((name for name, rule in zip(op.arguments, op.rules, strict=True) if rule is not None and rule.call is call), None)


def _saved(op: Op | None, mine: Sequence[tuple[Any, Any]]) -> Iterator[tuple[str, Any]]:
    """What the rules of an op have read, by name."""
    for call, saved in mine:
        for rule in op.rules if op is not None else ():
            if rule is not None and rule.call is call:
                yield from zip(rule.reads, saved, strict=True)


def _values(base: Any, op: Op, names: Sequence[str], values: Sequence[Any], index: tuple[int, ...]) -> str:
    """``", where x = 1.0, y = 0.0"``: the entries of operands that an entry of the answer was made of; their shapes where it is many."""
    if not (op.broadcasts or op.kind is Kind.ELEMENTWISE):
        held = [f"{name} of shape {tuple(base.shape(v))}" for name, v in zip(names, values, strict=False) if hasattr(v, "shape")]
        return f", of {', '.join(held)}" if held else ""
    known = [(name, at(base, v, index)) for name, v in zip(names, values, strict=False)]
    shown = [f"{name} = {value}" for name, value in known if value is not None]
    return f", where {', '.join(shown)}" if shown else ""
