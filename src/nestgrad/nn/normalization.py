"""Normalisation: entries brought to mean 0 and variance 1.

Statistics are functions of the argument on all levels, so derivatives go through them, at every order. Where all entries are equal the
variance is 0, and ``eps`` keeps everything finite; with ``eps=0`` there is neither a value nor a derivative there, and both are NaN.
"""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from nestgrad.errors import ArgumentError, ShapeError
from nestgrad.tensor.arguments import number
from nestgrad.tensor.axes import shape_of
from nestgrad.tensor.handle import Operand, apply, as_tensor, floating, results

if TYPE_CHECKING:
    from nestgrad.tensor import Tensor

__all__ = ["layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm"]

Shape = tuple[int, ...]


def layer_norm(
    x: Operand, normalized_shape: int | Sequence[int], weight: Operand | None = None, bias: Operand | None = None, eps: float = 1e-5
) -> "Tensor":
    """``(x - mean) / sqrt(var + eps) * weight + bias``, with mean and population variance over the last axes.

    Ba, Kiros & Hinton, "Layer normalization", 2016.

    Args:
        x: Shape ``(..., *normalized_shape)``.
        normalized_shape: Sizes of the last axes, one at least; an int is one of them.
        weight: Of that shape; ``None`` is 1.
        bias: Of that shape; ``None`` is 0.
        eps: Added to the variance.

    Returns:
        The shape of ``x``. Differentiable in ``x``, ``weight`` and ``bias``. One op.

    Raises:
        ShapeError: If the last axes of ``x`` have other sizes, or ``weight`` or ``bias`` another shape.

    >>> from nestgrad import tensor
    >>> layer_norm(tensor([[1.0, 3.0], [0.0, 8.0]]), 2, eps=0.0).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """
    x = floating(x)
    sizes = _last("layer_norm", x, normalized_shape)
    _of_shape("layer_norm", "weight", weight, sizes)
    _of_shape("layer_norm", "bias", bias, sizes)
    return _standardised("layer_norm", x, weight, bias, tuple(range(x.ndim - len(sizes), x.ndim)), eps)


def rms_norm(x: Operand, normalized_shape: int | Sequence[int], weight: Operand | None = None, eps: float | None = None) -> "Tensor":
    """``x / sqrt(mean(x^2) + eps) * weight``, with the mean over the last axes.

    Zhang & Sennrich, "Root mean square layer normalization", NeurIPS 2019.

    Args:
        x: Shape ``(..., *normalized_shape)``.
        normalized_shape: Sizes of the last axes, one at least; an int is one of them.
        weight: Of that shape; ``None`` is 1.
        eps: Added to the mean square. ``None``: the spacing of the numbers of ``x`` next to 1.

    Returns:
        The shape of ``x``. Differentiable in ``x`` and ``weight``. One op.

    Raises:
        ShapeError: If the last axes of ``x`` have other sizes, or ``weight`` another shape.

    >>> from nestgrad import tensor
    >>> rms_norm(tensor([3.0, -3.0]), 2, eps=0.0).tolist()
    [1.0, -1.0]
    """
    x = floating(x)
    sizes = _last("rms_norm", x, normalized_shape)
    _of_shape("rms_norm", "weight", weight, sizes)
    axes = tuple(range(x.ndim - len(sizes), x.ndim))
    return results("rms_norm", x, _or(weight, 1.0), axes=axes, eps=_spacing(x) if eps is None else number("rms_norm", "eps", eps))[0]


def group_norm(
    x: Operand, num_groups: int, weight: Operand | None = None, bias: Operand | None = None, eps: float = 1e-5
) -> "Tensor":
    """Mean 0 and variance 1 for each sample and group of channels, then a weight and a bias for each channel.

    Wu & He, "Group normalization", ECCV 2018.

    Args:
        x: Shape ``(N, C, ...)``.
        num_groups: Into how many groups of equal size the ``C`` channels are divided, in their order.
        weight: Shape ``(C,)``; ``None`` is 1.
        bias: Shape ``(C,)``; ``None`` is 0.
        eps: Added to the variance.

    Returns:
        The shape of ``x``. Differentiable in ``x``, ``weight`` and ``bias``.

    Raises:
        ShapeError: If ``x`` has fewer than 2 axes, a group would have one entry only, or ``weight`` or ``bias`` another shape.
        ArgumentError: If the groups cannot be of equal size.
    """
    x = floating(x)
    n, channels, rest = channels_of("group_norm", x, 2)
    if not isinstance(num_groups, int) or num_groups < 1 or channels % num_groups:
        raise ArgumentError(f"group_norm: got {num_groups!r} groups for {channels} channels; expected a positive int that divides them")
    per = channels // num_groups
    _several("group_norm", x, per * prod(rest), "each group of a sample")
    scale, shift = _affine("group_norm", weight, bias, channels, (num_groups, per, 1))
    return _standardised("group_norm", x.reshape(n, num_groups, per, prod(rest)), scale, shift, (2, 3), eps).reshape(x.shape)


def instance_norm(x: Operand, *, weight: Operand | None = None, bias: Operand | None = None, eps: float = 1e-5) -> "Tensor":
    """Mean 0 and variance 1 for each sample and channel, then a weight and a bias for each channel.

    Ulyanov, Vedaldi & Lempitsky, "Instance normalization", 2016. Unlike torch's it takes no running statistics: with fixed ones it is
    ``batch_norm(x, mean, var, weight, bias)``.

    Args:
        x: Shape ``(N, C, ...)``, with one axis at least after the channels.
        weight: Shape ``(C,)``; ``None`` is 1.
        bias: Shape ``(C,)``; ``None`` is 0.
        eps: Added to the variance.

    Returns:
        The shape of ``x``. Differentiable in ``x``, ``weight`` and ``bias``.

    Raises:
        ShapeError: If ``x`` has fewer than 3 axes or one entry only for a channel, or ``weight`` or ``bias`` another shape.
    """
    x = floating(x)
    _, channels, rest = channels_of("instance_norm", x, 3)
    _several("instance_norm", x, prod(rest), "each channel of a sample")
    scale, shift = _affine("instance_norm", weight, bias, channels, (channels, *(1,) * len(rest)))
    return _standardised("instance_norm", x, scale, shift, tuple(range(2, x.ndim)), eps)


def batch_norm(
    x: Operand,
    running_mean: Operand | None = None,
    running_var: Operand | None = None,
    weight: Operand | None = None,
    bias: Operand | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> "tuple[Tensor, Tensor | None, Tensor | None]":
    """Mean 0 and variance 1 for each channel over all samples, then a weight and a bias for each channel.

    Ioffe & Szegedy, "Batch normalization", ICML 2015. **It differs from torch's in what it returns**: nothing is mutated, so there are
    three results, the output and the new running statistics. What a step hands to the next is cut with ``detach()``; the new statistics
    depend on ``x`` as long as they are not.

    Args:
        x: Shape ``(N, C, ...)``.
        running_mean: Shape ``(C,)``. Used if not ``training``.
        running_var: Shape ``(C,)``. Used if not ``training``.
        weight: Shape ``(C,)``; ``None`` is 1.
        bias: Shape ``(C,)``; ``None`` is 0.
        training: Whether the statistics are those of ``x``: its mean, and its population variance.
        momentum: How much of the new running statistics is that of ``x``; of its variance it is the sample's, over ``n - 1``.
        eps: Added to the variance.

    Returns:
        The output, of the shape of ``x``; the new running mean; the new running variance. The last two are those that were given if not
        ``training``, and ``None`` where ``None`` was given. All are differentiable in all arguments.

    Raises:
        ShapeError: If ``x`` has fewer than 2 axes, or one entry only for a channel in training; or what should have shape ``(C,)`` has not.
        ArgumentError: If there are no running statistics to be used.

    >>> from nestgrad import tensor
    >>> out, mean, var = batch_norm(tensor([[1.0], [3.0]]), tensor([0.0]), tensor([1.0]), training=True, momentum=0.5, eps=0.0)
    >>> out.tolist(), mean.tolist(), var.tolist()
    ([[-1.0], [1.0]], [1.0], [1.5])
    """
    x = floating(x)
    n, channels, rest = channels_of("batch_norm", x, 2)
    for word, given in (("running_mean", running_mean), ("running_var", running_var)):
        _of_shape("batch_norm", word, given, (channels,))
    wide = (channels, *(1,) * len(rest))
    scale, shift = _affine("batch_norm", weight, bias, channels, wide)
    means, variances = (None if v is None else as_tensor(v, x.b) for v in (running_mean, running_var))
    if not training:
        if means is None or variances is None:
            raise ArgumentError(
                "batch_norm: got no running_mean or no running_var; expected both, since not training. Try training=True, which takes "
                "the statistics of x"
            )
        r = (variances.reshape(wide) + number("batch_norm", "eps", eps)).rsqrt()
        factor = r if scale is None else r * scale
        offset = means.reshape(wide) * -factor  # so there is one pass over x; it rounds no more than x itself was rounded
        return apply("mul_add", x, factor, offset if shift is None else shift + offset), means, variances
    count = n * prod(rest)
    _several("batch_norm", x, count, "each channel in training")
    axes = (0, *range(2, x.ndim))
    out = _standardised("batch_norm", x, scale, shift, axes, eps)
    momentum = number("batch_norm", "momentum", momentum)
    if means is not None:
        means = means * (1.0 - momentum) + x.mean(axes) * momentum
    if variances is not None:
        variances = variances * (1.0 - momentum) + x.var(axes, correction=1) * momentum
    return out, means, variances


def _or(x: Any, instead: float) -> Any:
    return instead if x is None else x


def _last(name: str, x: "Tensor", normalized_shape: Any) -> Shape:
    """The sizes of the last axes."""
    sizes = shape_of(name, normalized_shape)
    if not sizes or tuple(x.shape[-len(sizes) :]) != sizes:
        raise ShapeError(f"{name}: got normalized_shape {normalized_shape!r} and x of shape {x.shape}; expected the sizes of its last axes")
    return sizes


def _of_shape(name: str, word: str, given: Any, shape: Shape) -> None:
    if given is None:
        return
    found = tuple(getattr(given, "shape", ()))
    if found != shape:
        raise ShapeError(f"{name}: got {word} of shape {found}; expected {shape}")


def channels_of(name: str, x: "Tensor", least: int) -> tuple[int, int, Shape]:
    """How many samples and channels, and the sizes of the other axes."""
    if x.ndim < least:
        axes = "(N, C, ...)" if least == 2 else "(N, C, L, ...)"
        raise ShapeError(f"{name}: got x of shape {x.shape}; expected {axes}, at least {least} axes. Try x[None] for a single sample")
    n, channels, *rest = x.shape
    return n, channels, tuple(rest)


def _several(name: str, x: "Tensor", count: int, of: str) -> None:
    if count == 1:
        raise ShapeError(f"{name}: got x of shape {x.shape}, with one entry for {of}; expected more, since the variance of one is 0")


def _affine(name: str, weight: Any, bias: Any, channels: int, wide: Shape) -> tuple[Any, Any]:
    """A weight and a bias of the channels, in a shape that broadcasts."""
    for word, given in (("weight", weight), ("bias", bias)):
        _of_shape(name, word, given, (channels,))
    scale, shift = (None if given is None else as_tensor(given).reshape(wide) for given in (weight, bias))
    return scale, shift


def _standardised(name: str, x: "Tensor", weight: Any, bias: Any, axes: Shape, eps: Any) -> "Tensor":
    return results("standardise", x, _or(weight, 1.0), _or(bias, 0.0), axes=axes, eps=number(name, "eps", eps))[0]


def _spacing(x: "Tensor") -> float:
    """The distance of the floating-point numbers of the dtype of ``x`` next to 1."""
    return {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}.get(str(x.dtype).removeprefix("torch."), 2.0**-52)
