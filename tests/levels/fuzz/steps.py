"""Steps that make values: data, variables, other handles, constants, operations."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.ledger import detached, merged, taken_out
from fuzz.pool import Pool, Value, recording
from fuzz.truth import Expr, add, const, cut, mul, paired, scaled, symbol, total
from nestgrad import Tensor
from nestgrad.levels.coats import within
from nestgrad.levels.taylor import Series


class Steps(Pool):
    """Steps that make values. Abstract."""

    def numbers(self, size: int = 0) -> list[float]:
        """Data: one number, or three."""
        return [round(self.random.uniform(-1.0, 1.0), 3) for _ in range(size or self.random.choice(self.sizes))]

    def levels(self, stack: Any) -> list[int] | None:
        """Some levels of a stack, or all."""
        if self.chance(0.75):
            return None
        numbers = recording(stack)
        return [k for k in numbers if self.chance(0.6)] or numbers[:1]

    def leaf(self) -> Value:
        """A variable; now and then over memory that is shared."""
        (s, stack), numbers = self.some_stack(), self.numbers()
        levels, data = self.levels(stack), numbers if len(numbers) > 1 else numbers[0]
        if self.chance(0.1) and self.base.name == "numpy":
            code = f"{s}.from_numpy(np.array({data}), requires_grad=True, levels={levels})"
            made = stack.from_numpy(np.array(data), requires_grad=True, levels=levels)
        else:
            code = f"{s}.tensor({data}, requires_grad=True, levels={levels})"
            made = stack.tensor(data, requires_grad=True, levels=levels)
        return self.as_variable(self.put(code, made, tuple(map(symbol, numbers)), {}))

    def constant(self, size: int = 0) -> Value:
        """Data on some stack, or on the base backend."""
        s, stack = self.random.choice([("base", self.base), *self.stacks])
        numbers = self.numbers(size)
        data = numbers if len(numbers) > 1 else numbers[0]
        return self.put(f"{s}.tensor({data})", stack.tensor(data), tuple(map(const, numbers)), {})

    def seed_for(self, root: Value) -> Value:
        """A seed for a root."""
        size = len(root.entries)
        return self.some(size) if any(len(v.entries) == size for v in self.pool) else self.constant(size)

    def values(self, v: Value) -> list[float]:
        """The entries as numbers."""
        return [e.value() for e in v.entries]

    def remade(self) -> Value:
        """A variable made from a value; with ``variable``, a cut."""
        v, (s, stack) = self.some(), self.some_stack()
        levels = self.levels(stack)
        how = self.random.choice(("tensor", "tensor", "tensor", "require_grad", "levels", "variable"))
        if how == "variable":
            made = self.put(f"{s}.variable({v.name})", stack.variable(v.tensor), tuple(map(symbol, self.values(v))), {})
            return self.as_variable(made)
        if how == "levels" and not stack.records:
            how = "tensor"
        if how == "require_grad":
            made = self.put(f"{v.name}.require_grad()", v.tensor.require_grad(), v.entries, v.ledger)
        elif how == "levels":
            made = self.put(f"{v.name}.require_grad(levels=[{s}])", v.tensor.require_grad(levels=[stack]), v.entries, v.ledger)
        else:
            code = f"{s}.tensor({v.name}, requires_grad=True, levels={levels})"
            made = self.put(code, stack.tensor(v.tensor, requires_grad=True, levels=levels), v.entries, v.ledger)
        return self.as_variable(made)

    def lift(self) -> Value:
        """Another handle on a value."""
        v, (s, stack) = self.some(), self.some_stack()
        return self.put(f"{s}.tensor({v.name})", stack.tensor(v.tensor), v.entries, v.ledger, v.nodes)

    def new_stack(self) -> None:
        """One more stack, made late."""
        s, stack = self.random.choice([("base", self.base), *self.stacks, *self.doors])
        if stack.level < 4:
            self.stack(self.fresh("S"), s, stack)

    def inner(self) -> Value:
        """The value inside the outermost level."""
        v = self.some()
        outermost = self.tapes.mask(v.tensor.tracked_on()[:1])
        return self.put(f"{v.name}.inner()", v.tensor.inner(), v.entries, taken_out(v.ledger, outermost), v.nodes)

    def meant(self, stack: Any, tapes: list[Any]) -> Any:
        """The tape that a level is for a value that has to do with ``tapes``: a stand-in, for what a running transform has to do with.

        ``None`` for a stand-in that nothing is on yet.
        """
        innermost = stack
        while innermost.inner.level:
            innermost = innermost.inner
        for t in reversed(self.transforms):
            if t.birth > innermost.tape.birth and any(tape.birth >= t.birth for tape in tapes):
                return t.stand_ins.get(stack.tape)
        return stack.tape

    def known(self, v: Value) -> list[Any]:
        """The tapes that the derivatives of a value have to do with."""
        known = [*(coat.tape for coat in within(v.tensor.value) if coat.differentiates), *v.tensor.marks]
        return [tape for tape in known if not tape.closed]

    def detach(self) -> Value:
        """A constant, on all levels or from one up."""
        v, t = self.some(), None
        how = self.random.choice(("all", "level", "level", "number", "item"))
        if how == "all":
            return self.put(f"{v.name}.detach()", v.tensor.detach(), tuple(map(const, self.values(v))), {})
        if how == "item":
            code = f"base.tensor({v.name}.numpy())"
            return self.put(code, self.base.tensor(v.tensor.numpy()), tuple(map(const, self.values(v))), {})
        if how == "level":
            s, stack = self.some_level()
            code, t = f"{v.name}.detach(level={s})", v.tensor.detach(level=stack)
            tape = self.meant(stack, self.known(v))
            birth = math.inf if tape is None else tape.birth
        else:
            k = self.random.randint(1, 4)
            code, t = f"{v.name}.detach(level={k})", v.tensor.detach(level=k)
            birth = min((tape.birth for tape in self.known(v) if tape.number >= k), default=math.inf)
        self.tapes.mask(self.known(v))
        return self.put(code, t, tuple(cut(e, birth) for e in v.entries), detached(v.ledger, self.tapes.since(birth)), v.nodes)

    def operation(self, x: Value | None = None, y: Value | None = None) -> Value | None:
        """An op on one or two values, or a value and a literal."""
        x, y = x or self.some(), y or self.some()
        if not (x.small() and y.small()):
            return None
        kinds = [*BINARY, *UNARY, "*", "*", "*", "+", "literal *", "literal -", "pow"]
        if len(x.entries) > 1:
            kinds += ["sum", "sum", "getitem", *(["@", "@"] if len(y.entries) > 1 else [])]
        kind = self.random.choice(kinds)
        if kind in BINARY:
            made = self.binary(kind, x, y)
        elif kind in UNARY:
            code, op, f = UNARY[kind]
            made = self.put(code.format(x.name), op(x.tensor), tuple(map(f, x.entries)), x.ledger)
        elif kind in ("literal *", "literal -", "pow"):
            made = self.literal(kind, x)
        else:
            made = self.whole(kind, x, y)
        # A derivative by a value in the middle is asked for as well. Not by one whose op has a rule that reads the answer, though: a
        # derivative of it is no function of that value alone, and what it is by that value depends on how the rule is written.
        reading = kind in ("/", "tanh", "exp") or (kind in UNARY and any(isinstance(c, Series) for c in within(made.tensor.value)))
        return self.as_variable(made) if not reading and self.chance(0.1) else made

    def binary(self, kind: str, x: Value, y: Value) -> Value:
        """Entry by entry, broadcast."""
        code, op, f = BINARY[kind]
        entries = tuple(f(p, q) for p, q in paired(x.entries, y.entries))
        return self.put(code.format(x.name, y.name), op(x.tensor, y.tensor), entries, merged(x.ledger, y.ledger))

    def literal(self, kind: str, x: Value) -> Value:
        """With a number."""
        if kind == "pow":
            n = self.random.choice((0, 1, 2, 3))
            return self.put(f"{x.name} ** {n}", x.tensor**n, tuple(Expr("pow", e, n) for e in x.entries), x.ledger)
        c = round(self.random.uniform(0.5, 1.5), 2)
        if kind == "literal *":
            return self.put(f"{c} * {x.name}", c * x.tensor, tuple(scaled(e, c) for e in x.entries), x.ledger)
        return self.put(f"{c} - {x.name}", c - x.tensor, tuple(add(const(c), scaled(e, -1.0)) for e in x.entries), x.ledger)

    def whole(self, kind: str, x: Value, y: Value) -> Value:
        """Of an array as a whole."""
        if kind == "sum":
            return self.put(f"{x.name}.sum()", x.tensor.sum(), (total(x.entries),), x.ledger)
        if kind == "getitem":
            k = self.random.randrange(len(x.entries))
            return self.put(f"{x.name}[{k}]", x.tensor[k], (x.entries[k],), x.ledger)
        dot = (total(tuple(mul(p, q) for p, q in zip(x.entries, y.entries, strict=True))),)
        return self.put(f"{x.name} @ {y.name}", x.tensor @ y.tensor, dot, merged(x.ledger, y.ledger))


BINARY: dict[str, tuple[str, Callable[[Tensor, Tensor], Tensor], Callable[[Expr, Expr], Expr]]] = {
    "+": ("{} + {}", lambda a, b: a + b, add),
    "-": ("{} - {}", lambda a, b: a - b, lambda p, q: add(p, scaled(q, -1.0))),
    "*": ("{} * {}", lambda a, b: a * b, mul),
    "/": ("{0} / ({1} * {1} + 0.7)", lambda a, b: a / (b * b + 0.7), lambda p, q: Expr("/", p, add(mul(q, q), const(0.7)))),
}
UNARY: dict[str, tuple[str, Callable[[Tensor], Tensor], Callable[[Expr], Expr]]] = {
    "sin": ("{}.sin()", lambda a: a.sin(), lambda e: Expr("sin", e)),
    "cos": ("{}.cos()", lambda a: a.cos(), lambda e: Expr("cos", e)),
    "tanh": ("{}.tanh()", lambda a: a.tanh(), lambda e: Expr("tanh", e)),
    "exp": ("{}.tanh().exp()", lambda a: a.tanh().exp(), lambda e: Expr("exp", Expr("tanh", e))),
    "abs": ("abs({})", abs, lambda e: scaled(e, math.copysign(float(e.value() != 0.0), e.value()))),
}
