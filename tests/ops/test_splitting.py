"""The ops with as many results as there are parts: on every backend, on levels in each other, in traces and regions."""

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.func import call, grad, jvp, taylor, trace, vmap
from nestgrad.ops.splitting import splitting, unstacking
from nestgrad.testing import check_op


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("op", [splitting, unstacking])
def test_an_entry_of_each_number_of_parts_is_checked(op, count, backend):
    check_op(op(count), backend)


def f(x):
    """Depends on parts of both kinds, and not on all of them."""
    first, second, _ = ng.split(x, [1, 3], -1)
    rows = ng.unstack(second.sin() * 2, -1)
    return (first[..., 0] * rows[1] ** 2).sum() + (rows[0] ** 3).sum()


def g(x):
    """The same by slices."""
    second = x[..., 1:3].sin() * 2
    return (x[..., 0] * second[..., 1] ** 2).sum() + (second[..., 0] ** 3).sum()


X = np.linspace(-1.0, 1.5, 15).reshape(3, 5)
T = np.cos(np.arange(15.0)).reshape(3, 5)

WAYS = {
    "reverse of reverse": lambda f, x, t: grad(lambda v: (grad(f)(v) * t).sum())(x),
    "forward of reverse": lambda f, x, t: jvp(grad(f), (x,), (t,))[1],
    "reverse of forward": lambda f, x, t: grad(lambda v: jvp(f, (v,), (t,))[1])(x),
    "third order": lambda f, x, t: grad(lambda v: (grad(lambda u: jvp(f, (u,), (t,))[1])(v) * t).sum())(x),
    "series": lambda f, x, t: ng.stack(list(taylor(f, x, t, 3))),
    "batch of reverse": lambda f, x, t: vmap(grad(f))(ng.stack([x, t])),
    "reverse of batch": lambda f, x, t: grad(lambda v: vmap(f)(ng.stack([v, v * t])).sum())(x),
    "trace of reverse": lambda f, x, t: call(trace(grad(f))(t), x),
    "reverse of trace": lambda f, x, t: grad(lambda v: call(trace(f)(x * 0.5), v))(x),
    "region": lambda f, x, t: grad(ng.checkpoint(f))(x),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_parts_are_slices_on_levels_in_each_other(way, double):
    x, t = double.tensor(X), double.tensor(T)
    np.testing.assert_allclose(way(f, x, t).numpy(), way(g, x, t).numpy(), rtol=1e-12, atol=1e-12)


def test_parts_that_lead_nowhere_have_zero_derivative(double):
    S = ng.Autodiff(ng.Autodiff(double))
    x = S.tensor(X, requires_grad=True)
    parts = ng.unstack(x)
    slope = (parts[1] ** 3).sum().wrt(x)
    np.testing.assert_allclose(slope.numpy(), [np.zeros(5), 3 * X[1] ** 2, np.zeros(5)], rtol=1e-14)
    np.testing.assert_allclose(slope.wrt(x).numpy(), [np.zeros(5), 6 * X[1], np.zeros(5)], rtol=1e-14)
