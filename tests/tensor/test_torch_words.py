"""``dim`` and ``keepdim`` mean what ``axis`` and ``keepdims`` do."""

import inspect

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import ArgumentError, ShapeError

X = np.random.default_rng(0).normal(size=(3, 4))

REDUCING = ("sum", "mean", "prod", "amax", "amin", "var", "std", "norm", "logsumexp", "argmax", "argmin", "any", "all")
ALONG = ("softmax", "log_softmax", "cumsum", "cumprod", "argsort")


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("name", REDUCING + ALONG)
def test_dim_is_axis(name, dim):
    method = getattr(ng.tensor(X), name)
    assert np.array_equal(method(dim=dim).numpy(), method(axis=dim).numpy())


@pytest.mark.parametrize("name", REDUCING)
def test_keepdim_is_keepdims(name):
    method = getattr(ng.tensor(X), name)
    for words in ({"dim": 1, "keepdim": True}, {"axis": 1, "keepdim": True}, {"dim": 1, "keepdims": True}):
        assert method(**words).shape == (3, 1)
    assert method(dim=1, keepdim=False).shape == (3,)
    assert method(keepdim=True).shape == (1, 1)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "var", "std", "norm", "logsumexp", "any", "all"])
def test_dim_may_be_several(name):
    assert getattr(ng.tensor(X), name)(dim=(0, 1)).shape == ()


@pytest.mark.parametrize("name", REDUCING + ALONG)
def test_two_words_for_one_are_refused(name):
    with pytest.raises(ArgumentError, match=rf"{name}: got axis=0 and dim=1, which are two words for one; .* Try axis"):
        getattr(ng.tensor(X), name)(axis=0, dim=1)
    if name in REDUCING:
        with pytest.raises(ArgumentError, match=rf"{name}: got keepdims=True and keepdim=False, which are two words for one"):
            getattr(ng.tensor(X), name)(keepdims=True, keepdim=False)


@pytest.mark.parametrize("name", ["max", "min"])
def test_what_is_a_pair_in_torch_is_refused(name):
    """``x.max(dim=0)[0]`` of torch's would be a row too little here."""
    for words in ({"dim": 0}, {"keepdim": True}):
        with pytest.raises(ArgumentError, match=rf"{name}: got dim or keepdim, .* Try x.a{name}\(dim=...\), .* x.arg{name}\(dim=...\)"):
            getattr(ng.tensor(X), name)(**words)
    assert getattr(ng.tensor(X), name)(axis=0).tolist() == getattr(ng.tensor(X), "a" + name)(dim=0).tolist()


def test_a_wrong_dim_is_a_wrong_axis():
    with pytest.raises(ShapeError, match="sum: got axis 2 of an array with 2 axes"):
        ng.tensor(X).sum(dim=2)


def test_every_method_that_has_one_word_has_the_other():
    families = [c for c in ng.Tensor.__mro__ if c.__name__ in ("Reductions", "Scans")]
    for name, method in [(n, m) for c in families for n, m in vars(c).items() if not n.startswith("_")]:
        words = inspect.signature(method).parameters
        assert ("axis" in words) == ("dim" in words) and ("keepdims" in words) == ("keepdim" in words), name
        assert name in (*REDUCING, *ALONG, "max", "min")


def test_derivatives_do_not_ask_how_it_was_spelled():
    found = ng.func.grad(lambda x: (x.exp().sum(dim=1) * x.mean(dim=1, keepdim=True).sum(dim=1)).sum())(X)
    same = ng.func.grad(lambda x: (x.exp().sum(1) * x.mean(1, True).sum(1)).sum())(X)
    assert np.array_equal(found.numpy(), same.numpy())
