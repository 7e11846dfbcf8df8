"""Losses between numbers and their targets, and a similarity.

What holds for all: ``x`` is a Tensor or array, ``target`` one of the same shape, or one number. Both are differentiated by, at every order.
``reduction`` is ``"mean"`` or ``"sum"`` of all entries, or ``"none"``: one loss for each. Raises ``ShapeError`` if shapes differ,
``ArgumentError`` for another ``reduction``.
"""

import math
from typing import TYPE_CHECKING

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.functions.choose import where
from nestgrad.functions.elementwise import maximum
from nestgrad.nn.reduction import known, pair, reduced
from nestgrad.tensor.arguments import number
from nestgrad.tensor.axes import one_axis
from nestgrad.tensor.handle import Operand, as_tensor, first_beside, make, real

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = [
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "poisson_nll_loss", "gaussian_nll_loss", "kl_div", "cosine_similarity",
]  # fmt: skip


def mse_loss(x: Operand, target: Operand, reduction: str = "mean") -> "Tensor":
    """The squared difference.

    >>> from nestgrad import tensor
    >>> mse_loss(tensor([1.0, 2.0]), tensor([3.0, 2.0])).item()
    2.0
    """
    p, q = pair("mse_loss", x, target)
    return reduced("mse_loss", (p - q).square(), reduction)


def l1_loss(x: Operand, target: Operand, reduction: str = "mean") -> "Tensor":
    """The absolute difference. Its derivative where the two are equal is 0."""
    p, q = pair("l1_loss", x, target)
    return reduced("l1_loss", (p - q).abs(), reduction)


def huber_loss(x: Operand, target: Operand, reduction: str = "mean", delta: float = 1.0) -> "Tensor":
    """Half of the squared difference ``d`` where ``|d| < delta``, ``delta * (|d| - delta / 2)`` elsewhere.

    Its second derivative at ``|d| = delta`` is 0, as on the linear side. ``ArgumentError`` for a ``delta`` that is not positive.

    >>> huber_loss(3.0, 0.0).item()
    2.5
    """
    delta = number("huber_loss", "delta", delta)
    if not delta > 0:
        raise ArgumentError(f"huber_loss: got delta {delta}; expected a positive number")
    p, q = pair("huber_loss", x, target)
    d = p - q
    return reduced("huber_loss", make(d.b, d.b.huber(real(d), delta), d.marks), reduction)


def smooth_l1_loss(x: Operand, target: Operand, reduction: str = "mean", beta: float = 1.0) -> "Tensor":
    """The Huber loss over ``beta``, which is where it becomes linear: ``d * d / (2 * beta)``, then ``|d| - beta / 2``.

    Its second derivative at ``|d| = beta`` is 0. With ``beta`` 0 it is ``l1_loss``; ``ArgumentError`` for a negative one.

    >>> smooth_l1_loss(0.5, 0.0).item()
    0.125
    """
    beta = number("smooth_l1_loss", "beta", beta)
    if not beta >= 0:
        raise ArgumentError(f"smooth_l1_loss: got beta {beta}; expected 0 or a positive number")
    if beta == 0:
        return l1_loss(x, target, reduction)
    loss = huber_loss(x, target, known("smooth_l1_loss", reduction), beta)
    return loss if beta == 1.0 else loss / beta


def poisson_nll_loss(
    x: Operand, target: Operand, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> "Tensor":
    """Minus the logarithm of a Poisson probability, less what depends on the target alone.

    Args:
        x: The logarithm of the rate.
        target: Counts.
        log_input: If false, ``x`` is the rate itself, to which ``eps`` is added in the logarithm.
        full: Whether to add Stirling's approximation of ``log(target!)``, where the target is above 1.
        eps: See ``log_input``.
        reduction: See the module.
    """
    p, q = pair("poisson_nll_loss", x, target)
    t = as_tensor(q, p.b)
    loss = p.exp() - t * p if log_input else p - t * (p + number("poisson_nll_loss", "eps", eps)).log()
    if full:
        large = t > 1
        n = where(large, t, 1.0)
        loss = loss + where(large, n * n.log() - n + (n * (2 * math.pi)).log() * 0.5, 0.0)
    return reduced("poisson_nll_loss", loss, reduction)


def gaussian_nll_loss(
    x: Operand, target: Operand, var: Operand, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> "Tensor":
    """Minus the logarithm of a normal density, less its constant.

    Args:
        x: The mean.
        target: What was observed. It may broadcast to the shape of ``x``.
        var: The variance: of the shape of ``x``, or without its last axis, or with size 1 there.
        full: Whether to add the constant, ``log(2 pi) / 2``.
        eps: A smaller variance counts as ``eps``, and has derivative 0.
        reduction: See the module.
    """
    p = first_beside(x, target)
    far = p - target
    if far.shape != p.shape:
        raise ShapeError(f"gaussian_nll_loss: got shapes {p.shape} and {as_tensor(target).shape}; expected one that broadcasts to it")
    v = as_tensor(var, p.b)
    if v.shape == p.shape[:-1] and p.shape:
        v = v.reshape(*v.shape, 1)
    if v.shape not in (p.shape, (*p.shape[:-1], 1), ()):
        raise ShapeError(f"gaussian_nll_loss: got a variance of shape {v.shape} for shape {p.shape}; expected the same, or 1 or none last")
    v = v.clamp(number("gaussian_nll_loss", "eps", eps), None)
    loss = (v.log() + far.square() / v) * 0.5
    return reduced("gaussian_nll_loss", loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def kl_div(x: Operand, target: Operand, reduction: str = "mean", log_target: bool = False) -> "Tensor":
    """Kullback and Leibler's divergence of each entry: ``target * (log(target) - x)``, where ``x`` is the logarithm of a probability.

    Args:
        x: Logarithms.
        target: Probabilities; 0 contributes 0, and its derivative, which is infinite, is given as 0.
        reduction: ``"batchmean"``, too: the sum over the size of axis 0. The mathematical divergence is a sum over each distribution.
        log_target: Whether the target is given as logarithms.

    >>> kl_div(-1.0, 0.0).item()
    0.0
    """
    p, q = pair("kl_div", x, target)
    known("kl_div", reduction, ("mean", "sum", "batchmean", "none"))
    t = as_tensor(q, p.b)
    loss = t.exp() * (t - p) if log_target else _xlogy(t, p)
    if reduction == "batchmean":
        return loss.sum() / max(p.shape[0], 1) if p.shape else loss
    return reduced("kl_div", loss, reduction)


def _xlogy(t: "Tensor", x: "Tensor") -> "Tensor":
    """``t (log t - x)``, and 0 where ``t`` is 0."""
    return t * where(t == 0, 0.0, where(t == 0, 1.0, t).log() - x)


def cosine_similarity(x: Operand, y: Operand, axis: int = 1, eps: float = 1e-8) -> "Tensor":
    """The cosine of the angle between vectors along an axis: ``x . y / (max(|x|, eps) * max(|y|, eps))``.

    Args:
        x, y: Shapes that broadcast.
        axis: Of the vectors.
        eps: A shorter vector counts as of this length. So the derivatives at a vector of zeros are those of ``x . y / (eps * |y|)``: large,
            but finite.

    Returns:
        The shape without ``axis``.

    >>> from nestgrad import tensor
    >>> cosine_similarity(tensor([3.0, 4.0]), tensor([4.0, 3.0]), axis=0).item()
    0.96
    """
    p = as_tensor(x)
    q = as_tensor(y, p.b)
    dot = p * q
    k = one_axis(dot, axis, "cosine_similarity")
    least = number("cosine_similarity", "eps", eps) ** 2
    lengths = [maximum(_spread_along(v, dot.shape, k).square().sum(k - dot.ndim), least) for v in (p, q)]
    return dot.sum(k) / (lengths[0].sqrt() * lengths[1].sqrt())


def _spread_along(v: "Tensor", shape: tuple[int, ...], axis: int) -> "Tensor":
    """``v`` with all its entries along ``axis`` of ``shape``, to which it broadcasts: a single one is a vector of equal ones."""
    place = axis - len(shape)
    whole = -place <= v.ndim and v.shape[place] == shape[axis]
    return v if whole else v.broadcast_to(shape)
