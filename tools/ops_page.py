"""Write what is made from the op table: docs/ops.md, docs/ops-on-levels.md, docs/functions.md, and the table of docs/conventions.md.

``python tools/ops_page.py`` writes them. ``tests/docs/test_ops_page.py`` compares them with the table.
"""

import json
import re
from collections.abc import Iterable, Sequence

from names import ROOT, called, documented, elsewhere, homes, reason
from points import legend, rows, table as points_table

import nestgrad as ng
from nestgrad.backends.derived import Derived
from nestgrad.levels.batched import SHIFTS
from nestgrad.ops import TABLE, Kind, Op
from nestgrad.testing import BackendConformance

DOCS = ROOT / "docs"
PASSED = ROOT / "tests" / "opdb" / "passed.json"

NOTE = "<!-- Written by tools/ops_page.py. -->"

OPS = f"""---
hide: [toc]
---

# Operations

{NOTE}

All functions of users, and all operations of a backend. A function without an operation of its own is made of others; an operation
without a function is there for rules, and the last section says what for.

* *Operation*: arrays are `x`, `y`, `z` or any number of them, `*xs`; the rest are parameters. What levels do with it is on
  [a page of its own](ops-on-levels.md).
* *NumPy*, *PyTorch*: what means the same there. Names may stand in `numpy`, in `scipy` where it says so, and in `torch`; `F` is
  `torch.nn.functional`. The names of their arguments and their conventions may differ.
* *Kernel*: which of the two backends, NumPy's and PyTorch's, has one for the operation. Without it, a *default* computes it from other
  operations, or it is the *composite* of other operations that its entry says.
* *Orders*: up to which order its derivatives are compared with finite differences at the calls that its entry states, and with
  what it states at special points, on all backends. How many they are is under *samples*; *torch's* is the number of samples of
  PyTorch's own database of operations whose values, first and second derivatives agree. A constant has no derivatives.
* *Special points*: see [the table](conventions.md#all-points).

"""

LEVELS = f"""---
hide: [toc]
---

# Operations on levels

{NOTE}

What each kind of level does with an [operation](ops.md), by the kind of the operation. An argument is an array `x`, `y`, `z` or any
number of them, `*xs`; the rest are parameters.

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

FUNCTIONS = f"""# Functions

{NOTE}

Functions of Tensors, numbers and arrays, as `ng.sin`. Many are [methods](reference.md#tensors) of Tensors as well. Which of them are
single operations, and what they are called in NumPy and PyTorch, is listed in [Operations](ops.md).

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


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of Markdown, without the columns that are empty."""
    lines = list(lines)
    full = [k for k in range(len(heads)) if any(line[k] for line in lines)]
    heads, lines = [heads[k] for k in full], [[line[k] for k in full] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *lines]) + "\n"


# what an op is, for users

HEADS = ("function", "operation", "kind", "NumPy", "PyTorch", "kernel", "orders", "samples", "torch's", "special points")
INNER = (1, 2, 5, 6, 7)  # the columns of ops that users do not call


def kernel(op: Op) -> str:
    """Where a backend computes the op itself."""
    default = getattr(Derived, op.name, None)
    backends = {"NumPy": ng.NumpyBackend, "PyTorch": ng.TorchBackend}
    found = [name for name, cls in backends.items() if getattr(cls, op.name, default) is not default]
    return "both" if len(found) == len(backends) else ", ".join(found) or ("composite" if op.kind is Kind.COMPOSITE else "default")


def conventions(op: Op) -> str:
    """What kinds of special points it has, and where."""
    found: dict[str, list[str]] = {}
    for row in rows():
        if row.op == op.name and row.nature != "smooth":
            found.setdefault(row.nature, []).append(row.x)
    return "; ".join(f"{nature} at {', '.join(dict.fromkeys(xs))}" for nature, xs in found.items())


def line(path: str, op: Op | None, passed: dict[str, int]) -> list[str]:
    """A function of users and its op, or one of the two alone."""
    name = path.rpartition(".")[2]
    link = f"[`{path}`](functions.md#{documented(path)})" if path else ""
    names = [f"`{found}`" if (found := elsewhere(path, op, library)) else "" for library in ("numpy", "torch")] if path else ["", ""]
    torchs = str(passed.get(op.name if op else name, ""))
    if op is None:
        return [link, "", "", *names, "", "", "", torchs, ""]
    orders = "" if op.kind is Kind.CONSTANT else str(BackendConformance.order)
    samples = str(len(op.samples.calls) + len(op.samples.special))
    return [link, f"`{op.signature}`", op.kind.value, *names, kernel(op), orders, samples, torchs, conventions(op)]


def ops() -> str:
    """docs/ops.md."""
    passed = json.loads(PASSED.read_text(encoding="utf-8")) if PASSED.exists() else {}
    families: dict[str, list[list[str]]] = {}
    for path, module in homes().items():
        own = [op for op in TABLE.values() if called(op) == path]
        families.setdefault(module, []).extend(line(path, op, passed) for op in own or [None])
    text = OPS
    for module, found in families.items():
        text += f"## {title(module)}\n\n{table(HEADS, found)}\n"
    inner = [[line("", op, passed)[k] for k in INNER] + [_plain(reason(op))] for op in TABLE.values() if reason(op)]
    return f"{text}## In rules\n\nUsers write these otherwise, or not at all.\n\n{table([*(HEADS[k] for k in INNER), 'what for'], inner)}"


def _plain(text: str) -> str:
    """A reason, with what is code in it marked as such."""
    return re.sub(r"\bx[.\[][^ ,;]*(?:\([^)]*\))?", lambda match: f"`{match[0]}`", text)


def title(module: str) -> str:
    """The heading of a module of functions."""
    room, _, name = module.removeprefix("nestgrad.").partition(".")
    return name.replace("_", " ").capitalize() if room == "functions" else f"{room}: {name.replace('_', ' ')}"


# what levels do with it


def reverse(op: Op) -> str:
    """What a node keeps, by argument."""
    kept = []
    for name, rule in zip(op.arguments, op.rules, strict=True):
        if rule is not None:
            words = [f"`{w}`" for w in rule.reads if w in (*op.arguments, *op.results, "out", "others")]
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


def section(kind: Kind) -> str:
    """The ops of one kind."""
    found = [op for op in TABLE.values() if op.kind is kind]
    if kind is Kind.COMPOSITE:
        body = table(["operation"], [[f"`{op.signature}`"] for op in found])
    elif kind is Kind.CONSTANT:
        body = table(["operation", "batched"], [[f"`{op.signature}`", batched(op)] for op in found])
    else:
        lines = [[f"`{op.signature}`", reverse(op), taylor(op), batched(op)] for op in found]
        body = table(["operation", "reverse", "Taylor", "batched"], lines)
    return f"## {kind.value.capitalize()}\n\n{KINDS[kind]}\n\n{body}\n"


def levels() -> str:
    """docs/ops-on-levels.md."""
    names = ", ".join(f"`{op.name}`" for op in fallbacks())
    note = (
        f"Each of the {len(TABLE)} operations has a way of its own on every level, but for Taylor mode of {names}: these are for rules, "
        "many steps in one kernel, and come in parts there.\n\n"
    )
    return LEVELS + note + "\n".join(section(kind).rstrip("\n") + "\n" for kind in KINDS)


# functions and conventions


OPTIONS = "      heading_level: 3\n      show_root_heading: false\n      show_root_toc_entry: false\n      filters: public\n"


def functions() -> str:
    """docs/functions.md."""
    text = FUNCTIONS
    for module in dict.fromkeys(homes().values()):
        text += f"## {title(module)}\n\n::: {module}\n    options:\n{OPTIONS}\n"
    return text.rstrip("\n") + "\n"


BEGIN, END = "<!-- points: begin -->\n", "<!-- points: end -->"


def conventions_page() -> str:
    """docs/conventions.md, with its table made anew."""
    text = (DOCS / "conventions.md").read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{legend()}\n\n{points_table()}\n\n{END}{rest.partition(END)[2]}"


PAGES = {"ops.md": ops, "ops-on-levels.md": levels, "functions.md": functions, "conventions.md": conventions_page}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
