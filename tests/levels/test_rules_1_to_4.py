"""Rules 1 to 4 of values on several levels (marks, mixing, backward, look-ups): what each gives, and where it must refuse."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from programs.case import d, stack, var

from nestgrad import Tensor
from nestgrad.errors import LevelError, NoLevelLeft, NotConnectedError, NotTrackedError
from nestgrad.levels.marks import NONE


def age(x: Tensor) -> int:
    """Age of the node on the outermost level."""
    return x.value.node.age  # type: ignore[no-any-return]


# ---------------------------------------------------------------- rule 1: marks
def test_rule_1_a_derivative_is_marked_with_the_age_of_its_root():
    s = stack(2)
    x = var(s, 1.2)
    u = x**3
    g = d(u, x)
    assert g.marks == {s.tape: age(u)}


def test_rule_1_inner_is_marked_with_the_age_of_the_value():
    s = stack(2)
    x = var(s, 1.2)
    u = x**3
    assert u.inner().marks == {s.tape: age(u)}
    assert u.inner().inner().marks == {s.tape: age(u), s.inner.tape: age(u.inner())}


def test_rule_1_what_comes_off_from_under_another_level_is_marked_with_now():
    s, r = stack(1), stack(1)
    x, y = var(s, 1.2), var(r, 0.5)
    g = d(x**3, x)
    z = x * y
    last = age(z)
    w = z * g
    assert {c.tape for c in (w.value,)} == {r.tape}
    assert w.marks[s.tape] > last


def test_rule_1_a_derivative_carries_the_marks_of_root_and_seed():
    s, r = stack(1), stack(1)
    x, y, z = var(s, 1.2), var(r, 0.5), var(stack(1), 2.0)
    root = d(x**2, x) * z
    seed = d(y**2, y)
    g = z.grad(root.backward(gradient=seed))
    assert set(g.marks) == {s.tape, r.tape, *z.tracked_on()}


def test_rule_1_results_carry_the_union_with_the_latest_moments():
    s = stack(2)
    x = var(s, 1.2)
    early, late = x.inner(), (x**3).inner()
    for both in (early * late, late * early):
        assert both.marks == {s.tape: late.marks[s.tape]}


REWRAPPED: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "tensor": lambda s, g: s.tensor(g),
    "tensor, requires_grad": lambda s, g: s.tensor(g, requires_grad=True),
    "require_grad": lambda s, g: g.require_grad(levels=[s]),
    "reshape": lambda s, g: g.reshape(1),
    "astype": lambda s, g: g.astype("float32"),
    "getitem": lambda s, g: g[None],
    "negative": lambda s, g: -g,
    "literal": lambda s, g: 2.0 * g,
    "copy": lambda s, g: copy.copy(g),
    "deepcopy": lambda s, g: copy.deepcopy(g),
}


@pytest.mark.parametrize("how", REWRAPPED)
def test_rule_1_everything_that_wraps_a_value_again_keeps_its_marks(how: str):
    s = stack(1)
    x = var(s, 1.2)
    g = d(x**3, x)
    assert REWRAPPED[how](s, g).marks == g.marks != {}


def test_rule_1_data_and_results_of_constant_ops_carry_no_marks():
    s = stack(1)
    x = var(s, np.array([1.2, -0.3]))
    g = d(x**3, x)
    for constant in (s.tensor(1.0), g > 0.0, g == x, g.argmax(), g.sign(), ~(g > 0.0), g.detach()):
        assert constant.marks is NONE
    assert bool(g[0] > 0.0)


def test_rule_1_a_mark_takes_the_level_away():
    x = var(stack(1), 1.2)
    with pytest.raises(NoLevelLeft, match="taken out of Autodiff level 1: a derivative of a powi of shape"):
        d(x**3, x).backward()


# ---------------------------------------------------------------- rule 2: mixing
def test_rule_2_a_marked_value_takes_its_level_off_what_is_older():
    s = stack(2)
    x = var(s, 1.2)
    ux = d(x**3, x)
    for product in (x * ux, ux * x, x * s.tensor(ux, requires_grad=True)):
        assert product.tracked_on() == (s.inner.tape,)
        assert d(product, x).item() == pytest.approx(9 * 1.2**2, rel=1e-14)


def test_rule_2_a_marked_value_is_a_constant_for_variables_made_later():
    s = stack(1)
    x = var(s, 1.2)
    ux = d(x**3, x)
    y = var(s, 1.2)
    product = y * y * ux
    assert product.tracked_on() == (s.tape,)
    assert d(product, y).item() == pytest.approx(2 * 1.2 * 3 * 1.2**2, rel=1e-14)


def test_rule_2_every_term_comes_down_to_what_the_last_derivative_wears():
    """r = u_t + u u_x - nu u_xx of u = sin(a x) e^t: the residual is complete for a."""
    s = stack(3)
    x, t, a = var(s, 0.4), var(s, 0.3), var(s, 1.1)
    u = (a * x).sin() * t.exp()
    grads = u.backward()
    ux = x.grad(grads)
    r = t.grad(grads) + u * ux - 0.1 * d(ux, x)
    assert r.tracked_on() == (s.inner.inner.tape,)
    sin, cos, e = math.sin(0.44), math.cos(0.44), math.exp(0.3)
    right = 0.4 * cos * e + e * e * (0.4 * 1.1 * (cos * cos - sin * sin) + sin * cos) + 0.1 * e * (2 * 1.1 * sin + 1.21 * 0.4 * cos)
    assert d(r, a).item() == pytest.approx(right, rel=1e-13)


def test_rule_2_too_few_levels_is_an_error_and_no_number():
    x = var(stack(1), 1.2)
    with pytest.raises(NoLevelLeft, match="taken out of Autodiff level 1"):
        (x * d(x**3, x)).backward()


# ---------------------------------------------------------------- rule 3: backward
def test_rule_3_backward_looks_at_the_youngest_level_that_recorded_the_root():
    s = stack(3)
    x = var(s, 1.2, levels=[1, 3])
    assert (x * x).backward().level == 3
    assert d(x * x, x).backward().level == 1


def test_rule_3_no_level_left_names_value_op_place_and_both_ways_out():
    x = var(stack(1), np.ones(3))
    with pytest.raises(NoLevelLeft) as caught:
        (d(x.sin().sum(), x) * 2.0).backward()
    assert str(caught.value) == (
        "backward: no level is left that recorded a value of shape (3,). What it depends on was taken out of Autodiff level 1: "
        "a derivative of a sum of shape (). "
        "Try detach() on what is meant as a constant, or one more Autodiff around the backend if it is not"
    )


def test_rule_3_a_root_that_nothing_recorded():
    with pytest.raises(NotTrackedError, match=r"requires gradients\. Try stack\.tensor\(data, requires_grad=True\)"):
        stack(1).tensor(1.0).backward()


def test_rule_3_a_seed_meets_the_roots_inner_value():
    s = stack(2)
    x = var(s, 1.1)
    marked, tracked = d(x**3, x), x.sin()
    assert x.grad((x * x).backward(gradient=marked)).marks.keys() == {s.tape}
    g = x.grad((x * x).backward(gradient=tracked))
    assert g.tracked_on() == (s.inner.tape,)
    assert d(g, x).item() == pytest.approx(2 * math.sin(1.1) + 2.2 * math.cos(1.1), rel=1e-14)


# ---------------------------------------------------------------- rule 4: look-ups (more in test_lookups.py)
def test_rule_4_differentiates_at_the_youngest_level_that_tracks_both():
    s = stack(3)
    x, y = var(s, 1.2), var(s, 0.7, levels=[1])
    u = x * x * y * y
    assert d(u, y).item() == pytest.approx(2 * 1.2**2 * 0.7, rel=1e-14)
    assert d(u, y).level == 0
    assert d(d(u, x), y).item() == pytest.approx(4 * 1.2 * 0.7, rel=1e-14)
    assert set(d(u, y).marks) == {s.tape, s.inner.tape, s.inner.inner.tape}


@pytest.mark.parametrize("order", [1, 2, 3])
def test_rule_4_what_was_made_anew_is_not_connected_at_any_order(order: int):
    s = stack(3)
    x = var(s, 0.4)
    u = x**3
    for _ in range(order - 1):
        u = d(u, x)
    with pytest.raises(NotConnectedError, match="created anew, or sliced after the forward pass"):
        d(u, var(s, 0.4))


def test_rule_4_dependence_through_a_value_taken_out_is_an_error():
    s = stack(2)
    x = var(s, 1.2)
    ux = d(x**3, x)
    y = var(s, 0.3)
    with pytest.raises(LevelError, match=r"only through a value that was taken out of Autodiff level 2 .*one more Autodiff.* detach\(\)"):
        d(ux.inner() * y, x)


def test_rule_4_a_derivative_is_connected_to_whatever_its_root_was():
    s = stack(3)
    x, y = var(s, 0.4), var(s, 2.0)
    ux = d(x * 2.0 + y, x)
    assert [d(ux, v).item() for v in (x, y)] == [0.0, 0.0]
    assert d(d(ux, x), y).item() == 0.0
