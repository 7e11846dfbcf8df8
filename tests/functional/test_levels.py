"""Levels: what ``create_graph`` keeps and its absence cuts, and calls inside calls."""

import numpy as np
import pytest
import torch
from user_functions import ALL, numbers, same, tensors

import nestgrad as ng
from nestgrad import func as transforms, functional

X, V = numbers(3), numbers(3, seed=1)
OPTIONS = [{"strategy": s, "vectorize": v} for s in ("reverse-mode", "forward-mode") for v in (False, True)]
HESSIANS = [{"outer_jacobian_strategy": o["strategy"], "vectorize": o["vectorize"]} for o in OPTIONS]


def stack(n):
    made = ng.NumpyBackend()
    for _ in range(n):
        made = ng.Autodiff(made)
    return made


def field(x):
    return x.sum() * x.sin()


def scalar(x):
    return (x.exp() * x.sum()).sum()


def results(name, func, x, v, **kwargs):
    """The derivative alone, as a list with one for each combination of options."""
    call = getattr(functional, name)
    if name == "jacobian":
        return [call(func, x, **o, **kwargs) for o in OPTIONS]
    if name == "hessian":
        return [call(func, x, **o, **kwargs) for o in HESSIANS]
    if name == "jvp":
        return [call(func, x, v, mode=m, **kwargs)[1] for m in ("forward", "reversed")]
    return [call(func, x, v, **kwargs)[1]]


def of(name):
    """A function for ``name``, and a vector."""
    return (field, V) if name in ("jacobian", "jvp", "vjp") else (scalar, V)


@pytest.mark.parametrize("name", ALL)
def test_create_graph_is_differentiable_by_the_inputs(name):
    """Twice more, against torch."""
    func, v = of(name)
    x = stack(2).tensor(X, requires_grad=True)
    t = torch.tensor(X, requires_grad=True)
    args = [torch.tensor(v)] if name not in ("jacobian", "hessian") else []
    theirs = getattr(torch.autograd.functional, name)(func, t, *args, create_graph=True)
    theirs = theirs[1] if isinstance(theirs, tuple) else theirs
    (first,) = torch.autograd.grad(theirs.pow(2).sum(), t, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), t)
    for found in results(name, func, x, ng.tensor(v), create_graph=True):
        u = (found**2).sum().wrt(x)
        same(u, first, rtol=1e-11)
        same(u.sum().wrt(x), second, rtol=1e-11)


@pytest.mark.parametrize("name", ALL)
def test_create_graph_is_differentiable_by_what_is_closed_over(name):
    w = stack(2).tensor(2.0, requires_grad=True)
    func, v = of(name)
    for found in results(name, lambda x: w**3 * func(x), ng.tensor(X), ng.tensor(v), create_graph=True):
        by_w = found.sum().wrt(w)
        assert by_w.item() == pytest.approx(3 * found.sum().item() / 2)
        assert by_w.wrt(w).item() == pytest.approx(6 * found.sum().item() / 4)


@pytest.mark.parametrize("name", ALL)
def test_without_create_graph_everything_is_a_constant(name):
    w, x = stack(2).tensor(2.0, requires_grad=True), stack(2).tensor(X, requires_grad=True)
    func, v = of(name)
    for found in results(name, lambda x: w * func(x), x, w * ng.tensor(v)):
        assert found.level == 0 and not found.marks
        assert (found * w).sum().wrt(w).item() == pytest.approx(found.sum().item())
    if name not in ("jacobian", "hessian"):
        value, _ = getattr(functional, name)(lambda x: w * func(x), x, ng.tensor(v))
        assert value.level == 0


@pytest.mark.parametrize("name", ["jvp", "vjp", "hvp", "vhp"])
def test_the_value_keeps_its_levels_too(name):
    func, v = of(name)
    x = stack(1).tensor(X, requires_grad=True)
    value, _ = getattr(functional, name)(func, x, ng.tensor(v), create_graph=True)
    same(value.sum().wrt(x), transforms.grad(lambda x: func(x).sum())(ng.tensor(X)))


MODES = [(a, b) for a in ("forward", "reversed") for b in ("forward", "reversed")]


@pytest.mark.parametrize("outer,inner", MODES)
def test_a_derivative_in_a_direction_of_one(outer, inner):
    """jvp of a function that calls jvp: d2/dx2 of x^3 along ones."""
    ones = ng.tensor(np.ones(3))

    def once(x):
        return functional.jvp(lambda y: y.pow(3) * y.sum(), x, ones, create_graph=True, mode=inner)[1]

    value, found = functional.jvp(once, ng.tensor(X), ones, mode=outer)
    s = X.sum()
    np.testing.assert_allclose(value.numpy(), 3 * X**2 * s + 3 * X**3, rtol=1e-14)
    np.testing.assert_allclose(found.numpy(), 6 * X * s + 18 * X**2, rtol=1e-14)


@pytest.mark.parametrize("a,b,c", [(a, b, c) for a, b in MODES for c in ("forward", "reversed")])
def test_three_deep(a, b, c):
    one = ng.tensor(1.0)
    first = lambda x: functional.jvp(lambda y: y.pow(4), x, one, create_graph=True, mode=a)[1]
    second = lambda x: functional.jvp(first, x, one, create_graph=True, mode=b)[1]
    value, third = functional.jvp(second, ng.tensor(2.0), one, mode=c)
    assert (value.item(), third.item()) == (48.0, 48.0)


@pytest.mark.parametrize("inner", [*OPTIONS, None])
@pytest.mark.parametrize("outer", OPTIONS)
def test_a_jacobian_of_a_jacobian_is_a_hessian(outer, inner):
    """``None``: of a gradient by vjp."""

    def gradient(x):
        if inner is None:
            return functional.vjp(scalar, x, create_graph=True)[1]
        return functional.jacobian(scalar, x, create_graph=True, **inner)

    same(functional.jacobian(gradient, ng.tensor(X), **outer), functional.hessian(scalar, ng.tensor(X)))


@pytest.mark.parametrize("options", HESSIANS)
def test_a_jacobian_of_a_hessian(options):
    """Third derivatives, against torch."""
    third = functional.jacobian(lambda x: functional.hessian(scalar, x, create_graph=True, **options), ng.tensor(X), vectorize=True)
    t = torch.tensor(X)
    same(third, torch.autograd.functional.jacobian(lambda x: torch.autograd.functional.hessian(scalar, x, create_graph=True), t))


def test_an_inner_call_without_create_graph_is_a_constant_as_in_torch():
    func = lambda x: functional.jvp(lambda y: y.pow(3), x, tensors(V))[1] * x
    found = functional.jacobian(func, ng.tensor(X))
    np.testing.assert_allclose(found.numpy(), np.diag(3 * X**2 * V), rtol=1e-14)


@pytest.mark.parametrize("name", ALL)
def test_inside_transforms(name):
    """vmap of a call is one call for each sample; grad of one is the derivative of its result."""
    func, v = of(name)
    points = numbers(4, 3, seed=5)
    alone = [results(name, func, ng.tensor(p), ng.tensor(v)) for p in points]
    mapped = transforms.vmap(lambda x: tuple(results(name, func, x, ng.tensor(v))))(points)
    for k, found in enumerate(mapped):
        np.testing.assert_allclose(found.numpy(), np.stack([rows[k].numpy() for rows in alone]), rtol=1e-13, atol=1e-15)
    x = stack(1).tensor(X, requires_grad=True)
    expected = results(name, func, x, ng.tensor(v), create_graph=True)[0].sum().wrt(x)
    for k in range(len(results(name, func, ng.tensor(X), ng.tensor(v)))):
        total = lambda x, k=k: results(name, func, x, ng.tensor(v), create_graph=True)[k].sum()
        same(transforms.grad(total)(ng.tensor(X)), expected.numpy(), rtol=1e-11)


def test_the_imperative_style_inside():
    """A function that differentiates by a variable that it makes."""
    S = stack(1)

    def slope(x):
        y = S.tensor(x, requires_grad=True)
        return (y.pow(4)).sum().wrt(y)

    for options in OPTIONS[::2]:
        same(functional.jacobian(slope, ng.tensor(X), **options), np.diag(12 * X**2))
    same(functional.jvp(slope, ng.tensor(X), ng.tensor(V))[1], 12 * X**2 * V)


def test_inputs_and_what_is_closed_over_may_be_one():
    """The derivative is by the argument alone."""
    x = stack(1).tensor(X, requires_grad=True)
    j = functional.jacobian(lambda y: x * y * y, x, create_graph=True)
    np.testing.assert_allclose(j.numpy(), np.diag(2 * X * X), rtol=1e-14)
    np.testing.assert_allclose(j.sum().wrt(x).numpy(), 4 * X, rtol=1e-14)


def test_hvp_and_vhp_agree():
    for func in (scalar, lambda x: (x.sin() * x.sum()).sum() ** 2, lambda x: x.prod()):
        a = functional.hvp(func, ng.tensor(X), ng.tensor(V))[1]
        same(a, functional.vhp(func, ng.tensor(X), ng.tensor(V))[1])
        same(a, functional.hessian(func, ng.tensor(X)) @ ng.tensor(V))
