"""The truth: expressions that know their value and their derivatives, and nothing of levels.

An expression is a node of a graph. ``derivative(e, y)`` differentiates by any node, taking everything that ``e`` contains of it into
account. The one thing of levels that it must know is what a program asks for by name: ``detach(level)`` is a constant for derivatives
that are taken on some tapes. So a ``cut`` holds the birth of the oldest of them, and a derivative is told the birth of its own tape.

Values have lanes: as many independent numbers as the tensors of the program have entries.
"""

import math
from collections.abc import Callable
from typing import Any

import mpmath

mpmath.mp.dps = 50


class Expr:
    """A node: a constant, a symbol, a name for another expression, a cut, or an operation."""

    __slots__ = ("args", "cuts", "memo", "op", "values")

    def __init__(self, op: str, *args: Any) -> None:
        self.op, self.args = op, args
        self.values: tuple[float, ...] | None = None
        self.memo: dict[Any, Expr] = {}
        self.cuts = op == "cut" or any(isinstance(a, Expr) and a.cuts for a in args)

    def value(self) -> tuple[float, ...]:
        """The lanes, in double precision."""
        if self.values is None:
            if self.op in ("const", "symbol"):
                self.values = self.args[0]
            elif self.op in ("name", "cut"):
                self.values = self.args[0].value()
            elif self.op == "pow":
                self.values = tuple(x ** self.args[1] for x in self.args[0].value())
            else:
                self.values = tuple(map(FLOAT[self.op], *(a.value() for a in self.args)))
        return self.values


FLOAT: dict[str, Callable[..., float]] = {
    "+": lambda x, y: x + y, "*": lambda x, y: x * y, "/": lambda x, y: x / y,
    "sin": math.sin, "cos": math.cos, "exp": math.exp, "tanh": math.tanh,
}  # fmt: skip
EXACT: dict[str, Callable[..., Any]] = FLOAT | {"sin": mpmath.sin, "cos": mpmath.cos, "exp": mpmath.exp, "tanh": mpmath.tanh}


def const(*lanes: float) -> Expr:
    """A constant."""
    return Expr("const", lanes)


def symbol(*lanes: float) -> Expr:
    """A variable that depends on nothing."""
    return Expr("symbol", lanes)


def name(e: Expr) -> Expr:
    """A node of its own for the value of ``e``: a derivative by it does not look inside."""
    return Expr("name", e)


def cut(e: Expr, birth: float) -> Expr:
    """``e``, a constant for derivatives on tapes born at ``birth`` or later."""
    return Expr("cut", e, birth)


def is_const(e: Expr, value: float) -> bool:
    """Whether ``e`` is this constant on all lanes."""
    return e.op == "const" and all(v == value for v in e.args[0])


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
    return mul(const(*(factor for _ in x.value())), x)


def derivative(e: Expr, y: Expr, birth: float = 0.0) -> Expr:
    """The derivative of each lane of ``e`` by the same lane of ``y``, taken on a tape of that ``birth``."""
    if e is y:
        return const(*(1.0 for _ in e.value()))
    key = (y, birth if e.cuts else None)
    found = e.memo.get(key)
    if found is None:
        found = e.memo[key] = _derivative(e, y, birth)
    return found


def _derivative(e: Expr, y: Expr, birth: float) -> Expr:
    op, args = e.op, e.args
    if op in ("const", "symbol") or (op == "cut" and birth >= args[1]):
        return const(*(0.0 for _ in e.value()))
    if op == "name":
        return derivative(args[0], y, birth)
    if op == "cut":  # what is constant on some levels has derivatives that are
        d = derivative(args[0], y, birth)
        return d if d.op == "const" else cut(d, args[1])
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
        return mul(add(const(*(1.0 for _ in e.value())), scaled(mul(e, e), -1.0)), parts[0])
    assert op == "pow"
    n = args[1]
    return mul(scaled(Expr("pow", x, n - 1), float(n)), parts[0]) if n else scaled(parts[0], 0.0)


def exact(e: Expr, lane: int, memo: dict[Expr, Any] | None = None) -> Any:
    """One lane with 50 digits."""
    memo = {} if memo is None else memo
    if e not in memo:
        if e.op in ("const", "symbol"):
            memo[e] = mpmath.mpf(e.args[0][lane])
        elif e.op in ("name", "cut"):
            memo[e] = exact(e.args[0], lane, memo)
        elif e.op == "pow":
            memo[e] = exact(e.args[0], lane, memo) ** e.args[1]
        else:
            memo[e] = EXACT[e.op](*(exact(a, lane, memo) for a in e.args))
    return memo[e]
