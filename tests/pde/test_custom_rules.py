"""Fields with rules of their own in them: every method differentiates by the rule, and by whatever the rule is made of."""

import numpy as np
import pytest
from fields import SECOND, points

import nestgrad as ng
from nestgrad import pde

AT = points(2) + 1.5  # positive


def saved_part() -> ng.custom_vjp:
    """(2 x)^2, whose rule reads 2 x as it was saved."""
    f = ng.custom_vjp(lambda x: (2.0 * x) ** 2)
    f.defvjp(lambda x: ((2.0 * x) ** 2, 2.0 * x), lambda t, g: 4.0 * g * t)
    return f


def saved_answer() -> ng.custom_vjp:
    """exp, whose rule reads the answer."""

    def forward(x):
        y = x.exp()
        return y, y

    f = ng.custom_vjp(lambda x: x.exp())
    f.defvjp(forward, lambda y, g: g * y)
    return f


def tangent_rule() -> ng.custom_jvp:
    """x^3 y, by its tangent."""
    f = ng.custom_jvp(lambda x, y: x**3 * y)

    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return x**3 * y, 3.0 * x**2 * y * dx + x**3 * dy

    f.defjvp(rule)
    return f


PART, ANSWER, TANGENT = saved_part(), saved_answer(), tangent_rule()

FIELDS = {
    "saved part": (lambda p: PART(p[0]) * p[1].sin(), lambda p: (2.0 * p[0]) ** 2 * p[1].sin()),
    "saved answer": (lambda p: ANSWER(p.prod()) + ANSWER(p).sum(), lambda p: p.prod().exp() + p.exp().sum()),
    "tangent": (lambda p: TANGENT(p[0], p[1] ** 2).sin(), lambda p: (p[0] ** 3 * p[1] ** 2).sin()),
    "one in another": (lambda p: ANSWER(PART(p[0]) * 0.1 - p[1]), lambda p: (0.4 * p[0] ** 2 - p[1]).exp()),
    "checkpoint": (lambda p: ng.checkpoint(lambda p: (p**3).prod().tanh())(p), lambda p: (p**3).prod().tanh()),
}


@pytest.mark.parametrize("method", SECOND)
@pytest.mark.parametrize("name", FIELDS)
def test_a_field_with_a_rule_is_the_field_of_its_parts(base, name, method):
    f, plain = FIELDS[name]
    at = base.tensor(AT)
    for operator in (pde.laplacian, pde.hessian_diag, pde.biharmonic, lambda f, m="auto": pde.directional(f, [1.0, -0.5], 3, m)):
        want = operator(plain)(at).numpy()
        np.testing.assert_allclose(operator(f, method)(at).numpy(), want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("method", SECOND)
def test_it_is_the_rule_that_counts(base, method):
    """Straight through: the slope of a rounding is 1 by its rule, so that round(x)^3 curves by 6 round(x)."""
    rounded = ng.custom_vjp(lambda x: x.round())
    rounded.defvjp(lambda x: (x.round(), None), lambda _, g: g)
    at = base.tensor([[1.7, 0.0], [2.2, 1.0]])
    found = pde.hessian_diag(lambda p: rounded(p[0]) ** 3 + p[1], method)(at)
    assert found.tolist() == [[12.0, 0.0], [12.0, 0.0]]
    assert pde.laplacian(lambda p: rounded(p[0]) ** 3 + p[1], method)(at).tolist() == [12.0, 12.0]


@pytest.mark.parametrize("method", SECOND)
def test_a_rule_is_differentiated_by_what_the_field_closes_over(base, method):
    """d/dw of the Laplacian of exp(w x y), through the rule that reads its answer."""
    w = ng.Autodiff(base).tensor(0.7, requires_grad=True)
    lap = pde.laplacian(lambda p: ANSWER(w * p[0] * p[1]), method)(base.tensor(AT))
    r2, xy, e = (AT**2).sum(1), AT.prod(1), np.exp(0.7 * AT.prod(1))
    np.testing.assert_allclose(lap.detach().numpy(), 0.49 * r2 * e, rtol=1e-12)
    assert lap.wrt(w).item() == pytest.approx((1.4 * r2 * e + 0.49 * r2 * xy * e).sum(), rel=1e-12)


@pytest.mark.parametrize("method", SECOND)
def test_a_field_that_a_solver_finds(method):
    """The root of x^2 - p: each derivative solves a linear system, to about ten digits."""
    root = ng.implicit.root(lambda p: p.item() ** 0.5, lambda x, p: x * x - p)
    found = pde.laplacian(lambda p: root(p[0] * p[1] + 1.0), method)(AT)
    want = -0.25 * (AT**2).sum(1) * (AT.prod(1) + 1.0) ** -1.5
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-8)
