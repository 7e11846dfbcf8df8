"""``implicit``: derivatives of what a solver finds, against closed forms and differences in fifty digits."""

import math
from itertools import product

import mpmath
import numpy as np
import pytest

import nestgrad as ng
from nestgrad import func
from nestgrad.errors import ConvergenceError, DTypeError, LevelError, RuleError, ShapeError
from nestgrad.implicit import fixed_point, root

MODES = {"r": lambda f: func.grad(f), "f": lambda f: lambda t: func.jvp(f, (t,), (1.0,))[1]}

sqrt = root(lambda p: p.item() ** 0.5, lambda x, p: x * x - p)


def nested(f, x, modes):
    for mode in modes:
        f = MODES[mode](f)
    return f(ng.tensor(x)).item()


def levels(depth):
    stack = ng.NumpyBackend()
    for _ in range(depth):
        stack = ng.Autodiff(stack)
    return stack


# the square root: every way, every order


ROOTS = [0.25, -1 / 32, 3 / 256, -15 / 2048]
"""Derivatives 1 to 4 of the square root at 4."""


@pytest.mark.parametrize("modes", ["".join(w) for k in (1, 2, 3) for w in product("rf", repeat=k)] + ["rrrr", "ffff", "rfrf"])
def test_the_square_root_in_every_nest_of_modes(modes):
    assert nested(sqrt, 4.0, modes) == pytest.approx(ROOTS[len(modes) - 1], rel=1e-12)


def test_the_square_root_on_the_levels_of_a_stack():
    p = levels(4).tensor(4.0, requires_grad=True)
    x = sqrt(p)
    for want in ROOTS:
        x = p.grad(x.backward())
        assert x.item() == pytest.approx(want, rel=1e-12)


def test_the_square_root_in_taylor_mode():
    terms = [c.item() * math.factorial(k) for k, c in enumerate(func.taylor(sqrt, 4.0, 1.0, 4))]
    assert terms == pytest.approx([2.0, *ROOTS], rel=1e-12)


def test_a_batch_of_problems():
    ps = ng.tensor([1.0, 4.0, 9.0])
    assert func.vmap(sqrt)(ps).tolist() == [1.0, 2.0, 3.0]
    assert func.vmap(func.grad(sqrt))(ps).tolist() == pytest.approx([0.5, 0.25, 1 / 6])
    second = func.grad(func.grad(lambda s: func.vmap(sqrt)(ps * s).sum()))(2.0)
    assert second.item() == pytest.approx(-6 * 2**-1.5 / 4)


def test_as_a_program():
    program = ng.func.trace(sqrt)(9.0)  # the solver is an op of it
    of = lambda p: ng.func.call(program, p)
    assert of(4.0).item() == 2.0
    for modes in ("r", "f", "rr", "rf", "ff"):
        assert nested(of, 4.0, modes) == pytest.approx(ROOTS[len(modes) - 1], rel=1e-12)


# Kepler's equation


def kepler(mean, eccentricity):
    e = mean.item()
    for _ in range(50):
        e -= (e - eccentricity.item() * math.sin(e) - mean.item()) / (1 - eccentricity.item() * math.cos(e))
    return e


anomaly = root(kepler, lambda e, mean, eccentricity: e - eccentricity * e.sin() - mean)


def exact_anomaly(mean, eccentricity):
    return mpmath.findroot(lambda e: e - eccentricity * mpmath.sin(e) - mean, mean + eccentricity)


def test_keplers_equation_to_third_order_by_both_parameters():
    with mpmath.workdps(50):
        want = {
            n: mpmath.diff(exact_anomaly, (mpmath.mpf(1) / 2, mpmath.mpf(3) / 10), n) for n in product(range(4), repeat=2) if sum(n) <= 3
        }
    for (m, n), value in want.items():
        f = anomaly
        for k in [0] * m + [1] * n:
            f = func.grad(f, argnums=k)
        assert f(ng.tensor(0.5), ng.tensor(0.3)).item() == pytest.approx(float(value), rel=1e-10), (m, n)


def test_both_parameters_move_at_once():
    first = func.jvp(anomaly, (0.5, 0.3), (1.0, 2.0))[1].item()
    grads = func.grad(anomaly, argnums=(0, 1))(0.5, 0.3)
    assert first == pytest.approx(grads[0].item() + 2 * grads[1].item(), rel=1e-12)
    hessian = func.hessian(lambda q: anomaly(q[0], q[1]))(ng.tensor([0.5, 0.3])).numpy()
    assert np.allclose(hessian, hessian.T, rtol=1e-12)


# fixed points


def iterate(p):
    x = 0.5
    for _ in range(200):
        x = math.cos(p.item() * x)
    return x


dottie = fixed_point(iterate, lambda x, p: (p * x).cos())


@pytest.mark.parametrize("modes", ["r", "f", "rr", "rf", "fr", "ff", "rrr", "ffr", "rff"])
def test_the_fixed_point_of_a_cosine(modes):
    with mpmath.workdps(50):
        exact = lambda p: mpmath.findroot(lambda x: x - mpmath.cos(p * x), mpmath.mpf("0.75"))
        want = float(mpmath.diff(exact, mpmath.mpf(9) / 10, len(modes)))
    assert nested(dottie, 0.9, modes) == pytest.approx(want, rel=1e-10)


# a system of three equations


def residual(x, p, q):
    return ng.stack([x[0] ** 3 + x[1] * p[0] - q, x[1].exp() + x[2] * p[1] - 2.0, x[2] + x[0] * x[1] - p[0] * q])


def newton(p, q):
    """With derivatives of our own, on constants: a solver may use whatever it likes."""
    x = ng.tensor([0.5, 0.5, 0.5])
    for _ in range(40):
        jacobian = func.jacrev(residual)(x, p, q).numpy()
        x = x - ng.tensor(np.linalg.solve(jacobian, residual(x, p, q).numpy()))
    return x


system = root(newton, residual)


def exact_system(p0, p1, q):
    f = lambda a, b, c: [a**3 + b * p0 - q, mpmath.exp(b) + c * p1 - 2, c + a * b - p0 * q]
    return mpmath.findroot(f, (0.5, 0.5, 0.5), tol=mpmath.mpf(10) ** -180)


POINT = ([0.9, 1.1], 0.8)


def exact_derivative(orders):
    """Of all three unknowns: central differences with steps of 1e-12, in 100 digits."""
    with mpmath.workdps(100):
        at = tuple(mpmath.mpf(v) for v in (*POINT[0], POINT[1]))
        return [float(mpmath.diff(lambda *v, i=i: exact_system(*v)[i], at, orders, h=mpmath.mpf(10) ** -12)) for i in range(3)]


def test_a_system_in_reverse_and_forward_mode():
    p, q = ng.tensor(POINT[0]), ng.tensor(POINT[1])
    want_p = np.array([exact_derivative((1, 0, 0)), exact_derivative((0, 1, 0))]).T
    want_q = np.array(exact_derivative((0, 0, 1)))
    for jacobian in (func.jacrev, func.jacfwd):
        assert np.allclose(jacobian(system)(p, q).numpy(), want_p, rtol=1e-10)
        assert np.allclose(jacobian(system, argnums=1)(p, q).numpy(), want_q, rtol=1e-10)


def test_a_system_to_third_order_on_the_levels_of_a_stack():
    S = levels(3)
    p, q = S.tensor(POINT[0], requires_grad=True), S.tensor(POINT[1], requires_grad=True)
    x = system(p, q)
    first = [q.grad(x[i].backward()) for i in range(3)]
    assert [g.item() for g in first] == pytest.approx(exact_derivative((0, 0, 1)), rel=1e-10)
    mixed = [p.grad(g.backward()) for g in first]
    assert [g[1].item() for g in mixed] == pytest.approx(exact_derivative((0, 1, 1)), rel=1e-9)
    third = [q.grad(g[0].backward()).item() for g in mixed]
    assert third == pytest.approx(exact_derivative((1, 0, 2)), rel=1e-8)


def test_grad_of_grad_and_gradients_of_losses():
    loss = lambda p, q: (system(p, q) ** 2).sum()
    p, q = ng.tensor(POINT[0]), ng.tensor(POINT[1])
    step = 1e-4
    hessian = func.hessian(loss)(p, q).numpy()
    for k in range(2):
        e = ng.tensor(np.eye(2)[k] * step)
        difference = (func.grad(loss)(p + e, q) - func.grad(loss)(p - e, q)).numpy() / (2 * step)
        assert np.allclose(hessian[k], difference, rtol=1e-6)


def test_the_solution_is_used_in_a_program_with_other_levels():
    """x* is one value among others on a two-level stack: a residual of its second derivative, differentiated by another parameter."""
    S = levels(2)
    p, w = S.tensor(4.0, requires_grad=True), S.tensor(0.5, requires_grad=True)
    u = (sqrt(p) * w).sin()
    u_p = p.grad(u.backward())
    penalty = u_p**2 + w
    got = w.grad(penalty.backward()).item()
    # u_p = cos(2 w) w / 4
    s, c = math.sin(1.0), math.cos(1.0)
    assert got == pytest.approx(2 * (c * 0.5 / 4) * (c / 4 - 2 * s * 0.5 / 4) + 1, rel=1e-12)


# linear systems


def test_linear_equations_are_a_special_case():
    """d/dA of A^-1 b, to second order."""
    solve = root(lambda a, b: np.linalg.solve(a.numpy(), b.numpy()), lambda x, a, b: a @ x - b)
    a, b = ng.tensor([[3.0, 1.0], [0.5, 2.0]]), ng.tensor([1.0, -2.0])
    inverse = np.linalg.inv(a.numpy())
    x = inverse @ b.numpy()
    got = func.jacrev(solve)(a, b).numpy()
    assert np.allclose(got, -np.einsum("ij,k->ijk", inverse, x), rtol=1e-12)
    second = func.jacfwd(func.jacrev(solve))(a, b).numpy()
    want = np.einsum("il,mj,k->ijklm", inverse, inverse, x) + np.einsum("ij,kl,m->ijklm", inverse, inverse, x)
    assert np.allclose(second, want, rtol=1e-11)


def test_a_field_of_many_unknowns_by_gmres():
    """-u'' + u^3 = p on 60 points: the Hessian-free product agrees with the dense derivative."""
    n = 60

    def equation(u, p):
        left = ng.concat([ng.zeros(1), u[:-1]])
        right = ng.concat([u[1:], ng.zeros(1)])
        return (2 * u - left - right) * 10.0 + u**3 - p

    matrix = 10.0 * (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))

    def solver(p):
        u = np.zeros(n)
        for _ in range(30):
            u = u - np.linalg.solve(matrix + np.diag(3 * u**2), matrix @ u + u**3 - p.numpy())
        return u

    field = root(solver, equation)
    p = ng.linspace(0.5, 1.5, n)
    u = solver(p)
    want = np.linalg.solve((matrix + np.diag(3 * u**2)).T, np.ones(n))
    assert np.allclose(func.grad(lambda p: field(p).sum())(p).numpy(), want, rtol=1e-9)


def test_a_linear_solver_of_ones_own():
    calls = []

    def dense(matvec, rhs):
        n = rhs.size
        columns = [matvec(ng.tensor(np.eye(n)[k].reshape(rhs.shape))).numpy().reshape(-1) for k in range(n)]
        calls.append(n)
        return np.linalg.solve(np.array(columns).T, rhs.numpy().reshape(-1)).reshape(rhs.shape)

    own = root(newton, residual, linear_solver=dense)
    p, q = ng.tensor(POINT[0]), ng.tensor(POINT[1])
    for f in (
        lambda s: func.jacrev(s, argnums=1)(p, q),
        lambda s: func.jacfwd(s, argnums=1)(p, q),
        lambda s: func.hessian(lambda q: s(p, q)[0])(q),
    ):
        assert np.allclose(f(own).numpy(), f(system).numpy(), rtol=1e-11)
    assert set(calls) == {3}


# backends and dtypes


def test_in_float32_and_on_torch():
    pytest.importorskip("torch")
    for base in (ng.NumpyBackend("float32"), ng.TorchBackend(), ng.TorchBackend(dtype="float64")):
        p = ng.Autodiff(ng.Autodiff(base)).tensor(4.0, requires_grad=True)
        x = sqrt(p)
        assert x.dtype == p.dtype and x.wrt(p).item() == pytest.approx(0.25, rel=1e-5)
        assert x.wrt(p).wrt(p).item() == pytest.approx(-1 / 32, rel=1e-5)


def test_with_less_memory():
    f = lambda p: (sqrt(p) * 3.0).sin()
    assert func.grad(ng.checkpoint(f))(4.0).item() == func.grad(f)(4.0).item()


def test_numbers_and_untracked_values_run_the_solver_and_the_residual_once():
    evaluated = []

    def watched(x, p):
        evaluated.append(1)
        return x * x - p

    f = root(lambda p: p.item() ** 0.5, watched)
    assert f(4.0).item() == 2.0 and len(evaluated) == 1


@pytest.mark.parametrize("parameter", ["a number", "a variable"])
def test_what_the_residual_closes_over_is_refused_with_any_parameter(parameter):
    """The solution would be a constant of it, silently, whatever the parameter is."""
    w = ng.Autodiff(ng.NumpyBackend()).tensor(2.0, requires_grad=True)
    slope = (w**3).wrt(w)
    p = 3.0 if parameter == "a number" else ng.Autodiff(ng.NumpyBackend()).tensor(3.0, requires_grad=True)
    tracked = root(lambda p: (2.0 * p.item()) ** 0.5, lambda x, p: x * x - p * w)
    with pytest.raises(LevelError, match="tracked on Autodiff level 1"):
        tracked(p)
    marked = root(lambda p: (12.0 * p.item()) ** 0.5, lambda x, p: x * x - p * slope)
    with pytest.raises(LevelError, match=r"closed-over value that was taken out of Autodiff level 1; .* Try to pass it as a parameter"):
        marked(p)
    cut = root(lambda p: (12.0 * p.item()) ** 0.5, lambda x, p: x * x - p * slope.detach())
    assert cut(p).item() == pytest.approx(6.0, rel=1e-14)


# what is refused


def test_what_is_no_root_is_told():
    sloppy = root(lambda p: 0.9 * p.item() ** 0.5, lambda x, p: x * x - p)
    with pytest.raises(
        ConvergenceError, match=r"implicit.root: the solver's result is no solution.*a Newton step would move it by 0.211.*check="
    ):
        func.grad(sloppy)(4.0)
    trusted = root(lambda p: 0.9 * p.item() ** 0.5, lambda x, p: x * x - p, check=False)
    assert func.grad(trusted)(4.0).item() == pytest.approx(1 / 3.6)


def test_a_double_root_has_no_derivative():
    double = root(lambda p: p.item(), lambda x, p: (x - p) ** 2)
    with pytest.raises(ConvergenceError, match=r"the linear system with dF/dx .* was not solved.*Is it a double root"):
        func.grad(double)(4.0)
    partly = root(lambda p: np.array([p.item(), 0.0]), lambda x, p: ng.stack([x[0] - p, x[0] - p]))
    with pytest.raises(ConvergenceError, match="was not solved"):
        func.grad(lambda p: partly(p)[1])(4.0)


def test_a_residual_that_closes_over_a_tracked_tensor_is_refused():
    S = levels(1)
    w, p = S.tensor(2.0, requires_grad=True), S.tensor(4.0, requires_grad=True)
    f = root(lambda p: (p.item() / 2.0) ** 0.5, lambda x, p: w * x * x - p)
    with pytest.raises(LevelError, match=r"implicit.root: it closes over a tensor that is tracked on .*Try to pass it as an argument"):
        f(p)
    with pytest.raises(LevelError, match="it closes over"):
        func.jvp(lambda v: root(lambda p: 1.0, lambda x, p: v * x * x - p)(v), (4.0,), (1.0,))


@pytest.mark.parametrize(
    "solver, residual, error, message",
    [
        (lambda p: 2.0, lambda x, p: ng.stack([x, x]) - p, ShapeError, r"the residual has shape \(2,\) for a solution of shape \(\)"),
        (lambda p: 2.0, lambda x, p: 0.0, DTypeError, "the residual returned a float; expected a Tensor"),
        (lambda p: [1.0, 2.0], lambda x, p: x - p, DTypeError, "implicit.root: got a list"),
        (lambda p: np.array(2), lambda x, p: x - p, DTypeError, "the solver returned dtype int64; expected floating numbers"),
    ],
)
def test_what_does_not_fit_is_told(solver, residual, error, message):
    with pytest.raises(error, match=message):
        func.grad(root(solver, residual, check=False))(2.0)


def test_it_needs_a_parameter():
    with pytest.raises(RuleError, match=r"implicit.root: got no parameters"):
        sqrt()
