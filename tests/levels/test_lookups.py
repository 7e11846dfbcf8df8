"""Looking derivatives up: spellings, what is known, seeds, values in the middle, leaked tensors."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from programs.case import d, stack, var

from nestgrad import Tensor
from nestgrad.errors import LevelError, NotConnectedError, NotTrackedError, ShapeError

SPELLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "x.grad(g)": lambda u, x: x.grad(u.backward()),
    "g.wrt(x)": lambda u, x: u.backward().wrt(x),
    "g[x]": lambda u, x: u.backward()[x],
    "g.get(x)": lambda u, x: u.backward().get(x),
    "u.wrt(x)": lambda u, x: u.wrt(x),
    "backward(wrt=[x])": lambda u, x: x.grad(u.backward(wrt=[x])),
    "x.grad_remove(g)": lambda u, x: x.grad_remove(u.backward()),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_all_spellings_give_the_same_tensor(spelling: str):
    s = stack(2)
    x = var(s, 0.7)
    u = x.sin() * x
    g = SPELLINGS[spelling](u, x)
    assert g.item() == d(u, x).item()
    assert g.tracked_on() == (s.inner.tape,)
    assert g.marks == d(u, x).marks
    assert SPELLINGS[spelling](g, x).item() == pytest.approx(2 * math.cos(0.7) - 0.7 * math.sin(0.7), rel=1e-14)


def test_wrt_chains_to_cross_partials():
    s = stack(2)
    x, t = var(s, 0.4), var(s, 1.5)
    u = (-t).exp() * x.sin() + x * t**2
    right = -math.exp(-1.5) * math.cos(0.4) + 3.0
    assert u.wrt(x).wrt(t).item() == pytest.approx(right, rel=1e-14)
    assert u.wrt(t).wrt(x).item() == pytest.approx(right, rel=1e-14)


def test_get_and_in_tell_what_the_root_depends_on():
    s = stack(2)
    x, y = var(s, 0.4), var(s, 0.7)
    grads = (x * 3.0).backward()
    assert x in grads
    assert y not in grads
    assert grads.get(y) is None
    assert grads.get(y, 0.0) == 0.0
    assert grads.get(x).item() == 3.0
    ux = grads.wrt(x)
    assert x in ux.backward()
    assert ux.backward().get(x).item() == 0.0


def test_get_hides_no_other_error():
    s = stack(2)
    x = var(s, 1.2)
    ux = d(x**3, x)
    y = var(s, 0.3)
    grads = (ux.inner() * y).backward()
    assert x not in grads
    with pytest.raises(LevelError, match="only through a value that was taken out"):
        grads.get(x)
    with pytest.raises(NotTrackedError, match="tracked on no level"):
        grads.get(s.tensor(1.0))
    with pytest.raises(NotTrackedError, match="got a float, which is tracked on no level; expected a Tensor"):
        grads.wrt(1.0)


def test_wrt_knows_those_alone():
    s = stack(1)
    x, y = var(s, 0.4), var(s, 0.7)
    grads = (x * y).backward(wrt=[x])
    assert x.grad(grads).item() == 0.7
    assert y not in grads
    with pytest.raises(NotTrackedError, match=r"computed with wrt=\[\.\.\.\] or closed"):
        y.grad(grads)
    with pytest.raises(NotConnectedError):
        (x * 2.0).backward(wrt=[y])


def test_removed_gradients_are_computed_again():
    s = stack(1)
    x = var(s, 0.4)
    grads = x.sin().backward()
    assert x.grad_remove(grads).item() == math.cos(0.4)
    assert x in grads
    assert x.grad(grads).item() == math.cos(0.4)


def test_replaced_gradients_are_given_for_that_tensor_alone():
    s = stack(1)
    x, y = var(s, 0.4), var(s, 0.7)
    grads = (x * y).backward()
    x.grad_replace(grads, s.tensor(5.0))
    assert x.grad(grads).item() == 5.0
    assert y.grad(grads).item() == 0.4
    assert x.grad_remove(grads).item() == 5.0
    assert x.grad(grads).item() == 0.7
    with pytest.raises(ShapeError, match=r"shape \(2,\); expected the tensor's, \(\)"):
        x.grad_replace(grads, s.tensor([1.0, 2.0]))
    with pytest.raises(NotTrackedError):
        s.tensor(1.0).grad_replace(grads, s.tensor(1.0))


def test_replacing_an_outer_handle_leaves_the_inner_one():
    x = var(stack(2), 0.4)
    grads = (x * x).backward()
    x.grad_replace(grads, x.detach() * 0.0 + 5.0)
    assert x.grad(grads).item() == 5.0
    assert x.inner().grad(grads).item() == 0.8


# ---------------------------------------------------------------- seeds
SEEDS: dict[str, Callable[[Any, Tensor], Any]] = {
    "number": lambda s, x: 2.5,
    "array": lambda s, x: np.asarray(2.5),
    "constant": lambda s, x: s.tensor(2.5),
    "on the base backend": lambda s, x: s.base.tensor(2.5),
    "tracked": lambda s, x: var(s, 2.5),
    "marked": lambda s, x: d(x * 2.5, x),
    "the root's own variable": lambda s, x: x + 1.3,
}


@pytest.mark.parametrize("kind", SEEDS)
def test_a_seed_is_multiplied_with_the_derivative(kind: str):
    s = stack(3)
    x = var(s, 1.2)
    seed = SEEDS[kind](s, x)
    g = x.grad((x**2).backward(gradient=seed))
    assert g.item() == pytest.approx(2.4 * 2.5, rel=1e-14)
    slope = 1.0 if kind == "the root's own variable" else 0.0
    assert d(g, x).item() == pytest.approx(2 * 2.5 + 2.4 * slope, rel=1e-14)


def test_a_derivative_is_differentiated_by_its_seed():
    s = stack(3)
    x = var(s, np.array([1.2, 0.4]))
    v = var(s, np.array([0.5, -2.0]))
    g = x.grad((x**3).backward(gradient=v))
    np.testing.assert_allclose(d(g, v).numpy(), 3 * x.numpy() ** 2, rtol=1e-14)
    zero = x.grad(d(x * 2.0, x).backward(gradient=v))  # no cotangent arrives, but it is linear in v all the same
    np.testing.assert_array_equal(d(zero, v).numpy(), np.zeros(2))


# ---------------------------------------------------------------- which tensors
def test_values_in_the_middle_are_looked_up_like_leaves():
    x = var(stack(2), 0.7)
    y = x * x
    u = y.sin() + x
    assert d(u, y).item() == pytest.approx(math.cos(0.49), rel=1e-14)
    assert d(d(u, y), y).item() == pytest.approx(-math.sin(0.49), rel=1e-14)
    assert d(d(u, y), x).item() == pytest.approx(-1.4 * math.sin(0.49), rel=1e-14)


def test_a_column_sliced_after_the_forward_pass_is_not_connected():
    s = stack(2)
    x = var(s, np.array([[0.3, 0.5], [1.0, -0.2]]))
    u = (x[:, 0] * x[:, 1]).sum()
    grads = u.backward()
    column = x[:, 0]
    for _ in range(2):
        with pytest.raises(NotConnectedError, match=r"tensor of shape \(2,\)\. Was it created anew, or sliced after the forward pass"):
            column.grad(grads)
        grads = d(u, x).sum().backward()
    a, b = x[:, 0], x[:, 1]
    u = (a * a * b).sum()
    np.testing.assert_allclose(u.wrt(a).sum().wrt(a).numpy(), 2 * b.numpy(), rtol=1e-15)


def test_derivative_of_a_leaf_by_itself():
    s = stack(2)
    x = var(s, np.array([0.3, 0.5]))
    one = d(x, x)
    np.testing.assert_array_equal(one.numpy(), np.ones(2))
    np.testing.assert_array_equal(d(one, x).numpy(), np.zeros(2))
    np.testing.assert_array_equal(x.grad(x.backward(gradient=x)).numpy(), x.numpy())


def test_a_look_up_through_the_youngest_level_that_tracks_both_and_never_through_an_older_one():
    s = stack(2)
    x = var(s, 3.0)
    product = x * x.detach(level=2)
    assert d(product, x).item() == 3.0
    assert d(product, x.inner()).item() == 6.0


def test_gradients_answer_late_and_keep_their_meaning():
    """The moment of a mark is the root's age, not the time of the look-up."""
    s = stack(1)
    x = var(s, 1.2)
    grads = (x**3).backward()
    y = var(s, 0.5)
    product = y * x.grad(grads)
    assert d(product, y).item() == pytest.approx(3 * 1.44, rel=1e-14)


def test_the_same_graph_is_used_many_times():
    s = stack(2)
    x, y = var(s, 1.5), var(s, -2.0)
    grads = (x**2 * y**3).backward()
    fx, fy = x.grad(grads), y.grad(grads)
    first, second = fx.backward(), fy.backward()
    for _ in range(2):
        assert [fx.item(), fy.item()] == [-24.0, 27.0]
        assert [x.grad(first).item(), y.grad(first).item(), x.grad(second).item(), y.grad(second).item()] == [-16.0, 36.0, 36.0, -27.0]
