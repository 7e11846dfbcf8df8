"""Write ``docs/ops.md``: all ops of the table, and what each kind of level does with them. A test compares it with the table.

``python tools/ops_page.py`` writes the page.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from nestgrad.levels.batched import SHIFTS
from nestgrad.ops import TABLE, Kind, Op

PAGE = Path(__file__).resolve().parents[1] / "docs" / "ops.md"

HEAD = """# Operations

<!-- Written by tools/ops_page.py from the op table. -->

All operations of a backend, as the op table has them, and what each kind of level does with them. The names of users
differ in places (`ng.multiply` is `mul`); some operations are there for rules alone. An argument is an array `x`, `y`, `z`
or any number of them, `*xs`; the rest are parameters.

*Reverse* says what a node keeps for the backward pass, by argument: `x: y` means that the cotangent of `x` is found
with the value of `y`; `out` is the answer. Beside that, shapes and parameters are kept. An argument that is not named
has no derivative.

*Taylor* says where the k-th coefficient comes from:

| word | meaning |
|---|---|
| per coefficient | the operation on each coefficient |
| Cauchy | the product of series |
| series | a recurrence that the entry states |
| rule | `z' = f'(x) x'`: the rule for the tangent, run on series |
| parts | the backend's default, in terms of other operations |

*Batched* says how one more axis in front is kept out of sight:

| word | meaning |
|---|---|
| aligned | the arguments are broadcast behind that axis |
| each entry | the operation does not look at axes |
| `axes`, `shape`, ... | that parameter is shifted by one axis |
| own | the entry states it |

"""

KINDS = {
    Kind.ELEMENTWISE: "A number for each entry. A rule multiplies the cotangent by the partial derivative; in forward mode the same\n"
    "rule multiplies the tangent, and the arguments' shares are added.",
    Kind.LINEAR: "Jointly linear in the arguments that have a derivative. Reverse mode has the transpose, forward mode the\n"
    "operation itself on the tangent.",
    Kind.BILINEAR: "Linear in each argument. Reverse mode has a transpose for each, forward mode the product rule.",
    Kind.SPECIAL: "What is none of these states a rule for the cotangents, and one for the tangent.",
    Kind.COMPOSITE: "Functions of other operations: they reach every level in their parts. A backend may have a kernel for values\n"
    "on no level.",
    Kind.CONSTANT: "Without derivatives: the answer is a constant on levels that differentiate. A batched level runs them on all samples.",
}


def reverse(op: Op) -> str:
    """What a node keeps, by argument."""
    kept = []
    for name, rule in zip(op.arguments, op.rules, strict=True):
        if rule is not None:
            words = [f"`{w}`" for w in rule.reads if w in (*op.arguments, "out", "others")]
            kept.append(f"`{name}`: {', '.join(words) or 'nothing'}")
    return "; ".join(kept)


def taylor(op: Op) -> str:
    """Where the k-th coefficient comes from."""
    if op.by_parts:
        return "parts"
    if op.series is not None:
        return "series"
    return {Kind.LINEAR: "per coefficient", Kind.BILINEAR: "Cauchy"}.get(op.kind, "rule")


def batched(op: Op) -> str:
    """How the axis of samples is kept out of sight."""
    if op.batched is not None:
        return "own"
    if op.broadcasts or (op.kind is Kind.CONSTANT and len(op.arguments) > 1):
        return "aligned"
    shifted = [f"`{p}`" for p in op.params if p in SHIFTS]
    return ", ".join(shifted) if shifted else "each entry"


def fallbacks() -> list[Op]:
    """Ops for which some level has no way of its own, and runs other ops instead."""
    return [op for op in TABLE.values() if op.by_parts]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def section(kind: Kind) -> str:
    """The ops of one kind."""
    ops = [op for op in TABLE.values() if op.kind is kind]
    if kind is Kind.COMPOSITE:
        body = table(["operation"], [[f"`{op.signature}`"] for op in ops])
    elif kind is Kind.CONSTANT:
        body = table(["operation", "batched"], [[f"`{op.signature}`", batched(op)] for op in ops])
    else:
        rows = [[f"`{op.signature}`", reverse(op), taylor(op), batched(op)] for op in ops]
        body = table(["operation", "reverse", "Taylor", "batched"], rows)
    return f"## {kind.value.capitalize()}\n\n{KINDS[kind]}\n\n{body}\n"


def points() -> str:
    """The printed derivatives at special points."""
    rows = []
    for op in TABLE.values():
        for point, derivatives in op.samples.special.items():
            values = point if isinstance(point, tuple) else (point,)
            at = ", ".join(f"{name} = {value:g}" for name, value in zip((*op.arguments, *op.params), values, strict=True))
            rows.append([f"`{op.name}`", f"`{at}`", *("none" if d is None else f"{d:.6g}" for d in derivatives)])
    return (
        "## Special points\n\nDerivatives by the first argument where they could be in doubt, in all modes. Where there is *none*, the\n"
        "answer is infinite or NaN. Ties and other conventions are in [Conventions](conventions.md).\n\n"
        + table(["operation", "at", "first", "second", "third"], rows)
    )


def page() -> str:
    """The whole page."""
    names = ", ".join(f"`{op.name}`" for op in fallbacks())
    note = (
        f"Each of the {len(TABLE)} operations has a way of its own on every level, but for Taylor mode of\n{names}: these are products "
        "in one kernel that rules use, and come\nin parts there.\n\n"
    )
    return HEAD + note + "".join(section(kind) for kind in KINDS) + points()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
