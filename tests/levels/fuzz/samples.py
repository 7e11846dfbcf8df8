"""Transforms that run on many samples: ``vmap``, alone and around others, and the Jacobians, which run on many directions."""

from typing import Any

from fuzz.bodies import Body
from fuzz.calls import Calls
from fuzz.ledger import merged, taken_out
from fuzz.pool import Value
from fuzz.truth import Array, derivative, gradient, total
from nestgrad import func, stack

MODEST = 3.0
"""Samples whose truth is not followed must not overflow, since what is not finite spreads to all."""


class Samples(Calls):
    """Steps that run them. Abstract."""

    def mapped(self) -> Value | None:
        """Two samples of a function of some steps, or of its derivative; the truth is about one of them."""
        pair = self.pair()
        if not all(v.small(MODEST) for v in pair):
            return None
        k = self.random.randrange(2)
        given = Value(pair[k].name, pair[k].tensor, pair[k].entries, pair[k].nodes, merged(*(v.ledger for v in pair)))
        kind = self.random.choice(("vmap", "vmap", "grad", "jvp"))
        run = Body(self, [given], scalar=kind == "grad")
        f, _ = self.heading([given])
        f_of: dict[str, Any] = {
            "vmap": run,
            "grad": lambda z: func.grad(run)(z),
            "jvp": lambda z: func.jvp(run, (z,), (z * 0.0 + 1.0,))[1],
        }
        code_of = {"vmap": f, "grad": f"func.grad({f})", "jvp": f"lambda z: func.jvp({f}, (z,), (z * 0.0 + 1.0,))[1]"}

        def true(out: Value) -> Array:
            x = run.arguments[0]
            if kind == "grad":
                return gradient(out.entries, x.nodes, None, run.tape.birth)
            return tuple(total(tuple(derivative(e, y, run.tape.birth) for y in x.nodes)) for e in out.entries)

        samples = stack([v.tensor for v in pair])
        made = self.ran(run, lambda: func.vmap(f_of[kind])(samples), None if kind == "vmap" else true, stash=0.1)
        out = run.out
        assert out is not None
        entries = out.entries if kind == "vmap" else true(out)
        self.counts["mapped"] += 1
        code = f"func.vmap({code_of[kind]})(stack([{pair[0].name}, {pair[1].name}]))[{k}]"
        return self.put(code, made[k], entries, self.without_transform(out, run.arguments[0], run.tape))

    def jacobian(self) -> Value | None:
        """A row of a Jacobian of a function of some steps, or of its Hessian."""
        x = self.argument()
        kind = self.random.choice(("jacfwd", "jacfwd", "jacrev", "hessian"))
        run = Body(self, [x], scalar=kind == "hessian")
        f, _ = self.heading([x])
        row = self.random.random()

        def true(out: Value) -> Array:
            nodes = run.arguments[0].nodes
            if kind == "hessian":
                first = gradient(out.entries, nodes, None, run.tape.birth)
                e = first[int(row * len(first))]
                return tuple(derivative(e, y, run.under.birth) for y in nodes)
            if len(nodes) > 1:
                e = out.entries[int(row * len(out.entries))]
                return tuple(derivative(e, y, run.tape.birth) for y in nodes)
            return tuple(derivative(e, nodes[0], run.tape.birth) for e in out.entries)

        made = self.ran(run, lambda: getattr(func, kind)(run)(x.tensor), true)
        out = run.out
        assert out is not None
        if made.ndim == 2:
            k = int(row * made.shape[0])
            made, place = made[k], f"[{k}]"
        else:
            place = ""
        oldest = run.under if kind == "hessian" else run.tape
        number = run.arguments[0].number
        assert number is not None
        ledger = out.ledger
        if number in ledger:
            ledger = taken_out(ledger, self.tapes.since(oldest.birth))
        return self.put(f"func.{kind}({f})({x.name}){place}", made, true(out), ledger)
