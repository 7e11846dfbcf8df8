"""A call in forward, Taylor and batched mode, under mixtures of levels, and every op of the table in a call."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import BACKENDS, U, V, W, X, Y, called, close, stack

import nestgrad as ng
from nestgrad import func
from nestgrad.levels.base import Coat
from nestgrad.levels.marks import NONE
from nestgrad.levels.reverse.node import Tracked
from nestgrad.ops import TABLE, Kind
from nestgrad.tensor.handle import make
from nestgrad.testing import calling


def test_tangents(f: Callable[..., Any], backend: Any):
    def second(f: Callable[..., Any]) -> list[Any]:
        F = ng.Forward(backend)
        G = ng.Forward(F)
        x = G.dual(F.dual(backend.tensor(X), backend.tensor(U)), backend.tensor(V))
        y = F.dual(backend.tensor(Y), backend.tensor(V))
        out = f(x, y)
        return [F.primal(G.primal(out)), F.tangent(G.primal(out)), F.tangent(G.tangent(out))]

    for got, want in zip(second(called(f, backend)), second(f), strict=True):
        close(got, want)


def test_taylor_coefficients(f: Callable[..., Any], backend: Any):
    def terms(f: Callable[..., Any]) -> Any:
        T = ng.Taylor(backend, order=4)
        return T.terms(f(T.series(backend.tensor(X), backend.tensor(U)), T.series(backend.tensor(Y), backend.tensor(V) * 0.0, U)))

    for got, want in zip(terms(called(f, backend)), terms(f), strict=True):
        close(got, want, rtol=1e-10)


@pytest.mark.parametrize("which", [(True, True), (True, False), (False, True)])
def test_batches(f: Callable[..., Any], which: tuple[bool, bool], backend: Any):
    B = ng.Batched(backend)
    rows = [[X, U, V], [Y, V, X]]
    args = [B.batch(r) if many else backend.tensor(r[0]) for r, many in zip(rows, which, strict=True)]
    got = B.unbatch(called(f, backend)(*args), size=3)
    for k in range(3):
        want = f(*(backend.tensor(r[k] if many else r[0]) for r, many in zip(rows, which, strict=True)))
        close(got[k], want)


@pytest.mark.parametrize("order", [*itertools.permutations("RFTB", 3)], ids="".join)
def test_levels_nest_over_a_call_in_every_order(order: tuple[str, ...]):
    """Each level as a map of functions, as ``tests/levels`` nests them: the call under three of them is what the function is."""
    backend = ng.NumpyBackend()
    u = backend.tensor(U)

    def over(level: str, f: Callable[..., Any]) -> Callable[..., Any]:
        def reverse(x: Any) -> Any:
            return (func.grad(f)(x) * u).sum()

        def forward(x: Any) -> Any:
            F = ng.Forward(backend)
            return F.tangent(f(F.dual(x, u)))

        def taylor(x: Any) -> Any:
            T = ng.Taylor(backend, order=2)
            return T.terms(f(T.series(x, u)))[2]

        def batch(x: Any) -> Any:
            B = ng.Batched(backend)
            return (B.unbatch(f(B.batch(ng.stack([x, 0.9 * x]))), size=2) * ng.tensor([1.5, -0.5])).sum()

        return {"R": reverse, "F": forward, "T": taylor, "B": batch}[level]

    def nested(f: Callable[..., Any]) -> Any:
        for level in order:
            f = over(level, f)
        return f(backend.tensor(X))

    def f(x: Any) -> Any:
        return (x.sin() * ng.tensor(W)).sum().exp() + (x**3).sum()

    program = ng.func.trace(f)(backend.tensor(Y))
    close(nested(lambda x: ng.func.call(program, x)), nested(f), rtol=1e-9)


def test_a_trace_inside_a_batch_is_of_one_sample():
    B = ng.Batched(ng.NumpyBackend())
    x = B.batch([X, Y])
    program = ng.func.trace(lambda x: (x * x).sum())(x)
    assert str(program).splitlines()[0] == "input v0: float64[3]"
    np.testing.assert_allclose(B.unbatch(ng.func.call(program, x)).numpy(), [np.dot(X, X), np.dot(Y, Y)])


def test_a_batch_inside_a_trace_is_an_axis_of_the_program():
    def f(x: Any) -> Any:
        B = ng.Batched(ng.NumpyBackend())
        return B.unbatch((B.batch(x) ** 2).sum())

    program = ng.func.trace(f)(ng.tensor(W))
    assert [step.op.name for step in program.instructions] == ["square", "sum"] or len(program.instructions) == 2
    np.testing.assert_allclose(ng.func.call(program, ng.tensor(W)).numpy(), (np.array(W) ** 2).sum(1))


class Counting(Coat):
    """A level of a user: it counts the ops on what wears it."""

    __slots__ = ("seen",)
    differentiates = False
    seen: list[str]

    def over(self, inner: Any) -> "Counting":
        coat = Counting()
        coat.tape, coat.value, coat.seen = self.tape, inner, self.seen
        return coat

    def apply(self, b: Any, op: Any, args: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
        self.seen.append(op.name)
        return self.over(b.run(op, [a.value if isinstance(a, Counting) and a.tape is self.tape else a for a in args], params))


def test_a_level_without_a_rule_gets_the_ops_one_by_one():
    b = ng.NumpyBackend().dressed
    coat = Counting()
    coat.tape, coat.value, coat.seen = ng.Forward(ng.NumpyBackend()).tape, np.array(Y), []
    program = ng.func.trace(lambda x: (x.sin() * x).sum())(ng.tensor(X))
    out = ng.func.call(program, make(b, coat, NONE))
    assert coat.seen == ["sin", "mul", "sum"] and isinstance(out.value, Counting)


def test_transforms_of_a_call(f: Callable[..., Any]):
    y, u = ng.tensor(Y), ng.tensor(U)

    def transformed(f: Callable[..., Any]) -> list[Any]:
        g = lambda x: f(x, y)
        x = ng.tensor(X)
        xs = ng.stack([x, 0.5 * x, u])
        found = [*func.jvp(g, (x,), (u,)), func.jvp(func.grad(g), (x,), (u,))[1], *func.vjp(g, x)[1](2.0)]
        found += [func.jacfwd(g)(x), func.hessian(g)(x), func.vmap(func.grad(g))(xs)]
        return [*found, func.grad(lambda x: func.vmap(g)(xs * x).sum())(x)]

    for got, want in zip(transformed(called(f, ng.NumpyBackend())), transformed(f), strict=True):
        close(got, want, rtol=1e-10)


@pytest.mark.parametrize("op", [op for op in TABLE.values() if op.kind is not Kind.CONSTANT], ids=lambda op: op.name)
def test_every_op_is_differentiated_through_a_call(op: Any):
    """Second derivatives by two backward passes, and tangents, at each sample."""
    backend = BACKENDS["numpy"]
    S, F = stack(backend, 2), ng.Forward(backend)
    for sample in op.samples.calls:
        arrays, params = sample.native(backend)
        free = [k for k, a in enumerate(arrays) if backend.is_floating(a) and k not in sample.exact]
        plain = [make(backend.dressed, a, NONE) for a in arrays]

        def f(*xs: Any, params: Any = params) -> Any:
            return calling.called(op, *xs, **params)

        program = ng.func.trace(f)(*plain)

        def derivatives(f: Callable[..., Any], plain: Any = plain, free: Any = free) -> list[Any]:
            xs = [S.tensor(x, requires_grad=True) if k in free else x for k, x in enumerate(plain)]
            grads = ((f(*xs) + 0.3) ** 2).sum().backward()
            first = [grads.get(xs[k]) for k in free]
            again = sum((g.exp().sum() for g in first if g is not None), start=ng.tensor(0.0))
            second = [again.backward().get(xs[k]) for k in free] if isinstance(again.value, Tracked) else []
            duals = [F.dual(x, ng.ones_like(x) * 0.5) if k in free else x for k, x in enumerate(plain)]
            return [*first, *second, F.tangent(f(*duals))]

        for got, want in zip(derivatives(lambda *xs, program=program: ng.func.call(program, *xs)), derivatives(f), strict=True):
            if got is None:  # the op is constant in that argument
                assert want is None
                continue
            close(got, ng.zeros(got.shape) if want is None else want)
