"""Rules 5 to 8 of values on several levels (variables, transforms, stacks, constants): what each gives, and where it must refuse."""

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
from nestgrad.errors import ConversionError, DTypeError, LevelError, NotConnectedError, ShapeError
from nestgrad.levels.autodiff import Autodiff
from nestgrad.levels.marks import NONE


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
