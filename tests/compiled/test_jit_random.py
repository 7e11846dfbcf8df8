"""Random small functions, compiled: look-ups, ``detach``, ``inner``, stacks and closed-over tensors in them are what they are without."""

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import X, Y
from hypothesis import given, settings, strategies as st
from likeness import alike, outcome, stacked, var
from random_steps import steps_of

import nestgrad as ng
from nestgrad import func, jit
from nestgrad.errors import LevelError, NestgradError
from nestgrad.levels.base import now

BACKEND = ng.NumpyBackend()


class Outside:
    """What a function closes over: a stack, a variable and a derivative on it, data."""

    def __init__(self, w: list[float], shift: float) -> None:
        self.S = stacked(BACKEND, 2)
        self.w = var(self.S, w)
        self.slope = (self.w**3).sum().wrt(self.w)
        self.data = np.array(w) + shift


UNARY: dict[str, Callable[[Outside, Any], Any]] = {
    "sin": lambda o, x: x.sin(),
    "tanh": lambda o, x: x.tanh(),
    "exp": lambda o, x: (0.3 * x).tanh().exp(),
    "square": lambda o, x: (0.5 * x) ** 2,
    "reverse": lambda o, x: x[::-1],
    "mean": lambda o, x: x.mean().broadcast_to(3),
    "softmax": lambda o, x: ng.softmax(x),
    "detach": lambda o, x: x.detach(),
    "detach one": lambda o, x: x.detach(level=o.S),
    "inner": lambda o, x: x.inner(),
    "times w": lambda o, x: x * o.w,
    "times slope": lambda o, x: x * o.slope,
    "plus data": lambda o, x: x + o.data,
    "gradient": lambda o, x: func.grad(lambda z: (z * z.sin() * o.w).sum())(x),
    "own stack": lambda o, x: _own(x),
    "variable": lambda o, x: o.S.tensor(x, requires_grad=True),
    "by variable": lambda o, x: _by_variable(o, x),
    "compiled": lambda o, x: jit(lambda z: z.sin() * o.w)(x),
}
BINARY: dict[str, Callable[[Outside, Any, Any], Any]] = {
    "add": lambda o, x, y: x + y,
    "mul": lambda o, x, y: x * y,
    "where": lambda o, x, y: ng.where(x > y, x * y, y),
    "look up": lambda o, x, y: (x * x * 0.5).sum().wrt(y),
    "look up w": lambda o, x, y: (x * y).sum().wrt(o.w),
    "look up or zero": lambda o, x, y: _or_zero((x * x.sin()).sum().backward().get(y)),
    "seed": lambda o, x, y: x.grad((x * x * 0.5).backward(gradient=y)),
    "gradient by one": lambda o, x, y: func.grad(lambda z: (z * y).sin().sum() + (z.detach() * y * z).sum())(x),
}


def _own(x: Any) -> Any:
    z = ng.Autodiff(x.backend).tensor(x, requires_grad=True)
    return (z * z * z.detach() * 0.5).sum().wrt(z)


def _by_variable(o: Outside, x: Any) -> Any:
    z = o.S.tensor(x, requires_grad=True)
    return (z * z * o.w).sum().wrt(z)


def _or_zero(g: Any) -> Any:
    return ng.zeros(3) if g is None else g


steps = steps_of(UNARY, BINARY, back=5, most=6)
Steps = list[tuple[Any, ...]]


def function(chosen: Steps, o: Outside) -> Callable[..., Any]:
    """A function of two vectors, made of the steps; each takes what it finds that many places back. A step that raises is the end."""

    def f(x: Any, y: Any) -> tuple[Any, Any]:
        values = [y, x]
        for name, *places in chosen:
            args = [values[-1 - k % len(values)] for k in places]
            values.append(UNARY[name](o, *args) if name in UNARY else BINARY[name](o, *args))
        return values[-1] * 1.0, values[-2]

    return f


KINDS: dict[str, Callable[[Outside, list[float]], Any]] = {
    "two levels": lambda o, a: var(o.S, a),
    "one level": lambda o, a: var(o.S, a, levels=[1]),
    "history": lambda o, a: var(o.S, a) * 1.5,
    "w": lambda o, a: o.w,
    "marked": lambda o, a: o.slope,
    "marked anew": lambda o, a: (lambda t: (t**3).sum().wrt(t))(var(o.S, a)),
    "data": lambda o, a: ng.tensor(a),
    "three levels": lambda o, a: var(ng.Autodiff(o.S), a),
}


def compared(f: Callable[..., Any], g: Callable[..., Any], x: Any, y: Any, o: Outside) -> str:
    """That ``g`` gives what ``f`` gives, and so do derivatives of the results; or that it raises."""
    begun = now()
    want, got = outcome(f, x, y), outcome(g, x, y)
    if isinstance(got, Exception):
        if not isinstance(want, Exception):  # what only a compiled function refuses says so
            assert isinstance(got, (LevelError, ng.errors.TraceError)), got
            return "refused"
        return "raised"
    assert not isinstance(want, Exception), f"{got} where {want!r} is right"
    alike(got, want, rtol=1e-9, since=begun)
    for part, right in zip(got, want, strict=True):
        for by in (x, y, o.w):
            first, second = (outcome(derivatives, p, by) for p in (part, right))
            if isinstance(second, NestgradError):
                assert isinstance(first, NestgradError), f"{first} where {second!r} is right"
            else:
                assert not isinstance(first, NestgradError), f"{first!r} where {second} is right"
                alike(first, second, rtol=1e-9, since=begun)
    return "right"


def derivatives(y: Any, x: Any) -> list[Any]:
    """As many as there are levels for, one after the other."""
    found = []
    y = y.sum()
    while True:
        try:
            y = y.wrt(x)
        except NestgradError:
            if found:
                return found
            raise
        found.append(y)
        y = (y * ng.tensor([1.0, -2.0, 0.5])).sum()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(steps, st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(KINDS))), min_size=1, max_size=3))
def test_a_compiled_function_is_the_function_at_every_call(chosen: Steps, calls: list[tuple[str, str]]):
    """Each kind of arguments twice, at different points, in between calls of other kinds; the last once more, as the first."""
    o = Outside([0.2, 0.9, -0.5], 0.3)
    f = function(chosen, o)
    g = jit(f)
    for k, (one, two) in enumerate([*calls, *calls, calls[0]]):
        a, b = (X, Y) if k % 2 else (Y, [0.4, -0.3, 0.8])
        compared(f, g, KINDS[one](o, a), KINDS[two](o, b), o)


def test_few_of_the_random_functions_are_refused():
    """Of those that give results; the rest are right, so that the test before this one does not pass on errors alone."""
    rng = np.random.default_rng(5)
    counts = {"right": 0, "raised": 0, "refused": 0}
    words = [*sorted(UNARY), *sorted(BINARY)]
    for _ in range(150):
        chosen = [(words[k], *rng.integers(0, 6, 1 if words[k] in UNARY else 2).tolist()) for k in rng.integers(0, len(words), 4)]
        o = Outside([0.2, 0.9, -0.5], 0.3)
        f = function(chosen, o)
        g = jit(f)
        one, two = (sorted(KINDS)[k] for k in rng.integers(0, len(KINDS), 2))
        for a, b in ((X, Y), (Y, X)):
            counts[compared(f, g, KINDS[one](o, a), KINDS[two](o, b), o)] += 1
    assert counts["right"] > 100 and counts["refused"] <= 0.1 * counts["right"], counts


@settings(max_examples=60, deadline=None, derandomize=True)
@given(steps, st.permutations(range(3)), st.permutations(range(3)))
def test_one_trace_is_not_used_for_another_order_of_ages(chosen: Steps, first: list[int], second: list[int]):
    """The arguments and what the function closes over are made in another order at the second call: which is older decides what a mark of
    one takes off the other."""

    class Cell:
        w: Any
        slope: Any

    cell, S = Cell(), stacked(BACKEND, 2)
    o = Outside([0.2, 0.9, -0.5], 0.3)
    o.S = S

    def f(x: Any, y: Any) -> Any:
        o.w, o.slope = cell.w, cell.slope
        return function(chosen, o)(x, y)

    def made(order: list[int]) -> tuple[Any, Any]:
        values: dict[int, Any] = {}
        for k in order:
            values[k] = var(S, [X, Y, [0.2, 0.9, -0.5]][k])
            if k == 2:
                cell.w, cell.slope = values[k], (values[k] ** 3).sum().wrt(values[k])
        return values[0], (values[1] ** 2).sum().wrt(values[1])

    g = jit(f)
    for order in (first, second, first):
        x, y = made(order)
        compared(f, g, x, y, o)
