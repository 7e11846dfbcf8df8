"""Nodes of losses: the adopted graph has the derivatives of torch's nested backward passes, in every reduction."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from adopted import Run, compare, compare_all, reals

F = torch.nn.functional
Tensor = torch.Tensor

A, B = reals(3, 4), reals(3, 4, seed=1)
P, Q = reals(3, 4, seed=2, low=0.1, high=0.6), reals(3, 4, seed=3, low=0.1, high=0.6)
WEIGHT = reals(4, seed=4, low=0.5, high=2.0).detach()
SIGNS = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
CLASSES = torch.tensor([0, 1, 3])
GRID = torch.tensor([[[0, 1], [2, 2]], [[1, -100], [0, 1]]])


def _each(reduction: str) -> str:
    return "batchmean" if reduction == "mean" else reduction


LOSSES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "mse": (F.mse_loss, (A, B)),
    "mse that broadcasts": (lambda a, b, **how: F.mse_loss(a, b.expand(3, 4), **how), (A, reals(1, 4, seed=1))),
    "l1": (F.l1_loss, (A, B)),
    "smooth_l1": (lambda a, b, **how: F.smooth_l1_loss(a, b, beta=0.6, **how), (A, B)),
    "smooth_l1 without a curve": (lambda a, b, **how: F.smooth_l1_loss(a, b, beta=0.0, **how), (A, B)),
    "huber": (lambda a, b, **how: F.huber_loss(a, b, delta=0.6, **how), (A, B)),
    "binary_cross_entropy": (F.binary_cross_entropy, (P, Q)),
    "binary_cross_entropy with weights": (lambda p, q, **how: F.binary_cross_entropy(p, q, WEIGHT, **how), (P, Q)),
    "with logits": (F.binary_cross_entropy_with_logits, (A, Q)),
    "with logits and weights": (lambda a, q, **how: F.binary_cross_entropy_with_logits(a, q, WEIGHT, **how), (A, Q)),
    "with logits and weights of what is true": (
        lambda a, q, **how: F.binary_cross_entropy_with_logits(a, q, WEIGHT, pos_weight=WEIGHT.flip(0), **how), (A, Q)),
    "kl_div": (lambda a, q, reduction: F.kl_div(a, q, reduction=_each(reduction)), (A, Q)),
    "kl_div of logarithms": (lambda a, b, reduction: F.kl_div(a, b, reduction=_each(reduction), log_target=True), (A, B)),
    "poisson_nll": (lambda a, q, **how: F.poisson_nll_loss(a, q, full=True, **how), (A, Q)),
    "gaussian_nll": (F.gaussian_nll_loss, (A, B, P)),
    "cross_entropy": (lambda a, **how: F.cross_entropy(a, CLASSES, **how), (A,)),
    "cross_entropy with weights": (
        lambda a, **how: F.cross_entropy(a, CLASSES, WEIGHT, label_smoothing=0.1, ignore_index=1, **how), (A,)),
    "cross_entropy of probabilities": (lambda a, q, **how: F.cross_entropy(a, q, WEIGHT, label_smoothing=0.1, **how), (A, Q)),
    "nll of one": (lambda a, **how: F.nll_loss(a, torch.tensor(1), **how), (reals(4),)),
    "nll with weights": (lambda a, **how: F.nll_loss(a * a, CLASSES, WEIGHT, **how), (A,)),
    "nll of signals": (lambda a, **how: F.nll_loss(a, GRID[0], **how), (reals(2, 3, 2),)),
    "nll of images": (lambda a, **how: F.nll_loss(a, GRID, WEIGHT[:3], **how), (reals(2, 3, 2, 2),)),
    "nll of more": (lambda a, **how: F.nll_loss(a * a, GRID[:, :, None], **how), (reals(2, 3, 2, 1, 2),)),
    "soft_margin": (lambda a, **how: F.soft_margin_loss(a, SIGNS.expand(3, 4), **how), (A,)),
    "multilabel_soft_margin": (lambda a, q, **how: F.multilabel_soft_margin_loss(a, q, **how), (A, Q)),
    "hinge_embedding": (lambda a, **how: F.hinge_embedding_loss(a, SIGNS.expand(3, 4), **how), (A,)),
    "cosine_embedding": (lambda a, b, **how: F.cosine_embedding_loss(a, b, SIGNS[:3], **how), (A, B)),
    "margin_ranking": (lambda a, b, **how: F.margin_ranking_loss(a, b, SIGNS.expand(3, 4), **how), (A, B)),
    "triplet_margin": (lambda a, b, c, **how: F.triplet_margin_loss(a, b, c, **how), (A, B, P)),
}  # fmt: skip


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_have_the_derivatives_of_torch(name: str, reduction: str) -> None:
    f, arguments = LOSSES[name]
    check = compare_all if reduction == "mean" else compare
    check(lambda *xs: f(*xs, reduction=reduction), *arguments, tolerance=1e-8)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_recorded_backward_passes_of_losses(name: str, reduction: str) -> None:
    f, arguments = LOSSES[name]

    def penalty(*xs: Tensor) -> Tensor:
        found = torch.autograd.grad(f(*xs, reduction=reduction).square().sum(), xs, create_graph=True)
        return torch.stack([g.square().sum() for g in found]).sum()

    compare(penalty, *arguments, orders=2, tolerance=1e-8)


@pytest.mark.parametrize("f", [F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits])
def test_a_loss_of_the_same_array_twice_and_of_one_number(f: Callable[[Tensor, Tensor], Tensor]) -> None:
    compare(lambda a: f(a, a * a), A)
    compare(lambda a: f(a, a * 0.5), reals(seed=1))


def test_at_the_ends_of_the_curve_the_losses_are_linear() -> None:
    ends = torch.tensor([0.5, -0.5, 0.0], dtype=torch.float64, requires_grad=True)
    zero = torch.zeros(3, dtype=torch.float64)
    compare(lambda a: F.huber_loss(a, zero, delta=0.5), ends)
    compare(lambda a: F.smooth_l1_loss(a, zero, beta=0.5), ends)


def test_a_loss_of_which_nothing_counts_has_no_slope() -> None:
    y = F.nll_loss(A, torch.full((3,), -100))
    assert not Run(y, [A]).gradient(torch.ones_like(y))[0].any()


def test_probabilities_of_0_and_1_have_finite_derivatives() -> None:
    p = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    y = F.binary_cross_entropy(p, torch.tensor([0.25, 0.75], dtype=torch.float64), reduction="sum")
    assert Run(y, [p]).gradient(torch.ones_like(y))[0].isfinite().all()
