"""Dropout: what is dropped, what stays, and that nothing is random but by the generator."""

import math

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import ArgumentError, BackendError, ShapeError, TraceError
from nestgrad.func import grad, trace, vmap
from nestgrad.nn import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d
from nestgrad.random import generator

BACKENDS = [ng.NumpyBackend(), ng.TorchBackend(dtype="float64")]
every_backend = pytest.mark.parametrize("base", BACKENDS, ids=repr)
X = np.random.default_rng(2).normal(size=(4, 3, 50)) + 5.0
EVERY = [dropout, dropout1d, alpha_dropout]


@every_backend
def test_entries_are_zero_or_divided_by_the_chance_to_stay(base):
    y = dropout(base.tensor(X), 0.3, generator=generator(1, base)).numpy()
    kept = y != 0
    np.testing.assert_allclose(y[kept], X[kept] / 0.7, rtol=1e-14)
    assert abs(kept.mean() - 0.7) < 4 * math.sqrt(0.21 / X.size)


@every_backend
@pytest.mark.parametrize("f, rank", [(dropout1d, 3), (dropout2d, 4), (dropout3d, 5)])
def test_whole_channels_are_dropped(f, rank, base):
    y = f(base.tensor(np.ones((20, 30, *(2,) * (rank - 2)))), 0.5, generator=generator(1, base)).numpy().reshape(600, -1)
    assert (y == y[:, :1]).all() and set(y[:, 0]) == {0.0, 2.0} and abs((y[:, 0] > 0).mean() - 0.5) < 4 * math.sqrt(0.25 / 600)


@every_backend
def test_alpha_dropout_keeps_mean_and_variance(base):
    x = np.random.default_rng(3).normal(size=100_000)
    y = alpha_dropout(base.tensor(x), 0.3, generator=generator(1, base)).numpy()
    assert abs(y.mean()) < 0.02 and abs(y.std() - 1.0) < 0.02
    dropped = np.bincount(np.unique(y, return_inverse=True)[1]).argmax()  # all of them have one value
    a = ((1 - 0.3) * (1 + 0.3 * 1.7580993408473766**2)) ** -0.5
    assert np.unique(y)[dropped] == pytest.approx(-a * 1.7580993408473766 * 0.7, rel=1e-12)


@every_backend
@pytest.mark.parametrize("f", EVERY)
def test_the_seed_tells_all_and_nothing_is_drawn_for_nothing(f, base):
    x, source = base.tensor(X), generator(7, base)
    first, second = f(x, 0.5, generator=source).numpy(), f(x, 0.5, generator=source).numpy()
    np.testing.assert_array_equal(f(x, 0.5, generator=generator(7, base)).numpy(), first)
    assert not np.array_equal(first, second)
    assert f(x, 0.5, training=False).tolist() == f(x, 0.0).tolist() == X.tolist()


@every_backend
@pytest.mark.parametrize("f", EVERY)
def test_with_chance_1_all_is_zero_and_so_are_derivatives(f, base):
    g = generator(0, base)
    assert not f(base.tensor(X), 1.0, generator=g).numpy().any()
    assert not grad(lambda x: f(x, 1.0, generator=g).sum())(base.tensor(X)).numpy().any()


@every_backend
def test_derivatives_are_those_of_what_stays_at_every_order(base):
    x = base.tensor(X)
    f = lambda v: (dropout(v, 0.3, generator=generator(1, base)) ** 3).sum()
    kept = dropout(x, 0.3, generator=generator(1, base)).numpy() != 0
    factor = np.where(kept, 1 / 0.7**3, 0.0)
    np.testing.assert_allclose(grad(f)(x).numpy(), 3 * X**2 * factor, rtol=1e-12)
    np.testing.assert_allclose(grad(lambda v: grad(f)(v).sum())(x).numpy(), 6 * X * factor, rtol=1e-12)


@every_backend
def test_what_is_dropped_is_zero_whatever_it_was(base):
    """Infinity and NaN, and the infinite derivative of a square root at 0."""
    bad = base.tensor(np.full(40, np.nan))
    y = dropout(bad, 0.5, generator=generator(0, base)).numpy()
    assert (np.isnan(y) | (y == 0)).all() and (y == 0).any()
    g = grad(lambda v: dropout(v.sqrt(), 0.5, generator=generator(0, base)).sum())(base.tensor(np.zeros(40))).numpy()
    assert np.array_equal(g == 0, y == 0) and np.isinf(g[g != 0]).all()


@every_backend
def test_samples_of_vmap_share_a_mask_and_a_trace_has_none(base):
    y = vmap(lambda v: dropout(v, 0.5, generator=generator(0, base)))(base.tensor(X)).numpy()
    assert ((y == 0) == (y[0] == 0)).all() and 0 < (y == 0).mean() < 1
    with pytest.raises(TraceError, match="draw inside a trace"):
        trace(lambda v: dropout(v, 0.5, generator=generator(0, base)))(base.tensor(X))
    assert trace(lambda v: dropout(v, 0.5, training=False))(base.tensor(X)) is not None


REFUSALS = {
    "above 1": (lambda x: dropout(x, 1.5), ArgumentError, "dropout: got probability 1.5; expected a number from 0 to 1"),
    "below 0": (lambda x: alpha_dropout(x, -0.1, training=False), ArgumentError, "alpha_dropout: got probability -0.1"),
    "no number": (lambda x: dropout(x, "half"), ArgumentError, "got probability 'half'"),
    "nan": (lambda x: dropout(x, math.nan), ArgumentError, "got probability nan"),
    "no generator": (lambda x: dropout(x), ArgumentError, r"dropout: got no generator; .* Try generator=ng.random.generator\(0\)"),
    "what is none": (lambda x: dropout(x, generator=5), BackendError, "got 5 as the generator"),
    "of another backend": (
        lambda x: dropout(x, generator=generator(0, "torch")), BackendError, "got a generator of torch and x over numpy",
    ),
    "no channels": (lambda x: dropout2d(x), ShapeError, r"dropout2d: got x of shape \(4, 3, 50\); expected 4 axes"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_input_is_named(name):
    f, error, text = REFUSALS[name]
    with pytest.raises(error, match=text):
        f(ng.tensor(X))
