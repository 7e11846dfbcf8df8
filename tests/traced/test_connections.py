"""What the result of a call depends on is what the function says: ``detach``, marks, zero derivatives; also where arrays are made again."""

from typing import Any

import numpy as np
import pytest
from cases import FUNCTIONS, X, Y, close, stack

import nestgrad as ng
from nestgrad import func
from nestgrad.errors import NotConnectedError

x0, y0 = ng.tensor(X), ng.tensor(Y)


def test_detach_is_an_op_of_the_program():
    program = ng.func.trace(lambda x: x * x.detach())(ng.tensor(2.0))
    assert [step.op.name for step in program.instructions] == ["stop", "mul"]
    f = lambda x: ng.func.call(program, x)
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
    program = ng.func.trace(lambda x: f(x) * x)(ng.tensor(2.0))
    x = ng.Autodiff(ng.NumpyBackend()).tensor(3.0, requires_grad=True)
    y = ng.func.call(program, x)
    assert (y.item(), y.wrt(x).item()) == (9.0, (f(x) * x).wrt(x).item())


def test_marks_of_arguments_and_of_captured_tensors_are_kept():
    """A derivative that was taken out of a level keeps the promise of rule 2 through a program, as an argument and captured."""
    for captured in (False, True):
        S = stack(ng.NumpyBackend(), 2)
        x = S.tensor(2.0, requires_grad=True)
        u_x = (x**3).wrt(x)
        if captured:
            program = ng.func.trace(lambda x, u_x=u_x: x * u_x)(ng.tensor(1.0))
            y = ng.func.call(program, x)
        else:
            y = ng.func.call(ng.func.trace(lambda x, d: x * d)(ng.tensor(1.0), ng.tensor(1.0)), x, u_x)
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

    y = ng.func.call(ng.func.trace(f)(ng.tensor(1.0)), S.tensor(3.0, requires_grad=True))
    assert [tape.name for tape in y.marks] == ["Autodiff"] and y.tracked_on() == (S.tape,)


def test_an_output_is_tracked_if_the_function_depends_on_a_tracked_argument():
    """By what it is computed from; not through ``detach`` and comparisons, and not on arguments that it ignores."""
    S = ng.Autodiff(ng.NumpyBackend())
    x, y = S.tensor(X, requires_grad=True), S.tensor(Y, requires_grad=True)

    def f(x: Any, y: Any) -> Any:
        return x * 2.0, x.detach() * 2.0, ng.where(x > 0, y, 0.0), (x > 0).astype("float64"), ng.ones(2)

    program = ng.func.trace(f)(ng.tensor(X), ng.tensor(Y))
    assert program.connected == ({0}, set(), {1}, set(), set())
    for only in ((x, ng.tensor(Y)), (ng.tensor(X), y), (x, y)):
        for got, want in zip(ng.func.call(program, *only), f(*only), strict=True):
            assert got.tracked_on() == want.tracked_on() and bool(got.marks) == bool(want.marks)
    with pytest.raises(NotConnectedError):
        ng.func.call(ng.func.trace(lambda x, y: x.sin())(x0, y0), x, y).wrt(y)


def test_a_derivative_that_is_constant_is_tied_to_its_root():
    """The curvature of a linear function is zero, and not missing, also where the first derivative was taken inside."""
    S = ng.Autodiff(ng.NumpyBackend())

    def inside(x: Any) -> Any:
        x = S.tensor(x, requires_grad=True)
        return (3.0 * x).sum().wrt(x)

    for f in (inside, func.grad(lambda x: (3.0 * x).sum()), lambda x: ng.func.call(ng.func.trace(inside)(x), x)):
        program = ng.func.trace(f)(x0)
        assert program.instructions == () and program.connected == ({0},)
        x = S.tensor(X, requires_grad=True)
        y = ng.func.call(program, x)
        assert y.tolist() == [3.0] * 3 and y.wrt(x).tolist() == [0.0] * 3
        nested = ng.func.trace(lambda x, program=program: ng.func.call(program, x * 2.0))(x0)
        assert ng.func.call(nested, x).wrt(x).tolist() == [0.0] * 3


def test_a_replay_keeps_no_array_longer_than_it_is_read():
    alive: list[int] = []
    peak = [0]

    class Array(np.ndarray):
        def __del__(self) -> None:
            alive.pop()

    class Watching(ng.NumpyBackend):
        def sin(self, x: Any) -> Any:
            alive.append(1)
            peak[0] = max(peak[0], len(alive))
            return np.sin(np.asarray(x)).view(Array)

    program = ng.func.trace(lambda x: x.sin().sin().sin().sin().sin().sin().sin().sin())(x0)
    program.replay(Watching(), [x0.value])
    assert peak[0] == 2 and not alive


def test_checkpoints_inside_a_trace_and_calls_inside_checkpoints():
    f = FUNCTIONS["net"]
    x, y = ng.tensor(X), ng.tensor(Y)
    program = ng.func.trace(lambda x, y: func.grad(lambda x: ng.checkpoint(f)(x, y))(x).sum())(y, x)
    assert not program.captured
    want = func.grad(lambda x: func.grad(lambda x: f(x, y))(x).sum())(x)
    close(func.grad(lambda x: ng.func.call(program, x, y))(x), want)
    run = ng.func.trace(f)(y, x)
    close(func.grad(lambda x: func.grad(ng.checkpoint(lambda x: ng.func.call(run, x, y)))(x).sum())(x), want)


def test_a_level_that_recomputes_differentiates_calls():
    f = FUNCTIONS["net"]
    run = ng.func.trace(f)(ng.tensor(Y), ng.tensor(X))
    S = ng.Autodiff(ng.Autodiff(ng.NumpyBackend(), checkpointing=ng.Balanced()), checkpointing=ng.Balanced())
    found = []
    for g in (f, lambda *xs: ng.func.call(run, *xs)):
        x, y = S.tensor(X, requires_grad=True), S.tensor(Y, requires_grad=True)
        u = g(x, y)
        found.append([u.detach(), u.wrt(x).detach(), u.wrt(x).sum().wrt(y)])
    for got, want in zip(found[1], found[0], strict=True):
        close(got, want)
