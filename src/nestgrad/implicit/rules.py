"""The rules: of a solution, and of the linear systems that its derivatives ask for.

With ``F(x, p) = 0``, ``A = dF/dx`` and a cotangent ``g`` of ``x``: the one of ``p`` is ``-(dF/dp)' l`` where ``A' l = g``. And of a linear
system ``M(q) y = r``, with a cotangent ``g`` of ``y``: the one of ``r`` is ``z`` where ``M' z = g``, that of ``q`` the gradient of
``-<z, M(q) y>``. Here M is ``A`` or its transpose, and ``q`` the pair of ``x`` and ``p``: so the derivative of a system is a system again.
"""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

from nestgrad.custom.attach import Rules, attach
from nestgrad.custom.body import refuse_strangers
from nestgrad.custom.transposition import Linear, transposed
from nestgrad.errors import ConvergenceError, LevelError, ShapeError
from nestgrad.func.forward import linearize
from nestgrad.func.reverse import vjp
from nestgrad.func.run import as_leaf, outside
from nestgrad.implicit.krylov import gmres, norm
from nestgrad.levels.base import Coat
from nestgrad.levels.coats import bare
from nestgrad.levels.marks import NONE
from nestgrad.levels.recipe import Remade
from nestgrad.levels.shared import Shared
from nestgrad.levels.traced.wire import Wire
from nestgrad.ops.samples import Samples
from nestgrad.ops.table import CONSTANT, Op
from nestgrad.tensor import Tensor
from nestgrad.tensor.handle import make


class Problem:
    """Equations ``F(x, *params) = 0``, and what solves them."""

    def __init__(self, name: str, solver: Callable[..., Any], residual: Callable[..., Tensor], linear_solver: Callable[..., Any] | None):
        self.name, self.solver, self.residual, self.linear_solver = name, solver, residual, linear_solver

    def solve(self, b: Any, params: Sequence[Any], check: bool) -> Any:
        """The solution for raw arrays."""
        given = [make(b, p, NONE) for p in params]
        x = as_leaf(self.name, self.solver(*given), b).detach()
        if x.b.base != b.base:
            raise LevelError(f"{self.name}: the solver returned a tensor over {x.b.base!r}; expected one over {b.base!r}")
        floating = [p.dtype for p in given if b.base.is_floating(p.value)]
        if floating and x.dtype != floating[0] and b.base.is_floating(bare(x.value)):
            x = x.astype(floating[0])
        if check:
            self._verify(x, given)
        return b.read(x.value)

    def _verify(self, x: Tensor, params: Sequence[Tensor]) -> None:
        f = self.residual(x, *params).detach()
        if tuple(f.shape) != tuple(x.shape) or norm(f) == 0.0:
            return
        by = norm(self.linear(x, params, f, False))
        allowed = accuracy(x) * (1.0 + norm(x))
        if not by <= allowed:
            raise ConvergenceError(
                f"{self.name}: the solver's result is no solution: its residual has norm {norm(f):.3g}, and a Newton step would move it "
                f"by {by:.3g}; expected at most {allowed:.2g}. Try more iterations, or a smaller tolerance, in the solver; or check=False, "
                "which takes it as it is"
            )

    def linear(self, x: Tensor, params: Sequence[Tensor], rhs: Tensor, adjoint: bool) -> Tensor:
        """The solution of ``A y = rhs``, or ``A' y = rhs``; all are constants."""
        f = lambda at: self.residual(at, *params)
        if adjoint:
            pullback = vjp(f, x)[1]
            matvec: Callable[[Tensor], Tensor] = lambda v: pullback(v)[0]
        else:
            matvec = linearize(f, x)[1]
        if self.linear_solver is None:
            return gmres(matvec, rhs, accuracy(x))
        y = outside(as_leaf(self.name, self.linear_solver(matvec, rhs), rhs.b)).detach()
        if tuple(y.shape) != tuple(rhs.shape):
            raise ShapeError(
                f"{self.name}: linear_solver returned shape {tuple(y.shape)}; expected that of the right side, {tuple(rhs.shape)}"
            )
        return y if y.dtype == rhs.dtype else y.astype(rhs.dtype)

    def __str__(self) -> str:
        return self.name


class _System:
    """A linear system of a problem; what ``SOLVE`` finds is the solution."""

    def __init__(self, problem: Problem, adjoint: bool) -> None:
        self.problem, self.adjoint = problem, adjoint

    def solve(self, b: Any, values: Sequence[Any], check: bool) -> Any:
        """The solution for the raw right side, which is the first, and the point."""
        rhs, x, *params = [make(b, v, NONE) for v in values]
        return b.read(self.problem.linear(x, params, rhs, self.adjoint).value)

    def __str__(self) -> str:
        return f"{self.problem}, {'adjoint' if self.adjoint else 'linear'} system"


class _Pulled(Rules):
    """Rules of which the one for tangents is the transpose of the one for cotangents."""

    reads_xs = reads_out = True

    def __init__(self, problem: Problem, b: Any, out: Any) -> None:
        self.problem, self.name = problem, problem.name
        self.like = (tuple(b.shape(out)), b.dtype(out))

    def push(self, b: Any, ts: Sequence[Any], out: Any, saved: Sequence[Any], xs: Sequence[Any]) -> Any:
        """The transpose of ``pull``."""
        moving = [i for i, t in enumerate(ts) if t is not None]

        def cotangents(gs: list[Any]) -> list[Any]:
            found = self.pull(b, gs[0], out, saved, xs, moving)
            return [found[i] for i in moving]

        return transposed((f"the rule of {self.name}", "a residual"), b, cotangents, [self.like], [ts[i] for i in moving])[0]

    def values(self, found: Sequence[Tensor], known: Sequence[Any]) -> list[Any]:
        """Cotangents as values, after a look at what they depend on."""
        outer = [outside(x) for x in found]
        refuse_strangers(self.name, outer, known)
        return [x.value for x in outer]


class Solution(_Pulled):
    """Of a solution: it depends on the parameters."""

    def pull(self, b: Any, g: Any, out: Any, saved: Sequence[Any], xs: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
        """``-(dF/dp)' l`` where ``A' l = g``."""
        x, *params = [make(b, v, NONE) for v in (out, *xs)]
        adjoint = make(b, linear_system(b, self.problem, True, g, [out, *xs]), NONE)

        def f(*moved: Tensor) -> Tensor:
            given = dict(zip(wanted, moved, strict=True))
            return self.problem.residual(x, *(given.get(i, p) for i, p in enumerate(params)))

        cotangents = vjp(f, *(params[i] for i in wanted))[1](-adjoint)
        found: list[Any] = [None] * len(xs)
        for i, c in zip(wanted, self.values(cotangents, [g, out, *xs]), strict=True):
            found[i] = c
        return found


class _LinearSolution(_Pulled):
    """Of a linear system: the solution depends on the right side, and on the point at which the matrix is taken."""

    def __init__(self, problem: Problem, adjoint: bool, b: Any, out: Any) -> None:
        super().__init__(problem, b, out)
        self.adjoint = adjoint

    def pull(self, b: Any, g: Any, out: Any, saved: Sequence[Any], xs: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
        """``z`` where ``M' z = g``, and the gradient of ``-<z, M y>`` by the point."""
        z = linear_system(b, self.problem, not self.adjoint, g, xs[1:])
        found: list[Any] = [z, *[None] * (len(xs) - 1)]
        points = [i for i in wanted if i > 0]
        if points:
            y, left = make(b, out, NONE), make(b, z, NONE)
            u, v = (y, left) if self.adjoint else (left, y)  # the product is <u, A v>
            where = [make(b, p, NONE) for p in xs[1:]]

            def product(*moved: Tensor) -> Tensor:
                given = dict(zip(points, moved, strict=True))
                x, *params = [given.get(i, p) for i, p in enumerate(where, 1)]
                pulled: Tensor = vjp(lambda at: self.problem.residual(at, *params), x)[1](u)[0]
                return (pulled * v).sum()

            cotangents = vjp(product, *(where[i - 1] for i in points))[1](-1.0)
            for i, c in zip(points, self.values(cotangents, [g, out, *xs]), strict=True):
                found[i] = c
        return found


def linear_system(b: Any, problem: Problem, adjoint: bool, rhs: Any, point: Sequence[Any]) -> Any:
    """The solution of a linear system as a differentiable function of the right side, and of the point (``x`` and parameters)."""
    out = b.run(SOLVE, [still(rhs), *map(still, point)], (_System(problem, adjoint), False))
    return attach(b, _LinearSolution(problem, adjoint, b, out), out, (), [rhs, *point])


def still(p: Any) -> Any:
    """The value as a constant on every level that differentiates; batches and traces stay."""
    if not isinstance(p, Coat) or isinstance(p, (Shared, Remade, Wire)):
        return p
    return still(p.value) if p.differentiates or isinstance(p, Linear) else p.mapped(still)


def accuracy(x: Tensor) -> float:
    """Half of the digits of x's dtype."""
    from nestgrad.testing.differences import precision

    return sqrt(precision(x.b.base, x.dtype))


def _one_by_one(b: Any, n: int, xs: Sequence[Any], on: Sequence[bool], what: Any, check: bool) -> Any:
    """A black box knows nothing of batches."""
    if n == 0:
        raise ShapeError(f"{what}: got a batch of no samples, and the shape of a solution is known only if there is one")
    outs = [b.run(SOLVE, [b.getitem(x, (k,)) if here else x for x, here in zip(xs, on, strict=True)], (what, check)) for k in range(n)]
    return b.concat(*(b.reshape(out, (1, *b.shape(out))) for out in outs), axis=0)


SOLVE = Op(
    "solve",
    CONSTANT,
    ("xs",),
    ("what", "check"),
    (),
    (None,),
    None,
    False,
    Samples(()),
    native=lambda b: lambda *xs, what, check: what.solve(b.base.dressed, xs, check),
    batched=_one_by_one,
)
"""A solution as a constant: whatever it depends on, its derivative is given by ``attach``."""
