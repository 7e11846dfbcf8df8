"""The table of docs/conventions.md: derivatives at kinks, ties, zeros, removable and singular points.

Special points of ops come from the op table, which states their derivatives. Rows of ``WRITTEN`` are what an op at a number cannot tell:
arrays, products of functions, choices. ``tests/docs/test_conventions.py`` runs each row on each backend.
"""

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from names import called, function

import nestgrad as ng
from nestgrad.ops import TABLE, Op
from nestgrad.ops.samples import native
from nestgrad.testing.calling import called as run

NATURES = {
    "jump": "the function jumps: the derivative is that of the side whose value it has",
    "kink": "the slope, or a higher derivative, is another on each side",
    "tie": "a kink where arguments are equal",
    "edge": "the domain ends, and all derivatives are finite",
    "constant": "a constant is among the factors",
    "power": "a power of a number or an array",
    "product": "a product of entries that are zero",
    "norm": "norms, variances and what stands in their place",
    "masked": "a branch that is not taken, or a factor 0, beside something infinite",
    "smooth": "nothing to choose: a zero, or a removable point of the formula",
    "tail": "far out, where formulas lose their digits",
    "singular": "infinite, or undefined",
}


@dataclass(frozen=True)
class Row:
    """Code, its ``x``, the value there, and three derivatives by ``x``, all as they are printed; and the op that it is about, if one is."""

    nature: str
    code: str
    x: str
    value: str
    derivatives: tuple[str, str, str]
    op: str = ""


def _row(nature: str, code: str, x: str, value: str, first: str, second: str, third: str, op: str = "") -> Row:
    return Row(nature, code, x, value, (first, second, third), op)


_SMALL = "4.248354255291589e-18"  # e^-40

WRITTEN = [
    _row("kink", "x.relu() ** 3", "[-1, 0, 2]", "[0, 0, 8]", "[0, 0, 12]", "[0, 0, 12]", "[0, 0, 6]"),
    _row("kink", "x.clamp(-1.0, 1.0)", "[-2, -1, 1, 2]", "[-1, -1, 1, 1]", "[0, 1, 1, 0]", "[0, 0, 0, 0]", "[0, 0, 0, 0]", "clamp"),
    _row("tie", "ng.maximum(x, 0.0)", "0", "0", "0.5", "0", "0", "maximum"),
    _row("tie", "ng.minimum(x, 0.0)", "0", "0", "0.5", "0", "0", "minimum"),
    _row("tie", "x.max()", "[1, 1, 0]", "1", "[0.5, 0.5, 0]", "[0, 0, 0]", "[0, 0, 0]", "amax"),
    _row("tie", "x.min()", "[1, 0, 0]", "0", "[0, 0.5, 0.5]", "[0, 0, 0]", "[0, 0, 0]", "amin"),
    _row("tie", "x.clamp(const([-1.0, -1.0]), const([1.0, 1.0]))", "[0, 1]", "[0, 1]", "[1, 0.5]", "[0, 0]", "[0, 0]"),
    _row("tie", "ng.sort(x) * const([1.0, 2.0, 3.0])", "[1, 1, 0]", "[0, 2, 3]", "[2, 3, 1]", "[0, 0, 0]", "[0, 0, 0]", "sort"),
    _row("tie", "ng.topk(x, 1)[0]", "[1, 1, 0]", "[1]", "[1, 0, 0]", "[0, 0, 0]", "[0, 0, 0]", "topk"),
    _row("tie", "ng.cummax(x)[0]", "[1, 1, 0]", "[1, 1, 1]", "[1, 2, 0]", "[0, 0, 0]", "[0, 0, 0]", "cummax"),
    _row("tie", "ng.median(x)", "[1, 1, 2]", "1", "[0, 1, 0]", "[0, 0, 0]", "[0, 0, 0]", "median"),
    _row("tie", "ng.nn.max_pool1d(x.reshape(1, 3), 2, 1)", "[1, 1, 0]", "[[1, 1]]", "[1, 1, 0]", "[0, 0, 0]", "[0, 0, 0]", "max_pool"),
    _row("constant", "x * x.sign()", "0", "0", "0", "0", "0", "sign"),
    _row("constant", "x * x.floor()", "1.5", "1.5", "1", "0", "0", "floor"),
    _row("constant", "x[x.argmax()] ** 3", "[1, -2, 3]", "27", "[0, 0, 27]", "[0, 0, 18]", "[0, 0, 6]", "argmax"),
    _row("power", "x ** const(0.0)", "0", "1", "0", "0", "0", "pow"),
    _row("power", "x ** const(3.0)", "0", "0", "0", "0", "6", "pow"),
    _row("power", "x ** const(3.0)", "-2", "-8", "12", "-12", "6", "pow"),
    _row("power", "x**2.5", "0", "0", "0", "0", "inf", "powf"),
    _row("power", "x**0.5", "0", "0", "inf", "-inf", "inf", "powf"),
    _row("power", "x**-1", "0", "inf", "-inf", "inf", "-inf", "powi"),
    _row("power", "x**1.5", "-1", "nan", "nan", "nan", "nan", "powf"),
    _row("product", "x.prod()", "[2, 3, 0]", "0", "[0, 0, 6]", "[3, 2, 5]", "[2, 2, 2]", "prod"),
    _row("product", "x.prod()", "[2, 0, 0]", "0", "[0, 0, 0]", "[0, 2, 2]", "[2, 2, 2]", "prod"),
    _row("product", "ng.cumprod(x)", "[2, 0, 3]", "[2, 0, 0]", "[1, 8, 0]", "[4, 6, 2]", "[2, 2, 2]", "cumprod"),
    _row("norm", "x.norm()", "[0, 0]", "0", "[0, 0]", "[nan, nan]", "[nan, nan]", "norm"),
    _row("norm", "x.norm() ** 2", "[0, 0]", "0", "[0, 0]", "[nan, nan]", "[nan, nan]", "norm"),
    _row("norm", "(x * x).sum()", "[0, 0]", "0", "[0, 0]", "[2, 2]", "[0, 0]"),
    _row("norm", "1 / (1 + (x * x).sum()).sqrt()", "[0, 0]", "1", "[0, 0]", "[-1, -1]", "[0, 0]"),
    _row("norm", "x.var()", "[1, 1]", "0", "[0, 0]", "[0, 0]", "[0, 0]", "var"),
    _row("norm", "x.std()", "[1, 1]", "0", "[0, 0]", "[nan, nan]", "[nan, nan]", "std"),
    _row("masked", "ng.where(x < 1, x * x, x.sqrt())", "0", "0", "0", "2", "0", "where"),
    _row("masked", "ng.where(x > 0, x.log(), 3 * x)", "-1", "-3", "3", "0", "0", "where"),
    _row("masked", "ng.where(x > 0, x / x.sqrt(), x)", "0", "0", "1", "0", "0", "where"),
    _row("masked", "ng.where(x > 0, x.rsqrt(), x.square())", "0", "0", "0", "2", "0", "where"),
    _row("masked", "x.sqrt() * 0.0", "0", "0", "0", "0", "0"),
    _row("masked", "ng.where(x > 0, x.log() * x.sqrt(), x)", "0", "0", "nan", "nan", "nan", "where"),
    _row("masked", "ng.safe_where(x > 0, lambda v: v.log() * v.sqrt(), lambda v: v, x)", "0", "0", "1", "0", "0"),
    _row("masked", "ng.safe_where(x > 0, lambda v: v.sin() / v, lambda v: 1 - v * v / 6, x)", "0", "1", "0", "-0.3333333333333333", "0"),
    _row("tail", "x.sigmoid()", "40", "1", _SMALL, f"-{_SMALL}", _SMALL, "sigmoid"),
    _row("tail", "x.sigmoid()", "-40", _SMALL, _SMALL, _SMALL, _SMALL, "sigmoid"),
    _row("tail", "-(-x).softplus()", "40", f"-{_SMALL}", _SMALL, f"-{_SMALL}", _SMALL, "softplus"),
    _row("tail", "-(-x).softplus()", "-800", "-800", "1", "0", "0", "softplus"),
    _row("tail", "x.logsumexp()", "[-1000, 0]", "0", "[0, 1]", "[0, 0]", "[0, 0]", "logsumexp"),
    _row("singular", "ng.sqrt(x)", "0", "0", "inf", "-inf", "inf", "sqrt"),
    _row("singular", "ng.sqrt(x)", "-1", "nan", "nan", "nan", "nan", "sqrt"),
    _row("singular", "ng.rsqrt(x)", "0", "inf", "-inf", "inf", "-inf", "rsqrt"),
    _row("singular", "ng.log(x)", "0", "-inf", "inf", "-inf", "inf", "log"),
    _row("singular", "1 / x", "0", "inf", "-inf", "inf", "-inf", "div"),
    _row("singular", "x / x", "0", "nan", "nan", "nan", "nan", "div"),
    _row("singular", "ng.asin(x)", "1", "1.5707963267948966", "inf", "inf", "inf", "asin"),
    _row("singular", "ng.acosh(x)", "1", "0", "inf", "nan", "nan", "acosh"),
]  # fmt: skip


def number(value: float | None) -> str:
    """As JSON has it; ``none`` where a derivative does not exist."""
    return "none" if value is None else repr(float(value) + 0.0).removesuffix(".0")


def code(op: Op, point: tuple[Any, ...]) -> str:
    """How users write the op at a point; empty if they do not call it. ``b.name(...)`` is the op itself, if their function is another."""
    count = len(op.arguments)
    if op.name in ("powi", "powf"):
        return f"x**{point[1]!r}"
    path, f = called(op), function(called(op))
    if f is None:
        return ""
    known = inspect.signature(f).parameters
    arrays, params = ["x", *map(repr, point[1:count])], dict(zip(op.params, point[count:], strict=False))
    named = [f"{p}={v!r}" for p, v in params.items()]
    needed = [p.name for p in known.values() if p.default is p.empty and p.name not in params]
    if not set(list(known)[:count]) & set(params):  # arrays come first
        if len(needed) <= count and all(p in known for p in params):
            return f"{path}({', '.join(arrays + named)})"
        if len(known) == count + len(params):  # the same ones by other names
            return f"{path}({', '.join(arrays + [repr(v) for v in params.values()])})"
    return f"b.{op.name}({', '.join(arrays + named)})"


def expansion(op: Op, point: tuple[Any, ...], x: float) -> list[float]:
    """Value and three derivatives by the first argument at ``x``, the others as in ``point``."""
    base = ng.NumpyBackend()
    level = ng.Taylor(base, 3)
    count = len(op.arguments)
    params = native(base, dict(zip(op.params, point[count:], strict=False)))
    with np.errstate(all="ignore"):
        out = run(op, level.series(base.tensor(x), 1.0), *map(base.tensor, point[1:count]), **params)
        terms = level.terms(out)
        return [float(np.ravel(c.numpy())[0]) * math.factorial(k) for k, c in enumerate(terms)]


def nature(op: Op, point: tuple[Any, ...], printed: tuple[float | None, ...]) -> str:
    """What kind of point it is, by the derivatives on both sides of it."""
    if op.name in ("powi", "powf", "pow"):
        return "power"
    if None in printed:
        return "singular"
    if not math.isfinite(point[0]):
        return "tail"
    step = 1e-5
    left, right = (expansion(op, point, point[0] + sign * step) for sign in (-1, 1))
    if not all(map(math.isfinite, left + right)):
        return "edge"
    # smooth functions change by twice the step times the next derivative
    jumps = [abs(a - b) > 1e-3 * (1 + max(abs(a), abs(b))) for a, b in zip(left, right, strict=True)]
    if jumps[0]:
        return "jump"
    if not any(jumps):
        return "smooth"
    return "tie" if point[0] in point[1 : len(op.arguments)] else "kink"


def stated() -> Iterator[Row]:
    """The special points of the op table that users can write down."""
    for op in TABLE.values():
        for key, printed in op.samples.special.items():
            point = key if isinstance(key, tuple) else (key,)
            if text := code(op, point):
                value = expansion(op, point, point[0])[0]
                first, second, third = [*map(number, printed), "–", "–"][:3]
                yield _row(nature(op, point, printed), text, number(point[0]), number(value), first, second, third, op.name)


@cache
def rows() -> list[Row]:
    """All rows, by nature; what is written by hand goes before what the op table says in the same words."""
    found = {(row.code, row.x): row for row in stated()}
    found |= {(row.code, row.x): row for row in WRITTEN}
    order = list(NATURES)
    return sorted(found.values(), key=lambda row: (order.index(row.nature), row.code.removeprefix("ng.").removeprefix("nn."), row.x))


def table() -> str:
    """The table, in Markdown."""
    lines = ["| what | code | x | value | first | second | third |", "|---|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join((r.nature, f'`{r.code}`', r.x, r.value, *r.derivatives))} |" for r in rows()]
    return "\n".join(lines)


def legend() -> str:
    """What the first column says."""
    used = {row.nature for row in rows()}
    return "\n".join(["| what | meaning |", "|---|---|", *(f"| {word} | {meaning} |" for word, meaning in NATURES.items() if word in used)])
