"""Losses of classes: how improbable the right ones are.

``reduction`` is ``"mean"``, ``"sum"`` or ``"none"``. Labels are whole numbers, constants, which may differ by the sample of a batch.
"""

import math
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError, IndexRangeError, ShapeError
from nestgrad.functions.choose import where
from nestgrad.levels.coats import bare
from nestgrad.levels.marks import NONE
from nestgrad.nn.activations import log_sigmoid, log_softmax
from nestgrad.nn.reduction import known, pair, reduced
from nestgrad.tensor.arguments import number
from nestgrad.tensor.gathering import bounded
from nestgrad.tensor.handle import Handle, Operand, apply, as_tensor, first_beside, floating, make
from nestgrad.tensor.places import extremes, is_traced, whole

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "nll_loss", "cross_entropy"]


# two classes


def binary_cross_entropy(x: Operand, target: Operand, weight: Operand | None = None, reduction: str = "mean") -> "Tensor":
    """``-target * log(x) - (1 - target) * log(1 - x)`` of probabilities ``x``; each logarithm is at least -100.

    Args:
        x: Probabilities; NaN outside of [0, 1].
        target: Probabilities of the same shape, or one number.
        weight: Of each entry; broadcasts.
        reduction: See the module.

    Returns:
        Where a logarithm is below -100, which in double precision is only at 0 and 1, its derivative is 0.

    >>> binary_cross_entropy(0.0, 1.0).item()
    100.0
    """
    p, q = pair("binary_cross_entropy", x, target)
    loss = apply("bce", floating(p), q)
    return reduced("binary_cross_entropy", loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(
    x: Operand, target: Operand, weight: Operand | None = None, reduction: str = "mean", pos_weight: Operand | None = None
) -> "Tensor":
    """``binary_cross_entropy`` of ``sigmoid(x)``, without overflow and with all digits in both tails.

    Args:
        x: Any numbers.
        target: Probabilities of the same shape, or one number.
        weight: Of each entry; broadcasts.
        reduction: See the module.
        pos_weight: Of the part with ``target``; broadcasts.

    >>> binary_cross_entropy_with_logits(0.0, 1.0).item()
    0.6931471805599453
    """
    p, q = pair("binary_cross_entropy_with_logits", x, target)
    if pos_weight is None:
        loss = apply("bce_logits", floating(p), q)
    else:
        loss = -(q * as_tensor(pos_weight, p.b) * log_sigmoid(p) + (1.0 - q) * log_sigmoid(-p))
    return reduced("binary_cross_entropy_with_logits", loss if weight is None else loss * weight, reduction)


# many classes


def nll_loss(x: Operand, target: Operand, weight: Operand | None = None, ignore_index: int = -100, reduction: str = "mean") -> "Tensor":
    """``-x`` at the right class, where ``x`` holds logarithms of probabilities.

    Args:
        x: Shape ``(C,)``, ``(N, C)`` or ``(N, C, d1, ...)``.
        target: Classes: whole numbers of the shape without ``C``.
        weight: One for each class.
        ignore_index: A label that contributes nothing, and is not counted.
        reduction: ``"mean"`` is the sum over the sum of the weights of the labels; NaN if all are ignored.

    Raises:
        ShapeError: If the shapes do not fit.
        IndexRangeError: A label that is no class.
        DTypeError: Labels that are no whole numbers.

    >>> from nestgrad import tensor
    >>> nll_loss(tensor([[-1.0, -2.0], [-3.0, -4.0]]), tensor([1, 0])).item()
    2.5
    """
    x = first_beside(x, target)
    known("nll_loss", reduction)
    labels = _Labels("nll_loss", x, target, ignore_index)
    return labels.total(labels.picked(x), labels.weights(weight), reduction)


def cross_entropy(
    x: Operand,
    target: Operand,
    weight: Operand | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> "Tensor":
    """Minus the logarithm of the probability of the right class, where the probabilities are ``softmax(x)``.

    Args:
        x: Shape ``(C,)``, ``(N, C)`` or ``(N, C, d1, ...)``. A class that is ``-inf`` is masked, and finite wherever it is not wanted.
        target: Classes: whole numbers of the shape without ``C``; or probabilities of the shape of ``x``, which are differentiated by, too.
        weight: One for each class.
        ignore_index: A label that contributes nothing, and is not counted. Not for probabilities.
        reduction: ``"mean"`` is the sum over the sum of the weights of the labels; with probabilities, over their number.
        label_smoothing: How much of each target is spread evenly over all classes, from 0 to 1.

    Raises:
        ShapeError: If the shapes do not fit.
        IndexRangeError: A label that is no class.

    >>> from nestgrad import tensor
    >>> cross_entropy(tensor([[0.0, 0.0]]), tensor([1])).item()
    0.6931471805599453
    """
    x = first_beside(x, target)
    known("cross_entropy", reduction)
    label_smoothing = number("cross_entropy", "label_smoothing", label_smoothing)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(f"cross_entropy: got label_smoothing {label_smoothing}; expected a number from 0 to 1")
    axis, n = _classes("cross_entropy", x)
    log_p = log_softmax(floating(x), axis)
    if isinstance(target, Handle) or hasattr(target, "dtype"):
        given = as_tensor(target, x.b)
        if given.b.base.is_floating(bare(given.value)):
            return _of_probabilities(log_p, given, axis, weight, reduction, label_smoothing)
    labels = _Labels("cross_entropy", x, target, ignore_index)
    loss = labels.total(labels.picked(log_p), labels.weights(weight), reduction)
    if not label_smoothing:
        return loss
    every = -log_p if weight is None else -log_p * labels.along(_weight("cross_entropy", weight, x.b, n))
    spread = labels.total(every.sum(axis), labels.weights(weight), reduction, weighted=True)
    return loss * (1.0 - label_smoothing) + spread * (label_smoothing / n)


def _of_probabilities(log_p: "Tensor", target: "Tensor", axis: int, weight: Operand | None, reduction: str, smoothing: float) -> "Tensor":
    """``-target * log_p``, where 0 times minus infinity is 0."""
    if target.shape != log_p.shape:
        raise ShapeError(f"cross_entropy: got probabilities of shape {target.shape} for shape {log_p.shape}; expected the same")
    n = log_p.shape[axis]
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / n
    if weight is not None:
        target = target * _weight("cross_entropy", weight, log_p.b, n).reshape(n, *(1,) * (log_p.ndim - axis - 1))
    loss = -apply("mul0", target, log_p).sum(axis)
    return reduced("cross_entropy", loss, reduction)


def _classes(name: str, x: "Tensor") -> tuple[int, int]:
    """The axis of the classes, and their number."""
    if not x.shape:
        raise ShapeError(f"{name}: got a number; expected shape (C,), (N, C) or (N, C, d1, ...)")
    axis = min(1, x.ndim - 1)
    return axis, x.shape[axis]


def _weight(name: str, weight: Operand, b: Any, n: int) -> "Tensor":
    w = as_tensor(weight, b)
    if w.shape != (n,):
        raise ShapeError(f"{name}: got a weight of shape {w.shape}; expected one for each of {n} classes")
    return w


class _Labels:
    """The right classes, as positions along an axis of ``x``; those to ignore are 0 there, and are masked."""

    def __init__(self, name: str, x: "Tensor", target: Operand, ignore: int) -> None:
        self.name, self.b = name, x.b
        self.axis, self.n = _classes(name, x)
        b, n = x.b, self.n
        labels = whole(name, b, target)
        shape = (*x.shape[: self.axis], *x.shape[self.axis + 1 :])
        if tuple(b.shape(labels)) != shape:
            raise ShapeError(f"{name}: got labels of shape {tuple(b.shape(labels))} for shape {x.shape}; expected {shape}")
        traced = is_traced(labels)
        low, high = extremes(b, labels)
        self.mask = None
        if traced or low <= ignore <= high:
            self.mask = make(b, b.ne(labels, ignore), NONE)
            labels = b.where(self.mask.value, labels, 0)
            low, high = extremes(b, labels)
        if low < 0 or high >= n:
            raise IndexRangeError(
                f"{name}: got label {low if low < 0 else high}; expected classes from 0 to {n - 1}, or {ignore} to ignore"
            )
        self.places = bounded(b, labels, n) if traced else labels

    def picked(self, x: "Tensor") -> "Tensor":
        """``-x`` at the right class."""
        b, k = self.b, self.axis
        shape = tuple(b.shape(self.places))
        found = b.take_along(x.value, b.reshape(self.places, (*shape[:k], 1, *shape[k:])), k)
        return -make(b, b.reshape(found, shape), x.marks)

    def weights(self, weight: Operand | None) -> "Tensor | None":
        """The weight of each label."""
        if weight is None:
            return None
        w = _weight(self.name, weight, self.b, self.n)
        b, shape = self.b, tuple(self.b.shape(self.places))
        return make(b, b.reshape(b.rows(w.value, b.reshape(self.places, (math.prod(shape),))), shape), w.marks)

    def along(self, weight: "Tensor") -> "Tensor":
        """A weight for each class, which broadcasts."""
        return weight.reshape(self.n, *(1,) * (len(self.b.shape(self.places)) - self.axis))

    def total(self, loss: "Tensor", weights: "Tensor | None", reduction: str, weighted: bool = False) -> "Tensor":
        """The loss of each label, or its sum, or mean; ``weighted`` if it has its weights already."""
        if weights is not None and not weighted:
            loss = loss * weights
        if self.mask is not None:
            loss = where(self.mask, loss, 0.0)
        if reduction == "none":
            return loss
        if reduction == "sum":
            return loss.sum()
        if weights is not None:
            counted = weights if self.mask is None else where(self.mask, weights, 0.0)
        elif self.mask is None:
            return loss.mean()
        else:
            counted = self.mask.astype(loss.dtype)
        return loss.sum() / counted.sum()
