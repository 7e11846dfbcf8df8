"""A call is differentiated like the function itself: in every mode, to third order, by arguments and by what is captured."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import BACKENDS, DOUBLE, FUNCTIONS, W, X, Y, close

import nestgrad as ng
from nestgrad import func
from nestgrad.levels.base import Coat
from nestgrad.levels.marks import NONE
from nestgrad.levels.reverse.node import Tracked
from nestgrad.ops import TABLE, Kind
from nestgrad.tensor.handle import make

U, V = [0.2, -1.0, 0.5], [-0.3, 0.4, 0.9]


@pytest.fixture(params=DOUBLE)
def backend(request: pytest.FixtureRequest) -> Any:
    return DOUBLE[request.param]


@pytest.fixture(params=FUNCTIONS)
def f(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return FUNCTIONS[request.param]


def called(f: Callable[..., Any], backend: Any) -> Callable[..., Any]:
    """``f`` by way of a program, recorded at another point."""
    program = ng.trace(f)(backend.tensor(Y), backend.tensor(X))
    return lambda *xs: ng.call(program, *xs)


def stack(backend: Any, n: int) -> Any:
    for _ in range(n):
        backend = ng.Autodiff(backend)
    return backend


# ---------------------------------------------------------------- reverse mode
def test_derivatives_to_third_order_by_transforms(f: Callable[..., Any], backend: Any):
    x, y, u = backend.tensor(X), backend.tensor(Y), backend.tensor(U)

    def third(f: Callable[..., Any]) -> list[Any]:
        first = func.grad(f, argnums=(0, 1))
        second = func.grad(lambda x, y: sum((g * u).sum() for g in first(x, y)), argnums=(0, 1))
        return [*first(x, y), *second(x, y), *func.grad(lambda x, y: sum((g * u).sum() for g in second(x, y)), argnums=(0, 1))(x, y)]

    for got, want in zip(third(called(f, backend)), third(f), strict=True):
        close(got, want, rtol=1e-10)


def test_derivatives_to_third_order_by_lookups(f: Callable[..., Any], backend: Any):
    S = stack(backend, 3)
    u, v = S.tensor(U), S.tensor(V)

    def third(f: Callable[..., Any]) -> list[Any]:
        x, y = S.tensor(X, requires_grad=True), S.tensor(Y, requires_grad=True)
        found, out = [], f(x, y) + 0.0 * (x * y).sum()  # connected to both, as a call is
        for order in range(3):
            grads = out.backward()
            found += [x.grad(grads), y.grad(grads)]
            out = (found[-2] * u).sum() + (found[-1] * v).sum() if order < 2 else out
        return found

    for got, want in zip(third(called(f, backend)), third(f), strict=True):
        close(got, want, rtol=1e-10)


def test_captured_tensors_get_gradients_to_third_order(backend: Any):
    """Of levels that are older than the trace: by a program that holds their values as hidden inputs."""
    S = stack(backend, 3)
    w, v = S.tensor(Y, requires_grad=True), S.tensor(W, requires_grad=True)

    def f(x: Any) -> Any:
        return ((v @ x).tanh() * w * (w * x).sin()).sum()

    program = ng.trace(f)(backend.tensor(X))
    assert len(program.captured) >= 2
    x = S.tensor(U, requires_grad=True)
    for order in itertools.product((w, x), (x, v), (w, v)):
        got, want = ng.call(program, x), f(x)
        for by in order:
            got, want = got.wrt(by).sum(), want.wrt(by).sum()
        close(got, want)


def test_captured_tensors_of_a_running_transform_are_differentiated():
    x = ng.tensor(X)

    def traced(w: Any) -> Any:
        program = ng.trace(lambda x: (w * x).sin().sum())(x)
        return ng.call(program, w) + ng.call(program, w * 2.0)

    def plain(w: Any) -> Any:
        return (w * w).sin().sum() + (w * w * 2.0).sin().sum()

    w = ng.tensor(Y)
    close(func.grad(traced)(w), func.grad(plain)(w))
    close(func.grad(lambda w: func.grad(traced)(w).sum())(w), func.grad(lambda w: func.grad(plain)(w).sum())(w))


def test_a_trace_inside_grad_and_grad_inside_a_trace():
    f = func.grad(lambda z: (z**3).sum() * z[0])

    def inside(x: Any) -> Any:
        return (ng.call(ng.trace(f)(x), x) * x).sum()

    x = ng.tensor(X)
    close(func.grad(inside)(x), func.grad(lambda x: (f(x) * x).sum())(x))


def test_one_call_is_one_step_whatever_its_length():
    """On a level it is a node for each output, and one that they share."""
    S = ng.Autodiff(ng.NumpyBackend())
    long = ng.trace(lambda x: (sum((x * k).sin() for k in range(1, 30)), x.exp()))(ng.tensor(X))
    x = S.tensor(X, requires_grad=True)
    outs = ng.call(long, x)
    assert S.tape.stats().nodes == 4  # x, two outputs, what they share
    assert [out.tracked_on() for out in outs] == [(S.tape,)] * 2


def test_outputs_without_derivative_are_constants():
    S = ng.Autodiff(ng.NumpyBackend())
    x = S.tensor(X, requires_grad=True)
    y, k = ng.call(ng.trace(lambda x: (x.sum(), x.argmax(axis=0)))(ng.tensor(X)), x)
    assert y.tracked_on() and not k.tracked_on() and not k.marks and k.item() == 2


def test_the_derivative_programs_are_made_once():
    program = ng.trace(lambda x: (x**3).sum())(ng.tensor(X))
    made = []
    for _ in range(3):
        func.grad(lambda x: (func.grad(lambda x: ng.call(program, x))(x) ** 2).sum())(ng.tensor(Y))
        made.append((*program.derived.values(),))
    assert len(made[0]) == 1 and all(a is b for a, b in zip(made[0], made[-1], strict=True))


@pytest.mark.parametrize("seeded", [(0,), (1,), (0, 1)])
def test_several_outputs_of_which_some_are_used(seeded: tuple[int, ...]):
    def f(x: Any, y: Any) -> Any:
        z = x * y
        return z.sin(), (z * z).sum()

    run = ng.trace(f)(ng.tensor(X), ng.tensor(Y))

    def loss(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, y: sum((f(x, y)[k] * (k + 2.0)).sum() for k in seeded)

    for k in (0, 1):
        got, want = (
            func.grad(loss(g), argnums=k)(ng.tensor(U), ng.tensor(V)) for g in (lambda *xs: ng.call(run, *xs), f)
        )
        close(got, want)


# ---------------------------------------------------------------- detach and marks
def test_detach_is_an_op_of_the_program():
    program = ng.trace(lambda x: x * x.detach())(ng.tensor(2.0))
    assert [step.op.name for step in program.instructions] == ["stop", "mul"]
    f = lambda x: ng.call(program, x)
    assert f(3.0).item() == 9.0
    assert func.grad(f)(3.0).item() == 3.0
    assert func.grad(func.grad(f))(3.0).item() == 0.0
    S = stack(ng.NumpyBackend(), 2)
    x = S.tensor(3.0, requires_grad=True)
    assert f(x).wrt(x).item() == 3.0
    assert f(x).wrt(x).wrt(x).item() == 0.0
    F = ng.Forward(ng.NumpyBackend())
    assert F.tangent(f(F.dual(3.0, 1.0))).item() == 3.0
    T = ng.Taylor(ng.NumpyBackend(), order=2)
    assert [t.item() for t in T.terms(f(T.series(3.0, 1.0)))] == [9.0, 3.0, 0.0]
    B = ng.Batched(ng.NumpyBackend())
    assert B.unbatch(f(B.batch([3.0, 4.0]))).tolist() == [9.0, 16.0]


def test_detach_inside_a_derivative_inside():
    """d/dz (z detach(z)) = z, whose derivative by x, which z was, is 0."""
    f = func.grad(lambda z: z * z.detach())
    program = ng.trace(lambda x: f(x) * x)(ng.tensor(2.0))
    x = ng.Autodiff(ng.NumpyBackend()).tensor(3.0, requires_grad=True)
    y = ng.call(program, x)
    assert (y.item(), y.wrt(x).item()) == (9.0, (f(x) * x).wrt(x).item())


def test_marks_of_arguments_and_of_captured_tensors_are_kept():
    """A derivative that was taken out of a level keeps the promise of rule 2 through a program, as an argument and captured."""
    for captured in (False, True):
        S = stack(ng.NumpyBackend(), 2)
        x = S.tensor(2.0, requires_grad=True)
        u_x = (x**3).wrt(x)
        if captured:
            program = ng.trace(lambda x, u_x=u_x: x * u_x)(ng.tensor(1.0))
            y = ng.call(program, x)
        else:
            y = ng.call(ng.trace(lambda x, d: x * d)(ng.tensor(1.0), ng.tensor(1.0)), x, u_x)
        want = x * u_x
        assert y.tracked_on() == want.tracked_on() and set(y.marks) == set(want.marks)
        close(y.wrt(x), want.wrt(x))


def test_a_level_that_lives_on_marks_what_the_program_returns():
    S = stack(ng.NumpyBackend(), 1)
    kept = []

    def f(x: Any) -> Any:
        inner = ng.Autodiff(ng.NumpyBackend())
        kept.append(inner.tensor(x, requires_grad=True))
        return kept[0] * 2.0

    y = ng.call(ng.trace(f)(ng.tensor(1.0)), S.tensor(3.0, requires_grad=True))
    assert [tape.name for tape in y.marks] == ["Autodiff"] and y.tracked_on() == (S.tape,)


# ---------------------------------------------------------------- other modes
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

    program = ng.trace(f)(backend.tensor(Y))
    close(nested(lambda x: ng.call(program, x)), nested(f), rtol=1e-9)


def test_a_trace_inside_a_batch_is_of_one_sample():
    B = ng.Batched(ng.NumpyBackend())
    x = B.batch([X, Y])
    program = ng.trace(lambda x: (x * x).sum())(x)
    assert str(program).splitlines()[0] == "input v0: float64[3]"
    np.testing.assert_allclose(B.unbatch(ng.call(program, x)).numpy(), [np.dot(X, X), np.dot(Y, Y)])


def test_a_batch_inside_a_trace_is_an_axis_of_the_program():
    def f(x: Any) -> Any:
        B = ng.Batched(ng.NumpyBackend())
        return B.unbatch((B.batch(x) ** 2).sum())

    program = ng.trace(f)(ng.tensor(W))
    assert [step.op.name for step in program.instructions] == ["square", "sum"] or len(program.instructions) == 2
    np.testing.assert_allclose(ng.call(program, ng.tensor(W)).numpy(), (np.array(W) ** 2).sum(1))


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
    program = ng.trace(lambda x: (x.sin() * x).sum())(ng.tensor(X))
    out = ng.call(program, make(b, coat, NONE))
    assert coat.seen == ["sin", "mul", "sum"] and isinstance(out.value, Counting)


# ---------------------------------------------------------------- every op
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
            return make(xs[0].b, getattr(xs[0].b, op.name)(*(x.value for x in xs), **params), NONE)

        program = ng.trace(f)(*plain)

        def derivatives(f: Callable[..., Any], plain: Any = plain, free: Any = free) -> list[Any]:
            xs = [S.tensor(x, requires_grad=True) if k in free else x for k, x in enumerate(plain)]
            grads = ((f(*xs) + 0.3) ** 2).sum().backward()
            first = [grads.get(xs[k]) for k in free]
            again = sum((g.exp().sum() for g in first if g is not None), start=ng.tensor(0.0))
            second = [again.backward().get(xs[k]) for k in free] if isinstance(again.value, Tracked) else []
            duals = [F.dual(x, ng.ones_like(x) * 0.5) if k in free else x for k, x in enumerate(plain)]
            return [*first, *second, F.tangent(f(*duals))]

        for got, want in zip(derivatives(lambda *xs, program=program: ng.call(program, *xs)), derivatives(f), strict=True):
            close(got, ng.zeros(got.shape) if want is None else want)
