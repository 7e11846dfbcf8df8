"""Transforms in reverse mode, of functions whose bodies are random steps, too."""

from collections.abc import Callable
from typing import Any

from fuzz.bodies import Body
from fuzz.doors import Doors
from fuzz.ledger import merged, taken_out
from fuzz.pool import EXPECTED, Value
from fuzz.truth import Array, const, gradient, total
from nestgrad import func


class Transforms(Doors):
    """Steps that run transforms. Abstract."""

    def reverse(self) -> Value | None:
        """A function of some steps, through ``func``; its derivative is what counts."""
        kind = self.random.choice(("grad", "grad", "value_and_grad", "vjp", "vjp", "pair"))
        arguments = [self.argument() for _ in range(2 if kind == "pair" else 1)]
        run = Body(self, arguments, kind != "vjp")
        f, names = self.heading(arguments)
        tensors = [a.tensor for a in arguments]
        value: Any = None

        def call() -> Any:
            nonlocal value
            if kind == "vjp":
                value, pull = func.vjp(run, *tensors)
                return pull
            if kind == "value_and_grad":
                value, made = func.value_and_grad(run)(*tensors)
                return made
            return func.grad(run, argnums=(0, 1))(*tensors)[run.chosen] if kind == "pair" else func.grad(run)(*tensors)

        made = self.ran(run, call, lambda out: gradient(out.entries, run.arguments[run.chosen].nodes, None, run.tape.birth))
        out = run.out
        assert out is not None
        if value is not None:
            entries = out.entries if kind == "vjp" else (total(out.entries),)
            code = f"func.vjp({f}, {names})" if kind == "vjp" else f"func.value_and_grad({f})({names})"
            self.put(f"{code}[0]", value, entries, dict(out.ledger))
        if kind == "vjp":
            p = self.fresh("pull")
            self.line(f"_, {p} = func.vjp({f}, {names})")
            self.namespace[p] = made
            if self.chance(0.5):
                self.pullbacks.append((p, made, out, run.arguments, run.tape))
            return self.pulled(p, made, out, run.arguments, run.tape)
        code = {
            "grad": f"func.grad({f})({names})",
            "value_and_grad": f"func.value_and_grad({f})({names})[1]",
            "pair": f"func.grad({f}, argnums=(0, 1))({names})[{run.chosen}]",
        }[kind]
        return self.transformed(code, made, out, run.arguments[run.chosen], run.tape, None)

    def argument(self, size: int = 0) -> Value:
        """An argument of a transform: a value, or a literal."""
        if not size and self.chance(0.15):
            number = self.numbers(1)[0]
            literal: Any = number
            return Value(str(number), literal, (const(number),), (const(number),), {})
        return self.some(size)

    def heading(self, arguments: list[Value]) -> tuple[str, str]:
        """Write down how a function begins; its name, and the arguments' names."""
        f = self.fresh("f")
        self.line(f"def {f}({', '.join(f'z{k}' for k in range(len(arguments)))}):")
        return f, ", ".join(a.name for a in arguments)

    def ran(self, run: Body, call: Callable[[], Any], true: Callable[[Value], Array] | None, stash: float = 0.5) -> Any:
        """What a transform gives; its derivative, if it is one, is counted. What was made inside is stashed, or forgotten."""
        before = len(self.pool), len(self.variables), list(self.stacks), list(self.doors)
        kept = self.chance(stash)
        try:
            made = call()
        except EXPECTED as error:
            if true is not None:
                self.counted(run, error, true)
            raise
        finally:
            if not kept:
                del self.pool[before[0] :], self.variables[before[1] :]
                self.stacks, self.doors = before[2:]
        if true is not None:
            self.counted(run, None, true)
        return made

    def counted(self, run: Body, error: Exception | None, true: Callable[[Value], Array]) -> None:
        """Count the derivative of a transform."""
        if run.out is None:
            return
        x = run.arguments[run.chosen]
        assert x.number is not None
        fits = run.out.ledger.get(x.number, (0, 0))[0] & self.tapes.mask([run.tape])
        self.counts["transforms"] += error is None
        self.counts["derivatives that fit"] += bool(fits)
        self.counts["derivatives"] += bool(fits) and error is None
        if fits and error is None:
            self.counts["derivatives not zero"] += not self.zero(true(run.out))
        if fits and error is not None:
            self.line(f"# raised although it fits: {type(error).__name__}")
            self.counts["raised although they fit"] += 1
            self.counts[f"raised although it fits: {type(error).__name__} of a transform"] += 1

    def transformed(self, code: str, result: Any, out: Value, x: Value, tape: Any, seed: Value | None) -> Value:
        """Put the derivative of a transform into the pool."""
        true = gradient(out.entries, x.nodes, None if seed is None else seed.entries, tape.birth)
        ledger = self.without_transform(out, x, tape)
        return self.put(code, result, true, merged(ledger, seed.ledger if seed is not None else {}))

    def without_transform(self, out: Value, x: Value, tape: Any) -> Any:
        """The ledger of a derivative by ``x``."""
        # by what it does not depend on, a derivative is zero on every level, so nothing is lost
        if x.number is not None and out.ledger.get(x.number, (0, 0))[0] & self.tapes.mask([tape]):
            return taken_out(out.ledger, self.tapes.since(tape.birth))
        return out.ledger

    def pulled(self, p: str, pull: Any, out: Value, arguments: list[Value], tape: Any) -> Value:
        """Pull a cotangent back."""
        seed = self.seed_for(out)
        return self.transformed(f"{p}({seed.name})[0]", pull(seed.tensor)[0], out, arguments[0], tape, seed)

    def pull(self) -> Value:
        """Use an old pullback."""
        return self.pulled(*self.random.choice(self.pullbacks))
