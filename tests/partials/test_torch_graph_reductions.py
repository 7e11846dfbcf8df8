"""Nodes of reductions and of running sums: the adopted graph has the derivatives that torch's nested backward passes find."""

import math

import pytest
import torch
from adopted import Run, compare, reals

norm = torch.linalg.vector_norm

WHOLE = {
    "sum": torch.sum, "mean": torch.mean, "prod": torch.prod, "amax": torch.amax, "amin": torch.amin, "max": torch.max, "min": torch.min,
    "var": torch.var, "std": torch.std, "norm": torch.norm, "median": torch.median, "nansum": torch.nansum, "nanmedian": torch.nanmedian,
    "var of the population": lambda x: torch.var(x, correction=0), "std with a correction": lambda x: torch.std(x, correction=2),
    "norm 1": lambda x: norm(x, 1), "norm 3": lambda x: norm(x, 3), "norm 2.5": lambda x: norm(x, 2.5),
    "norm inf": lambda x: norm(x, math.inf), "norm -inf": lambda x: norm(x, -math.inf), "norm 0": lambda x: norm(x, 0) * x.sum(),
    "frobenius": torch.linalg.norm, "var_mean": torch.var_mean, "std_mean": torch.std_mean, "aminmax": torch.aminmax,
    "older norm": lambda x: torch.ops.aten.norm.Scalar(x, 3.0),
    "older norm to a dtype": lambda x: torch.ops.aten.norm.ScalarOpt_dtype( x, 3.0, dtype=torch.float64),
    "distance from 1": lambda x: torch.dist(x, torch.ones_like(x), 3.0),
}  # fmt: skip

ALONG = {
    "sum": torch.sum, "mean": torch.mean, "prod": torch.prod, "amax": torch.amax, "amin": torch.amin, "var": torch.var, "std": torch.std,
    "max": torch.max, "min": torch.min, "median": torch.median, "nanmedian": torch.nanmedian, "nansum": torch.nansum, "norm": lambda x,
    dim, keepdim: norm(x, 2, dim, keepdim), "norm 1": lambda x, dim, keepdim: norm(x, 1, dim, keepdim), "norm 3": lambda x, dim,
    keepdim: norm(x, 3, dim, keepdim), "norm inf": lambda x, dim, keepdim: norm(x, math.inf, dim, keepdim),
    "var with a correction": lambda x, dim, keepdim: torch.var(x, dim, correction=0.5, keepdim=keepdim), "var_mean": torch.var_mean,
    "std_mean": torch.std_mean, "aminmax": lambda x, dim, keepdim: torch.aminmax(x, dim=dim, keepdim=keepdim), "older norm": lambda x,
    dim, keepdim: torch.ops.aten.norm.ScalarOpt_dim(x, 3.0, [dim], keepdim), "older norm to a dtype": lambda x, dim,
    keepdim: torch.ops.aten.norm.ScalarOpt_dim_dtype(x, 3.0, [dim], keepdim, dtype=torch.float64),
}  # fmt: skip

RUNNING = {"cumsum": torch.cumsum, "cumprod": torch.cumprod, "cummax": torch.cummax, "cummin": torch.cummin}

MANY = {
    "sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "amin": torch.amin, "var": torch.var, "std": torch.std, "norm": lambda x,
    dim, keepdim: norm(x, 2, dim, keepdim), "norm 3": lambda x, dim, keepdim: norm(x, 3, dim, keepdim), "std_mean": torch.std_mean,
    "nansum": torch.nansum,
}  # fmt: skip


def _after(f, g):
    """``f`` of each of one or several results of ``g``."""

    def both(x, *rest):
        found = g(x, *rest)
        return f(found, x) if isinstance(found, torch.Tensor) else [f(y, x) if y.is_floating_point() else y for y in found]

    return both


@pytest.mark.parametrize("name", WHOLE)
def test_of_all_entries(name):
    x = reals(2, 3)
    compare(WHOLE[name], x)
    compare(_after(lambda y, x: (y * x).sin(), lambda x: WHOLE[name](x * 1.5)), x)


@pytest.mark.parametrize("keepdim", [False, True], ids=["drops axes", "keeps axes"])
@pytest.mark.parametrize("dim", [1, -3], ids=str)
@pytest.mark.parametrize("name", ALONG)
def test_along_an_axis(name, dim, keepdim):
    x = reals(3, 2, 3) if dim < 0 else reals(2, 3)
    compare(_after(lambda y, x: y.exp(), lambda x: ALONG[name](x * x + x, dim, keepdim=keepdim)), x)
    if keepdim:
        compare(_after(lambda y, x: (y * x).tanh(), lambda x: ALONG[name](x, dim, keepdim=True)), x)


@pytest.mark.parametrize("keepdim", [False, True], ids=["drops axes", "keeps axes"])
@pytest.mark.parametrize("dims", [(0, 2), (-1, 0, 1), (2, 1)], ids=str)
@pytest.mark.parametrize("name", MANY)
def test_along_axes(name, dims, keepdim):
    compare(_after(lambda y, x: y.exp(), lambda x: MANY[name](x * x + x, dims, keepdim=keepdim)), reals(2, 3, 2), orders=2)


@pytest.mark.parametrize("name", [n for n in WHOLE if n not in ("var", "std", "var_mean", "std_mean", "std with a correction")])
def test_of_a_number(name):
    compare(_after(lambda y, x: y.exp() * x, lambda x: WHOLE[name](x * 1.5)), reals())


@pytest.mark.parametrize("name", [n for n in ALONG if not n.startswith(("var", "std", "older"))])
def test_of_a_number_along_an_axis(name):
    compare(_after(lambda y, x: y.exp() * x, lambda x: ALONG[name](x * 1.5, -1, keepdim=False)), reals())
    compare(_after(lambda y, x: y.exp() * x, lambda x: ALONG[name](x * 1.5, 0, keepdim=True)), reals())


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", RUNNING)
def test_running(name, dim):
    compare(_after(lambda y, x: y.exp(), lambda x: RUNNING[name](x * 1.5, dim)), reals(3, 2))
    compare(_after(lambda y, x: y * x, lambda x: RUNNING[name](x, dim)), reals(3, 2).detach().t().requires_grad_())
    compare(_after(lambda y, x: y.exp() * x, lambda x: RUNNING[name](x * 1.5, 0)), reals())
    if name != "cumprod":  # torch's own has no second derivative without entries
        compare(_after(lambda y, x: y * x, lambda x: RUNNING[name](x, 0)), reals(0, 2))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "norm", "norm 1"])
def test_without_entries(name):
    compare(lambda x: ALONG[name](x * 2.0, 1, keepdim=False).exp(), reals(0, 2))
    if name != "mean":  # which is NaN
        compare(lambda x: ALONG[name](x * 2.0, 1, keepdim=True).exp(), reals(2, 0))
        compare(lambda x: WHOLE[name](x * 2.0).exp(), reals(2, 0))


# special points


@pytest.mark.parametrize("entries", [[2.0, 3.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 2.0, 3.0, 0.0]], ids=str)
def test_products_with_zeros(entries):
    x = torch.tensor(entries, dtype=torch.float64, requires_grad=True)
    compare(torch.prod, x, oracle=_product)
    compare(lambda x: x.prod(0, keepdim=True) * x, x, oracle=lambda x: _product(x) * x)
    compare(lambda x: x.cumprod(0), x, oracle=lambda x: torch.stack([_product(x[: k + 1]) for k in range(len(entries))]))


def _product(x):
    out = x[0]
    for v in x[1:]:
        out = out * v
    return out


@pytest.mark.parametrize("f", [torch.amax, torch.amin, torch.max, torch.min, lambda x: x.amax(0), lambda x: x.max(0)[0], torch.median,
                               lambda x: norm(x, math.inf), lambda x: x.cummax(0)[0], torch.aminmax],
                         ids=["amax", "amin", "max", "min", "amax along", "max along", "median", "norm", "cummax", "aminmax"])  # fmt: skip
def test_ties(f):
    x = torch.tensor([0.5, 2.0, 0.5, 2.0, 1.0], dtype=torch.float64, requires_grad=True)
    compare(_after(lambda y, x: y.exp(), f), x)


@pytest.mark.parametrize("f", [torch.norm, torch.std, lambda x: norm(x, 3), lambda x: norm(x, 1)], ids=["norm", "std", "norm 3", "norm 1"])
def test_at_the_origin(f):
    """The first derivative is 0, as torch has it."""
    compare(f, torch.zeros(3, dtype=torch.float64, requires_grad=True), orders=1)


def test_nansum_leaves_nan_out():
    x = torch.tensor([0.5, math.nan, 2.0], dtype=torch.float64, requires_grad=True)
    run = Run(torch.nansum(x).square(), [x])
    assert run.gradient(torch.ones((), dtype=torch.float64))[0].tolist() == [5.0, 0.0, 5.0]


# what is read from elsewhere


def test_expand_and_clone():
    x = reals(3, 1)
    compare(lambda x: (x.expand(2, 3, 4) * x).clone().exp(), x)
    compare(lambda x: x.expand(-1, 4).contiguous().sum(0) ** 2, x)


def test_one_of_several_results():
    x = reals(2, 3)
    compare(lambda x: torch.var_mean(x * 1.5, 1)[1].exp(), x)
    compare(lambda x: torch.var_mean(x * 1.5, 1)[0].exp(), x)
    compare(lambda x: (v := torch.std_mean(x * 1.5, 1))[0] * v[1] * v[0], x)


def test_layer_norm_by_hand():
    def f(x):
        m = x.mean(-1, keepdim=True)
        return ((x - m) / (x.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()).pow(3)

    compare(f, reals(2, 3))


def test_softmax_by_hand():
    def f(x):
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    compare(f, reals(2, 3))


def test_a_filled_position_counts_once():
    """However often it is named."""
    x, v = reals(5, 2), reals(seed=1)
    compare(lambda x, v: x.index_fill(0, torch.tensor([4, 3, 3]), v).sin() * x.sum(), x, v)
    compare(lambda x, v: x.index_fill(-1, torch.tensor([1, 1]), v).sin() * v, x.detach(), v)
    compare(lambda x, v: x.index_fill(0, torch.tensor([0]), v).sin() * v + x, reals(), v)
