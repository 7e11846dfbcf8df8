"""The truth: expressions that know their value and their derivatives, and nothing of levels.

An expression is a node of a graph and a number. ``derivative(e, y)`` differentiates by any node, taking everything that ``e`` contains of
it into account. The one thing of levels that it must know is what a program asks for by name: ``detach(level)`` is a constant for
derivatives that are taken on some tapes. So a ``cut`` holds the birth of the oldest of them, and a derivative is told the birth of its own
tape.

An array is a tuple of expressions, one for each entry; a 0-dimensional one has one.
"""

import math
from collections.abc import Callable
from typing import Any

import mpmath

mpmath.mp.dps = 50


class Expr:
    """A node: a constant, a symbol, a name for another expression, a cut, or an operation."""

    __slots__ = ("args", "cuts", "memo", "number", "op")

    def __init__(self, op: str, *args: Any) -> None:
        self.op, self.args = op, args
        self.number: float | None = None
        self.memo: dict[Any, Expr] = {}
        self.cuts = op == "cut" or any(isinstance(a, Expr) and a.cuts for a in args)

    def value(self) -> float:
        """Its value in double precision."""
        if self.number is None:
            if self.op in ("const", "symbol"):
                self.number = float(self.args[0])
            elif self.op in ("name", "cut"):
                self.number = self.args[0].value()
            elif self.op == "pow":
                self.number = self.args[0].value() ** self.args[1]
            else:
                self.number = FLOAT[self.op](*(a.value() for a in self.args))
        return self.number


Array = tuple[Expr, ...]

FLOAT: dict[str, Callable[..., float]] = {
    "+": lambda x, y: x + y, "*": lambda x, y: x * y, "/": lambda x, y: x / y,
    "sin": math.sin, "cos": math.cos, "exp": math.exp, "tanh": math.tanh,
}  # fmt: skip
EXACT: dict[str, Callable[..., Any]] = FLOAT | {"sin": mpmath.sin, "cos": mpmath.cos, "exp": mpmath.exp, "tanh": mpmath.tanh}


def const(value: float) -> Expr:
    """A constant."""
    return Expr("const", value)


def symbol(value: float) -> Expr:
    """A variable that depends on nothing."""
    return Expr("symbol", value)


def name(e: Expr) -> Expr:
    """A node of its own for the value of ``e``: a derivative by it does not look inside."""
    return Expr("name", e)


def cut(e: Expr, birth: float) -> Expr:
    """``e``, a constant for derivatives on tapes born at ``birth`` or later."""
    return e if e.op == "const" else Expr("cut", e, birth)


def is_const(e: Expr, value: float) -> bool:
    """Whether ``e`` is this constant."""
    return e.op == "const" and e.args[0] == value


def add(x: Expr, y: Expr) -> Expr:
    """``x + y``."""
    return y if is_const(x, 0.0) else x if is_const(y, 0.0) else Expr("+", x, y)


def mul(x: Expr, y: Expr) -> Expr:
    """``x y``."""
    for p, q in ((x, y), (y, x)):
        if is_const(p, 0.0):
            return p
        if is_const(p, 1.0):
            return q
    return Expr("*", x, y)


def scaled(x: Expr, factor: float) -> Expr:
    """``x`` times a number."""
    return mul(const(factor), x)


def total(entries: Array) -> Expr:
    """Their sum."""
    result = const(0.0)
    for e in entries:
        result = add(result, e)
    return result


def paired(x: Array, y: Array) -> list[tuple[Expr, Expr]]:
    """Entries side by side, broadcast."""
    n = max(len(x), len(y))
    return list(zip(x * (n // len(x)), y * (n // len(y)), strict=True))


def gradient(root: Array, x: Array, seed: Array | None, birth: float) -> Array:
    """The derivative of the sum of ``seed`` times ``root`` by each entry of ``x``, on a tape of that ``birth``."""
    weights = seed or (const(1.0),)
    return tuple(total(tuple(mul(derivative(e, y, birth), w) for e, w in paired(root, weights))) for y in x)


def derivative(e: Expr, y: Expr, birth: float = 0.0) -> Expr:
    """The derivative of ``e`` by ``y``, taken on a tape of that ``birth``."""
    if e is y:
        return const(1.0)
    key = (y, birth if e.cuts else None)
    found = e.memo.get(key)
    if found is None:
        found = e.memo[key] = _derivative(e, y, birth)
    return found


def _derivative(e: Expr, y: Expr, birth: float) -> Expr:
    op, args = e.op, e.args
    if op in ("const", "symbol") or (op == "cut" and birth >= args[1]):
        return const(0.0)
    if op == "name":
        return derivative(args[0], y, birth)
    if op == "cut":  # what is constant on some levels has derivatives that are
        return cut(derivative(args[0], y, birth), args[1])
    x, parts = args[0], [derivative(a, y, birth) for a in args if isinstance(a, Expr)]
    if all(is_const(p, 0.0) for p in parts):
        return parts[0]
    if op == "+":
        return add(*parts)
    if op == "*":
        return add(mul(parts[0], args[1]), mul(x, parts[1]))
    if op == "/":
        return add(Expr("/", parts[0], args[1]), scaled(mul(Expr("/", e, args[1]), parts[1]), -1.0))
    if op == "sin":
        return mul(Expr("cos", x), parts[0])
    if op == "cos":
        return mul(scaled(Expr("sin", x), -1.0), parts[0])
    if op == "exp":
        return mul(e, parts[0])
    if op == "tanh":
        return mul(add(const(1.0), scaled(mul(e, e), -1.0)), parts[0])
    assert op == "pow"
    n = args[1]
    return mul(scaled(Expr("pow", x, n - 1), float(n)), parts[0]) if n else scaled(parts[0], 0.0)


def swapped(entries: Array, places: dict[Expr, Expr], memo: dict[Expr, Expr] | None = None) -> Array:
    """``entries`` with other expressions in some places, of the same values."""
    memo = dict(places) if memo is None else memo
    for e in entries:
        if e not in memo:
            args = [swapped((a,), places, memo)[0] if isinstance(a, Expr) else a for a in e.args]
            same = all(new is old for new, old in zip(args, e.args, strict=True))
            memo[e] = e if same else Expr(e.op, *args)
    return tuple(memo[e] for e in entries)


def exact(e: Expr, memo: dict[Expr, Any] | None = None) -> Any:
    """Its value with 50 digits."""
    memo = {} if memo is None else memo
    if e not in memo:
        if e.op in ("const", "symbol"):
            memo[e] = mpmath.mpf(e.args[0])
        elif e.op in ("name", "cut"):
            memo[e] = exact(e.args[0], memo)
        elif e.op == "pow":
            memo[e] = exact(e.args[0], memo) ** e.args[1]
        else:
            memo[e] = EXACT[e.op](*(exact(a, memo) for a in e.args))
    return memo[e]
