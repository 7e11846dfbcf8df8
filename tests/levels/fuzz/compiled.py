"""Functions of random steps that are compiled: inside, outside, and on which levels their results live, all is as without ``jit``.

The function is the text that the program has written down, run by Python as any other: straight lines, which close over what the program
knows. So it is called again with other numbers, and with arguments on other levels, where the function itself tells what is right.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import nestgrad as ng
from fuzz.bodies import Body
from fuzz.pool import KINDS, Value, Wrong, first_line
from fuzz.pushes import SECOND
from fuzz.samples import Samples
from nestgrad import Tensor, func, jit
from nestgrad.errors import GraphFreedError, NestgradError
from nestgrad.levels.base import now
from nestgrad.levels.coats import worn

WORDS: dict[str, Any] = {
    "np": np, "func": func, "stack": ng.stack, "jit": jit, "checkpoint": ng.checkpoint, "trace": func.trace, "call": func.call,
    "SECOND": SECOND, **{name: getattr(ng, name) for name in KINDS},
}  # fmt: skip
"""What the text of a program means."""

ERRORS = (NestgradError, TypeError, AttributeError)
"""What the text may raise: where ``get`` gives ``None``, Python says that it is no operand and has no methods."""

CANNOT = "lives on .*, which has no backward pass|cannot leave it this way|^jit: "
"""Errors that need not be: inside, a level of arguments that does not record is not in the way, and another ``jit`` is a part."""

MODEST = 1e6
"""Other numbers than those of the program may be large; what is made of large ones is rounding."""


class Compiled(Samples):
    """Steps that compile. Abstract."""

    def compiled(self) -> Value | None:
        """A compiled function, called as the program does; and again with what else there is."""
        arguments = [self.some() for _ in range(self.random.choice((1, 1, 2)))]
        run = AsItIs(self, arguments)
        namespace, begin = {**WORDS, **self.namespace}, len(self.log)
        f, names = self.heading(arguments)
        self.ran(run, lambda: run(*(v.tensor for v in arguments)), None, stash=0.0)
        plain = self.written(f, self.log[begin:], namespace)
        out = run.out
        assert out is not None
        compiled = jit(plain, executor=self.random.choice(("auto", "auto", "replay")))
        made = self.compared(plain, compiled, [v.tensor for v in arguments], f"jit({f})({names})")
        value = None if made is None else self.put(f"jit({f})({names})", made, out.entries, out.ledger, out.nodes)
        for _ in range(self.random.choice((0, 1, 2, 3))):
            self.compared(plain, compiled, [self.other_argument(v) for v in arguments], f"jit({f}), called again,")
        return value

    def written(self, f: str, lines: list[str], namespace: dict[str, Any]) -> Callable[..., Any]:
        """The function that the text defines, with what there was before it."""
        margin = len(lines[0]) - len(lines[0].lstrip())
        text = []
        for line in lines:
            text.append(line[margin:])
            if line.lstrip().startswith("def "):
                text.append(f"{' ' * (len(line) - len(line.lstrip()) - margin)}    pass")  # it may have come to nothing
        self.counts["compiled functions"] += 1
        exec("\n".join(text), namespace)
        made: Callable[..., Any] = namespace[f]
        return made

    def other_argument(self, v: Value) -> Tensor:
        """Another argument of the same shape: of the same kind with other numbers, or whatever there is."""
        same = [x.tensor for x in self.pool if len(x.entries) == len(v.entries)]
        k = self.random.random()
        if k < 0.4:
            return self.random.choice(same)
        data = np.array(self.numbers(len(v.entries))).reshape(v.tensor.shape)
        _, stack = self.some_stack()
        if k < 0.6:
            return self.base.tensor(data)
        if k < 0.9:
            return stack.tensor(data, requires_grad=True, levels=self.levels(stack))
        return stack.tensor(data, requires_grad=True) * self.random.choice(same).detach()

    def compared(self, plain: Callable[..., Any], compiled: Callable[..., Any], arguments: list[Any], code: str) -> Tensor | None:
        """What the compiled function gives, if it is what the function gives; ``None`` if either gives no Tensor.

        Raises:
            Wrong: If it is not.
        """
        begun = now()
        try:
            want = plain(*arguments)
        except NameError:  # of what another function in the text has kept
            self.counts["compiled functions that are no text"] += 1
            return None
        except GraphFreedError:  # by the run before this one
            self.counts["compiled functions that were freed"] += 1
            return None
        except ERRORS as error:
            try:
                got = compiled(*arguments)
            except ERRORS:
                self.counts["compiled calls that raised as they should"] += 1
                return None
            if re.search(CANNOT, str(error)):
                self.counts["compiled calls where the function itself cannot"] += 1
                return None
            raise Wrong(f"{code} is {got!r} where {type(error).__name__} is right: {error}") from error
        try:
            got = compiled(*arguments)
        except ERRORS as error:
            self.line(f"# {code} is refused: {type(error).__name__}: {first_line(error)}")
            self.counts[f"compiled calls that were refused: {type(error).__name__}"] += 1
            return None
        if want is None or got is None:
            if want is not got:
                raise Wrong(f"{code} is {got!r}, right is {want!r}")
            return None
        marks, known = ({tape for tape in x.marks if tape.birth < begun and not tape.closed} for x in (got, want))
        if (got.tracked_on(), got.level, got.shape, got.dtype, marks) != (want.tracked_on(), want.level, want.shape, want.dtype, known):
            raise Wrong(f"{code} is {got!r}, right is {want!r}")
        self.counts["compiled calls that were right"] += 1
        if any(coat.hidden for coat in worn(want.value) if not coat.tape.closed):
            return got
        one, two = got.numpy(), want.numpy()
        if np.abs(two).max() < MODEST and not np.allclose(one, two, rtol=1e-8, atol=1e-8):
            raise Wrong(f"{code} is {one}, right is {two}")
        return got


class AsItIs(Body):
    """A function that is run as it is, and whose arguments are the tensors themselves."""

    def argument(self, code: str, z: Tensor, given: Value, truth: Any) -> Value:
        """The argument itself, by which the program differentiates if it does so outside."""
        p = self.program
        made = p.put(code, z, truth, given.ledger, given.nodes)
        if given.number is not None:
            made.number = given.number
            p.variables.append(made)
        return made
