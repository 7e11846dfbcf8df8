"""The CTC loss against the sum over all alignments, and against PyTorch's."""

import itertools
import math

import numpy as np
import pytest
import torch

import nestgrad as ng
from nestgrad.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from nestgrad.testing import check_grads

BACKENDS = [ng.NumpyBackend(), ng.TorchBackend(dtype="float64")]
RNG = np.random.default_rng(3)
LOGITS = RNG.normal(size=(5, 3, 4))
TARGETS, INPUTS, SIZES = [[1, 2, 0], [1, 1, 0], [3, 2, 1]], [5, 4, 5], [2, 2, 3]


def loss(x, **options):
    return ng.nn.ctc_loss(x.log_softmax(2), TARGETS, INPUTS, SIZES, **options)


def by_alignments(logits):
    """Every path of classes that spells the target, without repetitions and blanks."""
    p = np.exp(logits - np.log(np.exp(logits).sum(2, keepdims=True)))
    found = []
    for n, (steps, size) in enumerate(zip(INPUTS, SIZES, strict=True)):
        total = 0.0
        for path in itertools.product(range(4), repeat=steps):
            if [c for c, _ in itertools.groupby(path) if c] == TARGETS[n][:size]:
                total += math.prod(p[t, n, c] for t, c in enumerate(path))
        found.append(-math.log(total))
    return np.array(found)


@pytest.mark.parametrize("base", BACKENDS, ids=repr)
def test_it_is_the_sum_over_all_alignments(base):
    np.testing.assert_allclose(loss(base.tensor(LOGITS), reduction="none").numpy(), by_alignments(LOGITS), rtol=1e-12)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("base", BACKENDS, ids=repr)
def test_value_and_gradient_are_torchs(base, reduction):
    x = ng.Autodiff(base).tensor(LOGITS, requires_grad=True)
    y = loss(x, reduction=reduction)
    z = torch.tensor(LOGITS, requires_grad=True)
    want = torch.nn.functional.ctc_loss(z.log_softmax(2), torch.tensor(TARGETS), torch.tensor(INPUTS), torch.tensor(SIZES), 0, reduction)
    want.sum().backward()
    np.testing.assert_allclose(y.numpy(), want.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(y.wrt(x).numpy(), z.grad.numpy(), rtol=1e-10, atol=1e-13)


def test_third_order_and_samples():
    base = BACKENDS[0]
    check_grads(lambda x: loss(x, reduction="sum"), [base.tensor(LOGITS)], 3, stack=base)
    many = base.tensor(np.stack([LOGITS, 0.5 * LOGITS]))
    got = ng.func.vmap(ng.func.grad(loss))(many)
    for k in range(2):
        np.testing.assert_allclose(got[k].numpy(), ng.func.grad(loss)(many[k]).numpy(), rtol=1e-12)


def test_targets_that_do_not_fit_have_probability_zero():
    x = ng.Autodiff(BACKENDS[0]).tensor(LOGITS[:2], requires_grad=True)
    call = lambda **options: ng.nn.ctc_loss(x.log_softmax(2), TARGETS, [2, 2, 2], SIZES, reduction="none", **options)
    assert call().tolist()[1:] == [math.inf, math.inf] and math.isfinite(call().tolist()[0])
    y = call(zero_infinity=True)
    assert y.tolist()[1:] == [0.0, 0.0]
    g = y.wrt(x).numpy()
    assert np.isfinite(g).all() and not g[:, 1:].any() and g[:, 0].any()


def test_what_does_not_fit_is_told():
    x = BACKENDS[0].tensor(LOGITS)
    for arguments, error, text in [
        ((TARGETS[:2], INPUTS, SIZES), ShapeError, r"got log_probs of shape \(5, 3, 4\), 2 targets, 3 and 3 lengths; expected \(T, N, C\)"),
        ((TARGETS, [6, 4, 5], SIZES), ShapeError, r"got input lengths \[6, 4, 5\].*expected 1 to 5"),
        ((TARGETS, INPUTS, [2, 2, 4]), ShapeError, "at most the targets'"),
        (([[1, 4, 0], [1, 1, 0], [3, 2, 1]], INPUTS, SIZES), IndexRangeError, "got label 4; expected classes from 0 to 3"),
        (([[1, 0, 0], [1, 1, 0], [3, 2, 1]], INPUTS, SIZES), IndexRangeError, "got label 0; expected .* not the blank, 0"),
        (([[1, 2.5, 0], [1, 1, 0], [3, 2, 1]], INPUTS, SIZES), DTypeError, "got targets or lengths that are no whole numbers"),
        (([1, 2, 3], INPUTS, SIZES), DTypeError, "expected a row of labels for each sequence"),
        ((TARGETS, [5.0, 4.5, 5.0], SIZES), DTypeError, "no whole numbers"),
        ((TARGETS, INPUTS, SIZES, 0, "median"), ArgumentError, "got reduction 'median'; expected 'mean', 'sum' or 'none'"),
    ]:
        with pytest.raises(error, match=text):
            ng.nn.ctc_loss(x, *arguments)
