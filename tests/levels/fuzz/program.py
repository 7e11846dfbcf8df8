"""One random program: steps on a pool of values, each known to nestgrad as a Tensor and to the truth as an expression.

A program is made by a number. Each step draws from a source of its own, so that a step can be left out and the others stay, more or less:
that is how a failing program is made small. What happens is written down as lines of Python.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from fuzz.ledger import Ledger, Tapes, detached, merged, taken_out
from fuzz.ledger import tracked as tracked_in
from fuzz.truth import Expr, add, const, cut, derivative, exact, mul, name, scaled, symbol
from nestgrad import Tensor, func
from nestgrad.backends import NumpyBackend
from nestgrad.errors import GraphFreedError, LevelError, NotConnectedError, NotTrackedError
from nestgrad.levels.autodiff import Autodiff
from nestgrad.levels.base import running
from nestgrad.levels.coats import oldest, worn
from nestgrad.levels.reverse.node import Tracked

EXPECTED = (LevelError, NotTrackedError, NotConnectedError)
"""What nestgrad may raise for a program that mixes levels."""

BIG = 1e6
"""Values beyond are not operated on further: they say little about levels and much about rounding."""


class Wrong(AssertionError):
    """A number that is not the truth."""


@dataclass(slots=True, eq=False)
class Value:
    """A value of the program.

    Attributes:
        expr: What it is, in truth.
        node: What a derivative by it means: itself, or what it is another handle on.
        number: Its number in ledgers, if the program differentiates by it.
    """

    name: str
    tensor: Tensor
    expr: Expr
    node: Expr
    ledger: Ledger
    number: int | None = None


class Program:
    """A random program. ``counts`` gathers what happens.

    Args:
        seed: Its number.
        counts: Where to count.
        skip: Steps to leave out.
    """

    def __init__(self, seed: int, counts: Counter[str], skip: Collection[int] = ()) -> None:
        self.seed, self.counts, self.skip = seed, counts, frozenset(skip)
        self.random = random.Random(f"{seed}")
        self.lanes = self.random.choice((1, 1, 1, 3))
        self.log: list[str] = []
        self.depth = 0
        self.transforms: list[Any] = []
        self.freed = False
        self.pool: list[Value] = []
        self.variables: list[Value] = []
        self.kept: list[tuple[str, Any, Value, tuple[Any, ...], set[int] | None]] = []
        self.pullbacks: list[tuple[str, Any, Value, list[Value], Any]] = []
        self.tapes = Tapes()
        self.names = 0
        self.base = NumpyBackend()
        self.stacks: list[tuple[str, Any]] = []
        inner, stack = "base", self.base
        for k in range(1, self.random.randint(1, 4) + 1):
            stack = self.stack(f"S{k}", inner, stack)
            inner = f"S{k}"
        if self.random.random() < 0.25:
            self.stack("R1", "base", self.base)
            self.stack("Q2", "S1", self.stacks[0][1])

    # ------------------------------------------------------------------ running
    def run(self, steps: int = 25) -> None:
        """Run all steps.

        Raises:
            Wrong: If a number is not the truth.
        """
        for k in range(steps):
            if k not in self.skip:
                self.random = random.Random(f"{self.seed}/{k}")
                self.log.append(f"# step {k}")
                self.step(self.leaf if k < 2 else None)
            assert running.get() is None

    def step(self, action: Callable[[], Any] | None = None) -> Value | None:
        """One step; errors that nestgrad may raise end it."""
        try:
            result: Value | None = (action or self.action())()
            return result
        except EXPECTED as error:
            self.log.append(f"{'    ' * self.depth}# {type(error).__name__}: {str(error)[:100]}")
            self.counts[type(error).__name__] += 1
        except GraphFreedError:
            if not self.freed:
                raise
            self.counts["GraphFreedError"] += 1
        return None

    def action(self) -> Callable[[], Any]:
        """What to do next."""
        weights = {
            self.operation: 40, self.differentiate: 24, self.transform: 10 if self.depth < 2 else 0, self.remade: 6, self.leaf: 4,
            self.detach: 4, self.constant: 3, self.inner: 3, self.late: 3, self.pull: 2 if self.pullbacks else 0, self.lift: 1,
            self.new_stack: 1,
        }  # fmt: skip
        return self.random.choices(list(weights), list(weights.values()))[0]

    # ------------------------------------------------------------------ choosing
    def some(self) -> Value:
        """A value, rather a recent one."""
        return self.random.choice(self.pool[-6:] if self.random.random() < 0.7 else self.pool)

    def some_variable(self, of: Value | None = None) -> Value:
        """A variable, rather one that ``of`` depends on."""
        if of is not None and self.random.random() < 0.8:
            known = [x for x in self.variables if x.number in of.ledger]
            if known:
                return self.random.choice(known)
        return self.random.choice(self.variables[-4:] if self.random.random() < 0.6 else self.variables)

    def some_stack(self) -> tuple[str, Any]:
        """A stack."""
        return self.random.choice(self.stacks)

    def chance(self, p: float) -> bool:
        """True with probability ``p``."""
        return self.random.random() < p

    # ------------------------------------------------------------------ writing down
    def line(self, text: str) -> None:
        """Write a line of the program down."""
        self.log.append("    " * self.depth + text)

    def fresh(self, letter: str) -> str:
        """A new name."""
        self.names += 1
        return f"{letter}{self.names}"

    def put(self, code: str, tensor: Tensor, expr: Expr, ledger: Ledger, node: Expr | None = None) -> Value:
        """Check a result against the truth and add it to the pool. Without ``node`` it is a value of its own."""
        expr = name(expr) if node is None else expr
        value = Value(self.fresh("p"), tensor, expr, expr if node is None else node, ledger)
        self.line(f"{value.name} = {code}")
        self.check(code, tensor, expr)
        for tape, moment in tensor.marks.items():
            if not oldest(tensor.value, tape) > moment:
                raise Wrong(f"{code}: has recorded on {tape} what is older than its mark of it")
        self.pool.append(value)
        return value

    def as_variable(self, value: Value) -> Value:
        """Let the program differentiate by ``value`` as well."""
        value.number = self.names = self.names + 1
        value.ledger = merged(value.ledger, {value.number: (self.tapes.mask(value.tensor.tracked_on()), 0)})
        self.variables.append(value)
        return value

    def check(self, code: str, tensor: Tensor, expr: Expr) -> None:
        """Compare a number with the truth; where they differ slightly, 50 digits decide who has rounded."""
        got, right = tensor.numpy().reshape(-1).tolist(), expr.value()
        assert len(got) == len(right) or len(set(right)) == 1, f"{code}: shape {tensor.shape}"
        for lane, (g, r) in enumerate(zip(got, right, strict=False)):
            if not math.isfinite(r) or abs(r) > 1e12:
                self.counts["unchecked"] += 1
            elif not abs(g - r) <= 1e-9 * max(1.0, abs(r)):
                best = float(exact(expr, lane))
                if not abs(g - best) <= 100 * abs(r - best):
                    raise Wrong(f"{code}: got {g}, right {best}")
                self.counts["round-off"] += 1

    # ------------------------------------------------------------------ values
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

    def stack(self, s: str, inner_name: str, inner: Any) -> Any:
        """Make a stack."""
        made = Autodiff(inner)
        self.line(f"{s} = Autodiff({inner_name})")
        self.stacks.append((s, made))
        return made

    def inner(self) -> Value:
        """The value inside the outermost level."""
        v = self.some()
        outermost = self.tapes.mask(v.tensor.tracked_on()[:1])
        return self.put(f"{v.name}.inner()", v.tensor.inner(), v.expr, taken_out(v.ledger, outermost), v.node)

    def meant(self, stack: Any, tapes: list[Any]) -> float:
        """Birth of the oldest tape that ``detach(level=stack)`` cuts: in a transform, of the stand-in, for what the transform has to do with."""
        for t in reversed(self.transforms):
            if t.birth > stack.tape.birth and any(tape.birth >= t.birth for tape in tapes):
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

    # ------------------------------------------------------------------ derivatives in the imperative style
    def differentiate(self, root: Value | None = None) -> Value | None:
        """A derivative, in one of its spellings."""
        root = root or self.some()
        x = self.some_variable(root)
        seed = self.some() if self.chance(0.12) else None
        if seed is not None and max(map(abs, seed.expr.value())) > BIG:
            return None
        args = "" if seed is None else f"gradient={seed.name}"
        how = self.random.choice(("x.grad", "x.grad", "wrt", "[]", "wrt=", "get", "remove", "in", "u.wrt"))
        if how == "u.wrt" and seed is None:
            return self.derived(f"{root.name}.wrt({x.name})", root, x, None, lambda: root.tensor.wrt(x.tensor))
        if how == "wrt=":
            return self.at_once(args, root, x, seed)
        try:
            grads = root.tensor.backward(gradient=None if seed is None else seed.tensor)
        except EXPECTED as error:
            self.raised(f"{root.name}.backward({args})", self.fits(root, x), error)
            raise
        g = f"{root.name}.backward({args})"
        if self.chance(0.4):
            g, old = self.fresh("G"), g
            self.line(f"{g} = {old}")
            if seed is None:
                self.kept.append((g, grads, root, root.tensor.tracked_on(), None))
        looks: dict[str, tuple[str, Callable[[], Any]]] = {
            "x.grad": (f"{x.name}.grad({g})", lambda: x.tensor.grad(grads)),
            "wrt": (f"{g}.wrt({x.name})", lambda: grads.wrt(x.tensor)),
            "get": (f"{g}.get({x.name})", lambda: self.got(grads, x)),
            "remove": (f"{x.name}.grad_remove({g})", lambda: x.tensor.grad_remove(grads)),
            "in": (f"{g}[{x.name}]", lambda: self.asked(grads, x)),
        }
        code, look = looks.get(how, (f"{g}[{x.name}]", lambda: grads[x.tensor]))
        return self.derived(code, root, x, seed, look)

    def at_once(self, args: str, root: Value, x: Value, seed: Value | None) -> Value | None:
        """``backward(wrt=[...])``; looked up later by others too, which must not be given what was computed for these."""
        others = [x, self.some_variable(root)] if self.chance(0.5) else [x]
        free = self.chance(0.05)
        self.freed |= free
        code = f"{root.name}.backward({args or None}, wrt=[{', '.join(v.name for v in others)}], retain_graph={not free})"
        try:
            grads = root.tensor.backward(None if seed is None else seed.tensor, [v.tensor for v in others], not free)
        except EXPECTED as error:
            self.raised(code, min(self.fits(root, v) for v in others), error)
            raise
        g = self.fresh("G")
        self.line(f"{g} = {code}")
        if seed is None:
            self.kept.append((g, grads, root, root.tensor.tracked_on(), {v.number for v in others if v.number is not None}))
        return self.derived(f"{x.name}.grad({g})", root, x, seed, lambda: x.tensor.grad(grads))

    def got(self, grads: Any, x: Value) -> Any:
        """``get``, and that it agrees with ``in``."""
        found = grads.get(x.tensor)
        assert (found is not None) == (x.tensor in grads)
        if found is None:
            raise NotConnectedError("get gave None")
        return found

    def asked(self, grads: Any, x: Value) -> Any:
        """``in`` tells whether there will be a derivative."""
        known = x.tensor in grads
        try:
            result = grads[x.tensor]
        except EXPECTED:
            assert not known
            raise
        assert known
        return result

    def fits(self, root: Value, x: Value, known: tuple[Any, ...] = ()) -> int:
        """The tapes on which the dependence of ``root`` on ``x`` is all recorded: open ones, and those that old gradients know."""
        assert x.number is not None
        return root.ledger.get(x.number, (0, 0))[0] & (self.tapes.open() | self.tapes.mask(known))

    def derived(
        self, code: str, root: Value, x: Value, seed: Value | None, look: Callable[[], Tensor], tapes: tuple[Any, ...] | None = None
    ) -> Value:
        """Look a derivative up, count it, and put it into the pool."""
        fits = self.fits(root, x, tapes or ())
        tapes = root.tensor.tracked_on() if tapes is None else tapes
        its = [coat.tape for coat in worn(x.tensor.value) if isinstance(coat, Tracked)]
        tape = next((tape for tape in its if tape in tapes), its[0] if its else None)
        true = derivative(root.expr, x.node, 0.0 if tape is None else tape.birth)
        try:
            result = look()
        except EXPECTED as error:
            self.raised(code, fits, error)
            if isinstance(error, NotConnectedError) and not self.zero(true):
                raise Wrong(f"{code}: NotConnectedError, but the derivative is {true.value()}") from error
            raise
        self.counts["derivatives"] += 1
        self.counts["derivatives not zero"] += not self.zero(true)
        self.counts["derivatives that fit"] += bool(fits)
        assert fits or self.zero(true), f"{code}: nothing is left according to the ledger"
        best: Any = self.tapes.youngest(fits) if fits else tape
        ledger = taken_out(root.ledger, self.tapes.since(best.birth))
        if seed is not None:
            true, ledger = mul(true, seed.expr), merged(ledger, seed.ledger)
        return self.put(code, result, true, ledger)

    def zero(self, e: Expr) -> bool:
        """Whether all lanes are zero, up to rounding."""
        return all(abs(v) <= 1e-12 for v in e.value())

    def raised(self, code: str, fits: int, error: Exception) -> None:
        """Count a derivative that raised."""
        if fits:
            self.line(f"# raised although it fits: {code}")
            self.counts["derivatives that fit"] += 1
            self.counts["raised although they fit"] += 1
            self.counts[f"raised although it fits: {type(error).__name__}{' (in a transform)' if self.depth else ''}"] += 1

    def late(self) -> Value | None:
        """A look-up long after the backward pass was asked for."""
        if not self.kept:
            return None
        g, grads, root, tapes, known = self.random.choice(self.kept)
        x = self.some_variable(root)
        if known is not None and x.number not in known:
            return self.unknown(g, grads, root, x, tapes)
        return self.derived(f"{x.name}.grad({g})", root, x, None, lambda: x.tensor.grad(grads), tapes)

    def unknown(self, g: str, grads: Any, root: Value, x: Value, tapes: tuple[Any, ...]) -> Value | None:
        """Ask gradients that were computed for others: an error, or right."""
        if x.tensor not in grads:
            try:
                grads.wrt(x.tensor)
            except NotTrackedError:
                return None
            raise AssertionError(f"{g}.wrt({x.name}) although {x.name} is not in {g}")
        return self.derived(f"{x.name}.grad({g})", root, x, None, lambda: x.tensor.grad(grads), tapes)

    # ------------------------------------------------------------------ transforms
    def transform(self) -> Value:
        """A function of some steps, through ``func``; its derivative is what counts."""
        kind = self.random.choice(("grad", "grad", "value_and_grad", "vjp", "vjp", "second", "pair"))
        if kind == "second":
            return self.second()
        arguments = [self.argument() for _ in range(2 if kind == "pair" else 1)]
        seed = self.some() if kind == "vjp" else None
        run = Body(self, arguments, kind != "vjp")
        f = self.fresh("f")
        names = ", ".join(a.name for a in arguments)
        self.line(f"def {f}({', '.join(f'z{k}' for k in range(len(arguments)))}):")
        tensors = [a.tensor for a in arguments]
        marker = len(self.pool), len(self.variables), list(self.stacks)
        stash = self.chance(0.5)
        pull = None
        try:
            if kind == "vjp":
                value, pull = func.vjp(run, *tensors)
                result = None
            elif kind == "value_and_grad":
                value, result = func.value_and_grad(run)(*tensors)
            elif kind == "pair":
                value, result = None, func.grad(run, argnums=(0, 1))(*tensors)[run.chosen]
            else:
                value, result = None, func.grad(run)(*tensors)
        except EXPECTED as error:
            self.counted(run, error)
            if stash:
                self.forget(marker)
            raise
        finally:
            self.stacks = marker[2] if stash else self.stacks
        self.counted(run, None)
        out = run.out
        assert out is not None
        if not stash:
            self.forget(marker)
        if value is not None and (kind == "vjp" or self.lanes == 1):
            self.put(f"func.{kind}({f}, {names})[0]", value, out.expr, dict(out.ledger))
        if pull is not None:
            p = self.fresh("pull")
            self.line(f"_, {p} = func.vjp({f}, {names})")
            if self.chance(0.5):
                self.pullbacks.append((p, pull, out, run.arguments, run.tape))
            assert seed is not None
            return self.pulled(p, pull, out, run.arguments, run.tape, seed)
        return self.transformed(f"func.{kind}({f})({names})", result, out, run.arguments[run.chosen], run.tape, None)

    def argument(self) -> Value:
        """An argument of a transform: a value, or a literal."""
        if self.lanes == 1 and self.chance(0.15):
            number = self.numbers()
            literal: Any = number
            return Value(str(number), literal, const(number), const(number), {})
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
        self.counts["derivatives not zero"] += bool(fits) and error is None and not self.zero(derivative(run.out.expr, x.node, run.tape.birth))
        if fits and error is not None:
            self.line(f"# raised although it fits: {type(error).__name__}")
            self.counts["raised although they fit"] += 1
            self.counts[f"raised although it fits: {type(error).__name__} of a transform"] += 1

    def transformed(self, code: str, result: Any, out: Value, x: Value, tape: Any, seed: Value | None) -> Value:
        """Put the derivative of a transform into the pool."""
        true = derivative(out.expr, x.node, tape.birth)
        ledger = taken_out(out.ledger, self.tapes.since(tape.birth))
        if seed is not None:
            true, ledger = mul(true, seed.expr), merged(ledger, seed.ledger)
        return self.put(code, result, true, ledger)

    def pulled(self, p: str, pull: Any, out: Value, arguments: list[Value], tape: Any, seed: Value) -> Value:
        """Pull a cotangent back."""
        g = pull(seed.tensor)[0]
        return self.transformed(f"{p}({seed.name})[0]", g, out, arguments[0], tape, seed)

    def pull(self) -> Value:
        """Use an old pullback."""
        p, pull, out, arguments, tape = self.random.choice(self.pullbacks)
        return self.pulled(p, pull, out, arguments, tape, self.some())

    def second(self) -> Value:
        """A second derivative by two transforms of one line."""
        x, c = self.argument(), self.some()
        if self.lanes > 1 or max(map(abs, (*x.expr.value(), *c.expr.value()))) > 10:
            raise LevelError("not in this program")
        z = name(x.expr)
        body = mul(Expr("sin", mul(z, c.expr)), z)
        true = derivative(derivative(body, z), z)
        made = func.grad(func.grad(lambda t: (t * c.tensor).sin() * t))(x.tensor)
        return self.put(f"grad(grad(lambda t: sin(t {c.name}) t))({x.name})", made, true, merged(x.ledger, c.ledger))

    def forget(self, marker: tuple[int, int, Any]) -> None:
        """Leave nothing of what was made inside a transform."""
        del self.pool[marker[0] :]
        del self.variables[marker[1] :]


class Body:
    """The function that a transform runs: random steps on its arguments and on whatever the program knows."""

    def __init__(self, program: Program, arguments: list[Value], scalar: bool) -> None:
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
                self.arguments.append(p.as_variable(p.put(f"z{k}", z, given.expr, given.ledger)))
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
            k = p.random.random()
            if k < 0.5:
                made = p.step(lambda: p.operation(mine))
            elif k < 0.62:
                s, stack = p.some_stack()
                made = p.step(lambda: self.variable_inside(mine, s, stack))
            elif k < 0.85:
                made = p.step(lambda: p.differentiate(mine))
            else:
                made = p.step()
            mine = made if made is not None and max(map(abs, made.expr.value())) < BIG else mine
        if p.chance(0.6):
            mine = p.step(lambda: p.operation(mine, p.random.choice(self.arguments))) or mine
        return mine

    def variable_inside(self, v: Value, s: str, stack: Any) -> Value:
        """The imperative style inside a transform."""
        p = self.program
        made = p.put(f"{s}.tensor({v.name}, requires_grad=True)", stack.tensor(v.tensor, requires_grad=True), v.expr, v.ledger)
        return p.as_variable(made)


def open_tapes(value: Value, tapes: Tapes) -> int:
    """Tapes on which anything of a value is still recorded."""
    return tracked_in(value.ledger) & tapes.open()
