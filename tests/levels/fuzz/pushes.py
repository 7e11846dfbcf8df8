"""Transforms in forward and Taylor mode, and pairs of modes."""

import math
from collections.abc import Callable
from typing import Any

from fuzz.bodies import Body
from fuzz.ledger import merged
from fuzz.pool import Value
from fuzz.transforms import Transforms
from fuzz.truth import Array, Expr, derivative, mul, name, scaled, total
from nestgrad import Tensor, func, stack


class Pushes(Transforms):
    """Steps that run these. Abstract."""

    def push(self) -> Value | None:
        """The tangent, or a Taylor coefficient, of a function of some steps."""
        x = self.argument()
        d = self.seed_for(x)
        k = self.random.choice((1, 1, 1, 2))
        run = Body(self, [x])
        f, _ = self.heading([x])

        def along(out: Value) -> Array:
            entries = out.entries
            for _ in range(k):
                entries = directional(entries, run.arguments[0].nodes, d.entries, run.tape.birth)
            return tuple(scaled(e, 1.0 / math.factorial(k)) for e in entries)

        how = "taylor" if k > 1 else self.random.choice(("jvp", "jvp", "taylor", "linearize"))
        if how == "taylor":
            made = self.ran(run, lambda: func.taylor(run, x.tensor, d.tensor, order=2), along)
            code, values = f"func.taylor({f}, {x.name}, {d.name}, order=2)", made
        elif how == "linearize":
            value, push = self.ran(run, lambda: func.linearize(run, x.tensor), along)
            values = value, push(d.tensor)
            code = f"(lambda y, push: (y, push({d.name})))(*func.linearize({f}, {x.name}))"
        else:
            values = self.ran(run, lambda: func.jvp(run, (x.tensor,), (d.tensor,)), along)
            code = f"func.jvp({f}, ({x.name},), ({d.name},))"
        out = run.out
        assert out is not None
        if self.chance(0.3):
            self.put(f"{code}[0]", values[0], out.entries, dict(out.ledger))
        ledger = merged(self.without_transform(out, run.arguments[0], run.tape), d.ledger)
        return self.put(f"{code}[{k}]", values[k], along(out), ledger)

    def second(self) -> Value | None:
        """A second derivative of one line, by two transforms of any mode."""
        x, c = self.argument(), self.some()
        if len(x.entries) > 1 or len(c.entries) > 1 or not (x.small(10.0) and c.small(10.0)):
            return None
        z = name(x.entries[0])
        body = mul(Expr("sin", mul(z, c.entries[0])), z)
        how = self.random.choice(list(SECOND))
        made = SECOND[how](lambda t: (t * c.tensor).sin() * t, x.tensor)
        code = f"SECOND[{how!r}](lambda t: (t * {c.name}).sin() * t, {x.name})"
        return self.put(code, made, (derivative(derivative(body, z), z),), merged(x.ledger, c.ledger))


def directional(entries: Array, nodes: Array, direction: Array, birth: float) -> Array:
    """The derivative of each entry by ``nodes`` in a direction."""
    return tuple(total(tuple(mul(derivative(e, y, birth), c) for y, c in zip(nodes, direction, strict=True))) for e in entries)


def _tangent(f: Callable[..., Any], x: Any) -> Any:
    return func.jvp(f, (x,), (1.0,))[1]


SECOND: dict[str, Callable[[Callable[[Tensor], Tensor], Any], Any]] = {
    "grad of grad": lambda f, x: func.grad(func.grad(f))(x),
    "jvp of grad": lambda f, x: _tangent(func.grad(f), x),
    "grad of jvp": lambda f, x: func.grad(lambda t: _tangent(f, t))(x),
    "jvp of jvp": lambda f, x: _tangent(lambda t: _tangent(f, t), x),
    "taylor": lambda f, x: func.taylor(f, x, 1.0, order=2)[2] * 2.0,
    "hessian": lambda f, x: func.hessian(f)(x),
    "jacrev of jacfwd": lambda f, x: func.jacrev(func.jacfwd(f))(x),
    "vmap of grad of grad": lambda f, x: func.vmap(func.grad(func.grad(f)))(stack([x, 0.3]))[0],
    "vmap of jvp of grad": lambda f, x: func.vmap(lambda t: _tangent(func.grad(f), t))(stack([-0.4, x]))[1],
    "grad of vmap of grad": lambda f, x: func.grad(lambda t: func.vmap(func.grad(f))(stack([t, 0.2])).sum())(x),
    "linearize of grad": lambda f, x: func.linearize(func.grad(f), x)[1](1.0),
}
"""Second derivatives of a function of a number."""
