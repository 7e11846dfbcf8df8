"""Transforms of functions whose bodies are random steps, too."""

from collections.abc import Callable
from typing import Any

from fuzz.ledger import merged, taken_out
from fuzz.lookups import LookUps
from fuzz.pool import EXPECTED, Value
from fuzz.truth import Expr, const, derivative, gradient, mul, name, total
from nestgrad import Tensor, func


class Transforms(LookUps):
    """Steps that run transforms. Abstract."""

    def transform(self) -> Value | None:
        """A function of some steps, through ``func``; its derivative is what counts."""
        kind = self.random.choice(("grad", "grad", "value_and_grad", "vjp", "vjp", "second", "pair"))
        if kind == "second":
            return self.second()
        arguments = [self.argument() for _ in range(2 if kind == "pair" else 1)]
        run = Body(self, arguments, kind != "vjp")
        f = self.fresh("f")
        names = ", ".join(a.name for a in arguments)
        self.line(f"def {f}({', '.join(f'z{k}' for k in range(len(arguments)))}):")
        before = len(self.pool), len(self.variables), list(self.stacks)
        stash = self.chance(0.5)
        value: Any = None
        try:
            tensors = [a.tensor for a in arguments]
            if kind == "vjp":
                value, made = func.vjp(run, *tensors)
            elif kind == "value_and_grad":
                value, made = func.value_and_grad(run)(*tensors)
            elif kind == "pair":
                made = func.grad(run, argnums=(0, 1))(*tensors)[run.chosen]
            else:
                made = func.grad(run)(*tensors)
        except EXPECTED as error:
            self.counted(run, error)
            raise
        finally:
            if not stash:
                del self.pool[before[0] :], self.variables[before[1] :]
                self.stacks = before[2]
        self.counted(run, None)
        out = run.out
        assert out is not None
        if value is not None:
            entries = out.entries if kind == "vjp" else (total(out.entries),)
            self.put(f"func.{kind}({f}, {names})[0]", value, entries, dict(out.ledger))
        if kind == "vjp":
            p = self.fresh("pull")
            self.line(f"_, {p} = func.vjp({f}, {names})")
            if self.chance(0.5):
                self.pullbacks.append((p, made, out, run.arguments, run.tape))
            return self.pulled(p, made, out, run.arguments, run.tape)
        return self.transformed(f"func.{kind}({f})({names})", made, out, run.arguments[run.chosen], run.tape, None)

    def argument(self) -> Value:
        """An argument of a transform: a value, or a literal."""
        if self.chance(0.15):
            number = self.numbers(1)[0]
            literal: Any = number
            return Value(str(number), literal, (const(number),), (const(number),), {})
        return self.some()

    def counted(self, run: "Body", error: Exception | None) -> None:
        """Count the derivative of a transform."""
        if run.out is None:
            return
        x = run.arguments[run.chosen]
        assert x.number is not None
        fits = run.out.ledger.get(x.number, (0, 0))[0] & run.mask
        self.counts["transforms"] += error is None
        self.counts["derivatives that fit"] += bool(fits)
        self.counts["derivatives"] += bool(fits) and error is None
        if fits and error is None:
            self.counts["derivatives not zero"] += not self.zero(gradient(run.out.entries, x.nodes, None, run.tape.birth))
        if fits and error is not None:
            self.line(f"# raised although it fits: {type(error).__name__}")
            self.counts["raised although they fit"] += 1
            self.counts[f"raised although it fits: {type(error).__name__} of a transform"] += 1

    def transformed(self, code: str, result: Any, out: Value, x: Value, tape: Any, seed: Value | None) -> Value:
        """Put the derivative of a transform into the pool."""
        true = gradient(out.entries, x.nodes, None if seed is None else seed.entries, tape.birth)
        ledger = out.ledger  # by what it does not depend on, a derivative is zero on every level, so nothing is lost
        if x.number is not None and ledger.get(x.number, (0, 0))[0] & self.tapes.mask([tape]):
            ledger = taken_out(ledger, self.tapes.since(tape.birth))
        return self.put(code, result, true, merged(ledger, seed.ledger if seed is not None else {}))

    def pulled(self, p: str, pull: Any, out: Value, arguments: list[Value], tape: Any) -> Value:
        """Pull a cotangent back."""
        seed = self.seed_for(out)
        return self.transformed(f"{p}({seed.name})[0]", pull(seed.tensor)[0], out, arguments[0], tape, seed)

    def pull(self) -> Value:
        """Use an old pullback."""
        return self.pulled(*self.random.choice(self.pullbacks))

    def second(self) -> Value | None:
        """A second derivative by two transforms of one line."""
        x, c = self.argument(), self.some()
        if len(x.entries) > 1 or len(c.entries) > 1 or not (x.small(10.0) and c.small(10.0)):
            return None
        z = name(x.entries[0])
        body = mul(Expr("sin", mul(z, c.entries[0])), z)
        true = derivative(derivative(body, z), z)
        made = func.grad(func.grad(lambda t: (t * c.tensor).sin() * t))(x.tensor)
        return self.put(f"grad(grad(lambda t: sin(t {c.name}) t))({x.name})", made, (true,), merged(x.ledger, c.ledger))


class Body:
    """The function that a transform runs: random steps on its arguments and on whatever the program knows."""

    def __init__(self, program: Transforms, arguments: list[Value], scalar: bool) -> None:
        self.program, self.given, self.scalar = program, arguments, scalar
        self.arguments: list[Value] = []
        self.chosen = program.random.randrange(len(arguments))
        self.out: Value | None = None
        self.tape: Any = None
        self.mask = 0

    def __call__(self, *zs: Tensor) -> Tensor:
        """Run it."""
        p = self.program
        p.depth += 1
        try:
            self.tape = zs[0].tracked_on()[0]
            self.mask = p.tapes.mask([self.tape])
            p.transforms.append(self.tape)
            for k, (z, given) in enumerate(zip(zs, self.given, strict=True)):
                self.arguments.append(p.as_variable(p.put(f"z{k}", z, given.entries, given.ledger)))
            mine = self.steps(self.arguments[self.chosen])
            self.out = mine
            p.line(f"return {mine.name}{'.sum()' if self.scalar else ''}")
            return mine.tensor.sum() if self.scalar else mine.tensor
        finally:
            p.depth -= 1
            del p.transforms[p.depth :]

    def steps(self, mine: Value) -> Value:
        """Some steps that build on one value, rather."""
        p = self.program
        if p.chance(0.2):
            p.stack(p.fresh("S"), f"{mine.name}.backend", mine.tensor.backend)
        for _ in range(p.random.randint(1, 5)):
            made = p.step(self.next_step(p.random.random(), mine))
            mine = made if made is not None and made.small() else mine
        if p.chance(0.6):
            mine = p.step(lambda: p.operation(mine, p.random.choice(self.arguments))) or mine
        return mine

    def next_step(self, k: float, mine: Value) -> Callable[[], Value | None] | None:
        """What to do with the value in hand."""
        p = self.program
        if k < 0.5:
            return lambda: p.operation(mine)
        if k < 0.62:
            s, stack = p.some_stack()
            return lambda: self.variable_inside(mine, s, stack)
        return (lambda: p.differentiate(mine)) if k < 0.85 else None

    def variable_inside(self, v: Value, s: str, stack: Any) -> Value:
        """The imperative style inside a transform."""
        p = self.program
        made = p.put(f"{s}.tensor({v.name}, requires_grad=True)", stack.tensor(v.tensor, requires_grad=True), v.entries, v.ledger)
        return p.as_variable(made)
