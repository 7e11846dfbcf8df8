"""The eight rules of values on several levels: for each what it gives, and the error where it must refuse."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from programs.case import BASE, d, stack, var

from nestgrad import Tensor, func
from nestgrad.backends import TorchBackend
from nestgrad.errors import ConversionError, DTypeError, LevelError, NoLevelLeft, NotConnectedError, NotTrackedError, ShapeError
from nestgrad.levels.autodiff import Autodiff
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


# ---------------------------------------------------------------- rule 5: variables
def test_rule_5_a_variable_is_a_leaf_where_the_value_is_constant_and_an_identity_where_it_is_tracked():
    s = stack(2)
    x = var(s.inner, 1.2)
    q = s.tensor(x * x, requires_grad=True)
    assert q.tracked_on() == (s.tape, s.inner.tape)
    assert d(q * q, q).item() == pytest.approx(2 * 1.44, rel=1e-14)
    assert d((q * q).inner(), x).item() == pytest.approx(4 * 1.2**3, rel=1e-14)
    assert d(x * q, q).item() == 1.2  # not 2 x: q is another variable than x


def test_rule_5_history_and_marks_are_kept_and_only_variable_cuts():
    s = stack(1)
    x = var(s, 1.2)
    ux = d(x**3, x)
    assert s.tensor(ux, requires_grad=True).marks == ux.marks
    assert s.variable(ux).marks is NONE
    with pytest.raises(NotConnectedError):
        d(s.variable(x) * 2.0, x)


def test_rule_5_levels_by_number_or_object():
    s = stack(3)
    for levels in ([1, 3], [s.inner.inner, s]):
        assert s.tensor(1.0, requires_grad=True, levels=levels).tracked_on() == (s.tape, s.inner.inner.tape)
    with pytest.raises(LevelError, match=r"got 4; expected numbers from 1 \(innermost\) to 3"):
        s.tensor(1.0, requires_grad=True, levels=[4])
    with pytest.raises(LevelError, match="without requires_grad=True"):
        s.tensor(1.0, levels=[1])
    with pytest.raises(LevelError, match="constant on every level, so there is none to track it"):
        s.tensor(1.0).require_grad()


def test_rule_5_integers_and_base_backends_track_nothing():
    with pytest.raises(DTypeError, match="expected a floating one"):
        stack(1).tensor([1, 2], requires_grad=True)
    with pytest.raises(LevelError, match="is a base backend and tracks nothing"):
        BASE.tensor(1.0, requires_grad=True)


# ---------------------------------------------------------------- rule 6: transforms (more in test_transforms.py)
def test_rule_6_an_output_that_left_the_level_of_its_transform_is_an_error_and_no_zero():
    with pytest.raises(LevelError, match=r"out of the level of this grad .* Make a variable inside, S\.tensor\(x, requires_grad=True\)"):
        func.grad(lambda x: d(x**3, x))(2.0)
    s = stack(1)

    def slope(x: Tensor) -> Tensor:
        z = var(s, x)
        return d(z**3, z)

    assert func.grad(slope)(2.0).item() == 12.0


def test_rule_6_a_transform_leaves_no_trace():
    s = stack(1)
    x = var(s, 0.3)
    y = x
    for _ in range(5):
        y = y - 0.1 * func.grad(lambda z: (z * x).sin())(y)
    assert y.marks is NONE
    assert y.tracked_on() == (s.tape,)


# ---------------------------------------------------------------- rule 7: backends and stacks
def test_rule_7_two_stacks_meet():
    a, b = stack(1), stack(2)
    x, y = var(a, 1.2), var(b, 0.7)
    u = (x * y).sin()
    assert d(u, x).item() == pytest.approx(0.7 * math.cos(0.84), rel=1e-14)
    assert d(d(u, y), y).item() == pytest.approx(-1.44 * math.sin(0.84), rel=1e-14)
    assert d(d(d(u, y), y), x).item() == pytest.approx(-2.4 * math.sin(0.84) - 1.44 * 0.7 * math.cos(0.84), rel=1e-14)


@pytest.mark.parametrize("meet", [lambda x, y: x * y, lambda x, y: x + y, lambda x, y: x @ y, lambda x, y: x.backward(gradient=y)])
def test_rule_7_different_base_backends_are_an_error_with_both_names(meet: Callable[[Tensor, Tensor], Any]):
    x = stack(1).tensor(np.eye(2), requires_grad=True)
    y = Autodiff(TorchBackend(dtype="float64")).tensor(np.eye(2), requires_grad=True)
    for one, other in ((x, y), (y, x)):
        with pytest.raises(LevelError) as caught:
            meet(one, other)
        assert "numpy" in str(caught.value)
        assert "torch" in str(caught.value)


# ---------------------------------------------------------------- rule 8: constants
def test_rule_8_detach_is_a_constant_on_all_levels_without_marks():
    s = stack(2)
    x = var(s, 1.2)
    assert d(d(x * x.detach() + 0.0 * x * x, x), x).item() == 0.0
    assert d(x**3, x).detach().marks is NONE
    assert x.detach().tracked_on() == ()


def test_rule_8_detach_from_a_level_up_by_number_or_object():
    s = stack(3)
    x = var(s, 1.2)
    for k, level in ((3, s), (2, s.inner), (1, s.inner.inner)):
        for cut in (x.detach(level=k), x.detach(level=level)):
            assert cut.tracked_on() == x.tracked_on()[4 - k :]
    marked = d(x**3, x)
    assert marked.detach(level=3).marks is NONE
    assert marked.detach(level=2).tracked_on() == (s.inner.inner.tape,)
    for wrong in (0, "all", BASE):
        with pytest.raises(LevelError, match="expected an Autodiff level or a number from 1 on"):
            x.detach(level=wrong)


@pytest.mark.parametrize("leave", [float, int, math.exp, np.asarray, complex])
def test_rule_8_leaving_must_be_said(leave: Callable[[Any], Any]):
    x = var(stack(1), 1.2)
    for tensor in (x, d(x**3, x)):
        with pytest.raises((ConversionError, TypeError), match=r"item\(\)|numpy\(\)"):
            leave(tensor)
    assert leave(x.detach()) == leave(1.2)


def test_rule_8_numbers_arrays_and_truth():
    x = var(stack(1), 1.2)
    assert x.item() == 1.2
    assert x.numpy() == 1.2
    assert d(x * x.item(), x).item() == 1.2
    assert bool(x > 1.0)
    assert not x < 1.0


def test_rule_8_pickling_drops_history_and_copies_keep_it():
    x = var(stack(2), np.array([1.2, 0.3]))
    g = d(x.sin().sum(), x)
    for tensor in (x, g):
        loaded = pickle.loads(pickle.dumps(tensor))
        np.testing.assert_array_equal(loaded.numpy(), tensor.numpy())
        assert loaded.marks is NONE
        assert loaded.tracked_on() == ()
        for copied in (copy.copy(tensor), copy.deepcopy([tensor])[0]):
            assert copied.tracked_on() == tensor.tracked_on()
            assert copied.marks == tensor.marks
    assert d(copy.deepcopy(x)[0] * 2.0, x).tolist() == [2.0, 0.0]


def test_rule_8_a_seed_of_another_shape_is_an_error():
    x = var(stack(1), np.ones(3))
    with pytest.raises(ShapeError, match=r"gradient of shape \(2,\) for a root of shape \(3,\)"):
        (x * x).backward(gradient=np.ones(2))
