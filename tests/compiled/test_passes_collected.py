"""Collected terms: the same values to rounding, what is not finite stays not finite, and nested derivatives come out short."""

import functools
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings, strategies as st
from pass_cases import alone, pinn, run, traced
from random_steps import steps_of

import nestgrad as ng
from nestgrad import func
from nestgrad.compiled.passes import optimized
from nestgrad.compiled.passes.collecting import Collecting, collected
from nestgrad.compiled.passes.factoring import factored
from nestgrad.compiled.passes.rewriting import Code
from nestgrad.compiled.passes.sharing import shared

x = sympy.Symbol("x")
CHAINS: dict[str, tuple[Any, Any]] = {
    "a wave packet": (lambda x: (x.sin() * (-x * x).exp()).tanh(), sympy.tanh(sympy.sin(x) * sympy.exp(-x * x))),
    "a composition": (lambda x: x.tanh().exp().sin(), sympy.sin(sympy.exp(sympy.tanh(x)))),
    "a logarithm": (lambda x: (x * x + 1.0).log() * x.cos(), sympy.log(x * x + 1) * sympy.cos(x)),
    "a root": (lambda x: (x.sin() + 2.0).sqrt(), sympy.sqrt(sympy.sin(x) + 2)),
    "a quotient": (lambda x: x.sin() / (x * x + 1.0), sympy.sin(x) / (x * x + 1)),
}


@functools.cache
def derivative(name: str, order: int) -> Any:
    """The program of a derivative, by nested reverse mode."""
    f = CHAINS[name][0]
    for _ in range(order):
        f = func.grad(f)
    return traced(f, 0.7)


# Of ops that do several things in one, how many.
SEVERAL = {"triple": 3, "mul_add": 2, "tanh_vjp": 3, "power0": 3, "quotient00": 3}


@pytest.mark.parametrize("name", CHAINS)
def test_the_sixth_derivative_is_not_much_longer_than_sympys(name: str):
    """By operations of one kind each: sympy counts a power as one."""
    program = optimized(derivative(name, 6))
    parts, results = sympy.cse(sympy.diff(CHAINS[name][1], x, 6))
    symbolic = sum(sympy.count_ops(e) for _, e in parts) + sum(map(sympy.count_ops, results))
    assert sum(SEVERAL.get(step.op.name, 1) for step in program.instructions) <= 1.5 * symbolic


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_a_derivative_keeps_its_values(name: str, order: int):
    program, exact = derivative(name, order), sympy.lambdify(x, sympy.diff(CHAINS[name][1], x, order), "mpmath")
    made = optimized(program)
    for point in np.linspace(-1.9, 2.1, 21):
        got, want = run(made, [np.asarray(point)])[0], float(exact(point))
        assert abs(got - want) <= 1e-10 * max(1.0, abs(want))  # of terms up to a thousand times greater than their sum


VALUES = np.array([0.3, -0.7, 1.1, 0.0, -0.0, 2.5, -1.0])


def finite_alike(program: Any, made: Any, *values: Any) -> None:
    """Finite numbers are the same to rounding, and what is not finite stays so."""
    for got, want in zip(run(made, values), run(program, values), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
        here = np.isfinite(want)
        np.testing.assert_allclose(got[here], want[here], rtol=1e-9, atol=1e-9 * max(1.0, np.abs(want[here]).max(initial=0.0)))


UNARY = {
    "sin": lambda x: x.sin(), "tanh": lambda x: x.tanh(), "exp": lambda x: (-(x * x)).exp(), "sqrt": lambda x: x.sqrt(),
    "log": lambda x: x.log(), "square": lambda x: x * x, "cube": lambda x: x**3, "less": lambda x: 1.0 - x, "scaled": lambda x: -0.3 * x,
    "reciprocal": lambda x: 1.0 / x, "bell": lambda x: 1.0 / (1.0 + x * x), "relu": lambda x: ng.relu(x),
    "positive": lambda x: ng.where(x > 0.0, x.sqrt(), 0.0), "big": lambda x: (x * x).exp(),
}  # fmt: skip
BINARY = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / (2.0 + y),
    "where": lambda x, y: ng.where(x > y, x * y, y),
}  # fmt: skip
steps = steps_of(UNARY, BINARY, back=4, most=5)


def function(chosen: list[tuple[Any, ...]], order: int) -> Any:
    """A derivative by the first argument of what the steps make."""

    def f(x: Any, y: Any) -> Any:
        values = [y, x]
        for name, *places in chosen:
            args = [values[-1 - k % len(values)] for k in places]
            values.append(UNARY[name](*args) if name in UNARY else BINARY[name](*args))
        return (values[-1] * x).sum()

    for _ in range(order):
        inner = f
        f = lambda x, y, inner=inner: (func.grad(inner)(x, y) * y).sum() + 0.0 * x.sum()
    return f


@settings(max_examples=100, deadline=None, derandomize=True)
@given(steps, st.integers(0, 3))
def test_random_derivatives_keep_their_values(chosen: list[tuple[Any, ...]], order: int):
    """At ordinary points, at poles and at NaN."""
    program = traced(function(chosen, order), VALUES, VALUES)
    made = optimized(program)
    rng = np.random.default_rng(0)
    for _ in range(3):
        finite_alike(program, made, rng.uniform(0.1, 1.5, 7), rng.uniform(-1.0, 1.0, 7))
    for k in range(7):
        finite_alike(program, made, np.roll(VALUES, k), VALUES)
    finite_alike(program, made, np.full(7, np.nan), VALUES)
    finite_alike(program, made, VALUES, np.full(7, np.nan))


POWERS = {
    "reciprocal of a square": lambda x, y: 1.0 / (x * x) - y * x + 1.0 / (x * x * y),
    "reciprocal of a product": lambda x, y: x / (x * x * y * y) + (x * x) ** -2 * y - y * x,
    "root of a square": lambda x, y: func.grad(lambda z: ((z * z * y * y).sqrt() * z + (z * z).log() * y).sum())(x),
    "square of a square": lambda x, y: (x * x * y) ** 3 * x - (x * x) ** 2 * (x * y).square() + y,
    "tanh of what is squared": lambda x, y: func.grad(lambda z: ((z.tanh() * y).square().tanh() * z).sum())(x) * x * x,
    "a zero that stays": lambda x, y: 1.0 / (x * y - y * x + 1.0) + 1.0 / ((x - x) * y + y * y) + (x * y - x * y) ** 2,
}


@pytest.mark.parametrize("name", POWERS)
def test_powers_of_powers(name: str):
    program = traced(POWERS[name], VALUES, VALUES)
    made = Collecting(Code.of(program), deep=True).run()
    assert made is not None
    for k in range(7):
        finite_alike(program, made.program(program), np.roll(VALUES, k), VALUES + 0.1)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_nan_of_a_branch_that_is_not_taken_stays_out(order: int):
    def f(x: Any) -> Any:
        return (ng.where(x > 0.0, x.sqrt().exp() + x.log(), x * x) * x.cos()).sum()

    for _ in range(order):
        inner = f
        f = lambda x, inner=inner: func.grad(inner)(x).sum()
    program = traced(func.grad(f), VALUES)
    made = optimized(program)
    for point in (VALUES, np.array([-1.0, 0.0, -0.0, -50.0, -7.5, 0.5, 2.0])):
        want = run(program, [point])[0]
        assert np.isfinite(want[point <= 0]).all()
        finite_alike(program, made, point)


def test_a_residual_keeps_its_digits():
    """Squares and products of differences that are nearly 0 are not expanded."""

    def f(x: Any, y: Any) -> Any:
        r, s = x.sin() - y.sin(), x * x - y * y
        t = x.sin() * x - y.sin() * y
        return (
            (r * r + r * r * y + r * s * x) * 2.0 + r * r * x,
            (x - y) * (x - y) * y + (x - y) * s,
            t * s + t * s * x + t * t * y,
            (t * x) * t + (s * y) * t + s.square() * s,
        )

    program = traced(f, VALUES, VALUES)
    made = optimized(program)
    near = VALUES + 1e-9
    for got, want in zip(run(made, [near, VALUES]), run(program, [near, VALUES]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


INFINITE = {"logarithm": lambda x: x.log(), "reciprocal": lambda x: -1.0 / x, "of a root": lambda x: x.sqrt().log() * 0.5}


@pytest.mark.parametrize("name", INFINITE)
def test_a_sum_is_not_expanded_by_what_may_be_infinite(name: str):
    """``exp((p - q) log x)`` is 0 at 0, where ``p log x - q log x`` is infinity less infinity."""

    def f(x: Any, y: Any) -> Any:
        p, q = y.sigmoid() * y.exp(), y.cos() * y.tanh()
        return ((p - q) * INFINITE[name](x) + p + p * 2.0).exp()

    program = traced(f, VALUES, VALUES)
    made = optimized(program)
    assert len(made.instructions) < len(program.instructions)
    for point in (np.zeros(7), np.abs(VALUES)):
        finite_alike(program, made, point, VALUES)


def test_what_saturates_at_a_pole_keeps_its_guard():
    """The derivative of ``tanh(1 / x)`` is 0 at 0, where the slope of tanh is 0 and that of the reciprocal infinite."""

    def f(x: Any, y: Any) -> Any:
        t = (1.0 / x).tanh()
        return (t * t / (2.0 + t * t) * y).sum()

    program = traced(func.grad(f), VALUES, VALUES)
    assert np.isfinite(run(program, [np.zeros(7), VALUES])[0]).all()
    finite_alike(program, Collecting(Code.of(program), deep=True).run().program(program), np.zeros(7), VALUES)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(steps, st.integers(0, 2))
def test_infinite_inputs_give_no_other_number(chosen: list[tuple[Any, ...]], order: int):
    """A number may become NaN, and NaN infinity; what both call a number is the same."""
    program = traced(function(chosen, order), VALUES, VALUES)
    made = optimized(program)
    for special in (np.inf, -np.inf):
        for values in ((np.full(7, special), VALUES), (VALUES, np.full(7, special))):
            for got, want in zip(run(made, values), run(program, values), strict=True):
                here = np.isfinite(got) & np.isfinite(want)
                np.testing.assert_allclose(got[here], want[here], rtol=1e-9, atol=1e-9)


def test_a_mask_of_minus_infinity_hides_what_it_hid():
    mask = ng.tensor(np.where(np.tri(4) > 0, 0.0, -np.inf))

    def f(x: Any, y: Any) -> Any:
        scores = (x @ y.T) * 0.5 + mask
        return (ng.softmax(scores * 2.0 + mask * 0.25 + scores, axis=1) @ y).tanh().sum()

    rng = np.random.default_rng(0)
    values = [rng.normal(size=(4, 3)), rng.normal(size=(4, 3))]
    for g in (f, func.grad(f), lambda x, y: func.grad(lambda z: func.grad(f)(z, y).square().sum())(x)):
        program = traced(g, *values)
        assert np.isfinite(run(program, values)[0]).all()
        finite_alike(program, optimized(program), *values)


@pytest.mark.parametrize("shape", [(), (4, 1), (1, 1)])
def test_a_number_or_a_column_beside_matrices(shape: tuple[int, ...]):
    """They move through products, and are multiplied where that is cheap."""

    def f(d: Any, x: Any, w: Any) -> Any:
        h = ((d * x) @ w).tanh() * d
        return ((h @ w.T) * d * x).sum() + (d * d * h).sum() + ((d * x).T @ (h * d)).square().sum()

    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape), rng.normal(size=(4, 3)), rng.normal(size=(3, 2))]
    for k in range(3):
        g = func.grad(f, argnums=k)
        for h in (g, lambda *args, g=g, k=k: func.grad(lambda z: (g(*args[:k], z, *args[k + 1 :]) ** 2).sum())(args[k])):
            program = traced(h, *values)
            finite_alike(program, optimized(program), *values)


@pytest.mark.parametrize("name", CHAINS)
def test_on_torch(name: str):
    b = ng.TorchBackend(dtype="float64")
    f = func.grad(func.grad(func.grad(CHAINS[name][0])))
    program = ng.func.trace(f)(b.tensor(0.7))
    made = optimized(program)
    assert len(made.instructions) < len(program.instructions)
    for point in (-1.3, 0.2, 1.9):
        (got,), (want,) = made.run(b, [b.asarray(point)]), program.run(b, [b.asarray(point)])
        assert abs(float(got) - float(want)) <= 1e-11 * max(1.0, abs(float(want)))


def test_a_backend_of_more_digits_keeps_them():
    from cases import BACKENDS

    b = BACKENDS["fifty digits"]
    f = func.grad(lambda x: (x * 0.1 * 0.1 + x * x * 0.3).tanh() * x)
    program = ng.func.trace(f)(b.tensor(0.7))
    value = [b.asarray(0.4)]
    (got,), (want,) = optimized(program).run(b, value), program.run(b, value)
    assert abs(got - want) < 1e-48


def test_terms_that_cancel_leave_their_nan():
    program = traced(lambda x, y: x * y - y * x + x, VALUES, VALUES)
    made = alone(program, shared, collected)
    finite_alike(program, made, VALUES, np.full(7, np.inf))


def test_columns_move_through_products_of_matrices():
    """The second derivative of a network needs no product for each sample's factor."""
    program, arrays = pinn()
    made = optimized(program)

    def products(p: Any) -> int:
        return sum(step.op.name in ("product", "matmul", "linear") for step in p.instructions)

    assert products(program) == 39 and products(made) <= 29
    assert len(program.instructions) == 123 and len(made.instructions) <= 124  # but of one pass each, where the others make three
    for got, want in zip(run(made, arrays), run(program, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_products_with_an_operand_in_common_are_one(sign: float):
    rng = np.random.default_rng(0)
    a, b, w = rng.normal(size=(3, 4, 4))

    def total(p: Any, q: Any) -> Any:
        return p + q if sign > 0 else p - q

    program = traced(lambda a, b, w: (total(a @ w, b @ w), total(w @ a, w @ b), total(a @ w, w @ b)), a, b, w)
    made = alone(program, factored)
    assert [step.op.name for step in made.instructions].count("matmul") == 4
    finite_alike(program, made, a, b, w)
    a[0, 0], b[1, 1], w[3, 2] = np.nan, np.inf, -np.inf
    finite_alike(program, made, a, b, w)
