"""Losses: derivatives to third order against torch's, conventions at joints and edges, labels under vmap, bad input.

torch is the oracle where it is right; what it gets wrong, or what is a convention here, is worked out by hand.
"""

import math

import numpy as np
import pytest
import torch
from ladder import agree, of_nestgrad, weights

import nestgrad as ng
from nestgrad.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError

BACKENDS = {"numpy": ng.NumpyBackend(), "torch": ng.TorchBackend(dtype="float64")}
RNG = np.random.default_rng(3)
X, Y, P, Q = RNG.normal(size=(3, 4)) * 1.4, RNG.normal(size=(3, 4)), RNG.uniform(0.1, 0.9, (3, 4)), RNG.uniform(0.1, 0.9, (3, 4))
REDUCTIONS = ("mean", "sum", "none")


@pytest.fixture(params=BACKENDS, scope="module")
def base(request):
    return BACKENDS[request.param]


def whole(loss):
    """One number, cubed so that no order is zero; the tenth keeps derivatives of the size of 1."""
    return ((loss + 1.0) * 0.1).square().sum() + ((loss + 1.0) * 0.1).sum() ** 3


PAIRS = {
    "mse_loss": (X, Y, {}), "l1_loss": (X, Y, {}), "huber_loss": (X, Y, {"delta": 0.8}), "smooth_l1_loss": (X, Y, {"beta": 0.6}),
    "poisson_nll_loss": (X, 3 * P, {"full": True}), "kl_div": (X, P, {}), "binary_cross_entropy": (P, Q, {}),
    "binary_cross_entropy_with_logits": (X, P, {}),
}  # fmt: skip

DIGITS = {"binary_cross_entropy": 1e-9}
"""From the second derivative on torch adds 1e-12 to the probability and to its complement."""


@pytest.mark.filterwarnings("ignore:reduction:UserWarning")  # torch, of the mean of kl_div
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", PAIRS)
def test_losses_of_pairs_have_torchs_derivatives_to_third_order(base, name, reduction):
    x, y, options = PAIRS[name]
    agree(base, lambda F, a, b: whole(getattr(F, name)(a, b, reduction=reduction, **options)), [x, y], digits=DIGITS.get(name, 1e-11))


def test_the_normal_loss_and_the_divergence_of_logarithms(base):
    agree(base, lambda F, x, y, v: F.gaussian_nll_loss(x, y, v, full=True), [X, Y, P[:, :1]])
    agree(base, lambda F, x, y: F.kl_div(x, y, reduction="batchmean", log_target=True), [X, Y])


def test_weights_of_the_binary_losses():
    base, w = BACKENDS["numpy"], constant([1.0, 2.0, 0.5, 1.5])
    agree(base, lambda F, x, y: F.binary_cross_entropy_with_logits(x, y, weight=w(F), pos_weight=w(F) * 2.0), [X, P])
    agree(base, lambda F, x, y: F.binary_cross_entropy(x, y, weight=w(F)), [P, Q], digits=DIGITS["binary_cross_entropy"])


# classes

LABELS = {(3, 4): [2, 0, 3], (2, 3, 2): [[0, 2], [1, 1]], (4,): 1}


def constant(data):
    """What is no variable, for both libraries."""
    made = np.array(data)
    return lambda F: (BACKENDS["numpy"].tensor(made) if made.dtype.kind == "f" else made) if F is ng.nn else torch.tensor(made)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", LABELS)
def test_cross_entropy_of_labels_has_torchs_derivatives_to_third_order(shape, reduction):
    """With a weight for each class, smoothing, a label to ignore, and further axes."""
    base, x, labels = BACKENDS["numpy"], RNG.normal(size=shape), constant(LABELS[shape])
    w = constant(RNG.uniform(0.5, 2.0, shape[min(1, len(shape) - 1)]))
    agree(base, lambda F, x: whole(F.cross_entropy(x, labels(F), reduction=reduction)), [x])
    agree(base, lambda F, x: whole(F.cross_entropy(x, labels(F), reduction=reduction, label_smoothing=0.2)), [x])
    agree(base, lambda F, x: whole(F.cross_entropy(x, labels(F), weight=w(F), reduction=reduction, label_smoothing=0.1)), [x])
    agree(base, lambda F, x: whole(F.nll_loss(x, labels(F), weight=w(F), reduction=reduction)), [x])
    if shape != (4,):
        ignored = {"ignore_index": 0, "reduction": reduction}
        agree(base, lambda F, x: whole(F.cross_entropy(x, labels(F), label_smoothing=0.1, **ignored)), [x])
        agree(base, lambda F, x: whole(F.cross_entropy(x, labels(F), weight=w(F), label_smoothing=0.1, **ignored)), [x])


def test_the_weight_of_a_class_is_differentiated_by(base):
    """torch refuses to. The loss is a ratio of sums, written out."""
    x, w = RNG.normal(size=(3, 4)), RNG.uniform(0.5, 2.0, 4)
    log_p = x - np.log(np.exp(x).sum(1, keepdims=True))
    picked, total = -log_p[[0, 1, 2], [2, 0, 2]], w[2] + w[0] + w[2]
    loss = (w[2] * (picked[0] + picked[2]) + w[0] * picked[1]) / total
    (first,) = of_nestgrad(base, lambda F, w: F.cross_entropy(base.tensor(x), [2, 0, 2], weight=w), [w], 1)
    assert first[0] == pytest.approx([(picked[1] - loss) / total, 0.0, (picked[0] + picked[2] - 2 * loss) / total, 0.0], rel=1e-12)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2), (4,)])
def test_cross_entropy_of_probabilities_is_differentiated_by_both(shape, reduction):
    base, x, t = BACKENDS["torch"], RNG.normal(size=shape), RNG.uniform(0.1, 0.9, shape)
    w = RNG.uniform(0.5, 2.0, shape[min(1, len(shape) - 1)])
    agree(base, lambda F, x, t: whole(F.cross_entropy(x, t, reduction=reduction)), [x, t])
    agree(base, lambda F, x, t, w: whole(F.cross_entropy(x, t, weight=w, reduction=reduction, label_smoothing=0.3)), [x, t, w])


def test_masked_classes_leave_value_and_derivatives_finite(base):
    """A logit of minus infinity: what the other classes alone give, and exactly 0 for itself, with labels and with probabilities."""
    inf = math.inf
    x, kept = np.array([[0.3, -inf, 1.2, -0.5], [-inf, 0.1, 0.4, 2.0]]), np.array([[0.3, 1.2, -0.5], [0.1, 0.4, 2.0]])
    labels, fewer = np.array([2, 3]), np.array([1, 2])
    sure = np.array([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    right = of_nestgrad(base, lambda F, x: whole(F.cross_entropy(x, fewer)), [kept], 3)
    for target in (labels, base.tensor(sure)):
        stack = ng.Autodiff(ng.Autodiff(base))
        v = stack.tensor(x, requires_grad=True)
        y = whole(ng.nn.cross_entropy(v, target))
        g = y.wrt(v)
        h = (g[0, 2] * 2.0 + g[1, 3]).wrt(v)
        assert g.numpy()[np.isinf(x)].tolist() == h.numpy()[np.isinf(x)].tolist() == [0.0, 0.0]
        assert g.numpy()[np.isfinite(x)] == pytest.approx(np.ravel(right[0][0]), rel=1e-12)
        assert np.isfinite(h.numpy()).all()
    assert ng.nn.cross_entropy(base.tensor(x), [1, 0], reduction="none").tolist() == [inf, inf]


def test_far_logits_keep_their_differences(base):
    """A common shift of a billion does not matter, nor does a class that is certain."""
    x = np.array([[0.25, -1.0, 0.5]])
    near, far = (ng.nn.cross_entropy(base.tensor(x + shift), [0]).item() for shift in (0.0, 2.0**30))
    assert far == pytest.approx(near, rel=1e-15)
    stack = ng.Autodiff(ng.Autodiff(base))
    v = stack.tensor([40.0, 0.0], requires_grad=True)
    g = ng.nn.cross_entropy(v, 1).wrt(v)
    assert g[0].wrt(v)[0].item() == pytest.approx(math.exp(-40.0), rel=1e-10)


def test_labels_may_differ_by_the_sample_of_a_batch(base):
    """vmap over logits and labels, over labels alone, with a weight, inside a gradient: what a loop gives."""
    x, labels = base.tensor(RNG.normal(size=(4, 3, 5))), base.tensor([[2, 0, 4], [3, 2, 2], [1, 1, 0], [4, 3, 2]])
    weight = base.tensor(RNG.uniform(0.5, 2.0, 5))
    f = lambda x, labels: ng.nn.cross_entropy(x, labels, weight=weight, label_smoothing=0.1, ignore_index=2)
    g = ng.func.grad(f)
    loop = np.stack([g(x[k], labels[k]).numpy() for k in range(4)])
    assert ng.func.vmap(g)(x, labels).numpy() == pytest.approx(loop, rel=1e-12, abs=1e-14)
    alone = np.stack([f(x[0], labels[k]).numpy() for k in range(4)])
    assert ng.func.vmap(lambda t: f(x[0], t))(labels).numpy() == pytest.approx(alone, rel=1e-13)
    hessian = lambda v, t: ng.func.hessian(lambda u: f(u, t))(v)
    loop = np.stack([hessian(x[k], labels[k]).numpy() for k in range(4)])
    assert ng.func.vmap(hessian)(x, labels).numpy() == pytest.approx(loop, rel=1e-11, abs=1e-14)


def test_a_mean_over_no_label_is_not_a_number(base):
    x = base.tensor(X)
    with np.errstate(all="ignore"):
        assert math.isnan(ng.nn.cross_entropy(x, [-100, -100, -100]).item())
    assert ng.nn.cross_entropy(x, [-100, -100, -100], reduction="sum").item() == 0.0


# conventions


@pytest.mark.parametrize("d", [0.7, -0.7])
def test_at_the_joint_the_second_derivative_is_that_of_the_line(base, d):
    f = lambda F, x: F.huber_loss(x, 0.0, reduction="sum", delta=0.7)
    first, second = of_nestgrad(base, f, [np.array([d, 0.0])], 2)
    assert np.ravel(first) == pytest.approx([d, 0.0], rel=1e-14, abs=0)
    assert of_nestgrad(base, lambda F, x: F.smooth_l1_loss(x, 0.0, reduction="sum", beta=0.7), [np.array([d])], 1)[0][0] == pytest.approx(
        [math.copysign(1.0, d)], rel=1e-14
    )
    # within, the curvature is 1: what comes out is the weight of the sum that is differentiated
    assert np.ravel(second).tolist() == [0.0, weights([np.zeros(2)])[0][1]]


def test_the_absolute_difference_of_equals_has_derivative_zero(base):
    for f in (lambda F, x: F.l1_loss(x, 1.5), lambda F, x: F.smooth_l1_loss(x, 1.5, beta=0.0)):
        assert [np.ravel(g[0]).tolist() for g in of_nestgrad(base, f, [np.array([1.5])], 2)] == [[0.0], [0.0]]


def test_certain_probabilities(base):
    """At 0 and 1: 0 where the target agrees, 100 and no derivative where it does not; no infinity at any order."""
    x, t = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])
    f = lambda F, x: F.binary_cross_entropy(x, base.tensor(t), reduction="sum")
    assert ng.nn.binary_cross_entropy(base.tensor(x), base.tensor(t), reduction="none").tolist() == [0.0, 0.0, 100.0, 100.0]
    first, second = of_nestgrad(base, f, [x], 2)
    assert first[0].tolist() == [1.0, -1.0, 0.0, 0.0]
    assert np.isfinite(second[0]).all()
    assert ng.nn.binary_cross_entropy(base.tensor([1e-20]), 0.0).item() == pytest.approx(1e-20, rel=1e-12)


@pytest.mark.parametrize(("x", "t"), [(40.0, 1.0), (-40.0, 0.0)])
def test_a_confident_logit_keeps_its_digits_to_second_order(base, x, t):
    """exp(-40) log(1 + exp(-40)): value, slope and curvature are all of that size."""
    tail = math.exp(-40.0)
    first, second = of_nestgrad(base, lambda F, v: F.binary_cross_entropy_with_logits(v, t), [np.array(x)], 1), None
    stack = ng.Autodiff(ng.Autodiff(base))
    v = stack.tensor(x, requires_grad=True)
    y = ng.nn.binary_cross_entropy_with_logits(v, t)
    second = y.wrt(v).wrt(v)
    assert y.item() == pytest.approx(tail, rel=1e-10)
    assert float(first[0][0]) == pytest.approx(math.copysign(tail, -x), rel=1e-10)
    assert second.item() == pytest.approx(tail, rel=1e-10)


def test_probability_zero_contributes_nothing_to_the_divergence(base):
    x, t = np.array([-1.0, -math.inf, -2.0]), np.array([0.3, 0.0, 0.0])
    value = pytest.approx(0.3 * (math.log(0.3) + 1.0), rel=1e-14)
    assert ng.nn.kl_div(base.tensor(x), base.tensor(t), reduction="none").tolist() == [value, 0.0, 0.0]
    (g,) = of_nestgrad(base, lambda F, x: F.kl_div(x, base.tensor(t), reduction="sum"), [x], 1)
    assert g[0].tolist() == [-0.3, 0.0, 0.0]


def test_cosine_similarity_has_torchs_derivatives_and_is_finite_at_zero(base):
    agree(base, lambda F, x, y: whole(F.cosine_similarity(x, y, 1)), [X, Y])
    zero = np.zeros((1, 4))
    first, second, third = of_nestgrad(base, lambda F, x, y: F.cosine_similarity(x, y).sum(), [zero, Y[:1]], 3)
    assert first[0] == pytest.approx(Y[:1] / (1e-8 * np.linalg.norm(Y[:1])), rel=1e-12)
    assert first[1].tolist() == [[0.0] * 4]
    assert all(np.isfinite(g).all() for g in (*second, *third))
    both = of_nestgrad(base, lambda F, x, y: F.cosine_similarity(x, y).sum(), [zero, zero], 2)
    assert all(np.isfinite(g).all() for order in both for g in order)


def test_a_small_variance_counts_as_eps(base):
    f = lambda F, v: F.gaussian_nll_loss(base.tensor([1.0]), base.tensor([0.0]), v, eps=1e-2)
    (first,) = of_nestgrad(base, f, [np.array([1e-3])], 1)
    assert first[0].tolist() == [0.0]
    assert f(ng.nn, base.tensor([1e-3])).item() == pytest.approx((math.log(1e-2) + 100.0) / 2, rel=1e-14)


# bad input


def test_shapes_that_would_broadcast_are_refused():
    base = BACKENDS["numpy"]
    x, column = base.tensor([1.0, 2.0, 3.0]), base.tensor([[1.0], [2.0], [3.0]])
    for name in PAIRS:
        told = name.replace("smooth_l1", "huber")
        with pytest.raises(ShapeError, match=rf"{told}: got shapes \(3,\) and \(3, 1\); expected the same"):
            getattr(ng.nn, name)(x, column)
    assert ng.nn.mse_loss(x, 2.0).item() == pytest.approx(2 / 3, rel=1e-14)


def test_words_and_numbers_out_of_range_are_refused():
    x = BACKENDS["numpy"].tensor(X)
    with pytest.raises(ArgumentError, match="mse_loss: got reduction 'average'; expected 'mean', 'sum' or 'none'"):
        ng.nn.mse_loss(x, x, "average")
    with pytest.raises(ArgumentError, match="kl_div: got reduction 'max'; expected 'mean', 'sum', 'batchmean' or 'none'"):
        ng.nn.kl_div(x, x, "max")
    with pytest.raises(ArgumentError, match="huber_loss: got delta 0"):
        ng.nn.huber_loss(x, x, delta=0)
    with pytest.raises(ArgumentError, match=r"label_smoothing 1\.5; expected a number from 0 to 1"):
        ng.nn.cross_entropy(x, [0, 1, 2], label_smoothing=1.5)


def test_labels_that_are_no_classes_are_refused(base):
    x = base.tensor(X)
    for labels, wrong in (([0, 4, 1], 4), ([0, -1, 1], -1), ([0, -100, 7], 7)):
        for f in (ng.nn.cross_entropy, ng.nn.nll_loss):
            with pytest.raises(IndexRangeError, match=f"got label {wrong}; expected classes from 0 to 3, or -100 to ignore"):
                f(x, labels)
    with pytest.raises(ShapeError, match=r"cross_entropy: got labels of shape \(2,\) for shape \(3, 4\); expected \(3,\)"):
        ng.nn.cross_entropy(x, [0, 1])
    with pytest.raises(DTypeError, match="nll_loss: got positions of floats; expected whole numbers"):
        ng.nn.nll_loss(x, base.tensor([0.0, 1.0, 2.0]))
    with pytest.raises(ShapeError, match=r"cross_entropy: got probabilities of shape \(3,\) for shape \(3, 4\); expected the same"):
        ng.nn.cross_entropy(x, base.tensor([0.0, 1.0, 2.0]))
    with pytest.raises(ShapeError, match=r"nll_loss: got a weight of shape \(3,\); expected one for each of 4 classes"):
        ng.nn.nll_loss(x, [0, 1, 2], weight=base.tensor([1.0, 1.0, 1.0]))
    with pytest.raises(ShapeError, match="cross_entropy: got a number"):
        ng.nn.cross_entropy(base.tensor(1.0), 0)
