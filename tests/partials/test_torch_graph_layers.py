"""Nodes of softmax, gates, normalisation, dropout and attention: the adopted graph has the derivatives of what they are by definition.

Beyond second order, torch takes mean and deviation of a normalised array for constants, and makes NaN of logcumsumexp; attention in one
kernel has no second derivative. There, the oracle is the definition.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from adopted import Run, compare, compare_all, reals

from nestgrad.backends.torch.graph import RULES
from nestgrad.errors import UnsupportedNode

F = torch.nn.functional
Tensor = torch.Tensor

A, NUMBER = reals(3, 4), reals(seed=3)

ONE: dict[str, Callable[[Tensor], Any]] = {
    "softmax": lambda a: a.softmax(1),
    "softmax along the first": lambda a: a.softmax(-2),
    "softmin": lambda a: F.softmin(a, 1),
    "log_softmax": lambda a: a.log_softmax(-1),
    "softmax of large numbers": lambda a: (200 * a).softmax(1),
    "log_softmax of large numbers": lambda a: (200 * a).log_softmax(1),
    "softmax of what is masked": lambda a: a.masked_fill(torch.eye(3, 4).bool(), -torch.inf).softmax(1),
    "softmax twice": lambda a: a.softmax(1) * a.softmax(1) + a.softmax(0),
    "logsumexp": lambda a: a.logsumexp(1),
    "logsumexp of all": lambda a: a.logsumexp((0, 1), keepdim=True),
    "glu": lambda a: F.glu(a, 1),
    "weight of softmax in a loss": lambda a: (a.softmax(1) * a.log_softmax(1)).sum(),
    "normalize": lambda a: F.normalize(a),
    "rms_norm": lambda a: F.rms_norm(a, (4,)),
}


@pytest.mark.parametrize("name", ONE)
def test_softmax_and_its_kind(name: str) -> None:
    compare_all(ONE[name], A, tolerance=1e-6 if "large" in name else 1e-9)  # sums of large terms that cancel


@pytest.mark.parametrize("f", [lambda a: a.softmax(0), lambda a: a.log_softmax(0), lambda a: a.logsumexp(0)])
@pytest.mark.parametrize("x", [NUMBER, reals(0, 2), reals(1, 1)], ids=["number", "nothing", "one"])
def test_softmax_of_one_number_or_none(f: Callable[[Tensor], Tensor], x: Tensor) -> None:
    if x.numel() or f(x).shape != (2,):  # torch has no derivative of the logarithm of an empty sum
        compare(lambda a: f(a * a), x)


def test_a_leaf_that_was_changed_after_softmax_does_not_count() -> None:
    x = reals(3, 4)
    y, expected = x.softmax(1), x.detach().clone().requires_grad_()
    with torch.no_grad():
        x += 1.0 + torch.arange(4.0)
    along = torch.ones_like(x) * torch.arange(4.0)
    (first,) = Run(y, [x]).curve([along], 1)
    p = expected.softmax(1)
    torch.testing.assert_close(first, (p * (along - (p * along).sum(1, keepdim=True))).detach())


def test_logcumsumexp() -> None:
    compare_all(lambda a: a.logcumsumexp(1), A, oracle=lambda a: a.exp().cumsum(1).log())


def _standard(a: Tensor, axes: Any, eps: float = 1e-5) -> Tensor:
    far = a - a.mean(axes, keepdim=True)
    return far * (far.square().mean(axes, keepdim=True) + eps).rsqrt()


W, B = reals(4, seed=4), reals(4, seed=5)
C, D = reals(3, seed=6), reals(3, seed=7)
IMAGE = reals(2, 4, 3, seed=8)
STILL = torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64)


def _grouped(a: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return _standard(a.reshape(2, 2, 6), (2,)).reshape(2, 4, 3) * w[:, None] + b[:, None]


def _batch(a: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.batch_norm(a, STILL.clone(), STILL.clone().abs(), w, b, True)


NORMS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], Callable[..., Any] | None]] = {
    "layer_norm": (lambda a, w, b: F.layer_norm(a, (4,), w, b), (A, W, B), lambda a, w, b: _standard(a, 1) * w + b),
    "layer_norm alone": (lambda a: F.layer_norm(a, (4,), eps=0.1), (A,), lambda a: _standard(a, 1, 0.1)),
    "layer_norm of two axes": (
        lambda a, w: F.layer_norm(a, (4, 3), w), (IMAGE, reals(4, 3, seed=9)), lambda a, w: _standard(a, (1, 2)) * w),
    "layer_norm without weight": (lambda a, b: F.layer_norm(a, (4,), None, b), (A, B), lambda a, b: _standard(a, 1) + b),
    "group_norm": (lambda a, w, b: F.group_norm(a, 2, w, b), (IMAGE, W, B), _grouped),
    "group_norm alone": (
        lambda a: F.group_norm(a, 2), (IMAGE,), lambda a: _grouped(a, torch.ones(4, dtype=a.dtype), torch.zeros(4, dtype=a.dtype))),
    "batch_norm": (_batch, (reals(5, 3), C, D), lambda a, w, b: _standard(a, 0) * w + b),
    "batch_norm of signals": (
        _batch, (reals(4, 3, 2), C, D), lambda a, w, b: _standard(a, (0, 2)) * w[:, None] + b[:, None]),
    "batch_norm alone": (lambda a: F.batch_norm(a, None, None, training=True), (reals(5, 3),), lambda a: _standard(a, 0)),
    "instance_norm": (
        lambda a, w, b: F.instance_norm(a, None, None, w, b), (IMAGE, W, B),
        lambda a, w, b: _standard(a, 2) * w[:, None] + b[:, None]),
    "batch_norm that is not trained": (
        lambda a, w, b: F.batch_norm(a, STILL, STILL.abs(), w, b), (reals(4, 3, 2), C, D),
        lambda a, w, b: (a - STILL[:, None]) / (STILL.abs() + 1e-5).sqrt()[:, None] * w[:, None] + b[:, None]),
    "rms_norm": (lambda a, w: F.rms_norm(a, (4,), w, 1e-3), (A, W), lambda a, w: a * (a.square().mean(1, True) + 1e-3).rsqrt() * w),
    "weight norm": (
        lambda v, g: torch._weight_norm(v, g, 0), (A, reals(3, 1)), lambda v, g: v * g / v.square().sum(1, keepdim=True).sqrt()),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_normalisation_by_its_definition(name: str) -> None:
    f, arguments, definition = NORMS[name]
    compare_all(f, *arguments, oracle=definition, tolerance=1e-7)


def _squared_gradient(f: Callable[..., Tensor], *which: int) -> Callable[..., Tensor]:
    """A function of first derivatives: that of a loss which penalises them, or of an equation."""

    def run(*arguments: Tensor) -> Tensor:
        wanted = [arguments[k] for k in which]
        found = torch.autograd.grad(f(*arguments).square().sum(), wanted, create_graph=True)
        return torch.stack([g.square().sum() for g in found]).sum()

    return run


# torch raises in the second backward pass of the one, and takes the norm for a constant in that of the other
@pytest.mark.parametrize("name", [name for name in NORMS if name not in ("layer_norm without weight", "weight norm")])
def test_recorded_backward_passes_of_normalisation(name: str) -> None:
    f, arguments, definition = NORMS[name]
    for which in (tuple(range(len(arguments))), (0,)):
        oracle = definition and _squared_gradient(definition, *which)
        compare(_squared_gradient(f, *which), *arguments, oracle=oracle, tolerance=1e-7, orders=2)


@pytest.mark.parametrize("name", ONE)
def test_recorded_backward_passes_of_softmax_and_its_kind(name: str) -> None:
    compare(_squared_gradient(ONE[name], 0), A, orders=2)


def test_dropout() -> None:
    torch.manual_seed(0)
    dropped = torch.native_dropout
    for f in (lambda a: dropped(a, 0.5, True)[0], lambda a: dropped(a, 1.0, True)[0], lambda a: F.dropout(a, 0.5)):
        y = f(A * A)
        run = Run(y, [A])
        (expected,) = torch.autograd.grad(y.sum(), A, retain_graph=True)
        torch.testing.assert_close(run.gradient(torch.ones_like(y))[0], expected)


Q, K, V = reals(2, 2, 3, 4), reals(2, 2, 5, 4, seed=1), reals(2, 2, 5, 4, seed=2)
ALLOWED = torch.tensor([[True, True, False, True, False], [False, True, True, True, True], [True, False, False, True, True]])
ADDED = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, is_causal: bool = False, scale: float | None = None) -> Tensor:
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = torch.ones(scores.shape[-2:]).tril().bool()
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1) @ v


@pytest.mark.parametrize("how", [
    {}, {"is_causal": True}, {"mask": ALLOWED}, {"mask": ADDED}, {"scale": 0.3},
], ids=lambda how: ", ".join(how) or "plain")  # fmt: skip
@pytest.mark.parametrize("axes", [2, 3, 4])
def test_attention_by_its_definition(how: dict[str, Any], axes: int) -> None:
    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        given = {"attn_mask" if name == "mask" else name: value for name, value in how.items()}
        return F.scaled_dot_product_attention(q, k, v, **given)

    arguments = [x[(0,) * (4 - axes)].detach().requires_grad_() for x in (Q, K, V)]
    compare_all(attention, *arguments, oracle=lambda q, k, v: _attention(q, k, v, **how))


def test_attention_with_the_same_array_and_with_fewer_heads() -> None:
    compare(lambda q: F.scaled_dot_product_attention(q, q, q), Q, oracle=lambda q: _attention(q, q, q))
    few = [x[:, :1].detach().requires_grad_() for x in (K, V)]
    compare(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), Q, *few,
        oracle=lambda q, k, v: _attention(q, k.repeat(1, 2, 1, 1), v.repeat(1, 2, 1, 1)))  # fmt: skip


def test_a_mask_may_be_tracked_or_allow_nothing() -> None:
    mask = ADDED.clone().requires_grad_()
    compare(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), Q, K, V, mask)
    nothing = ALLOWED.clone()
    nothing[1] = False
    q, k, v = (x[0].detach().requires_grad_() for x in (Q, K, V))
    compare_all(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, nothing), q, k, v)


def test_weights_that_were_dropped_are_refused() -> None:
    class Node:
        fn = F.scaled_dot_product_attention(Q, K, V).grad_fn

        def saved(self, name: str) -> float:
            return 0.5

    with pytest.raises(UnsupportedNode, match=r"ForCpuBackward0 with dropout_p=0.5; expected 0, because the node does not keep which"):
        RULES["ScaledDotProductFlashAttentionForCpuBackward0"](None, Node(), ())


@pytest.mark.parametrize("make", [
    lambda: torch.nn.MultiheadAttention(4, 2, dtype=torch.float64, batch_first=True),
    lambda: torch.nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, dtype=torch.float64, batch_first=True),
    lambda: torch.nn.LSTM(4, 3, dtype=torch.float64), lambda: torch.nn.GRU(4, 3, dtype=torch.float64),
    lambda: torch.nn.RNN(4, 3, dtype=torch.float64),
], ids=["MultiheadAttention", "TransformerEncoderLayer", "LSTM", "GRU", "RNN"])  # fmt: skip
def test_modules_of_torch(make: Callable[[], torch.nn.Module]) -> None:
    torch.manual_seed(1)
    module = make()

    def run(x: Tensor) -> Tensor:
        found = module(x, x, x) if isinstance(module, torch.nn.MultiheadAttention) else module(x)
        return found[0] if isinstance(found, tuple) else found

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        compare(run, reals(2, 3, 4), orders=2, tolerance=1e-8)
