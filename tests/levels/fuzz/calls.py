"""Functions of random steps that are traced and called: inside, arguments are on no level; outside, a call is differentiated as it is."""

from fuzz.bodies import Body
from fuzz.ledger import merged
from fuzz.pool import Value
from fuzz.pushes import Pushes
from fuzz.truth import Array, swapped
from nestgrad import Tensor, checkpoint
from nestgrad.func import call, trace


class Calls(Pushes):
    """Steps that trace and call. Abstract."""

    def called(self) -> Value | None:
        """The program of a function, called with what it was traced with; and with new variables of the same values."""
        arguments = [self.argument() for _ in range(self.random.choice((1, 1, 2)))]
        run = Traced(self, arguments)
        f, names = self.heading(arguments)
        program = self.ran(run, lambda: trace(run)(*(v.tensor for v in arguments)), None, stash=0.05)
        out = run.out
        assert out is not None
        p = self.fresh("program")
        self.line(f"{p} = trace({f})({names})")
        self.namespace[p] = program
        self.counts["calls"] += 1
        made = self.put(f"call({p}, {names})", call(program, *(v.tensor for v in arguments)), out.entries, out.ledger)
        if self.chance(0.4):
            s, stack = self.some_stack()
            again = [
                self.as_variable(
                    self.put(f"{s}.tensor({v.name}, requires_grad=True)", stack.tensor(v.tensor, requires_grad=True), v.entries, v.ledger)
                )
                for v in arguments
            ]
            swaps = [dict(zip(z.entries, v.entries, strict=True)) for z, v in zip(run.arguments, again, strict=True)]
            changed = [any(new is not old for new, old in zip(swapped(out.entries, own), out.entries, strict=True)) for own in swaps]
            places = {e: given for own in swaps for e, given in own.items()}
            code = f"call({p}, {', '.join(v.name for v in again)})"
            ledger = merged(out.ledger, *(v.ledger for v, some in zip(again, changed, strict=True) if some))  # that the program uses
            made = self.put(code, call(program, *(v.tensor for v in again)), swapped(out.entries, places), ledger)
        return made

    def checkpointed(self) -> Value:
        """A function of which nothing is stored but what it returns; else it is the same."""
        arguments = [self.some() for _ in range(self.random.choice((1, 2)))]
        run = Plain(self, arguments)
        f, names = self.heading(arguments)
        self.counts["checkpointed"] += 1
        made = self.ran(run, lambda: checkpoint(run)(*(v.tensor for v in arguments)), None)
        out = run.out
        assert out is not None
        return self.put(f"checkpoint({f})({names})", made, out.entries, out.ledger, out.nodes)


class Plain(Body):
    """A function that is run as it is."""

    def argument(self, code: str, z: Tensor, given: Value, truth: Array) -> Value:
        """The argument itself."""
        return self.program.put(code, z, truth, given.ledger, given.nodes)


class Traced(Body):
    """A function that is traced."""

    def argument(self, code: str, z: Tensor, given: Value, truth: Array) -> Value:
        """The number that stands there, on no level."""
        return self.program.put(code, z, truth, given.ledger)
