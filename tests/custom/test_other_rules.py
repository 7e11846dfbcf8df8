"""Rules that are deliberately no derivative of the body: they count at every order. What is not linear has no transpose."""

import math

import pytest
from derivatives import everywhere, nested

import nestgrad as ng
from nestgrad import func
from nestgrad.errors import RuleError


def stack(depth):
    level = ng.NumpyBackend()
    for _ in range(depth):
        level = ng.Autodiff(level)
    return level


def test_a_straight_through_rule_counts_at_every_order():
    rounded = ng.custom_vjp(lambda x: x.round())
    rounded.defvjp(lambda x: (x.round(), None), lambda _, g: g)
    for way, got in everywhere(lambda t: rounded(t) ** 3, 1.7, 3).items():  # as if rounded(t) were t + 0.3
        assert got == pytest.approx([12.0, 12.0, 6.0]), way


def test_a_saved_answer_has_the_derivative_of_the_rule():
    """The answer is saved and read by the rule: on the levels further in it depends on x by the rule, not by what the body did."""
    f = ng.custom_vjp(lambda x: x.round())

    def fwd(x):
        y = x.round()
        return y, y

    f.defvjp(fwd, lambda y, g: g * y)  # f' = f, f'' = f
    for way, got in everywhere(f, 1.7, 3).items():
        assert got == pytest.approx([2.0, 2.0, 2.0]), way


def test_a_reversed_gradient():
    reverse = ng.custom_vjp(lambda x: x)
    reverse.defvjp(lambda x: (x, ()), lambda _, g: -g)
    for way, got in everywhere(lambda t: reverse(t).sin(), 0.4, 3).items():
        assert got == pytest.approx([-math.cos(0.4), -math.sin(0.4), math.cos(0.4)]), way


def test_a_clipped_gradient_is_clipped_at_every_order_and_refused_in_forward_mode():
    clipped = ng.custom_vjp(lambda x: x)
    clipped.defvjp(lambda x: (x, None), lambda _, g: g.clamp(-1.0, 1.0))
    assert nested(lambda t: clipped(t) * 5.0, 0.3, "r") == 1.0 and nested(lambda t: clipped(t) * 0.5, 0.3, "r") == 0.5
    # the cotangent 3 x^2 = 0.48 is not clipped, and its derivative 6 x = 2.4 is that of the cotangent: clipped where it is one itself
    assert nested(lambda t: clipped(t) ** 3, 0.4, "r") == pytest.approx(0.48)
    assert nested(lambda t: clipped(t) ** 3, 0.4, "rr") == pytest.approx(1.0)
    assert nested(lambda t: clipped(t) ** 3, 0.9, "rr") == 0.0
    with pytest.raises(RuleError, match=r"rule of <lambda> is transposed.*it takes clamp of it, which is not linear. Try .*defjvp"):
        nested(clipped, 0.3, "f")
    clipped.defjvp(lambda primals, tangents: (primals[0], tangents[0].clamp(-1.0, 1.0)))
    assert func.jvp(clipped, (0.3,), (5.0,))[1].item() == 1.0


def test_each_mode_has_the_rule_that_was_given_for_it():
    f = ng.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, None), lambda _, g: 7.0 * g).defjvp(lambda primals, tangents: (None, 5.0 * tangents[0]))
    assert nested(f, 0.3, "r") == 7.0 and nested(f, 0.3, "f") == 5.0 and func.taylor(f, 0.3, 1.0, 2)[1].item() == 5.0


@pytest.mark.parametrize(
    "rule, what",
    [
        (lambda _, g: g * g, "mul of it"),
        (lambda _, g: abs(g), "abs of it"),
        (lambda _, g: ng.sort(g.reshape(1))[0], "sort of it"),
        (lambda _, g: ng.where(g > 1.0, 1.0, g), "gt of it"),
        (lambda _, g: g.detach(), r"detach\(\)"),
        (lambda _, g: g * g.item(), "the numbers"),
        (lambda _, g: g + 1.0, "for zeros it gives what is not zero"),
        (lambda _, g: ng.tensor(1.0), "for zeros it gives what is not zero"),
    ],
)
def test_a_cotangent_rule_that_is_not_linear_has_no_transpose(rule, what):
    f = ng.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), rule)
    with pytest.raises(RuleError, match=what):
        nested(f, 0.3, "f")


def test_a_tangent_rule_that_is_not_linear_has_no_transpose():
    f = ng.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (primals[0], tangents[0] ** 2))
    assert nested(f, 0.3, "f") == 1.0
    with pytest.raises(RuleError, match=r"the tangent rule of <lambda> is transposed, .* it takes powi of it.*Try <lambda>.defvjp"):
        nested(f, 0.3, "r")


def test_rules_may_use_functions_with_rules():
    half = ng.custom_vjp(lambda x: x * 0.5)
    half.defvjp(lambda x: (half(x), None), lambda _, g: half(g))
    for way, got in everywhere(lambda t: half(half(t) ** 3), 0.4, 3).items():
        assert got == pytest.approx([3 * 0.4**2 / 16, 6 * 0.4 / 16, 6 / 16]), way


def test_rules_may_differentiate_inside():
    potential = lambda x: (x**4).sum()
    force = ng.custom_vjp(lambda x: func.grad(potential)(x))
    force.defvjp(lambda x: (func.grad(potential)(x), x), lambda x, g: func.jvp(func.grad(potential), (x,), (g,))[1])
    T = stack(3)
    x = T.tensor([1.0, 2.0], requires_grad=True)
    first = force(x).wrt(x)
    assert first.tolist() == [12.0, 48.0] and first.wrt(x).tolist() == [24.0, 48.0]

    def imperative_force(x):
        v = T.tensor(x, requires_grad=True)
        return potential(v).wrt(v)

    other = ng.custom_vjp(imperative_force)
    other.defvjp(lambda x: (imperative_force(x), x), lambda x, g: g * 12.0 * x * x)
    assert other(x).wrt(x).wrt(x).tolist() == [24.0, 48.0]
