"""Random small functions, with derivatives, ``detach`` and captured tensors in them: a call is what the function is, on every level."""

from typing import Any

import numpy as np
from cases import X, Y
from hypothesis import given, settings
from random_steps import steps_of

import nestgrad as ng
from nestgrad import func

BACKEND = ng.NumpyBackend()

UNARY = {
    "sin": lambda x: x.sin(),
    "tanh": lambda x: x.tanh(),
    "exp": lambda x: (0.3 * x).tanh().exp(),
    "square": lambda x: (0.5 * x) ** 2,
    "reverse": lambda x: x[::-1],
    "mean": lambda x: x.mean().broadcast_to(3),
    "softmax": lambda x: ng.softmax(x),
    "relu": lambda x: ng.relu(x),
    "detach": lambda x: x.detach(),
    "gradient": lambda x: func.grad(lambda z: (z * z.sin()).sum())(x),
    "looked up": lambda x: _looked_up(x),
}
BINARY = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "maximum": lambda x, y: ng.maximum(x, y),
    "where": lambda x, y: ng.where(x > y, x * y, y),
    "gradient by one": lambda x, y: func.grad(lambda z: (z * y).sin().sum() + (z.detach() * y * z).sum())(x),
    "dot": lambda x, y: (x @ y).tanh() * y,
}


def _looked_up(x: Any) -> Any:
    S = ng.Autodiff(BACKEND)
    z = S.tensor(x, requires_grad=True)
    return (z * z * z.detach() * 0.5).sum().wrt(z)


steps = steps_of(UNARY, BINARY, back=5, most=7)


def function(chosen: list[tuple[Any, ...]], captured: Any) -> Any:
    """A function of a vector, made of the steps; each takes what it finds that many places back, where nothing else is."""

    def f(x: Any) -> Any:
        values = [captured, ng.tensor([0.7, -0.1, 0.4]), x]
        for name, *places in chosen:
            args = [values[-1 - k % len(values)] for k in places]
            values.append(UNARY[name](*args) if name in UNARY else BINARY[name](*args))
        return (values[-1] * values[-1 if len(values) < 5 else -2]).sum() + 0.0 * x.sum()

    return f


@settings(max_examples=60, deadline=None, derandomize=True)
@given(steps)
def test_a_call_is_what_the_function_is(chosen: list[tuple[Any, ...]]):
    S = ng.Autodiff(ng.Autodiff(BACKEND))
    w = S.tensor([0.2, 0.9, -0.5], requires_grad=True)
    f = function(chosen, w)
    program = ng.func.trace(f)(ng.tensor(Y))

    def run(x: Any) -> Any:
        return ng.func.call(program, x)

    def everything(f: Any) -> list[Any]:
        x, u = S.tensor(X, requires_grad=True), ng.tensor([1.0, -2.0, 0.5])
        out = f(x)
        found = [out.detach()]
        for by in (x, w):
            first = out.backward().get(by)
            found.append(ng.zeros(3) if first is None else first.detach())
            for again in (x, w):
                connected = first is not None and (first * u).sum().tracked_on()
                second = (first * u).sum().backward().get(again) if connected else None
                found.append(ng.zeros(3) if second is None else second.detach())
        F, T, B = ng.Forward(BACKEND), ng.Taylor(BACKEND, order=3), ng.Batched(BACKEND)
        found += [t.detach() for t in T.terms(f(T.series(ng.tensor(X), u)))]
        found += [F.tangent(f(F.dual(ng.tensor(X), u))).detach(), B.unbatch(f(B.batch(ng.stack([x.detach(), u]))), size=2).detach()]
        return found

    for got, want in zip(everything(run), everything(f), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-10)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(steps)
def test_a_trace_of_a_call_is_the_same_program(chosen: list[tuple[Any, ...]]):
    """Replaying a program in a trace gives it back, up to which array is a constant of its own."""
    program = ng.func.trace(function(chosen, ng.tensor([0.2, 0.9, -0.5])))(ng.tensor(Y))
    again = ng.func.trace(lambda x: ng.func.call(program, x))(ng.tensor(X))
    assert str(again) == str(program)
