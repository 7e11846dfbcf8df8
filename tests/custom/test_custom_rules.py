"""``custom_vjp`` and ``custom_jvp``: the rule counts at every order and in every mode, and nothing is lost silently."""

import math

import numpy as np
import pytest
from derivatives import everywhere, imperative

import nestgrad as ng
from nestgrad import func

S = ng.Autodiff(ng.Autodiff(ng.NumpyBackend()))


# the three cases of users


def test_a_rule_that_uses_a_saved_intermediate():
    """Case 43: (2x)^2 with the rule 4 g t, where t = 2x was saved: the second derivative is 8."""
    square = ng.custom_vjp(lambda x: (2 * x) ** 2)

    def fwd(x):
        t = 2 * x
        return t * t, t

    square.defvjp(fwd, lambda t, g: 4 * g * t)
    for way, got in everywhere(square, 1.7, 3).items():
        assert got == pytest.approx([8 * 1.7, 8.0, 0.0]), way


def test_a_rule_with_the_answer_evaluated_twice():
    """Case 44: the product of entries with the rule g y / x, the answer saved: d2/dx0dx1 is 1, twice from one graph."""
    prod = ng.custom_vjp(lambda x: x.prod())

    def fwd(x):
        y = x.prod()
        return y, (y, x)

    prod.defvjp(fwd, lambda saved, g: g * saved[0] / saved[1])
    x = S.tensor(np.ones(3), requires_grad=True)
    first = prod(x).wrt(x)
    row = first[0].backward()
    assert row.wrt(x).tolist() == [0.0, 1.0, 1.0] and row.wrt(x).tolist() == [0.0, 1.0, 1.0]
    assert first[0].wrt(x).tolist() == [0.0, 1.0, 1.0]
    again = prod(x).backward()
    assert [again.wrt(x)[0].wrt(x).tolist() for _ in range(2)] == [[0.0, 1.0, 1.0]] * 2
    assert func.hessian(prod)(ng.ones(3)).tolist() == (1 - np.eye(3)).tolist()


def test_a_rule_for_reverse_mode_only():
    """Case 45: sin(x) y with a rule for cotangents alone has a Hessian, whichever modes make it."""
    f = ng.custom_vjp(lambda x, y: x.sin() * y)
    f.defvjp(lambda x, y: (x.sin() * y, (x, y)), lambda saved, g: (g * saved[0].cos() * saved[1], g * saved[0].sin()))
    want = [[-1.682941969615793, 0.5403023058681398], [0.5403023058681398, 0.0]]
    of = lambda v: f(v[0], v[1])
    v = ng.tensor([1.0, 2.0])
    for hessian in (func.hessian(of), func.jacfwd(func.jacfwd(of)), func.jacrev(func.jacrev(of)), func.jacrev(func.jacfwd(of))):
        assert np.allclose(hessian(v).numpy(), want, rtol=1e-12, atol=1e-15)


# any order, any mode


def exponential_vjp():
    f = ng.custom_vjp(lambda x: x.exp())

    def fwd(x):
        y = x.exp()
        return y, y

    return f.defvjp(fwd, lambda y, g: g * y)


def exponential_jvp():
    f = ng.custom_jvp(lambda x: x.exp())
    return f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * f(*primals)))


@pytest.mark.parametrize("make", [exponential_vjp, exponential_jvp], ids=["vjp", "jvp"])
def test_to_third_order_in_every_mode(make):
    f = make()
    for way, got in everywhere(lambda t: f(t * t), 0.4, 3).items():
        x, e = 0.4, math.exp(0.16)
        assert got == pytest.approx([2 * x * e, (2 + 4 * x * x) * e, (12 * x + 8 * x**3) * e], rel=1e-12), way
    assert imperative(f, 0.3, 5) == pytest.approx([math.exp(0.3)] * 6, rel=1e-14)
    assert [c.item() * math.factorial(k) for k, c in enumerate(func.taylor(f, 0.3, 1.0, 8))] == pytest.approx([math.exp(0.3)] * 9)


def test_a_rule_may_take_its_tangent_apart():
    """``split`` and ``unbind`` have several results, and are linear: the rule is transposed for reverse mode, at every order."""
    f = ng.custom_jvp(lambda x: x[0] * x[1] * x[2] ** 2)

    @f.defjvp
    def rule(primals, tangents):
        (x,) = primals
        (first, second), last = ng.unbind(tangents[0][:2]), ng.split(tangents[0], [2])[1]
        return f(x), first * x[1] * x[2] ** 2 + second * x[0] * x[2] ** 2 + (2.0 * x[0] * x[1] * x[2] * last).sum()

    at = lambda t: ng.stack([t, t * t, t.exp()])
    for way, got in everywhere(lambda t: f(at(t)), 0.4, 3).items():  # t^3 exp(2 t)
        t, e = 0.4, math.exp(0.8)
        want = [(2 * t**3 + 3 * t**2) * e, (4 * t**3 + 12 * t**2 + 6 * t) * e, (8 * t**3 + 36 * t**2 + 36 * t + 6) * e]
        assert got == pytest.approx(want, rel=1e-12), way


def polar(p, k):
    r = ng.sqrt(p[0] ** 2 + p[1] ** 2)
    return {"r": r * k, "angle": p[1] / p[0] * k, "count": 3}


def polar_vjp():
    f = ng.custom_vjp(polar)

    def fwd(p, k):
        return polar(p, k), (p, k)

    def bwd(saved, g):
        (x, y), k = saved
        assert g["count"] is None
        r, u, v = ng.sqrt(x * x + y * y), g["r"], g["angle"]
        return (u * x / r * k - v * y / x**2 * k, u * y / r * k + v / x * k), u * r + v * y / x

    return f.defvjp(fwd, bwd)


def polar_jvp():
    f = ng.custom_jvp(polar)

    def rule(primals, tangents):
        ((x, y), k), ((dx, dy), dk) = primals, tangents
        r = ng.sqrt(x * x + y * y)
        return f(*primals), {"r": (x * dx + y * dy) / r * k + r * dk, "angle": (dy / x - y * dx / x**2) * k + y / x * dk, "count": 0}

    return f.defjvp(rule)


def of_one_number(f):
    def g(t):
        out = f((t, t * t), t.sin())
        return out["r"] ** 2 * out["angle"].sin() + out["r"]

    return g


@pytest.mark.parametrize("make", [polar_vjp, polar_jvp], ids=["vjp", "jvp"])
def test_several_arguments_and_outputs_in_nested_structures(make):
    want = imperative(of_one_number(polar), 0.8, 3)[1:]
    for way, got in everywhere(of_one_number(make()), 0.8, 3).items():
        assert got == pytest.approx(want, rel=1e-11), way
    assert make()((0.3, 0.4), ng.tensor(2.0))["count"] == 3


@pytest.mark.parametrize("make", [polar_vjp, polar_jvp], ids=["vjp", "jvp"])
def test_only_some_arguments_are_tracked(make):
    f = make()
    given = (0.3, 0.4, 2.0)
    for k in range(3):

        def by(g, k=k):
            def radius(t):
                x, y, z = (t if i == k else a for i, a in enumerate(given))
                return g((x, y), z)["r"]

            return func.grad(radius)(given[k]).item(), func.jvp(radius, (given[k],), (1.0,))[1].item()

        assert by(f) == pytest.approx(by(polar))


@pytest.mark.parametrize("make", [polar_vjp, polar_jvp], ids=["vjp", "jvp"])
def test_in_a_batch_shared_arguments_get_the_sum(make):
    f, xs = make(), ng.linspace(0.5, 1.5, 4)
    total = lambda g: lambda k: func.vmap(lambda x: g((x, 0.7), k)["angle"].sin())(xs).sum()
    want = func.grad(total(polar))(0.5).item()
    assert func.grad(total(f))(0.5).item() == pytest.approx(want)
    assert func.jvp(total(f), (0.5,), (1.0,))[1].item() == pytest.approx(want)
    each = lambda g: func.vmap(func.grad(lambda x: g((x, 0.7), 0.5)["r"]))(xs).tolist()
    assert each(f) == pytest.approx(each(polar))


def test_on_torch_and_in_float32():
    pytest.importorskip("torch")
    for base in (ng.TorchBackend(), ng.NumpyBackend("float32")):
        x = ng.Autodiff(ng.Autodiff(base)).tensor(0.3, requires_grad=True)
        f = exponential_vjp()
        assert f(x).wrt(x).wrt(x).item() == pytest.approx(math.exp(0.3), rel=1e-6) and f(x).wrt(x).dtype == x.dtype
        out = polar_vjp()((x, x * 0.5), 2.0)
        assert out["r"].wrt(x).item() == pytest.approx(2.0 * math.sqrt(1.25), rel=1e-6)


def test_with_less_memory():
    f = exponential_vjp()
    g = lambda x: (f(f(x) * 0.1) * 2.0).sum()
    x = ng.linspace(0.0, 1.0, 4)
    want = func.grad(g)(x).tolist()
    assert func.grad(ng.checkpoint(g))(x).tolist() == want
    v = ng.Autodiff(ng.NumpyBackend(), checkpointing=ng.Balanced()).tensor(x, requires_grad=True)
    assert g(v).wrt(v).tolist() == want
