"""Steps that make values: data, variables, other handles, constants, operations."""

import math
from collections.abc import Callable
from typing import Any

from fuzz.ledger import detached, merged, taken_out
from fuzz.pool import BIG, Pool, Value
from fuzz.truth import Expr, add, const, cut, mul, scaled, symbol
from nestgrad.levels.coats import worn


class Steps(Pool):
    """Steps that make values. Abstract."""

    def numbers(self) -> Any:
        """Data, and how it is written."""
        data = [round(self.random.uniform(-1.0, 1.0), 3) for _ in range(self.lanes)]
        return data[0] if self.lanes == 1 else data

    def lanes_of(self, data: Any) -> tuple[float, ...]:
        """Data as lanes."""
        return (data,) if self.lanes == 1 else tuple(data)

    def levels(self, stack: Any) -> list[int] | None:
        """Some levels of a stack, or all."""
        if self.chance(0.75):
            return None
        return [k for k in range(1, stack.level + 1) if self.chance(0.6)] or [1]

    def leaf(self) -> Value:
        """A variable."""
        (s, stack), data = self.some_stack(), self.numbers()
        levels = self.levels(stack)
        code = f"{s}.tensor({data}, requires_grad=True, levels={levels})"
        return self.as_variable(self.put(code, stack.tensor(data, requires_grad=True, levels=levels), symbol(*self.lanes_of(data)), {}))

    def constant(self) -> Value:
        """Data on some stack, or on the base backend."""
        s, stack = self.random.choice([("base", self.base), *self.stacks])
        data = self.numbers()
        return self.put(f"{s}.tensor({data})", stack.tensor(data), const(*self.lanes_of(data)), {})

    def remade(self) -> Value:
        """A variable made from a value; with ``variable``, a cut."""
        v, (s, stack) = self.some(), self.some_stack()
        levels = self.levels(stack)
        how = self.random.choice(("tensor", "tensor", "tensor", "require_grad", "levels", "variable"))
        if how == "variable":
            made = self.put(f"{s}.variable({v.name})", stack.variable(v.tensor), symbol(*v.expr.value()), {})
            return self.as_variable(made)
        if how == "require_grad":
            made = self.put(f"{v.name}.require_grad()", v.tensor.require_grad(), v.expr, v.ledger)
        elif how == "levels":
            made = self.put(f"{v.name}.require_grad(levels=[{s}])", v.tensor.require_grad(levels=[stack]), v.expr, v.ledger)
        else:
            code = f"{s}.tensor({v.name}, requires_grad=True, levels={levels})"
            made = self.put(code, stack.tensor(v.tensor, requires_grad=True, levels=levels), v.expr, v.ledger)
        return self.as_variable(made)

    def lift(self) -> Value:
        """Another handle on a value."""
        v, (s, stack) = self.some(), self.some_stack()
        return self.put(f"{s}.tensor({v.name})", stack.tensor(v.tensor), v.expr, v.ledger, v.node)

    def new_stack(self) -> None:
        """One more stack, made late."""
        s, stack = self.random.choice([("base", self.base), *self.stacks])
        if stack.level < 4:
            self.stack(self.fresh("S"), s, stack)

    def inner(self) -> Value:
        """The value inside the outermost level."""
        v = self.some()
        outermost = self.tapes.mask(v.tensor.tracked_on()[:1])
        return self.put(f"{v.name}.inner()", v.tensor.inner(), v.expr, taken_out(v.ledger, outermost), v.node)

    def meant(self, stack: Any, tapes: list[Any]) -> float:
        """Birth of the oldest tape that ``detach(level=stack)`` cuts: of the stand-in, for what a running transform has to do with."""
        innermost = stack
        while innermost.inner.level:
            innermost = innermost.inner
        for t in reversed(self.transforms):
            if t.birth > innermost.tape.birth and any(tape.birth >= t.birth for tape in tapes):
                stand_in = t.stand_ins.get(stack.tape)
                return math.inf if stand_in is None else stand_in.birth
        return stack.tape.birth

    def detach(self) -> Value:
        """A constant, on all levels or from one up."""
        v, t = self.some(), None
        how = self.random.choice(("all", "level", "level", "number", "item"))
        if how == "all":
            return self.put(f"{v.name}.detach()", v.tensor.detach(), const(*v.expr.value()), {})
        if how == "item":
            code = f"base.tensor({v.name}.numpy())"
            return self.put(code, self.base.tensor(v.tensor.numpy()), const(*v.expr.value()), {})
        if how == "level":
            s, stack = self.some_stack()
            code, t = f"{v.name}.detach(level={s})", v.tensor.detach(level=stack)
            birth = self.meant(stack, [*v.tensor.tracked_on(), *v.tensor.marks])
        else:
            k = self.random.randint(1, 4)
            code, t = f"{v.name}.detach(level={k})", v.tensor.detach(level=k)
            known = [*(coat.tape for coat in worn(v.tensor.value)), *v.tensor.marks]
            birth = min((tape.birth for tape in known if tape.number >= k and not tape.closed), default=math.inf)
        self.tapes.mask([*v.tensor.tracked_on(), *v.tensor.marks])
        return self.put(code, t, cut(v.expr, birth), detached(v.ledger, self.tapes.since(birth)), v.node)

    # ------------------------------------------------------------------ operations
    def operation(self, x: Value | None = None, y: Value | None = None) -> Value | None:
        """An op on one or two values, or a value and a literal."""
        x, y = x or self.some(), y or self.some()
        a, b, e, f = x.tensor, y.tensor, x.expr, y.expr
        if max(map(abs, (*e.value(), *f.value()))) > BIG:
            return None
        both, c = merged(x.ledger, y.ledger), round(self.random.uniform(0.5, 1.5), 2)
        number = const(*[c] * self.lanes)
        kind = self.random.choice(("+", "+", "-", "*", "*", "*", "*", "/", "sin", "cos", "tanh", "exp", "literal *", "literal -", "pow"))
        kinds: dict[str, Callable[[], Value]] = {
            "+": lambda: self.put(f"{x.name} + {y.name}", a + b, add(e, f), both),
            "-": lambda: self.put(f"{x.name} - {y.name}", a - b, add(e, scaled(f, -1.0)), both),
            "*": lambda: self.put(f"{x.name} * {y.name}", a * b, mul(e, f), both),
            "/": lambda: self.put(f"{x.name} / ({y.name} * {y.name} + {c})", a / (b * b + c), Expr("/", e, add(mul(f, f), number)), both),
            "sin": lambda: self.put(f"{x.name}.sin()", a.sin(), Expr("sin", e), x.ledger),
            "cos": lambda: self.put(f"{x.name}.cos()", a.cos(), Expr("cos", e), x.ledger),
            "tanh": lambda: self.put(f"{x.name}.tanh()", a.tanh(), Expr("tanh", e), x.ledger),
            "exp": lambda: self.put(f"{x.name}.tanh().exp()", a.tanh().exp(), Expr("exp", Expr("tanh", e)), x.ledger),
            "literal *": lambda: self.put(f"{c} * {x.name}", c * a, scaled(e, c), x.ledger),
            "literal -": lambda: self.put(f"{c} - {x.name}", c - a, add(number, scaled(e, -1.0)), x.ledger),
            "pow": lambda: self.power(x),
        }
        made = kinds[kind]()
        # A derivative by a value in the middle is asked for as well. Not by one whose op has a rule that reads the answer, though: a
        # derivative of it is no function of that value alone, and what it is by that value depends on how the rule is written.
        return self.as_variable(made) if kind not in ("/", "tanh", "exp") and self.chance(0.1) else made

    def power(self, x: Value) -> Value:
        """An integer power."""
        n = self.random.choice((0, 1, 2, 3))
        return self.put(f"{x.name} ** {n}", x.tensor**n, Expr("pow", x.expr, n), x.ledger)
